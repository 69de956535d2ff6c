// A file for what memory should not hold: it has no name and vanishes with this object.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>

namespace arctrace::reader {

// In $TMPDIR or /tmp, made at the first write. An error (no space, mostly) sticks.
class NamelessFile {
 public:
  NamelessFile() = default;
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
  ~NamelessFile();

  void write_at(uint64_t offset, const void* from, size_t size);
  // Returns how many bytes of `size` were read; fewer at the end of what was written.
  size_t read_at(uint64_t offset, void* to, size_t size);

  const absl::Status& status() const { return status_; }
  void fail(absl::Status status) { status_ = std::move(status); }

 private:
  int file_ = -1;
  absl::Status status_;
};

}  // namespace arctrace::reader
