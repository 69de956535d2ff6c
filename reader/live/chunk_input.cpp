#include "reader/live/chunk_input.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace arctrace::reader {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const T& value, size_t size = sizeof(T)) {
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

ChunkInput::ChunkInput(std::string name, const arctrace_session_header& header)
    : name_(std::move(name)) {
  append(std::make_shared<const std::vector<std::byte>>(
      bytes_of(header, ARCTRACE_HEADER_SIZE)));
}

void ChunkInput::add(arctrace_chunk_kind kind, uint16_t flags, uint32_t index,
                     Bytes payload) {
  const arctrace_chunk_header chunk{.magic = ARCTRACE_CHUNK_MAGIC,
                                    .kind = static_cast<uint16_t>(kind),
                                    .flags = flags,
                                    .size = static_cast<uint32_t>(payload->size()),
                                    .index = index,
                                    .sequence = chunks_++,
                                    .checksum = 0,
                                    .ticks = 0};
  append(std::make_shared<const std::vector<std::byte>>(bytes_of(chunk)));
  if (!payload->empty()) append(std::move(payload));
}

void ChunkInput::append(Bytes bytes) {
  parts_.push_back({size_, std::move(bytes)});
  size_ += parts_.back().bytes->size();
}

absl::StatusOr<size_t> ChunkInput::read(uint64_t offset, std::span<std::byte> into) {
  size_t done = 0;
  auto part = std::upper_bound(
      parts_.begin(), parts_.end(), offset,
      [](uint64_t wanted, const Part& candidate) { return wanted < candidate.offset; });
  for (--part; part != parts_.end() && done < into.size(); ++part) {
    const uint64_t begin = offset + done - part->offset;
    if (begin >= part->bytes->size()) break;
    const size_t count =
        std::min<size_t>(into.size() - done, part->bytes->size() - begin);
    std::memcpy(into.data() + done, part->bytes->data() + begin, count);
    done += count;
  }
  return done;
}

}  // namespace arctrace::reader
