// A trace file: the header, then chunks. Also builds the collector's own records, scans
// blocks before they become chunks, and makes the index of the chunks.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/protocol/block_writers.hpp"

namespace arctrace::recorder {

// Builds the collector's own records, in full form, for one or more RECORDS chunks.
class RecordBuilder {
 public:
  // Begins a record of the collector about `writer`, or about no writer
  // (ARCTRACE_WRITER_COLLECTOR). The next begin() or bytes() ends it.
  void begin(uint16_t type, uint32_t writer, uint64_t ticks) {
    end();
    start_ = bytes_.size();
    type_ = type;
    body(arctrace_full_head{.word0 = 0, .writer = writer, .ticks = ticks});
  }
  // Appends the fixed part of the record's body, a struct of arctrace/format/.
  template <class Body>
  void body(const Body& body) {
    static_assert(alignof(Body) == 4 && std::is_trivially_copyable_v<Body>);
    append(&body, sizeof body);
  }
  // Appends bytes(n): the text, then zeros up to a multiple of 4.
  void text(std::string_view text) {
    append(text.data(), text.size());
    while (bytes_.size() % 4 != 0) bytes_.push_back(std::byte{0});
  }

  const std::vector<std::byte>& bytes() {
    end();
    return bytes_;
  }
  void clear() {
    bytes_.clear();
    type_ = 0;
  }

 private:
  void append(const void* from, size_t size) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  void end() {
    if (type_ == 0) return;
    const uint32_t word0 = ARCTRACE_WORD0(type_, bytes_.size() - start_);
    __builtin_memcpy(bytes_.data() + start_, &word0, sizeof word0);
    type_ = 0;
  }

  std::vector<std::byte> bytes_;
  size_t start_ = 0;
  uint16_t type_ = 0;  // 0: no record begun
};

// Goes from record to record through a block's untrusted bytes, without ever leaving the
// block. The drain and the snapshot count, copy and search records with these functions.

// The facts that a scan of a block finds. The scan stops at an invalid word 0.
struct BlockContents {
  // The bytes up to the end of the last record; in a damaged block, up to the last word
  // other than 0xff.
  uint32_t used = 0;
  uint64_t records = 0;  // committed ones that programs wrote: ENTER ... MARK
  uint64_t torn = 0;     // such records in progress
  uint64_t kernel = 0;   // committed records of the kernel
  // The losses that the committed LOST records count, by cause.
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost{};
  // Whether a committed record comes from the program's own build: one of its own
  // functions, entered or open, or an event of the API.
  bool has_own = false;
  uint16_t facts = 0;  // ARCTRACE_FACT_*, of an exclusive block
};

// Finds the end of the last record by a scan, because a record's last words may be
// 0xffffffff too. `writers`, if any, gets the writers of a block whose writers a file
// lists; for other blocks it is cleared.
BlockContents scan_block_untrusted(std::span<std::byte> block,
                                   BlockWriters* writers = nullptr);

// Calls visit() for each committed record of a block of full form. REQUIRES: `block` is
// our own copy.
void for_each_full_record(
    std::span<const std::byte> block,
    const std::function<void(uint16_t type, uint64_t ticks,
                             std::span<const std::byte> body)>& visit);

// Calls visit() for each committed LOST record of a block of either form. REQUIRES:
// `block` is our own copy, with its header.
void for_each_loss_untrusted(std::span<const std::byte> block,
                             const std::function<void(const arctrace_lost_body&)>& visit);

// A copy of a block's header, whose first cache line other processes may be changing.
arctrace_block_header copy_block_header(arctrace_block_header& header);

// A copy of a block to which writers may still be writing, up to the offset
// `committed_until`, below which no record is begun any more. Committed records are
// copied whole; of a record in progress only word 0 is copied, and of a full head the
// writer, by which readers know whether it died; the rest stays 0xff. A writer that
// seemed stopped may go on in a hole below `committed_until`. REQUIRES: committed_until
// <= block_size.
std::vector<std::byte> copy_live_block_untrusted(std::byte* block, uint32_t block_size,
                                                 uint32_t committed_until);

// Notes facts about the chunks that a recorder writes, for the INDEX of the file.

// Facts about a block's records.
struct ChunkFacts {
  uint16_t facts = 0;               // ARCTRACE_FACT_*, of an exclusive block
  BlockWriters* writers = nullptr;  // of a block whose writers are listed
};

class FileIndex {
 public:
  // Adds the chunk after those that were added before. The payload of a block begins with
  // `payload`, which has at least the block's header.
  void add(const arctrace_chunk_header& chunk, std::span<const std::byte> payload,
           ChunkFacts facts);
  // Drops the entries after so many chunks: the file ends there.
  void cut(uint32_t chunks);

  // Whether the index has all `chunks` of the file.
  bool has_all(uint32_t chunks) const { return entries_.size() == chunks; }
  std::span<const std::byte> payload() const {
    return std::as_bytes(std::span(entries_));
  }
  // The payloads of the WRITERS chunks, one after another. Empty if there are no blocks
  // whose writers are listed, too many writers, or a block whose writers are not known.
  // To be called once, before these chunks are added.
  std::vector<std::byte> take_writers();

 private:
  void add_writers(uint32_t chunk, BlockWriters* writers);

