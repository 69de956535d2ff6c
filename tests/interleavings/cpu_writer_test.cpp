// The kernel writer's programs (bpf/append.h) in all interleavings with those of another
// CPU, with writers and the collector, and interrupted before each of their accesses.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "tests/interleavings/outcome.hpp"
#include "tests/interleavings/scheduling_atomics.hpp"
#include "tests/interleavings/world.hpp"

namespace arctrace::testing {
namespace {

using Real = SchedulingAtomics;

// The slot of a mutant that does not name the block to which it is about to write.
const arctrace_cpu_slot* nameless = nullptr;

struct CpuAtomics : SchedulingAtomics {
  template <class Word>
  static void store_relaxed(Word& word, Word value) {
    const void* at = &word;
    if (nameless != nullptr && at >= nameless->active && at < &nameless->lost) return;
    SchedulingAtomics::store_relaxed(word, value);
  }
};

}  // namespace
}  // namespace arctrace::testing

#include "tests/support/cpu_writer.hpp"

namespace arctrace::testing {
namespace {

// Acts as a program of the CPU that writes one record.
void write_cpu(World& world, uint32_t cpu, uint64_t number) {
  using namespace cpu_writer;  // NOLINT: what bpf/append.h has
  running = cpu;
  kernel_writer writer{};
  REQUIRE(begin_writer(&writer));
  if (begin_record(&writer, ARCTRACE_TYPE_MARK, kRecordLength - ARCTRACE_FULL_HEAD_SIZE,
                   {7, 7}) == nullptr) {
    ++world.lost;
    return;
  }
  fill_record<Real>(reinterpret_cast<std::byte*>(writer.head), number);
  running = cpu;
  end_record(&writer);
  world.committed.push_back(number);
}

Task cpu_task(World& world, uint32_t cpu, uint32_t records) {
  return [&world, cpu, records] {
    for (uint32_t i = 0; i < records; ++i) write_cpu(world, cpu, cpu * 100 + i);
  };
}

Task rounds(World& world, uint32_t count, bool heeds_names = true) {
  return [&world, count, heeds_names] {
    for (uint32_t i = 0; i < count; ++i) collect<Real>(world, heeds_names);
  };
}

Outcome explore_cpus(World& world, const std::function<std::vector<Task>()>& tasks,
                     uint64_t attempts) {
  cpu_writer::use(world.view());
  return explore_protocol(world, tasks, attempts);
}

TEST_CASE("interleavings: CPUs open blocks") {
  World two(ARCTRACE_MODE_DROP, 2, 1, 2);
  check_clean("2 CPUs, 1 record each, 1 round",
              explore_cpus(
                  two,
                  [&] {
                    return std::vector<Task>{cpu_task(two, 0, 1), cpu_task(two, 1, 1),
                                             rounds(two, 1)};
                  },
                  2));
  check_clean("a CPU, 5 records, 2 rounds",
              explore_cpus(
                  two,
                  [&] {
                    return std::vector<Task>{cpu_task(two, 0, 5), rounds(two, 2)};
                  },
                  5));
  check_clean("a CPU and a writer of the shared chain, 2 records each, 1 round",
              explore_cpus(
                  two,
                  [&] {
                    return std::vector<Task>{cpu_task(two, 0, 2),
                                             [&] {
                                               write_shared<Real>(two, 0, 900);
                                               write_shared<Real>(two, 0, 901);
                                             },
                                             rounds(two, 1)};
                  },
                  4));
}

TEST_CASE("interleavings: a CPU takes what the recorder makes free") {
  World world(ARCTRACE_MODE_OVERWRITE, 2, 1, 1);
  const auto free_ahead = [&] {
    for (int i = 0; i < 2; ++i) {
      CpuChain<Real>::free_ahead(world.view(), 1);
      CpuChain<Real>::search_again(world.view());
    }
  };
  check_clean("overwrite: a CPU, 5 records",
              explore_cpus(
                  world,
                  [&] {
                    return std::vector<Task>{cpu_task(world, 0, 5), free_ahead};
                  },
                  5));
  check_clean("overwrite: a CPU, 3 records, and a writer with a block",
              explore_cpus(
                  world,
                  [&] {
                    return std::vector<Task>{cpu_task(world, 0, 3), free_ahead, [&] {
                                               write_exclusive<Real>(world, 0, 900, 2);
                                             }};
                  },
                  5));
}

// CPU 0 writes `records`; before each of its accesses in turn a program interrupts it and
// writes two more.
Outcome explore_interrupts(World& world, uint32_t records) {
  using cpu_writer::interrupt;
  Outcome sum;
  sum.explored.complete = true;
  bool came = true;
  for (uint64_t at = 0; came; ++at) {
    came = false;
    const auto interrupting = [&] {
      write_cpu(world, 0, 50);
      write_cpu(world, 0, 51);
    };
    const auto tasks = [&] {
      interrupt = {0, at, [&] {
                     came = true;
                     interrupting();
                   }};
      return std::vector<Task>{
          [&] {
            for (uint32_t i = 0; i < records; ++i) {
              write_cpu(world, 0, i);
            }
            if (std::exchange(interrupt.after, UINT64_MAX) < UINT64_MAX / 2) {
              interrupting();
            }
          },
          rounds(world, 1)};
    };
    const Outcome outcome = explore_cpus(world, tasks, records + 2);
    CAPTURE(at);
    CAPTURE(outcome.first_fault);
    CHECK(outcome.faults == 0);
    sum.explored.executions += outcome.explored.executions;
    sum.explored.longest = std::max(sum.explored.longest, outcome.explored.longest);
    sum.explored.complete &= outcome.explored.complete;
  }
  interrupt = {};
  return sum;
}

TEST_CASE("interleavings: programs of a CPU interrupt each other") {
  World world(ARCTRACE_MODE_DROP, 3, 1, 1);
  check_clean("a CPU, 3 records, interrupted anywhere, 1 round",
              explore_interrupts(world, 3));
  cpu_writer::layout.preemptible = true;
  check_clean("the same where programs are preemptible", explore_interrupts(world, 3));
  cpu_writer::layout.preemptible = false;
}

TEST_CASE("interleavings: mutants of a CPU's program") {
  World world(ARCTRACE_MODE_DROP, 2, 1, 1);
  const auto tasks = [&](bool heeds_names) {
    return [&world, heeds_names] {
      return std::vector<Task>{cpu_task(world, 0, 4), rounds(world, 2, heeds_names)};
    };
  };
  check_caught("a CPU whose names nobody looks at", explore_cpus(world, tasks(false), 4));
  nameless = &world.view().cpu_slot(0);
  check_caught("a CPU without names", explore_cpus(world, tasks(true), 4));
  nameless = nullptr;
}

}  // namespace
}  // namespace arctrace::testing
