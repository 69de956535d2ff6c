// Writing a trace file: header, then chunks. Only ever appends, so a pipe will do.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace arctrace {

class TraceFile {
 public:
  // `path` "-": standard output. A regular file is written under a temporary name beside
  // it until publish().
  static absl::StatusOr<TraceFile> create(const std::string& path);

  TraceFile(TraceFile&& other) noexcept;
  TraceFile& operator=(TraceFile&& other) noexcept;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile();

  // Gives the file its name; what had that name before is kept as `path`.old. A file
  // never published is removed with this object.
  absl::Status publish();

  // The same under another name, also for a file that has its name already.
  absl::Status publish_as(const std::string& path);

  bool is_published() const { return temporary_.empty(); }

  // The session header as the buffer has it, under the file's magic.
  void write_header(const arctrace_session_header& header);

  // Appends one chunk whose payload is `first`, then `rest`. After a failure (disk full)
  // nothing more is written and the file ends behind the last whole chunk.
  void write_chunk(arctrace_chunk_kind kind, uint16_t flags, uint32_t index,
                   uint64_t ticks, std::span<const std::byte> first,
                   std::span<const std::byte> rest = {});

  // Appends whole records of the collector's, in as many RECORDS chunks as they need.
  void write_records(uint64_t ticks, std::span<const std::byte> records);

  // After a failure: forgets it, so that one more chunk may be tried (there may be room
  // for a small one, or again).
  void clear_error() { error_ = 0; }

  // Ends the file here, as a failure would.
  void note_error(int error) { error_ = error; }

  int error() const { return error_; }  // errno of the first failure, 0 none
  uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  TraceFile(int fd, std::string path, std::string temporary);
  // Appends all parts or, as far as the file can be cut, none. The error is noted.
  void append(std::span<iovec> parts);

  int fd_;
  int64_t start_ = 0;  // where in the file we began, -1 if it has no places
  std::string path_;
  std::string temporary_;  // empty: written under its own name
  uint64_t bytes_ = 0;
  uint64_t sequence_ = 0;
  int error_ = 0;
};

}  // namespace arctrace
