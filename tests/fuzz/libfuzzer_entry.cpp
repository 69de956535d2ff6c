// One target, ARCTRACE_FUZZ_TARGET, for libFuzzer's main.
#include <cstdint>

#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  arctrace::fuzz::ARCTRACE_FUZZ_TARGET({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
