// The explorer itself: it runs all interleavings that differ, and only those.
#include "tests/interleavings/explorer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/interleavings/scheduling_atomics.hpp"

namespace arctrace::testing {
namespace {

using A = SchedulingAtomics;

// How many orders the accesses to one word have, `counts[i]` of task i.
uint64_t orders(std::vector<uint32_t> counts) {
  if (std::all_of(counts.begin(), counts.end(), [](uint32_t n) { return n == 0; }))
    return 1;
  uint64_t sum = 0;
  for (uint32_t& count : counts) {
    if (count == 0) continue;
    --count;
    sum += orders(counts);
    ++count;
  }
  return sum;
}

TEST_CASE("explorer: every order of writes to one word, once") {
  for (const std::vector<uint32_t>& counts :
       {std::vector<uint32_t>{1, 1}, {3, 3}, {2, 5}, {2, 2, 2}, {1, 2, 3}}) {
    static uint64_t word;
    static std::string order;
    std::set<std::string> seen;
    const Explored explored = explore(
        [&] {
          word = 0;
          order.clear();
          std::vector<Task> tasks;
          for (size_t i = 0; i < counts.size(); ++i) {
            tasks.push_back([i, count = counts[i]] {
              for (uint32_t n = 0; n < count; ++n) {
                A::fetch_add_relaxed(word, uint64_t{1});
                order += static_cast<char>('a' + i);
              }
            });
          }
          return tasks;
        },
        [&] { CHECK(seen.insert(order).second); }, 100000);
    CHECK(explored.complete);
    CHECK(explored.executions == orders(counts));
  }
}

TEST_CASE("explorer: what does not conflict is one interleaving") {
  static uint64_t words[3];
  const Explored explored = explore(
      [] {
        std::vector<Task> tasks;
        for (uint64_t& word : words) {
          tasks.push_back([&word] {
            for (int n = 0; n < 5; ++n) A::store_release(word, uint64_t{1});
          });
        }
        return tasks;
      },
      [] {}, 1000);
  CHECK(explored.complete);
  CHECK(explored.executions == 1);
  CHECK(explored.longest == 15);
}

TEST_CASE("explorer: a lost update is found, and so is the order that loses none") {
  static uint64_t word;
  std::set<uint64_t> results;
  explore(
      [] {
        word = 0;
        const Task add = [] {
          A::store_release(word, A::load_acquire(word) + 1);
          A::store_release(word, A::load_acquire(word) + 1);
        };
        return std::vector<Task>{add, add};
      },
      [&] { results.insert(word); }, 100000);
  CHECK(results == std::set<uint64_t>{2, 3, 4});
}

// All results of the random tasks over all interleavings, without reduction, because
// there every access conflicts.
TEST_CASE("explorer: reduced exploration reaches every result that a full one does") {
  static uint64_t words[3];
  static uint64_t all;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::set<std::vector<uint64_t>> results[2];
    for (const bool full : {false, true}) {
      explore(
          [&] {
            std::fill(std::begin(words), std::end(words), 0);
            std::vector<Task> tasks;
            for (uint64_t t = 0; t < 3; ++t) {
              tasks.push_back([=] {
                uint64_t random = seed * 1000003 + t * 7919;
                for (int n = 0; n < 3; ++n) {
                  random = random * 6364136223846793005u + 1442695040888963407u;
                  uint64_t& word = words[random >> 33 & 1 ? 0 : 1 + (random >> 34 & 1)];
                  const uint64_t& touched = full ? all : word;
                  before_access({reinterpret_cast<uintptr_t>(&touched), 8, true});
                  word = (random >> 40 & 1) != 0 ? word * 3 : word + t + 1;
                }
              });
            }
            return tasks;
          },
          [&] {
            results[full ? 1 : 0].insert({words[0], words[1], words[2]});
          },
          100000);
    }
    CHECK(results[0] == results[1]);
  }
}

}  // namespace
}  // namespace arctrace::testing
