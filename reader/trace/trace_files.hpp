// The files of one trace, opened once, so that the trace can be read again and again.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reader/trace/input.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Each Trace that it opens is of the same files, whatever their names lead to by then:
// another recording may have got the name. Several threads may use it at a time, each
// with a Trace of its own.
class TraceFiles {
 public:
  // Asked whenever bytes are read; true ends the reading with kCancelled.
  using Stops = std::function<bool()>;

  // Errors, each in one line: those of Trace::open() about the files.
  static absl::StatusOr<TraceFiles> open(const std::vector<std::string>& paths);

  // Of a trace in one file, which is open.
  static TraceFiles of(std::unique_ptr<Input> file);

  // `stops` is asked as long as the result lives. Errors: those of Trace::open().
  absl::StatusOr<Trace> trace(const OpenOptions& options, const Stops& stops) const;

 private:
  explicit TraceFiles(std::vector<std::shared_ptr<Input>> files)
      : files_(std::move(files)) {}

  std::vector<std::shared_ptr<Input>> files_;  // in the order in which they were written
};

}  // namespace arctrace::reader
