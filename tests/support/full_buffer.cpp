#include "tests/support/full_buffer.hpp"

#include <arctrace/arctrace.h>

#include <thread>

#include "src/writer/writer_call.hpp"

namespace arctrace::testing {
namespace {

void write_until_lost() {
  const uint64_t before = arctrace_lost(nullptr);
  while (arctrace_lost(nullptr) == before) arctrace_instant(1);
}

}  // namespace

void fill_buffer() {
  std::thread([] {
    write_until_lost();
    // A call within another one writes into the chain.
    const writer::WriterCall interrupted;
    write_until_lost();
  }).join();
}

}  // namespace arctrace::testing
