// Running a command under a recording session of its own.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "src/collector/buffer.hpp"

namespace arctrace::cli {

enum class LibraryCalls { kNone, kProgram, kAll };

struct RecordOptions {
  BufferOptions buffer;
  std::string output;
  std::vector<std::string> command;  // program and arguments
  bool wait_for_all = false;         // until no descendant is left
  LibraryCalls library_calls = LibraryCalls::kProgram;
};

// Records options.command and returns its exit status; if a signal ended it, ends this
// process by the same signal. A command that can't be started is said, and exits as a
// shell would: 127 if it is not there, 126 if it can't be run. An error: there was no
// session to run it in; to be printed as one line.
absl::StatusOr<int> record_command(const RecordOptions& options);

}  // namespace arctrace::cli
