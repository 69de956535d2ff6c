// Several processes write at once into buffers of a few tiny blocks, while a collector
// drains them now and then; in some runs writers are killed at any moment. Nothing may be
// doubled, torn or mixed up, and written plus lost is attempted, for each writer.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <set>
#include <vector>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"
#include "tests/processes/emulator.hpp"
#include "tests/processes/writer_process.hpp"
#include "tests/support/child.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

constexpr uint32_t kAtOnce = 4;
constexpr uint32_t kWriters = 12;  // of a run, one after the other
// More slots than there are writers at once, fewer than there are in all.
constexpr uint32_t kFewSlots = 8;

struct RoundOptions {
  arctrace_mode mode;
  arctrace_scope scope;
  bool kills;
  // Slots are used again, by threads that may have to count their predecessors' losses in
  // LOST records, so that losses add up over all writers only.
  bool few_slots;
  // There is space for more than what the writers define, in stop mode, too.
  bool is_roomy;
};

struct Totals {
  uint64_t written = 0;
  uint64_t lost = 0;
  uint64_t killed = 0;
};

recorder::BufferOptions tiny_buffer(const RoundOptions& round, Random& random) {
  constexpr uint32_t kSizes = 6;
  constexpr uint32_t kRoom = 100;
  const uint32_t size = round.is_roomy ? kSizes - 1 : random.below(kSizes);
  const uint32_t count = round.is_roomy ? kRoom : 4 + random.below(30);
  recorder::BufferOptions options = small_buffer(
      ARCTRACE_BLOCK_SIZE_MIN + 64 * size, count, round.few_slots ? kFewSlots : kWriters);
  options.mode = round.mode;
  if (other_writer() != nullptr) options.clock = ARCTRACE_CLOCK_MONOTONIC;
  options.scope = round.scope;
  return options;
}

class Round {
 public:
  Round(const RoundOptions& options, uint64_t seed)
      : options_(options),
        random_(seed),
        progress_(kWriters),
        test_(tiny_buffer(options, random_)) {}

  void run(Totals& totals) {
    CAPTURE(test_.view().geometry().block_size);
    CAPTURE(test_.view().geometry().block_count);
    while (ends_.size() < kWriters) {
      while (running_.size() < kAtOnce && started_ < kWriters) start();
      if (options_.kills && random_.below(8) == 0) kill_one();
      collect();
      if (random_.below(4) == 0) usleep(random_.below(1500));
    }
    if (options_.mode == ARCTRACE_MODE_DROP) check_all_is_free();
    const bool overwrites = options_.mode == ARCTRACE_MODE_OVERWRITE;
    const DecodedTrace trace = overwrites ? test_.snapshot() : test_.finish();
    overwrites ? check_window(trace) : check(trace);
    totals.written += trace.written();
    totals.lost += trace.lost();
    totals.killed += killed_;
  }

 private:
  void start() {
    const uint32_t number = started_++;
    const WriterTask task{number, random_.next(), 100 + random_.below(900),
                          24 + random_.below(300)};
    running_[start_child([&] {
      if (other_writer() != nullptr)
        exec_writer(test_.path(), task, progress_.fd(), kWriters);
      run_writer(test_.path(), task, progress_[number]);
    })] = number;
  }

  void kill_one() {
    auto victim = running_.begin();
    std::advance(victim, random_.below(static_cast<uint32_t>(running_.size())));
    // On a busy machine, or in an emulator, otherwise few would start to write.
    const bool begins = progress_[victim->second].begun == 0;
    if (begins && victim->second % 8 != 0) return;
    kill(victim->first, SIGKILL);  // it may have ended just now
  }

  // Does what the collector's thread does, which is also informed of its children's ends.
  void collect() {
    if (options_.mode == ARCTRACE_MODE_DROP) test_.drain().round();
    for (auto at = running_.begin(); at != running_.end();) {
      if (has_ended(at->first)) {
        if (other_writer() != nullptr) mark_dead(test_.view(), at->first);
        ends_[at->second] = wait_for_child(at->first);
        at = running_.erase(at);
      } else {
        ++at;
      }
    }
  }

  // Blocks and slots of dead writers are used again.
  void check_all_is_free() {
    while (test_.drain().round() > 0) {
    }
    const BufferView& view = test_.view();
    const uint32_t open = test_.blocks_in(ARCTRACE_PHASE_SHARED);  // the chain's last
    CHECK(open <= (options_.scope == ARCTRACE_SCOPE_SHARED ? 1u : 0u));
    CHECK(test_.blocks_in(ARCTRACE_PHASE_FREE) + open == view.geometry().block_count);
    for (uint32_t i = 0; i < Recycle<IpcAtomics>::slots_used(view); ++i) {
      CHECK(view.slot(i).lock == 0);
    }
  }

