// A writer of tests/processes as a program of its own, because it runs emulated and the
// test does not.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/processes/writer_process.hpp"

int main(int argc, char** argv) {
  using arctrace::testing::SharedProgress;
  using arctrace::testing::WriterTask;
  doctest::Context context;
  context.setAsDefaultForAssertsOutOfTestCases();
  if (argc != 8) {
    std::fputs("usage: writer SESSION FD WRITERS NUMBER SEED ATTEMPTS PAYLOAD_MAX\n",
               stderr);
    return 2;
  }
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  const WriterTask task{static_cast<uint32_t>(number(4)), number(5), number(6),
                        static_cast<uint32_t>(number(7))};
  SharedProgress progress(static_cast<int>(number(2)), number(3));
  run_writer(argv[1], task, progress[task.number]);
}
