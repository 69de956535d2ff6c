// Missing files of a recording: how much was in them, and which file says so.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/trace/gaps.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/totals.hpp"
#include "reader/trace/trace.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Trace;

constexpr uint32_t kFiles = 4;
constexpr uint64_t kRecords = 10;  // in each file
constexpr uint64_t kKernel = 3;
constexpr uint64_t kFull = 2;  // lost in each file, as its LOST counts

// Facts that a file has about others.
struct Said {
  uint32_t removed = 0;       // how many files
  uint64_t begin_ticks = 5;   // when its collector began
  bool is_cut_off = false;    // the file has no end
  uint64_t records_more = 0;  // more than the files have
};

Bytes files_record(uint32_t what, uint32_t number, uint64_t files, uint64_t ticks,
                   const Said& said) {
  arctrace_files_body body{};
  body.what = what;
  body.number = number;
  body.begin_ticks = said.begin_ticks;
  body.records = files * kRecords + said.records_more;
  body.kernel = files * kKernel;
  body.lost[ARCTRACE_LOST_FULL] = files * kFull;
  body.removed_files = said.removed;
  body.removed_records = said.removed * kRecords;
  body.removed_kernel = said.removed * kKernel;
  body.removed_ticks = said.removed == 0 ? 0 : said.removed * 100 + 100;
  Bytes bytes;
  bytes.raw(&body, sizeof body);
  return full_record(ARCTRACE_TYPE_FILES, ARCTRACE_WRITER_COLLECTOR, ticks, bytes);
}

// File `number` of kFiles, whose time begins at 100 * number ns.
std::unique_ptr<reader::Input> file_of(uint32_t number, const Said& said) {
  const uint64_t begin = uint64_t{100} * number;
  FileBuilder file;
  file.records(full_record(ARCTRACE_TYPE_SESSION, ARCTRACE_WRITER_COLLECTOR, begin,
                           pair_body(ARCTRACE_SESSION_STARTED, number > 1 ? 1 : 0)));
  file.records(files_record(ARCTRACE_FILES_BEGIN, number, number - 1, begin, said));
  ProcessFacts process;
  process.start_ticks = 50;
  file.block(
      BlockBuilder::shared(0, 50, ARCTRACE_CLASS_DEFINITIONS)
          .add_full(ARCTRACE_TYPE_PROCESS, 1, 50, process_body(process))
          .add_full(ARCTRACE_TYPE_THREAD, 1, 50, thread_body(1, 1, 100, "main", 50)),
      ARCTRACE_CHUNK_LIVE_COPY);
  BlockBuilder block =
      BlockBuilder::exclusive(1, number - 1, number, begin + 10).stack(begin + 10, {});
  block.add(ARCTRACE_TYPE_LOST, begin + 10,
            lost_body(ARCTRACE_LOST_FULL, kFull, begin + 5));
  for (uint64_t i = 0; i < kRecords; ++i) {
    block.add(ARCTRACE_TYPE_TEXT, begin + 20, text_body("text"));
  }
  file.block(block, 0, number);
  if (said.is_cut_off) {
    return reader::memory_input("cut", file.file());
  }
  if (number < kFiles) {
    file.records(files_record(ARCTRACE_FILES_END, number, number, begin + 90, said));
  }
  file.finish(begin + 95);
  return reader::memory_input("file", file.file());
}

Trace read_files(const std::vector<std::pair<uint32_t, Said>>& files,
                 const reader::OpenOptions& options = {}) {
  std::vector<std::unique_ptr<reader::Input>> inputs;
  for (const auto& [number, said] : files) inputs.push_back(file_of(number, said));
  absl::StatusOr<Trace> trace = Trace::open(std::move(inputs), options);
  REQUIRE_MESSAGE(trace.ok(), trace.status().ToString());
  collect(*trace);
  return *std::move(trace);
}

// The gaps of the session and of the thread: "removed 5..300: 26".
std::string gaps_of(Trace& trace) {
  reader::GapFinder finder(trace.definitions(), &trace.clock(), trace.session().mode);
  std::string text;
  const auto add = [&text](const reader::Gap& gap) {
    if (gap.reason == reader::Gap::Reason::kLost) return;
    text += text.empty() ? "" : ", ";
    if (gap.thread != reader::kNoIndex) text += "thread ";
    text += reader::gap_reason_text(gap) + " " + std::to_string(gap.from_ns) + ".." +
            std::to_string(gap.to_ns);
    if (gap.records.has_value()) text += ": " + std::to_string(*gap.records);
  };
  REQUIRE(trace
              .read([&](const reader::Record& record) {
                if (const auto gap = finder.add(record)) add(*gap);
                return true;
              })
              .ok());
  for (const reader::Gap& gap : finder.finish(&trace.summary())) add(gap);
  return text;
}

uint64_t removed(const Trace& trace) {
  return trace.summary().lost_by_cause[ARCTRACE_LOST_REMOVED];
}

// The loss for the cause FULL; also checks that `lost` is the sum of its causes.
uint64_t full(const Trace& trace) {
  const reader::Summary& summary = trace.summary();
  uint64_t sum = 0;
  for (const uint64_t count : summary.lost_by_cause) sum += count;
  CHECK(summary.lost == sum);
  return summary.lost_by_cause[ARCTRACE_LOST_FULL];
}

constexpr uint64_t kInFile = kRecords + kKernel;