  void check(const DecodedTrace& trace) {
    CHECK(joined(trace.problems) == "");
    uint64_t begun = 0;
    uint64_t done = 0;
    for (const auto& writer_end : ends_) {
      const uint32_t number = writer_end.first;
      const std::string& end = writer_end.second;
      CAPTURE(number);
      CHECK((end.empty() || (options_.kills && end == "signal 9")));
      if (!end.empty()) ++killed_;
      begun += progress_[number].begun;
      done += progress_[number].done;
      if (!options_.few_slots) check_writer(trace, progress_[number], end.empty());
    }
    CHECK(trace.written() + trace.lost() >= done);
    CHECK(trace.written() + trace.lost() <= begun);
    CHECK(trace.torn() <= killed_);
    CHECK(test_.drain().totals().records == trace.written());
    // The chain's last block is copied as one that may still be written.
    const recorder::DrainTotals& totals = test_.drain().totals();
    CHECK(totals.torn + totals.unfinished == trace.torn());
    CHECK((totals.unfinished == 0 || options_.scope == ARCTRACE_SCOPE_SHARED));
    check_payloads(trace);
  }

  void check_window(const DecodedTrace& trace) {
    CHECK(joined(trace.problems) == "");
    for (const auto& writer_end : ends_) {
      const std::string& end = writer_end.second;
      CHECK((end.empty() || (options_.kills && end == "signal 9")));
      if (!end.empty()) ++killed_;
    }
    CHECK(trace.torn() <= killed_);
    check_payloads(trace);
  }

  static void check_writer(const DecodedTrace& trace, const Progress& progress,
                           bool ended_well) {
    if (progress.writer == 0) return;  // killed before it had an identity
    const uint64_t lost = trace.lost(progress.writer);
    const uint64_t found = trace.of_writer(progress.writer).size() + lost;
    CHECK(found >= progress.done.load());
    CHECK(found <= progress.begun.load());
    if (ended_well) CHECK(lost == progress.lost.load());
  }

  void check_payloads(const DecodedTrace& trace) {
    for (uint32_t number = 0; number < kWriters; ++number) {
      const uint32_t writer = progress_[number].writer;
      CAPTURE(number);
      uint64_t last = 0;
      for (const DecodedRecord& record : trace.of_writer(writer)) {
        if (record.type != ARCTRACE_TYPE_EVENT) continue;
        const PayloadFacts facts = payload_facts(record);
        REQUIRE(facts.whole);
        REQUIRE(facts.number == number);
        REQUIRE(facts.sequence > last);
        REQUIRE(facts.sequence <= progress_[number].begun);
        last = facts.sequence;
      }
    }
    // Some records are of writers that were killed before they knew their identity.
    std::set<std::pair<uint32_t, uint64_t>> seen;
    for (const DecodedRecord& record : trace.of_type(ARCTRACE_TYPE_EVENT)) {
      const PayloadFacts facts = payload_facts(record);
      REQUIRE(facts.whole);
      REQUIRE(facts.number < kWriters);
      REQUIRE(seen.emplace(facts.number, facts.sequence).second);
    }
  }

  RoundOptions options_;
  Random random_;
  SharedProgress progress_;
  TestSession test_;
  uint32_t started_ = 0;
  uint32_t killed_ = 0;
  std::map<int, uint32_t> running_;  // writer's number by pid
  std::map<uint32_t, std::string>
      ends_;  // of the writers, as wait_for_child() returns them
};

void run_rounds(arctrace_mode mode, bool kills) {
  const bool is_quick = other_writer() == nullptr;
  const uint64_t rounds = is_long() ? 1000 : tries(is_quick ? 32 : 8);
  Random seeds(test_seed());
  Totals totals;
  for (uint64_t i = 0; i < rounds; ++i) {
    const RoundOptions options = {
        mode, i % 2 == 0 ? ARCTRACE_SCOPE_THREAD : ARCTRACE_SCOPE_SHARED, kills,
        i % 4 >= 2, i % 8 < 2};
    CAPTURE(i);
    CAPTURE(options.scope);
    CAPTURE(options.few_slots);
    CAPTURE(options.is_roomy);
    Round(options, seeds.next()).run(totals);
  }
  CHECK(totals.written > 0);
  if (mode != ARCTRACE_MODE_OVERWRITE) CHECK(totals.lost > 0);
  CHECK((totals.killed > 0) == kills);
}

TEST_CASE("processes: drop mode") { run_rounds(ARCTRACE_MODE_DROP, false); }

TEST_CASE("processes: drop mode, writers are killed") {
  run_rounds(ARCTRACE_MODE_DROP, true);
}

TEST_CASE("processes: stop mode") { run_rounds(ARCTRACE_MODE_STOP, false); }

TEST_CASE("processes: stop mode, writers are killed") {
  run_rounds(ARCTRACE_MODE_STOP, true);
}

TEST_CASE("processes: overwrite mode, writers are killed") {
  run_rounds(ARCTRACE_MODE_OVERWRITE, true);
}

}  // namespace
}  // namespace arctrace::testing
