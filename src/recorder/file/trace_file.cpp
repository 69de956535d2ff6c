// Writes a trace file's header and chunks, and its index.
#include "src/recorder/file/trace_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "src/base/checksum.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::recorder {

void FileIndex::add(const arctrace_chunk_header& chunk,
                    std::span<const std::byte> payload, ChunkFacts facts) {
  if (has_too_many_ || entries_.size() == ARCTRACE_INDEX_ENTRIES_MAX) {
    has_too_many_ = true;
    entries_ = std::vector<arctrace_index_entry>();  // gives its memory back
    writers_ = std::vector<std::byte>();
    writers_of_chunk_ = std::vector<size_t>();
    return;
  }
  writers_of_chunk_.push_back(writers_.size());
  arctrace_index_entry entry{};
  entry.size = chunk.size;
  entry.kind = chunk.kind;
  entry.flags = chunk.flags;
  entry.ticks = chunk.ticks;
  if (chunk.kind == ARCTRACE_CHUNK_BLOCK) {
    const auto header = load_part_untrusted<arctrace_block_header>(payload);
    entry.index = chunk.index;
    entry.facts = facts.facts;
    entry.form = static_cast<uint8_t>(header.form);
    entry.block_class = static_cast<uint8_t>(header.block_class);
    entry.writer = header.writer;
    entry.process = header.process;
    entry.pid = header.pid;
    entry.tid = header.tid;
    entry.serial = header.serial;
    entry.handout = header.handout;
    entry.base_ticks = header.base_ticks;
    if (has_listed_writers(header)) add_writers(chunk.sequence, facts.writers);
  }
  entries_.push_back(entry);
}

void FileIndex::add_writers(uint32_t chunk, BlockWriters* writers) {
  if (writers == nullptr || lacks_writers_) {
    lacks_writers_ = true;
    return;
  }
  const std::span<const arctrace_block_writer> sorted = writers->sorted();
  const arctrace_block_writers head{chunk, static_cast<uint32_t>(sorted.size()),
                                    writers->last_ticks()};
  const auto append = [this](std::span<const std::byte> bytes) {
    writers_.insert(writers_.end(), bytes.begin(), bytes.end());
  };
  append(std::as_bytes(std::span(&head, 1)));
  append(std::as_bytes(sorted));
  if (writers_.size() <= ARCTRACE_WRITERS_BYTES_MAX) return;
  lacks_writers_ = true;
  writers_ = std::vector<std::byte>();  // gives its memory back
}

std::vector<std::byte> FileIndex::take_writers() {
  if (lacks_writers_) return {};
  lacks_writers_ = true;
  return std::move(writers_);
}

void FileIndex::cut(uint32_t chunks) {
  if (chunks >= entries_.size()) return;
  entries_.resize(chunks);
  if (!lacks_writers_) writers_.resize(writers_of_chunk_[chunks]);
  writers_of_chunk_.resize(chunks);
}

void TraceFile::restart() {
  if (start_ < 0 || ftruncate(fd_, start_) != 0) return;
  lseek(fd_, start_, SEEK_SET);
  bytes_ = 0;
  sequence_ = 0;
  if (index_) index_->cut(sequence_);
}

void TraceFile::sync() {
  if (directory_ >= 0 && fsync(fd_) != 0 && error_ == 0) error_ = errno;
}

void TraceFile::append(std::span<iovec> parts) {
  uint64_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  while (!parts.empty()) {
    if (!wait_for_reader()) {
      error_ = EINTR;
      break;
    }
    const ssize_t n = writev(fd_, parts.data(), static_cast<int>(parts.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error_ = n < 0 ? errno : EIO;
      break;
    }
    auto done = static_cast<size_t>(n);
    while (!parts.empty() && done >= parts.front().iov_len) {
      done -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (!parts.empty()) {
      iovec& part = parts.front();
      part.iov_base = static_cast<std::byte*>(part.iov_base) + done;
      part.iov_len -= done;
    }
  }
  if (parts.empty()) {
    bytes_ += size;
    return;
  }
  // On a pipe, or if the file system fails altogether, the incomplete chunk stays;
  // readers cope with it.
  const int64_t end = start_ + static_cast<int64_t>(bytes_);
  if (start_ < 0 || ftruncate(fd_, end) != 0) return;
  lseek(fd_, end, SEEK_SET);
}

void TraceFile::write_header(const arctrace_session_header& header) {
  arctrace_session_header copy = header;
  copy.magic = ARCTRACE_FILE_MAGIC;
  copy.version_minor = ARCTRACE_VERSION_MINOR;  // the buffer may have an earlier one
  copy.features_required |= ARCTRACE_FEATURE_CHECKSUMS;
  header_.assign(ARCTRACE_HEADER_SIZE, std::byte{0});
  std::memcpy(header_.data(), &copy, sizeof copy);
  append_header();
}

void TraceFile::append_header() {
  iovec parts[] = {{header_.data(), header_.size()}};
  append(parts);
}

void TraceFile::write_chunk(arctrace_chunk_kind kind, uint16_t flags, uint32_t index,
                            uint64_t ticks, std::span<const std::byte> first,
                            std::span<const std::byte> rest, ChunkFacts facts) {
  if (error_ == 0 && bytes_ == 0 && !header_.empty()) append_header();
  if (error_ != 0) return;
  arctrace_chunk_header chunk{};
  chunk.magic = ARCTRACE_CHUNK_MAGIC;
  chunk.kind = static_cast<uint16_t>(kind);
  chunk.flags = flags;
  chunk.size = static_cast<uint32_t>(first.size() + rest.size());
  chunk.index = index;
  chunk.sequence = sequence_;
  chunk.ticks = ticks;
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&chunk, 1)));
  checksum.add(first);
  checksum.add(rest);
  chunk.checksum = checksum.value();
  iovec parts[] = {{&chunk, sizeof chunk},
                   {const_cast<std::byte*>(first.data()), first.size()},
                   {const_cast<std::byte*>(rest.data()), rest.size()}};
  append(parts);
  if (error_ != 0) return;
  ++sequence_;
  if (index_) index_->add(chunk, first, facts);
}

