// Records can be described whatever the bytes of a trace are: JSON stays valid, and no
// control character reaches the terminal. The sanitizers watch this test.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "reader/render/info.hpp"
#include "reader/streams/field_sink.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/trace/content_check.hpp"
#include "tests/support/damaged_trace.hpp"

namespace arctrace::testing {
namespace {

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

// Returns how many records could be described.
int describe_all(std::vector<std::byte> bytes) {
  auto trace = reader::Trace::open(reader::memory_input("t", std::move(bytes)));
  if (!trace.ok()) return 0;
  reader::Replay replay(trace->definitions(), nullptr);
  reader::RecordDescriber describer(*trace, replay.resolver(), {true, true});
  const reader::DescribeRecord describe = [&](const reader::Record& record,
                                              reader::FieldSink& out) {
    describer.describe(record, {}, out);
  };
  reader::ContentChecker checker(*trace);
  int records = 0;
  bool harmless = true;
  const absl::Status status = trace->read([&](const reader::Record& record) {
    ++records;
    replay.add(record);
    checker.check_untrusted(record);
    const std::string text = reader::content_text(describe, record);
    harmless = harmless && std::none_of(text.begin(), text.end(), is_control);
    const std::string members = reader::content_members(describe, record);
    harmless = harmless && nlohmann::json::accept("{" + members + "}");
    return true;
  });
  CHECK(status.ok());
  CHECK(harmless);
  std::string info = reader::info_text(*trace);
  std::erase(info, '\n');
  CHECK(std::none_of(info.begin(), info.end(), is_control));
  std::string info_json;
  reader::JsonWriter json([&](std::string_view piece) {
    info_json += piece;
    return true;
  });
  reader::write_info_json(*trace, std::nullopt, json);
  json.finish();
  CHECK(nlohmann::json::accept(info_json));
  return records;
}

TEST_CASE("damaged traces can be dumped") {
  const uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const std::vector<std::byte> file = rich_file().file();
  const std::vector<std::byte> buffer = rich_buffer().image();
  int records = 0;
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(round);
    records += round % 4 == 0
                   ? describe_all(damaged(buffer, ARCTRACE_CPUS_OFFSET, random))
                   : describe_all(damaged(file, ARCTRACE_HEADER_SIZE, random));
  }
  CHECK(records > 1500);
}

}  // namespace
}  // namespace arctrace::testing
