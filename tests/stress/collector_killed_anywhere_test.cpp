// A collector is killed after its single instructions: while it takes a session over and
// drains it, while it takes a snapshot, while it recovers an abandoned buffer. No record
// is missing in all files together, none occurs twice, and no writer notices.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>

#include "src/base/shared_atomics.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recorder/snapshot/snapshot.hpp"
#include "tests/stress/cuts.hpp"
#include "tests/stress/neighbour.hpp"
#include "tests/support/child.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/single_step.hpp"
#include "tests/support/skip.hpp"

namespace arctrace::testing {
namespace {

// Runs `work` until it is killed after instruction `at`, or counts them in
// shared_word(). Returns how the process ended.
std::string run_killed(uint64_t at, const std::function<void()>& work) {
  return run_in_child([&] {
    const uint64_t steps = single_step(work, [at](uint64_t step) {
      if (step == at) kill(getpid(), SIGKILL);
      return true;
    });
    shared_word() = steps;
  });
}

// The content of all files of a session together.
class Files {
 public:
  // Adds a file that may be cut off.
  void add(const std::string& path) {
    const DecodedTrace trace = decode_trace(read_file(path));
    for (const std::string& problem : trace.problems) {
      // These problems come from the cut, and from what is in other files (COL-5).
      const std::string rule = problem.substr(0, 2);
      CHECK_MESSAGE((rule == "F5" || rule == "F6" || rule == "B5"), problem);
    }
    for (const DecodedBlock& block : trace.blocks) add_block(block);
    for (const DecodedRecord& record : trace.collector) {
      if (record.type == ARCTRACE_TYPE_LOST) add_lost(record);
    }
  }

  // The numbers of an event: all undamaged, none in two blocks.
  std::set<uint64_t> numbers_of(uint32_t event) const {
    std::set<uint64_t> numbers;
    for (const auto& block : blocks_) {
      for (const Record& record : block.second) {
        if (record.type != ARCTRACE_TYPE_EVENT || record.first != event) continue;
        REQUIRE(record.squared == checked(record.number).squared);
        REQUIRE(numbers.insert(record.number).second);
      }
    }
    return numbers;
  }

  // Counts losses that writers, and the collector for them, have put into LOST records.
  uint64_t lost() const {
    uint64_t sum = 0;
    for (const auto& [loss, count] : lost_) sum += count;
    for (const auto& block : blocks_) {
      for (const Record& record : block.second) {
        if (record.type == ARCTRACE_TYPE_LOST) sum += record.number;
      }
    }
    return sum;
  }

 private:
  // The parts of events and LOST records that are compared.
  struct Record {
    uint32_t offset, type, first;
    uint64_t number, squared;
    bool operator==(const Record&) const = default;
  };

  // Copies of one block have the same hand-out (BLK-5). One may be from a time when the
  // block was open.
  void add_block(const DecodedBlock& block) {
    std::vector<Record> records;
    for (const DecodedRecord& record : block.records) {
      if (record.in_progress) continue;
      const bool is_loss = record.type == ARCTRACE_TYPE_LOST;
      records.push_back({record.offset, record.type, record.u32(0),
                         record.u64(is_loss ? 8 : 4), record.u64(12)});
    }
    std::vector<Record>& known = blocks_[block.header.handout];
    if (records.size() < known.size()) std::swap(records, known);
    CHECK(std::equal(known.begin(), known.end(), records.begin()));
    known = records;
  }

  // A collector that died may have written this LOST record, and the next one too
  // (COL-7).
  void add_lost(const DecodedRecord& record) {
    const auto loss = std::tuple(record.writer, record.u32(0), record.u32(4));
    const auto [known, is_new] = lost_.emplace(loss, record.u64(8));
    if (!is_new) CHECK(known->second == record.u64(8));
  }

