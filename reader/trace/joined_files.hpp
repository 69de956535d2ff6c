// The files of one recording that was cut into several (record --size-limit), read as
// one.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reader/trace/input.hpp"

namespace arctrace::reader {

// Opens the files, and puts them into the order in which they were written. Errors, each
// in one line: one of them is not a trace file, they are not of one session, or one is
// there twice.
absl::StatusOr<std::vector<std::unique_ptr<Input>>> open_parts(
    const std::vector<std::string>& paths);

// Puts paths together that name files of one recording, in the order in which the first
// of each stands. What is no trace file, or may have records of another one, as a
// snapshot may, stays alone, and a file that is named twice is not put together with
// itself.
std::vector<std::vector<std::string>> group_parts(const std::vector<std::string>& paths);

// The bytes of all `parts`, one after another, under the name of the first one. They must
// outlive the result.
std::unique_ptr<Input> join_inputs(std::span<const std::unique_ptr<Input>> parts);

}  // namespace arctrace::reader