TEST_CASE("all files of a recording: nothing is missing") {
  Trace trace = read_files({{1, {}}, {2, {}}, {3, {}}, {4, {}}});
  CHECK(trace.summary().records == 4 * kRecords);
  CHECK(removed(trace) == 0);
  CHECK(trace.summary().elsewhere == 0);
  CHECK(full(trace) == 4 * kFull);
  CHECK(gaps_of(trace).empty());
  CHECK(trace.session().files.first == 1);
  CHECK(trace.session().files.last == 4);
  CHECK(trace.session().files.given == 4);
  CHECK_FALSE(trace.session().files.goes_on);
}

TEST_CASE("the recorder has removed the oldest files: their records are lost by that") {
  Trace trace = read_files({{3, {}}, {4, {.removed = 2}}});
  CHECK(trace.summary().records == 2 * kRecords);
  CHECK(removed(trace) == 2 * kInFile);
  CHECK(trace.summary().elsewhere == 0);
  CHECK(full(trace) == 4 * kFull);  // LOST in the removed files counted them
  CHECK(gaps_of(trace) == "removed 5..300: 26, thread removed 50..310");
  CHECK(trace.session().files.removed == 2);
}

TEST_CASE("a file alone: what was removed, and what is in files that are not read") {
  Trace trace = read_files({{4, {.removed = 2}}});
  CHECK(removed(trace) == 2 * kInFile);
  CHECK(trace.summary().elsewhere == kRecords);
  CHECK(full(trace) == 4 * kFull);
  CHECK(gaps_of(trace) ==
        "removed 5..300: 26, missing 300..400: 13, thread missing 50..410");
}

TEST_CASE("a recorder that was killed: the last file has no end") {
  Trace trace = read_files({{4, {.removed = 3, .is_cut_off = true}}});
  CHECK(removed(trace) == 3 * kInFile);
  CHECK(trace.summary().elsewhere == 0);
  CHECK_FALSE(trace.session().finished);
}

TEST_CASE("files that somebody else has removed, at the beginning and in the middle") {
  Trace trace = read_files({{3, {}}, {4, {}}});
  CHECK(removed(trace) == 0);
  CHECK(trace.summary().elsewhere == 2 * kRecords);
  CHECK(gaps_of(trace) == "missing 5..300: 26, thread missing 50..310");
  trace = read_files({{1, {}}, {4, {}}});
  CHECK(trace.summary().elsewhere == 2 * kRecords);
  CHECK(full(trace) == 4 * kFull);
  CHECK(gaps_of(trace) == "missing 110..400: 26, thread missing 120..410");
}

TEST_CASE("files of which the last one was cut off are not finished") {
  CHECK(read_files({{3, {}}, {4, {}}}).session().finished);
  CHECK_FALSE(read_files({{3, {}}, {4, {.is_cut_off = true}}}).session().finished);
}

TEST_CASE("the last file is not there: the recording goes on") {
  Trace trace = read_files({{1, {}}, {2, {}}});
  CHECK(trace.session().files.goes_on);
  CHECK(trace.summary().elsewhere == 0);
}

TEST_CASE("a removed file that is read all the same is not missing") {
  Trace trace = read_files({{1, {}}, {3, {}}, {4, {.removed = 2}}});
  CHECK(removed(trace) == kInFile);
  CHECK(trace.summary().elsewhere == 0);
}

TEST_CASE("a range has what was removed in it") {
  const auto removed_in = [](int64_t from_ns, int64_t until_ns) {
    const Trace trace =
        read_files({{3, {}}, {4, {.removed = 2}}}, {.range = {from_ns, until_ns}});
    return removed(trace);
  };
  CHECK(removed_in(200, 350) == 2 * kInFile);
  CHECK(removed_in(350, 400) == 0);
}

TEST_CASE("a file that was cut off may have had more: nothing is known of that") {
  Trace trace = read_files({{3, {.is_cut_off = true}}, {4, {}}});
  CHECK(trace.summary().elsewhere == 2 * kRecords);  // before both
}

TEST_CASE("each collector counts its own files") {
  Trace trace = read_files({{1, {}}, {2, {.begin_ticks = 200}}});
  CHECK(trace.summary().elsewhere == kRecords);  // its first one
}

TEST_CASE("counts that no recorder writes do no harm") {
  Trace trace = read_files({{1, {.records_more = UINT64_MAX / 2}}, {4, {}}});
  CHECK(trace.summary().elsewhere == UINT64_MAX / 2);  // before its first file
  trace = read_files({{3, {.removed = UINT32_MAX, .records_more = UINT64_MAX - 25}}});
  CHECK(removed(trace) > 0);
}

}  // namespace
TEST_CASE("times of missing files are met wherever they lie") {
  const reader::MissingFiles files[] = {
      {.from_ns = 500, .to_ns = 600},
      {.from_ns = 100, .to_ns = 400},
      {.from_ns = 200, .to_ns = 300},
      {.from_ns = 700, .to_ns = 800, .is_removed = true}};
  const reader::MissingTimes elsewhere(files, false), removed(files, true);
  CHECK(elsewhere.meet(0, 100));
  CHECK_FALSE(elsewhere.meet(0, 99));
  CHECK(elsewhere.meet(350, 360));
  CHECK(elsewhere.meet(400, 450));
  CHECK_FALSE(elsewhere.meet(401, 499));
  CHECK(elsewhere.meet(0, 1000));
  CHECK_FALSE(elsewhere.meet(601, 1000));
  CHECK_FALSE(removed.meet(0, 699));
  CHECK(removed.meet(750, 760));
  CHECK_FALSE(reader::MissingTimes({}, true).meet(INT64_MIN, INT64_MAX));
}

}  // namespace arctrace::testing