  std::map<uint64_t, std::vector<Record>> blocks_;  // by hand-out
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint64_t> lost_;
};

// Collects as `arctrace attach` does, but without its threads.
void collect(const TestSession& test, const std::string& path) {
  absl::StatusOr<recorder::TraceFile> file = recorder::TraceFile::create(path);
  REQUIRE(file.ok());
  recorder::reclaim_blocks(test.buffer());
  IpcAtomics::fetch_add_relaxed(test.view().control().definitions_round, uint32_t{1});
  file->write_header(test.buffer().header());
  REQUIRE(file->publish().ok());
  recorder::Drain drain(test.view(), *file);
  drain.round();
  drain.finish();
  write_finished(*file);
}

// Writes number n as event 1, loses two records, and is killed in another.
void write_and_die(const TestSession& test, uint64_t n) {
  const std::string end = run_in_child([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    write_checked(1, n);
    const std::byte too_big[2000] = {};
    for (int i = 0; i < 2; ++i) arctrace_write(2, too_big, sizeof too_big);
    arctrace_reserve(3, 8);
    kill(getpid(), SIGKILL);
  });
  REQUIRE(end == "signal 9");
}

TEST_CASE("collector killed anywhere: the next ones find all that is not in a file") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  for (const arctrace_scope scope : kScopes) {
    CAPTURE(scope);
    TestSession test(buffer_with(scope, 1024, 48));
    const TemporaryDirectory directory;
    Neighbour neighbour(test);
    Files files;
    uint64_t collectors = 0;
    uint64_t killed = 0;
    const auto collector = [&](uint64_t at) {
      const std::string path = directory.path(std::to_string(collectors++));
      const std::string end = run_killed(at, [&] { collect(test, path); });
      CHECK((end.empty() || end == "signal 9"));
      if (!end.empty()) ++killed;
      if (std::filesystem::exists(path)) files.add(path);
    };
    const auto collect_all = [&] {
      const std::string path = directory.path(std::to_string(collectors++));
      collect(test, path);
      files.add(path);
    };
    uint64_t rounds = 0;
    const auto round = [&](uint64_t at, uint64_t then_at) {
      neighbour.write_batch();
      write_and_die(test, rounds++);
      collector(at);
      neighbour.write_batch();
      collector(then_at);
      collect_all();
    };
    shared_word() = 0;
    round(0, UINT64_MAX);
    const uint64_t steps = shared_word();
    for (const uint64_t at : cuts(steps, 4)) {
      CAPTURE(at);
      round(at, steps - at);
    }
    CHECK(killed > tries(4));
    neighbour.end();
    collect_all();
    CHECK(files.numbers_of(1) == all_below(rounds));
    CHECK(files.numbers_of(Neighbour::kEvent) == all_below(neighbour.written()));
    CHECK(files.lost() == lost_so_far(test));
    CHECK(files.lost() == 2 * rounds);
  }
}

std::vector<std::byte> image_of(const TestSession& test) {
  const std::byte* first = test.view().base();
  return {first, first + test.view().geometry().total_size};
}

// `work(path)` reads the buffer. Wherever it is killed, the buffer does not change, and
// there is a whole file of that name or none.
void kill_reader_everywhere(
    const std::function<void(const TestSession& test, const std::string& path)>& work) {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  recorder::BufferOptions options = buffer_with(ARCTRACE_SCOPE_SHARED, 1024, 24);
  options.mode = ARCTRACE_MODE_OVERWRITE;
  TestSession test(options);
  Neighbour neighbour(test);
  write_and_die(test, 0);
  neighbour.write_batch();
  const TemporaryDirectory directory;
  const std::vector<std::byte> before = image_of(test);
  const std::string path = directory.path("snapshot");
  shared_word() = 0;
  REQUIRE(run_killed(UINT64_MAX, [&] { work(test, path); }) == "");
  const std::set<uint64_t> whole =
      numbers_of(decode_trace(read_file(path)), Neighbour::kEvent);
  CHECK(whole.contains(neighbour.written() - 1));
  uint64_t killed = 0;
  for (const uint64_t at : cuts(shared_word(), 3)) {
    CAPTURE(at);
    std::filesystem::remove(path);
    const std::string end = run_killed(at, [&] { work(test, path); });
    CHECK((end.empty() || end == "signal 9"));
    if (!end.empty()) ++killed;
    CHECK(image_of(test) == before);
    if (!std::filesystem::exists(path)) continue;
    const DecodedTrace trace = decode_trace(read_file(path));
    CHECK(joined(trace.problems) == "");
    CHECK(numbers_of(trace, Neighbour::kEvent) == whole);
  }
  CHECK(killed > 0);
}

void publish_snapshot(const recorder::Buffer& buffer, const std::string& path) {
  absl::StatusOr<recorder::TraceFile> file = recorder::TraceFile::create(path);
  REQUIRE(file.ok());
  recorder::write_snapshot_file(buffer, *file,
                                {{{"test"}}, recorder::buffer_syncs(buffer, false), {}});
  REQUIRE(file->publish().ok());
}

TEST_CASE("collector killed anywhere: in a snapshot") {
  kill_reader_everywhere([](const TestSession& test, const std::string& path) {
    const absl::StatusOr<recorder::Buffer> buffer = recorder::Buffer::open(test.path());
    REQUIRE(buffer.ok());
    publish_snapshot(*buffer, path);
  });
}

TEST_CASE("collector killed anywhere: in a recovery") {
  kill_reader_everywhere([](const TestSession& test, const std::string& path) {
    const int fd = open(test.path().c_str(), O_RDONLY | O_CLOEXEC);
    const absl::StatusOr<recorder::Buffer> buffer =
        recorder::Buffer::copy_untrusted(fd, 0, UINT64_MAX, test.path());
    REQUIRE(buffer.ok());
    publish_snapshot(*buffer, path);
  });
}

}  // namespace
}  // namespace arctrace::testing