void TraceFile::write_index(uint64_t ticks) {
  if (!index_ || error_ != 0 || directory_ < 0 || !index_->has_all(sequence_)) return;
  const uint64_t begin = bytes_;
  const uint32_t begin_sequence = sequence_;
  const std::vector<std::byte> writers = index_->take_writers();
  for (size_t at = 0; at < writers.size(); at += ARCTRACE_WRITERS_CHUNK_BYTES_MAX) {
    const auto size =
        std::min<size_t>(writers.size() - at, ARCTRACE_WRITERS_CHUNK_BYTES_MAX);
    write_chunk(ARCTRACE_CHUNK_WRITERS, 0, 0, ticks,
                std::span(writers).subspan(at, size));
  }
  const FileIndex index = *std::exchange(index_, std::nullopt);
  const uint64_t offset = bytes_;
  if (index.has_all(sequence_)) {
    write_chunk(ARCTRACE_CHUNK_INDEX, 0, 0, ticks, index.payload());
  }
  // The header is written last, so that it never leads to an index that is not whole.
  constexpr off_t kAt = offsetof(arctrace_session_header, index_offset);
  if (error_ == 0 && bytes_ != offset &&
      pwrite(fd_, &offset, sizeof offset, start_ + kAt) !=
          static_cast<ssize_t>(sizeof offset)) {
    error_ = errno;
  }
  if (error_ != 0 && bytes_ != begin) cut_back(begin, begin_sequence);
  error_ = 0;
}

std::vector<TraceFile::CutChunk> TraceFile::cut_end(uint64_t bytes) {
  struct stat status {};
  if (start_ < 0 || fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const auto read_at = [this](uint64_t offset, void* to, size_t size) {
    return pread(fd_, to, size, start_ + static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(size);
  };
  std::vector<uint64_t> offsets;
  arctrace_chunk_header chunk{};
  for (uint64_t at = ARCTRACE_HEADER_SIZE; at < bytes_; at += sizeof chunk + chunk.size) {
    if (!read_at(at, &chunk, sizeof chunk) || chunk.magic != ARCTRACE_CHUNK_MAGIC) break;
    offsets.push_back(at);
  }
  std::vector<CutChunk> cut;
  uint64_t end = bytes_;
  for (uint64_t data = 0; data < bytes && !offsets.empty(); offsets.pop_back()) {
    CutChunk& taken = cut.emplace_back();
    if (!read_at(offsets.back(), &taken.header, sizeof taken.header)) return {};
    taken.payload.resize(taken.header.size);
    if (!read_at(offsets.back() + sizeof taken.header, taken.payload.data(),
                 taken.payload.size())) {
      return {};
    }
    end = offsets.back();
    if (taken.is_data()) data += sizeof taken.header + taken.header.size;
  }
  if (cut.empty() || ftruncate(fd_, start_ + static_cast<off_t>(end)) != 0) return {};
  lseek(fd_, start_ + static_cast<off_t>(end), SEEK_SET);
  bytes_ = end;
  sequence_ = cut.back().header.sequence;
  if (index_) index_->cut(sequence_);
  error_ = 0;
  std::reverse(cut.begin(), cut.end());
  return cut;
}

bool TraceFile::CutChunk::is_data() const {
  arctrace_block_header block{};
  if (header.kind != ARCTRACE_CHUNK_BLOCK || payload.size() < sizeof block) return false;
  std::memcpy(&block, payload.data(), sizeof block);
  return block.block_class != ARCTRACE_CLASS_DEFINITIONS;
}

void TraceFile::write_records(uint64_t ticks, std::span<const std::byte> records) {
  constexpr size_t kChunkMax = size_t{1} << 20;  // rule F4 allows 16 MiB
  const uint64_t bytes_before = bytes_;
  const uint32_t sequence_before = sequence_;
  while (!records.empty()) {
    size_t size = 0;
    do {
      uint32_t word0 = 0;
      std::memcpy(&word0, records.data() + size, sizeof word0);
      size += word0 & ARCTRACE_LENGTH_MASK;
    } while (size < records.size() && size < kChunkMax);
    write_chunk(ARCTRACE_CHUNK_RECORDS, 0, 0, ticks, records.first(size));
    records = records.subspan(size);
  }
  // Either all records are written or none, because the caller will write them again.
  if (error_ != 0 && bytes_ != bytes_before) cut_back(bytes_before, sequence_before);
}

int TraceFile::write_symbols(uint64_t ticks,
                             std::span<const std::vector<std::byte>> payloads) {
  if (directory_ < 0) return ESPIPE;
  const uint64_t bytes_before = bytes_;
  const uint32_t sequence_before = sequence_;
  for (const std::vector<std::byte>& payload : payloads) {
    write_chunk(ARCTRACE_CHUNK_SYMBOLS, 0, 0, ticks, payload);
  }
  if (error_ != 0) cut_back(bytes_before, sequence_before);
  return std::exchange(error_, 0);
}

void TraceFile::cut_back(uint64_t bytes, uint32_t sequence) {
  if (start_ < 0) return;
  const int64_t end = start_ + static_cast<int64_t>(bytes);
  if (ftruncate(fd_, end) != 0) return;
  lseek(fd_, end, SEEK_SET);
  bytes_ = bytes;
  sequence_ = sequence;
  if (index_) index_->cut(sequence_);
}

}  // namespace arctrace::recorder
