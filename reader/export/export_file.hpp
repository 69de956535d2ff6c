// The file that an export is written to. It appears under its name only once it is
// complete.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "reader/render/write_text.hpp"

namespace arctrace::reader {

class ExportFile {
 public:
  // `path`: "-" is standard output. A FIFO or device is written into as it is.
  // `replaces`: a regular file may exist and be replaced. Errors, each in one line that
  // names the path: it exists, it is a directory, or it cannot be made.
  static absl::StatusOr<std::unique_ptr<ExportFile>> create(const std::string& path,
                                                            bool replaces);

  // Without publish() nothing is left of the file.
  ~ExportFile();
  ExportFile(const ExportFile&) = delete;
  ExportFile& operator=(const ExportFile&) = delete;

  // Writes, and returns good(). This object must outlive it.
  WriteText writer();
  // False once a write failed: there is no use in producing more.
  bool good() const { return error_ == 0; }
  uint64_t bytes() const { return bytes_; }

  // Gives the file its name, with all that was written. To be called once, last. Error:
  // a write failed, for example because the disk is full, or the name was taken
  // meanwhile.
  absl::Status publish();

  // Whether `path` is the file that the export would replace, by whatever name.
  static bool is_same_file(const std::string& path, const std::string& other);

 private:
  enum class Kind : uint8_t { kStream, kNameless, kNamed };

  ExportFile(std::string path, bool replaces) : path_(path), replaces_(replaces) {}

  absl::Status open();
  void write(std::string_view text);
  int link_as(const std::string& name);

  const std::string path_;
  const bool replaces_;
  Kind kind_ = Kind::kStream;
  std::string temporary_;  // its name at present; empty: it has none
  int descriptor_ = -1;
  int error_ = 0;  // errno of the first write that failed
  uint64_t bytes_ = 0;
};

}  // namespace arctrace::reader
