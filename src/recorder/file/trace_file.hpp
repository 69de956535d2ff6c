// Writes a trace file: the header, then chunks. The file is only appended to, so that it
// may be a pipe.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace arctrace {

class TraceFile {
 public:
  // `path` "-" stands for standard output. A regular file is written under a temporary
  // name in the same directory until publish().
  static absl::StatusOr<TraceFile> create(const std::string& path);

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

  // Appends the session header of the buffer, with the file's magic.
  void write_header(const arctrace_session_header& header);

  // Appends one chunk whose payload is `first`, then `rest`. After a failure (disk full)
  // nothing more is written and the file ends after the last whole chunk.
  void write_chunk(arctrace_chunk_kind kind, uint16_t flags, uint32_t index,
                   uint64_t ticks, std::span<const std::byte> first,
                   std::span<const std::byte> rest = {});

  // Appends whole records of the collector in as many RECORDS chunks as they need.
  void write_records(uint64_t ticks, std::span<const std::byte> records);

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

  // Ends the file here, as if a write had failed with `error`.
  void note_error(int error) { error_ = error; }

  int error() const { return error_; }  // errno of the first failure, or 0
  uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  TraceFile(int fd, std::string path, std::string temporary);
  // Appends all parts, or none if the file can be cut. An error is noted in error_.
  void append(std::span<iovec> parts);

  int fd_;
  int64_t start_ = 0;  // the offset at which we began, -1 if the file has no offsets
  std::string path_;
  std::string temporary_;  // empty: the file has its own name
  uint64_t bytes_ = 0;
  uint64_t sequence_ = 0;
  int error_ = 0;
};

}  // namespace arctrace
