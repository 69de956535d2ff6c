// The file that an export is written to. It appears under its name only when it is
// complete.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace arctrace::reader {

class ExportFile {
 public:
  // `path`: "-" is standard output. A FIFO or device is written into as it is.
  // `replaces`: a regular file may exist and be replaced. Errors, each in one line that
  // names the path: it exists, it is a directory, or it cannot be made. `mode`: of a new
  // file, less the umask.
  static absl::StatusOr<std::unique_ptr<ExportFile>> create(const std::string& path,
                                                            bool replaces,
                                                            mode_t mode = 0666);

  // Removes the file unless publish() was called.
  ~ExportFile();
  ExportFile(const ExportFile&) = delete;
  ExportFile& operator=(const ExportFile&) = delete;

  // After an error nothing more is written.
  void write(std::string_view text);
  // False once a write failed: then it is useless to produce more.
  bool good() const { return error_ == 0; }
  uint64_t bytes() const { return bytes_; }

  // Makes the file appear under its name, with all that was written. To be called once,
  // after the last write. Error: a write failed, for example because the disk is full, or
  // another file has got the name since create().
  absl::Status publish();

  // Whether both paths lead to the same regular file.
  static bool is_same_file(const std::string& path, const std::string& other);

 private:
  enum class Kind : uint8_t { kStream, kNameless, kNamed };

  ExportFile(std::string path, bool replaces, mode_t mode)
      : path_(std::move(path)), replaces_(replaces), mode_(mode) {}

  absl::Status open();
  std::string unused_name() const;
  int link_as(const std::string& name);
  int move_to_path();

  const std::string path_;
  const bool replaces_;
  const mode_t mode_;
  Kind kind_ = Kind::kStream;
  std::string temporary_;  // its name at present; empty: it has none
  int descriptor_ = -1;
  int error_ = 0;  // errno of the first write that failed
  uint64_t bytes_ = 0;
};

}  // namespace arctrace::reader
