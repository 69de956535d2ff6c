#include "reader/symbols/xz.hpp"

#include <lzma.h>

#include <array>
#include <cstdint>
#include <memory>

namespace arctrace::reader {
namespace {

constexpr uint64_t kDecoderBytesMax = uint64_t{128} << 20;

}  // namespace

std::optional<std::string> unpack_xz_untrusted(const std::string& packed,
                                               size_t size_max) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kDecoderBytesMax, 0) != LZMA_OK) return std::nullopt;
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> ender(&stream, lzma_end);

  // char may alias anything, liblzma's uint8_t included.
  stream.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  std::array<uint8_t, 1 << 16> chunk{};
  std::string unpacked;
  for (;;) {
    stream.next_out = chunk.data();
    stream.avail_out = chunk.size();
    const lzma_ret result = lzma_code(&stream, LZMA_FINISH);
    if (result != LZMA_OK && result != LZMA_STREAM_END) return std::nullopt;
    const size_t size = chunk.size() - stream.avail_out;
    if (size > size_max - unpacked.size()) return std::nullopt;
    unpacked.append(chunk.begin(), chunk.begin() + static_cast<ptrdiff_t>(size));
    if (result == LZMA_STREAM_END) return unpacked;
  }
}

}  // namespace arctrace::reader
