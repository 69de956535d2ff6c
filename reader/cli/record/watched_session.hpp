// A live session that is only read: its buffer, the file that its collector writes, and
// whether it is over.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/live/session_copy.hpp"
#include "src/recorder/buffer/buffer.hpp"

namespace arctrace::cli {

class WatchedSession {
 public:
  // `path`: of the buffer. Error: the file cannot be opened, or is not a buffer.
  static absl::StatusOr<WatchedSession> open(const std::string& path);

  // Returns a copy of the session into which nothing has been copied yet. This object
  // must outlive it.
  absl::StatusOr<reader::SessionCopy> make_copy() const;

  // Adds to `copy` the files that the collector writes, as far as we may read them. To be
  // called again and again: there may be another collector, or another file.
  void follow_files(reader::SessionCopy& copy);

  // Whether a collector takes records out of the buffer whose file cannot be read.
  bool lacks_file() const { return lacks_file_; }

  // Whether the buffer's file is gone, or its recorder left it behind: nothing will be
  // written any more.
  bool is_over() const;

  const recorder::Buffer& buffer() const { return *buffer_; }

 private:
  explicit WatchedSession(recorder::Buffer buffer);

  std::unique_ptr<recorder::Buffer> buffer_;
  bool is_recorders_own_ = false;  // not made by `arctrace create`
  bool has_copied_ = false;
  bool lacks_file_ = false;
  std::vector<std::pair<dev_t, ino_t>> files_;  // that were added to the copy
};

}  // namespace arctrace::cli
