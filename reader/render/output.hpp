// Standard output, buffered, with errors noticed.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

namespace arctrace::cli {

// The one way a subcommand writes its result.
class Output {
 public:
  explicit Output(int descriptor = 1);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view text);
  // False once a write failed: there is no use in producing more.
  bool good() const { return error_ == 0; }
  // Writes what is buffered. Error: a write failed (disk full, closed, ...).
  absl::Status finish();

 private:
  void flush();

  int descriptor_;
  int error_ = 0;  // errno of the first write that failed
  std::string buffer_;
};

}  // namespace arctrace::cli
