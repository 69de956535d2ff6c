// Decompressing .gnu_debugdata.
#include <doctest/doctest.h>
#include <lzma.h>

#include <random>
#include <string>
#include <vector>

#include "reader/symbols/symbol_file.hpp"

namespace arctrace::reader {
namespace {

std::string pack(const std::string& bytes) {
  std::vector<uint8_t> packed(lzma_stream_buffer_bound(bytes.size()));
  size_t size = 0;
  REQUIRE(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr,
                                  reinterpret_cast<const uint8_t*>(bytes.data()),
                                  bytes.size(), packed.data(), &size,
                                  packed.size()) == LZMA_OK);
  return {packed.begin(), packed.begin() + static_cast<ptrdiff_t>(size)};
}

TEST_CASE("unpacks what was packed, up to the bound") {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65'536}, size_t{1'000'000}}) {
    const std::string bytes(size, 'x');
    CHECK(unpack_xz_untrusted(pack(bytes), size) == bytes);
    if (size > 0) CHECK(unpack_xz_untrusted(pack(bytes), size - 1) == std::nullopt);
  }
}

TEST_CASE("damaged streams give nothing") {
  const std::string bytes(10'000, 'y');
  const std::string packed = pack(bytes);
  for (size_t size = 0; size < packed.size(); ++size) {
    CHECK(unpack_xz_untrusted(packed.substr(0, size), 1 << 20) == std::nullopt);
  }
  for (size_t at = 0; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const auto result = unpack_xz_untrusted(damaged, 1 << 20);
    CHECK((!result || *result == bytes));
  }
  CHECK(unpack_xz_untrusted("", 100) == std::nullopt);
  CHECK(unpack_xz_untrusted("no xz stream", 100) == std::nullopt);
}

}  // namespace
}  // namespace arctrace::reader
