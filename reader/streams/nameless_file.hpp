// A temporary file without a name, which vanishes with its object: for data that memory
// should not hold.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace arctrace::reader {

// Where temporary files are made: $TMPDIR, or /tmp.
std::string temporary_directory();

// The file is made in temporary_directory() at the first write. After an error, mostly
// for want of space, nothing more is written.
class NamelessFile {
 public:
  NamelessFile() = default;
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
  ~NamelessFile();

  void write_at(uint64_t offset, const void* from, size_t size);
  // Returns how many bytes were read, which is less than `size` at the end of the file.
  size_t read_at(uint64_t offset, void* to, size_t size);

  const absl::Status& status() const { return status_; }
  void fail(absl::Status status) { status_ = std::move(status); }

 private:
  int file_ = -1;
  absl::Status status_;
};

}  // namespace arctrace::reader
