#include "src/recorder/file/earlier_definitions.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace arctrace {
namespace {

// False: the file has less than `size` bytes there, or can't be read.
bool read_at(int fd, uint64_t offset, void* to, size_t size) {
  return ::pread(fd, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

bool holds_definitions(const std::vector<std::byte>& block) {
  arctrace_block_header header{};
  if (block.size() < ARCTRACE_BLOCK_HEADER_SIZE) return false;
  std::memcpy(&header, block.data(), sizeof header);
  return header.magic == ARCTRACE_BLOCK_MAGIC &&
         header.block_class == ARCTRACE_CLASS_DEFINITIONS;
}

bool are_of_one_session(const arctrace_session_header& a,
                        const arctrace_session_header& b) {
  return std::memcmp(a.session_id, b.session_id, sizeof a.session_id) == 0 &&
         a.block_size == b.block_size && a.block_count == b.block_count;
}

}  // namespace

absl::StatusOr<std::vector<EarlierBlock>> read_definitions_untrusted(
    const std::string& path, const arctrace_session_header& header) {
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
  arctrace_chunk_header chunk{};
  std::vector<EarlierBlock> blocks;
  for (uint64_t offset = ARCTRACE_HEADER_SIZE; read_at(fd, offset, &chunk, sizeof chunk);
       offset += sizeof chunk + uint64_t{chunk.size}) {
    if (chunk.magic != ARCTRACE_CHUNK_MAGIC) break;
    if (chunk.kind != ARCTRACE_CHUNK_BLOCK || chunk.size > header.block_size ||
        chunk.size % 4 != 0) {
      continue;
    }
    std::vector<std::byte> bytes(chunk.size);
    if (!read_at(fd, offset + sizeof chunk, bytes.data(), bytes.size())) break;
    if (!holds_definitions(bytes)) continue;
    blocks.push_back({chunk.index, chunk.ticks, std::move(bytes)});
  }
  return blocks;
}

}  // namespace arctrace