  std::vector<arctrace_index_entry> entries_;
  bool has_too_many_ = false;
  std::vector<std::byte> writers_;        // the payloads, one after another
  std::vector<size_t> writers_of_chunk_;  // by chunk: the size of writers_ before it
  bool lacks_writers_ = false;
};

// What to do if a FIFO or device has the name of the trace file.
enum class SpecialFile : uint8_t {
  kRefuse,     // the file stays as it is, and there is no trace file
  kWriteInto,  // the user named it, so the trace goes into it
};

// Whether an error says that the file cannot grow: the disk, the user's part of it, or
// the process' limit of a file's size is reached.
constexpr bool is_full_disk(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

// Writes a trace file: the header, then chunks. The file is only appended to, so that it
// may be a pipe.
class TraceFile {
 public:
  // `path` "-" stands for standard output. A regular file is written under a temporary
  // name in the same directory until publish(). A link at `path` is replaced, not
  // followed; only with kWriteInto one that leads to a FIFO or device is, if nobody else
  // can have put it there. kCancelled: a signal came while a FIFO had no reader.
  static absl::StatusOr<TraceFile> create(const std::string& path,
                                          SpecialFile special = SpecialFile::kRefuse);

  TraceFile(TraceFile&& other) noexcept;
  TraceFile& operator=(TraceFile&& other) noexcept;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile();

  // Gives the file its name; a file that had the name before is renamed to `path`.old. A
  // file that is never published is removed with this object.
  absl::Status publish();

  // Gives the file another name, also if it is published already.
  absl::Status publish_as(const std::string& path);

  bool is_published() const { return temporary_.empty(); }

  // "FIFO", "block device" and so on, if create() found one to write into; else empty.
  const std::string& special_kind() const { return special_kind_; }

  // Appends the session header of the buffer, with the file's magic. If there is no space
  // for it, it is written before the first chunk.
  void write_header(const arctrace_session_header& header);

  // Appends one chunk whose payload is `first`, then `rest`. After a failure (disk full)
  // nothing more is written and the file ends after the last whole chunk. If it is a
  // block, `first` has at least the header; `facts` are for the index.
  void write_chunk(arctrace_chunk_kind kind, uint16_t flags, uint32_t index,
                   uint64_t ticks, std::span<const std::byte> first,
                   std::span<const std::byte> rest = {}, ChunkFacts facts = {});

  // From the first chunk on, notes the facts that write_index() needs: 64 bytes for each
  // chunk.
  void keep_index() { index_.emplace(); }
  // Appends the index of all chunks, by which readers of a range find the chunks that
  // they need. To be called once, after the last record. A file that has too many chunks,
  // is not a regular one, or has no space for an index gets none: it is complete without.
  void write_index(uint64_t ticks);

  // Appends whole records of the collector in as many RECORDS chunks as they need.
  void write_records(uint64_t ticks, std::span<const std::byte> records);

  // Appends SYMBOLS chunks to a regular file, all or none. Returns 0, or the errno of the
  // step that failed: then the file is as before.
  int write_symbols(uint64_t ticks, std::span<const std::vector<std::byte>> payloads);

  // A chunk that was in the file.
  struct CutChunk {
    arctrace_chunk_header header;
    std::vector<std::byte> payload;

    // Whether the chunk is a block of class data.
    bool is_data() const;
  };
  // Cuts chunks off the end of the file, so many that `bytes` of them were blocks of
  // class data, or all, and forgets a failure. Returns them in their order; empty if the
  // file can't be cut, because it is a pipe or a device.
  std::vector<CutChunk> cut_end(uint64_t bytes);

  // Forgets a failure, so that a small chunk can be tried, for which there may be space.
  void clear_error() { error_ = 0; }

  // Whether the last write failed because the file cannot grow. That may pass: the same
  // bytes can be written again after clear_error().
  bool lacks_space() const { return is_full_disk(error_); }

  // Reserves space on the disk, until release_reserve(), so that the end of the file
  // still fits when the disk is full: at most a fourth of the free space. If there is too
  // little, there is no reserve.
  void take_reserve();
  void take_reserve_of(TraceFile& other) { std::swap(reserve_, other.reserve_); }
  // Gives the reserve back, and returns its size in bytes.
  uint64_t release_reserve();

  // Empties the file, whose beginning could not be written whole.
  void restart();

  // Waits until the disk has all that was written. A late error is noted like one of a
  // write. Takes as long as the disk does; no time if the file is not a regular one.
  void sync();

  // Ends the file here, as if a write had failed with `error`.
  void note_error(int error) { error_ = error; }

  int error() const { return error_; }  // errno of the first failure, or 0
  uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  TraceFile(int fd, std::string path);
  static absl::StatusOr<TraceFile> open_special(const std::string& path,
                                                std::string kind);
  static absl::StatusOr<TraceFile> create_new(const std::string& path);
  absl::Status name_temporarily();
  bool wait_for_reader() const;
  // Appends all parts, or none if the file can be cut. An error is noted in error_.
  void append(std::span<iovec> parts);
  void append_header();
  // Cuts the file off where it ended when it had these bytes and chunks.
  void cut_back(uint64_t bytes, uint32_t sequence);

  int fd_ = -1;
  int reserve_ = -1;    // a file without a name that reserves space
  int directory_ = -1;  // the directory of a regular file, in which it is renamed
  int64_t start_ = 0;   // the offset of the trace's beginning, -1: the file has none
  std::string path_;
  std::string temporary_;     // a name in directory_; empty: the file has its own name
  bool is_nameless_ = false;  // not even a temporary name yet
  std::string special_kind_;
  std::vector<std::byte> header_;
  std::optional<FileIndex> index_;
  uint64_t bytes_ = 0;
  uint32_t sequence_ = 0;
  int error_ = 0;
};

}  // namespace arctrace::recorder
