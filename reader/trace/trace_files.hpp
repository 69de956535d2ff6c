// The files of one trace: those of a recording that was cut into several (record
// --size-limit) are read as one, and all can be opened once and read again and again.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reader/trace/input.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Opens the files, and puts them into the order in which they were written. Errors, each
// in one line: one of them is not a trace file, they are not of one session, or one is
// there twice.
absl::StatusOr<std::vector<std::unique_ptr<Input>>> open_parts(
    const std::vector<std::string>& paths);

// Groups paths that name files of one recording, in the order in which the first of each
// stands. A file that is no trace file, or may have records of another one, as a snapshot
// may, stays alone, and a file that is named twice is not grouped with itself.
std::vector<std::vector<std::string>> group_parts(const std::vector<std::string>& paths);

// Returns the bytes of all `parts`, one after another, under the name of the first one.
// They must outlive the result.
std::unique_ptr<Input> join_inputs(std::span<const std::unique_ptr<Input>> parts);

// The files of one trace, opened once, so that the trace can be read again and again.
// Each Trace that it opens is of the same files, whatever their names lead to by then:
// another recording may have got the name. Several threads may use it at a time, each
// with a Trace of its own.
class TraceFiles {
 public:
  // Asked whenever bytes are read; true ends the reading with kCancelled.
  using Stops = std::function<bool()>;

  // Errors, each in one line: those of Trace::open() about the files.
  static absl::StatusOr<TraceFiles> open(const std::vector<std::string>& paths);

  // Makes the files of a trace in one file, which is open.
  static TraceFiles of(std::unique_ptr<Input> file);

  // `stops` is asked as long as the result lives. Errors: those of Trace::open().
  absl::StatusOr<Trace> trace(const OpenOptions& options, const Stops& stops) const;

 private:
  explicit TraceFiles(std::vector<std::shared_ptr<Input>> files)
      : files_(std::move(files)) {}

  std::vector<std::shared_ptr<Input>> files_;  // in the order in which they were written
};

}  // namespace arctrace::reader
