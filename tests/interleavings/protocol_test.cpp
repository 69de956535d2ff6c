// The protocol in all interleavings of few writers and the collector on tiny geometries,
// and mutants of it, whose faults the test must find.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "tests/interleavings/outcome.hpp"
#include "tests/interleavings/scheduling_atomics.hpp"
#include "tests/interleavings/world.hpp"

namespace arctrace::testing {
namespace {

using Real = SchedulingAtomics;

// Writers that each write `records` into the shared chain, and `rounds` passes of the
// collector.
template <class A>
std::vector<Task> shared_tasks(World& world, uint32_t writers, uint32_t records,
                               uint32_t rounds, bool heeds_names = true) {
  std::vector<Task> tasks;
  for (uint32_t w = 0; w < writers; ++w) {
    tasks.push_back([&world, w, records] {
      for (uint32_t r = 0; r < records; ++r) write_shared<A>(world, w, w * 100 + r);
    });
  }
  if (rounds != 0) {
    tasks.push_back([&world, rounds, heeds_names] {
      for (uint32_t i = 0; i < rounds; ++i) collect<A>(world, heeds_names);
    });
  }
  return tasks;
}

template <class A>
std::vector<Task> exclusive_tasks(World& world, uint32_t writers, uint32_t blocks,
                                  uint32_t rounds) {
  std::vector<Task> tasks;
  for (uint32_t w = 0; w < writers; ++w) {
    tasks.push_back([&world, w, blocks] {
      for (uint32_t b = 0; b < blocks; ++b) {
        write_exclusive<A>(world, w, w * 100 + b * 10, 2);
      }
    });
  }
  tasks.push_back([&world, rounds] {
    for (uint32_t i = 0; i < rounds; ++i) collect<A>(world);
  });
  return tasks;
}

TEST_CASE("interleavings: shared scope") {
  World two(ARCTRACE_MODE_DROP, 2, 2);
  check_clean("2 writers, 1 record each, no collector",
              explore_protocol(
                  two, [&] { return shared_tasks<Real>(two, 2, 1, 0); }, 2));
  check_clean("2 writers, 1 record each, 1 round",
              explore_protocol(
                  two, [&] { return shared_tasks<Real>(two, 2, 1, 1); }, 2));
  check_clean("2 writers, 2 records each, 2 rounds",
              explore_protocol(
                  two, [&] { return shared_tasks<Real>(two, 2, 2, 2); }, 4));
  World three(ARCTRACE_MODE_DROP, 3, 3);
  check_clean("3 writers, 1 record each, 1 round",
              explore_protocol(
                  three, [&] { return shared_tasks<Real>(three, 3, 1, 1); }, 3));
}

// Prepares the state before the tasks: the first writer remembers a block that has been
// filled and closed since, and the chain's block is full too.
void let_chain_go_on(World& world) {
  write_known<IpcAtomics>(world, 0, 1);
  for (uint64_t r = 0; r < 3; ++r) write_shared<IpcAtomics>(world, 1, 100 + r);
}

// The remembered block is recycled, and may become the chain's again, while the first
// writer returns to it.
template <class A>
std::vector<Task> returning_tasks(World& world) {
  let_chain_go_on(world);
  return {[&world] { write_known<A>(world, 0, 2); },
          [&world] { write_shared<Real>(world, 1, 103); },
          [&world] { collect<Real>(world); }};
}
constexpr uint64_t kReturningAttempts = 6;

// The same with the block recycled already, so that there are fewer tasks.
template <class A>
std::vector<Task> returned_tasks(World& world) {
  let_chain_go_on(world);
  collect<IpcAtomics>(world);
  return {[&world] { write_known<A>(world, 0, 2); },
          [&world] { write_shared<Real>(world, 1, 103); }};
}

TEST_CASE("interleavings: writers that remember the chain's block") {
  World two(ARCTRACE_MODE_DROP, 2, 2);
  const auto tasks = [&] {
    write_known<IpcAtomics>(two, 0, 1);
    return std::vector<Task>{[&] { write_known<Real>(two, 0, 2); },
                             [&] {
                               write_known<Real>(two, 1, 100);
                               write_known<Real>(two, 1, 101);
                             },
                             [&] { collect<Real>(two); }};
  };
  check_clean("2 writers that remember, 1 round", explore_protocol(two, tasks, 4));
  check_clean("a remembered block comes round",
              explore_protocol(
                  two, [&] { return returning_tasks<Real>(two); }, kReturningAttempts));
  check_clean("a remembered block that is free comes round",
              explore_protocol(
                  two, [&] { return returned_tasks<Real>(two); }, kReturningAttempts));
}

TEST_CASE("interleavings: exclusive blocks") {
  World two(ARCTRACE_MODE_DROP, 2, 2);
  check_clean("2 writers, 1 block each, 1 round",
              explore_protocol(
                  two, [&] { return exclusive_tasks<Real>(two, 2, 1, 1); }, 4));
  check_clean("2 writers, 2 blocks each, 2 rounds",
              explore_protocol(
                  two, [&] { return exclusive_tasks<Real>(two, 2, 2, 2); }, 8));
  World three(ARCTRACE_MODE_DROP, 2, 3);
  check_clean("3 writers, 1 block each, 1 round",
              explore_protocol(
                  three, [&] { return exclusive_tasks<Real>(three, 3, 1, 1); }, 6));
}

TEST_CASE("interleavings: an exclusive writer and a shared one") {
  World world(ARCTRACE_MODE_DROP, 2, 2);
  const auto tasks = [&] {
    return std::vector<Task>{[&] { write_exclusive<Real>(world, 0, 0, 2); },
                             [&] {
                               write_shared<Real>(world, 1, 100);
                               write_shared<Real>(world, 1, 101);
                             },
                             [&] { collect<Real>(world); }};
  };
  check_clean("exclusive and shared, 1 round", explore_protocol(world, tasks, 4));
}

TEST_CASE("interleavings: overwrite mode without a collector") {
  World world(ARCTRACE_MODE_OVERWRITE, 2, 2);
  check_clean("overwrite: 2 writers, 2 blocks each",
              explore_protocol(
                  world, [&] { return exclusive_tasks<Real>(world, 2, 2, 0); }, 8));
  check_clean("overwrite: 2 writers, 2 records each, shared",
              explore_protocol(
                  world, [&] { return shared_tasks<Real>(world, 2, 2, 0); }, 4));
}

// How many operations remain to the task that dies.
uint64_t life;

// Dies before its operation number `life`.
struct Mortal : SchedulingAtomics {
  static void live() {
    if (life == 0) throw Death{};
    --life;
  }
  template <class Word>
  static Word load_relaxed(Word& word) {
    return live(), SchedulingAtomics::load_relaxed(word);
  }
  template <class Word>
  static Word load_acquire(Word& word) {
    return live(), SchedulingAtomics::load_acquire(word);
  }
  template <class Word>
  static void store_relaxed(Word& word, Word value) {
    live(), SchedulingAtomics::store_relaxed(word, value);
  }
  template <class Word>
  static void store_release(Word& word, Word value) {
    live(), SchedulingAtomics::store_release(word, value);
  }
  template <class Word>
  static Word fetch_add_relaxed(Word& word, Word value) {
    return live(), SchedulingAtomics::fetch_add_relaxed(word, value);
  }
  template <class Word>
  static Word fetch_add_acq_rel(Word& word, Word value) {
    return live(), SchedulingAtomics::fetch_add_acq_rel(word, value);
  }
  template <class Word>
  static bool compare_exchange_acq_rel(Word& word, Word& expected, Word desired) {
    return live(), SchedulingAtomics::compare_exchange_acq_rel(word, expected, desired);
  }
  static void fill_ones(std::byte* to, size_t size) {
    live(), SchedulingAtomics::fill_ones(to, size);
  }
};

// Checks a writer that dies at each of its operations, beside a living one and the
// collector.
void check_deaths(
    const std::string& what, World& world, const std::function<void()>& mortal,
    const std::function<void()>& living, const std::function<void()>& before = [] {}) {
  Outcome sum;
  sum.explored.complete = true;
  bool died = true;
  uint64_t deaths = 0;
  for (uint64_t at = 0; died; ++at) {
    died = false;
    const auto tasks = [&] {
      before();
      life = at;
      return std::vector<Task>{[&] {
                                 as_thread<Real>(world, 0, [&] {
                                   mortal();
                                   life = UINT64_MAX;
                                 });
                                 died |= life != UINT64_MAX;
                               },
                               living, [&] { collect<Real>(world); }};
    };
    const Outcome outcome = explore_protocol(world, tasks, UINT64_MAX);
    CAPTURE(at);
    CAPTURE(outcome.first_fault);
    CHECK(outcome.faults == 0);
    sum.explored.executions += outcome.explored.executions;
    sum.explored.longest = std::max(sum.explored.longest, outcome.explored.longest);
    sum.explored.complete &= outcome.explored.complete;
    ++deaths;
  }
  CHECK(deaths > 10);
  check_clean(what, sum);
}

TEST_CASE("interleavings: a writer that dies at any operation") {
  World world(ARCTRACE_MODE_DROP, 2, 2);
  check_deaths(
      "death in the shared chain", world, [&] { write_shared<Mortal>(world, 0, 1); },
      [&] { write_shared<Real>(world, 1, 100); });
  check_deaths(
      "death in a remembered block", world, [&] { write_known<Mortal>(world, 0, 2); },
      [&] { write_shared<Real>(world, 1, 100); },
      [&] { write_known<IpcAtomics>(world, 0, 1); });
  check_deaths(
      "death in an exclusive block", world,
      [&] { write_exclusive<Mortal>(world, 0, 1, 1); },
      [&] { write_shared<Real>(world, 1, 100); });
}

// ---- Mutants --------------------------------------------------------------------

TEST_CASE("interleavings: mutant: commit before the payload") {
  World world(ARCTRACE_MODE_DROP, 2, 2);
  const auto tasks = [&] {
    return std::vector<Task>{[&] {
                               const auto got = SharedChain<Real>::reserve(
                                   world.view(), 0, 0,
                                   world.view().control().shared_current, kRecordLength,
                                   identity_of(0, ARCTRACE_FORM_FULL));
                               if (got.record == nullptr) {
                                 ++world.lost;
                                 return;
                               }
                               begin_record<Real>(got.record);
                               commit_record<Real>(world, got.record, 1);
                               SharedChain<Real>::release(world.view().slot(0).active[0]);
                               fill_record<Real>(got.record, 1);
                             },
                             [&] {
                               write_shared<Real>(world, 1, 100);
                               write_shared<Real>(world, 1, 101);
                             },
                             [&] { collect<Real>(world); }};
  };
  check_caught("commit before the payload", explore_protocol(world, tasks, 3));
}

TEST_CASE("interleavings: mutant: recycle without looking at names") {
  World world(ARCTRACE_MODE_DROP, 2, 2);
  check_caught("recycle without looking at names",
               explore_protocol(
                   world, [&] { return shared_tasks<Real>(world, 2, 2, 1, false); }, 4));
}

World* mutated;

// A mutant that opens a free block for reservations.
struct NextNotHeld : SchedulingAtomics {
  template <class Word>
  static void store_release(Word& word, Word value) {
    if constexpr (sizeof(Word) == 8) {
      for (uint32_t i = 0; i < mutated->view().geometry().block_count; ++i) {
        if (&word == &mutated->view().block_header(i).next && value == kBlockSize) {
          value = ARCTRACE_BLOCK_HEADER_SIZE;
        }
      }
    }
    SchedulingAtomics::store_release(word, value);
  }
};

TEST_CASE("interleavings: mutant: next not held past the end") {
  World world(ARCTRACE_MODE_DROP, 2, 2);
  mutated = &world;
  const auto tasks = [&] {
    std::vector<Task> all = shared_tasks<Real>(world, 2, 2, 0);
    all.push_back([&] { collect<NextNotHeld>(world); });
    return all;
  };
  check_caught("next not held past the end", explore_protocol(world, tasks, 4));
}

// A mutant that does not name the block to which it is about to write.
struct Nameless : SchedulingAtomics {
  template <class Word>
  static void store_release(Word& word, Word value) {
    if constexpr (sizeof(Word) == 4) {
      for (uint32_t i = 0; i < 2; ++i) {
        if (&word == &mutated->slot(i).active[0]) return;
      }
    }
    SchedulingAtomics::store_release(word, value);
  }
};

TEST_CASE("interleavings: mutant: a writer without a name") {
  World world(ARCTRACE_MODE_DROP, 2, 2);
  mutated = &world;
  check_caught("a writer without a name",
               explore_protocol(
                   world, [&] { return shared_tasks<Nameless>(world, 2, 2, 1); }, 4));
}

// A mutant that does not check that the remembered block is still the same.
struct Trusting : SchedulingAtomics {
  template <class Word>
  static Word load_relaxed(Word& word) {
    if constexpr (sizeof(Word) == 8) {
      const KnownBlock& known = mutated->known[0];
      if (known.header != nullptr && &word == &known.header->handout) {
        return known.opening - 1;
      }
    }
    return SchedulingAtomics::load_relaxed(word);
  }
};

TEST_CASE("interleavings: mutant: a remembered block's opening is not compared") {
  World world(ARCTRACE_MODE_DROP, 2, 2);
  mutated = &world;
  check_caught(
      "a remembered block's opening is not compared",
      explore_protocol(
          world, [&] { return returned_tasks<Trusting>(world); }, kReturningAttempts));
}

}  // namespace
}  // namespace arctrace::testing
