// What a call of a library's function through the PLT costs, by whatever records it from
// outside: this program knows of no tracer. library_call_bench REPETITIONS prints for
// each two numbers, the CPU nanoseconds of a call and of two clock reads.
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cstdio>
#include <cstdlib>

#include "bench/library_call.hpp"

namespace {

constexpr long kCalls = 100'000;
constexpr int kWarmUp = 10;  // repetitions: until a buffer has been used throughout
constexpr useconds_t kPauseUs = 20'000;  // for whoever collects

template <class Work>
double cpu_ns_each(const Work& work) {
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  for (long i = 0; i < kCalls; ++i) work(i);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  const double seconds = static_cast<double>(after.tv_sec - before.tv_sec);
  const double rest = static_cast<double>(after.tv_nsec - before.tv_nsec);
  return (seconds * 1e9 + rest) / static_cast<double>(kCalls);
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc == 2 ? std::atoi(argv[1]) : 0;
  if (repetitions <= 0) return 2;
  for (int i = -kWarmUp; i < repetitions; ++i) {
    volatile unsigned long long ticks = 0;
    const double floor = cpu_ns_each([&](long) {
      ticks = __rdtsc();
      ticks = __rdtsc();
    });
    volatile long result = 0;
    const double call = cpu_ns_each([&](long n) { result = library_call(n); });
    if (i >= 0) std::printf("%.3f %.3f\n", call, floor);
    usleep(kPauseUs);
  }
  return 0;
}
