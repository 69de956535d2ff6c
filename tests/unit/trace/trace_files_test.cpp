// Files that are read repeatedly.
#include "reader/trace/trace_files.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/temporary_directory.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Trace;
using reader::TraceFiles;

void write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// A part of the recording `session`, that begins at `ticks` and has a text.
std::vector<std::byte> part(const std::string& text, uint64_t ticks = 10,
                            uint8_t session = 7) {
  ProcessFacts process;
  process.start_ticks = 5;
  FileBuilder file;
  file.header.session_id[0] = session;
  file.block(BlockBuilder::shared(2 * ticks, 5, ARCTRACE_CLASS_DEFINITIONS)
                 .add_full(ARCTRACE_TYPE_PROCESS, 1, 5, process_body(process))
                 .add_full(ARCTRACE_TYPE_THREAD, 1, 5, thread_body(1, 1, 100, "main", 5)),
             0, 0, ticks);
  file.block(BlockBuilder::shared(2 * ticks + 1, ticks)
                 .add_full(ARCTRACE_TYPE_TEXT, 1, ticks, text_body(text)),
             0, 1, ticks);
  return file.file();
}

// The texts that one reading finds.
std::string texts(const TraceFiles& files) {
  absl::StatusOr<Trace> trace = files.trace({}, [] { return false; });
  REQUIRE_MESSAGE(trace.ok(), trace.status().ToString());
  std::string all;
  for (const CollectedRecord& record : of_type(collect(*trace), ARCTRACE_TYPE_TEXT)) {
    for (const std::byte byte : record.body) {
      if (byte >= std::byte{'a'} && byte <= std::byte{'z'}) {
        all += static_cast<char>(byte);
      }
    }
    all += ' ';
  }
  return all;
}

std::string message_of(const std::vector<std::string>& paths) {
  const absl::StatusOr<TraceFiles> files = TraceFiles::open(paths);
  REQUIRE_FALSE(files.ok());
  return std::string(files.status().message());
}

TEST_CASE("each reading is of the file that was opened, whatever has its name by then") {
  const TemporaryDirectory directory;
  write_file(directory.path("a"), part("first"));
  write_file(directory.path("b"), part("second"));
  const absl::StatusOr<TraceFiles> files = TraceFiles::open({directory.path("a")});
  REQUIRE(files.ok());
  CHECK(texts(*files) == "first ");
  std::filesystem::rename(directory.path("b"), directory.path("a"));
  CHECK(texts(*files) == "first ");
  std::filesystem::remove(directory.path("a"));
  CHECK(texts(*files) == "first ");
}

TEST_CASE("parts are one trace, in the order in which they were written") {
  const TemporaryDirectory directory;
  const std::string early = directory.path("early"), late = directory.path("late"),
                    other = directory.path("other");
  write_file(early, part("early", 10));
  write_file(late, part("late", 20));
  write_file(other, part("other", 30, 8));
  for (const std::vector<std::string>& paths :
       {std::vector{early, late}, std::vector{late, early}}) {
    const absl::StatusOr<TraceFiles> files = TraceFiles::open(paths);
    REQUIRE(files.ok());
    CHECK(texts(*files) == "early late ");
    CHECK(texts(*files) == "early late ");
  }
  CHECK(message_of({early, other}) ==
        early + " and " + other + " are not of one recording");
  CHECK(message_of({early, early}) ==
        early + " and " + early + " are the same part of a recording");
}

TEST_CASE("files of one recording are put together, the same one twice is not") {
  const TemporaryDirectory directory;
  const std::string a = directory.path("a"), b = directory.path("b"),
                    other = directory.path("other"), none = directory.path("none");
  write_file(a, part("a", 10));
  write_file(b, part("b", 20));
  write_file(other, part("other", 30, 8));
  using Groups = std::vector<std::vector<std::string>>;
  CHECK(reader::group_parts({a, other, b, none}) == Groups{{a, b}, {other}, {none}});
  CHECK(reader::group_parts({a, a}) == Groups{{a}, {a}});
  CHECK(reader::group_parts({a, b, b, a}) == Groups{{a, b}, {b, a}});
}

TEST_CASE("what is no trace, or is not there, is said when it is opened or first read") {
  const TemporaryDirectory directory;
  const std::string nothing = directory.path("nothing"), junk = directory.path("junk");
  write_file(junk, std::vector<std::byte>(10'000, std::byte{'x'}));
  CHECK(message_of({nothing}) ==
        "cannot open " + nothing + ": No such file or directory");
  CHECK(message_of({junk, junk}) == junk + ": not an arctrace trace");
  const absl::StatusOr<TraceFiles> files = TraceFiles::open({junk});
  REQUIRE(files.ok());
  const absl::StatusOr<Trace> trace = files->trace({}, [] { return false; });
  REQUIRE_FALSE(trace.ok());
  CHECK(trace.status().message() == junk + ": not an arctrace trace");
}

TEST_CASE("a reading is ended from outside, and another one begins anew") {
  const TemporaryDirectory directory;
  write_file(directory.path("a"), part("first"));
  const absl::StatusOr<TraceFiles> files = TraceFiles::open({directory.path("a")});
  REQUIRE(files.ok());
  CHECK(files->trace({}, [] { return true; }).status().code() ==
        absl::StatusCode::kCancelled);
  bool stops = false;
  absl::StatusOr<Trace> trace = files->trace({}, [&] { return stops; });
  REQUIRE(trace.ok());
  stops = true;
  CHECK(trace->read([](const reader::Record& /*record*/) { return true; }).code() ==
        absl::StatusCode::kCancelled);
  stops = false;
  CHECK(collect(*trace).size() == 3);
  CHECK(texts(*files) == "first ");
}

TEST_CASE("several threads read at a time, each by a Trace of its own") {
  const TemporaryDirectory directory;
  write_file(directory.path("a"), part("early", 10));
  write_file(directory.path("b"), part("late", 20));
  const absl::StatusOr<TraceFiles> files =
      TraceFiles::open({directory.path("b"), directory.path("a")});
  REQUIRE(files.ok());
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        absl::StatusOr<Trace> trace = files->trace({}, [] { return false; });
        int records = 0;
        if (trace.ok() && trace
                              ->read([&](const reader::Record& /*record*/) {
                                ++records;
                                return true;
                              })
                              .ok()) {
          right += records == 6 ? 1 : 0;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 80);
}

}  // namespace
}  // namespace arctrace::testing
