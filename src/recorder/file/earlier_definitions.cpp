// Reads the chunks of an earlier trace file.
#include "src/recorder/file/earlier_definitions.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace arctrace::recorder {
namespace {

// False: the file has less than `size` bytes there, or can't be read.
bool read_at(int fd, uint64_t offset, void* to, size_t size) {
  return ::pread(fd, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

// The header of the chunk's block; nothing if it has none.
std::optional<arctrace_block_header> block_header(const EarlierChunk& chunk) {
  arctrace_block_header header{};
  if (chunk.header.kind != ARCTRACE_CHUNK_BLOCK ||
      chunk.payload.size() < ARCTRACE_BLOCK_HEADER_SIZE) {
    return std::nullopt;
  }
  std::memcpy(&header, chunk.payload.data(), sizeof header);
  if (header.magic != ARCTRACE_BLOCK_MAGIC) return std::nullopt;
  return header;
}

bool holds_definitions(const EarlierChunk& chunk) {
  const auto header = block_header(chunk);
  return header && header->block_class == ARCTRACE_CLASS_DEFINITIONS;
}

bool are_of_one_session(const arctrace_session_header& a,
                        const arctrace_session_header& b) {
  return std::memcmp(a.session_id, b.session_id, sizeof a.session_id) == 0 &&
         a.block_size == b.block_size && a.block_count == b.block_count;
}

}  // namespace

std::optional<uint64_t> EarlierChunk::data_handout() const {
  const auto block = block_header(*this);
  if (!block || block->block_class == ARCTRACE_CLASS_DEFINITIONS) return std::nullopt;
  return block->handout;
}

absl::StatusOr<std::vector<EarlierChunk>> read_chunks_untrusted(
    const std::string& path, const arctrace_session_header& header, bool all) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("opening ", path));
  const absl::Cleanup closer = [fd] { ::close(fd); };
  arctrace_session_header found{};
  if (!read_at(fd, 0, &found, sizeof found) || found.magic != ARCTRACE_FILE_MAGIC) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not an arctrace trace"));
  }
  if (!are_of_one_session(found, header)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": of another session"));
  }
  // The file may end anywhere; whole chunks before its end are read.
  constexpr uint32_t kRecordsMax = 16u << 20;
  EarlierChunk chunk{};
  std::vector<EarlierChunk> chunks;
  for (uint64_t offset = ARCTRACE_HEADER_SIZE;
       read_at(fd, offset, &chunk.header, sizeof chunk.header);
       offset += sizeof chunk.header + uint64_t{chunk.header.size}) {
    if (chunk.header.magic != ARCTRACE_CHUNK_MAGIC) break;
    const bool is_block = chunk.header.kind == ARCTRACE_CHUNK_BLOCK;
    if (chunk.header.size > (is_block ? header.block_size : kRecordsMax) ||
        chunk.header.size % 4 != 0 || (!is_block && !all)) {
      continue;
    }
    chunk.payload.resize(chunk.header.size);
    if (!read_at(fd, offset + sizeof chunk.header, chunk.payload.data(),
                 chunk.payload.size())) {
      break;
    }
    if (all || holds_definitions(chunk)) chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace arctrace::recorder
