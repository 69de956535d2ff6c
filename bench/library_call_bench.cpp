// Measures what a call of a library's function through the PLT costs under whatever
// records it from outside: this program knows of no tracer. For each of REPETITIONS, its
// argument, it prints four numbers: CPU ns of a repeated call, of one of two calls in
// turn, of a repeated call without a hooked function above it, and of two clock reads.
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cstdio>
#include <cstdlib>

#include "bench/library_call.hpp"

namespace {

constexpr long kCalls = 100'000;
constexpr int kWarmUp = 10;  // repetitions: until a buffer has been used throughout
constexpr useconds_t kPauseUs = 20'000;  // for the collector to drain the buffer

// CPU ns of each of the kCalls calls that `work` makes.
template <class Work>
double cpu_ns_each(const Work& work) {
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  work();
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
    const double floor = cpu_ns_each([&] {
      for (long n = 0; n < kCalls; ++n) {
        ticks = __rdtsc();
        ticks = __rdtsc();
      }
    });
    volatile long result = 0;
    const double repeated = cpu_ns_each([&] { result = call_repeatedly(kCalls); });
    const double in_turn = cpu_ns_each([&] { result = call_in_turn(kCalls); });
    const double outermost = cpu_ns_each([&] {
      for (long n = 0; n < kCalls; ++n) result = library_call(n);
    });
    if (i >= 0) std::printf("%.3f %.3f %.3f %.3f\n", repeated, in_turn, outermost, floor);
    usleep(kPauseUs);
  }
  return 0;
}
