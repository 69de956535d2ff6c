// Makes calls for the reader's benchmarks: call_generator RECORDS THREADS makes about
// RECORDS / 2 calls, each an entry and an exit record, in THREADS threads.
#include <arctrace/arctrace.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "bench/call_tree.hpp"

namespace {

constexpr unsigned kLevels = 12;
constexpr uint64_t kRecordsPerTree = 2 * (uint64_t{1} << kLevels);

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const uint64_t records = std::strtoull(argv[1], nullptr, 10);
  const uint64_t threads = std::strtoull(argv[2], nullptr, 10);
  std::vector<std::thread> workers;
  for (uint64_t i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (uint64_t n = records / threads / kRecordsPerTree; n > 0; --n)
        call_tree(kLevels);
      if (arctrace_lost(nullptr) != 0)
        std::fputs("call_generator: records were lost\n", stderr);
    });
  }
  for (std::thread& worker : workers) worker.join();
  return 0;
}
