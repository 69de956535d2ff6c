// The text of info about processes that the trace does not define.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "reader/render/info.hpp"
#include "tests/support/trace_builder.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

TEST_CASE("info: a process without a definition is not known, in plain words") {
  BlockBuilder defined = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  defined.add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}));
  defined.add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "main"));
  defined.add_full(ARCTRACE_TYPE_THREAD, 2, 0, thread_body(2, 77, 333, "other"));
  FileBuilder file;
  file.block(defined);
  file.finish(100);
  auto trace = Trace::open(memory_input("t", file.file()));
  REQUIRE(trace.ok());
  REQUIRE(trace->read([](const Record&) { return true; }).ok());
  const std::string text = info_text(*trace);
  CHECK(text.find("origin_0") == std::string::npos);
  CHECK(text.find("process 77 of the session, which the trace does not define") !=
        std::string::npos);
  CHECK(text.find("  -  333  ") != std::string::npos);

  std::string json_text;
  JsonWriter json([&](std::string_view piece) {
    json_text += piece;
    return true;
  });
  write_info_json(*trace, std::nullopt, json);
  json.finish();
  const auto info = nlohmann::json::parse(json_text);
  CHECK(info.at("processes").at(0).at("origin") == "exec");
  CHECK(info.at("processes").at(1).at("origin") == "not known");
}
