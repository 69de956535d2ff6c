// Writes a trace file: the header, then chunks. The file is only appended to, so that it
// may be a pipe.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/recorder/file/file_index.hpp"

namespace arctrace {

// What becomes of a FIFO or device that has the name of the trace file.
enum class SpecialFile : uint8_t {
  kRefuse,     // it stays as it is, and there is no trace file
  kWriteInto,  // the user named it, so the trace goes into it
};

// Whether an error says that the file cannot grow: the disk, the user's part of it, or
// the process' limit of a file's size is reached.
constexpr bool is_full_disk(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

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

  // Gives the file its name; a file that had the name before is kept as `path`.old. A
  // file that is never published is removed with this object.
  absl::Status publish();

  // Gives the file another name, also if it is published already.
  absl::Status publish_as(const std::string& path);

  bool is_published() const { return temporary_.empty(); }

  // "FIFO", "block device" and so on, if create() found one to write into; else empty.
  const std::string& special_kind() const { return special_kind_; }

  // Appends the session header of the buffer, with the file's magic. If there is no room
  // for it, it is written before the first chunk.
  void write_header(const arctrace_session_header& header);

  // Appends one chunk whose payload is `first`, then `rest`. After a failure (disk full)
  // nothing more is written and the file ends after the last whole chunk. Of a block,
  // `first` has at least the header; `facts` are for the index.
  void write_chunk(arctrace_chunk_kind kind, uint16_t flags, uint32_t index,
                   uint64_t ticks, std::span<const std::byte> first,
                   std::span<const std::byte> rest = {}, ChunkFacts facts = {});

  // From the first chunk on, notes what write_index() needs: 64 bytes for each chunk.
  void keep_index() { index_.emplace(); }
  // Appends the index of all chunks, by which readers of a range find those that they
  // need. To be called once, after the last record. There is none of a file that has too
  // many chunks, is not a regular one, or has no room for it: it is whole without.
  void write_index(uint64_t ticks);

  // Appends whole records of the collector in as many RECORDS chunks as they need.
  void write_records(uint64_t ticks, std::span<const std::byte> records);

  // Appends SYMBOLS chunks to a regular file, all or none. Returns 0, or the errno of
  // what failed: the file then is what it was before.
  int write_symbols(uint64_t ticks, std::span<const std::vector<std::byte>> payloads);

  // A chunk that was in the file.
  struct CutChunk {
    arctrace_chunk_header header;
    std::vector<std::byte> payload;

    // Whether it is a block of class data.
    bool is_data() const;
  };
  // Takes chunks off the end of the file, so many that `bytes` of them were blocks of
  // class data, or all, and forgets a failure. They are returned in their order. Empty if
  // the file can't be cut, because it is a pipe or a device.
  std::vector<CutChunk> cut_end(uint64_t bytes);

  // Forgets a failure, so that a small chunk can be tried, for which there may be room.
  void clear_error() { error_ = 0; }

  // Whether the last write failed because the file cannot grow. That may pass: what was
  // not written can be written again after clear_error().
  bool lacks_room() const { return is_full_disk(error_); }

  // Takes room on the disk that is given back by release_reserve(), so that the end of
  // the file still fits when the disk is full: no more than a fourth of what is free. If
  // there is too little, there is no reserve.
  void take_reserve();
  void take_reserve_of(TraceFile& other) { std::swap(reserve_, other.reserve_); }
  // Returns how many bytes it was.
  uint64_t release_reserve();

  // Empties the file, whose beginning could not be written whole.
  void restart();

  // Waits until the disk has what was written. A late error is noted like one of a write.
  // Costs as long as the disk takes; nothing if it is not a regular file.
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
  int reserve_ = -1;    // a file without a name that takes room
  int directory_ = -1;  // the directory of a regular file, in which it is renamed
  int64_t start_ = 0;   // the offset at which we began, -1 if the file has no offsets
  std::string path_;
  std::string temporary_;     // a name in directory_; empty: the file has its own name
  bool is_nameless_ = false;  // it does not have even that yet
  std::string special_kind_;
  std::vector<std::byte> header_;
  std::optional<FileIndex> index_;
  uint64_t bytes_ = 0;
  uint32_t sequence_ = 0;
  int error_ = 0;
};

}  // namespace arctrace
