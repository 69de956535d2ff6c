// The files of one recording that was cut into several (record --size-limit), read as
// one.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/input.hpp"

namespace arctrace::reader {

// Opens the files, and puts them into the order in which they were written. Errors, each
// in one line: one of them is not a trace file, they are not of one session, or one is
// there twice.
absl::StatusOr<std::vector<std::unique_ptr<Input>>> open_parts(
    const std::vector<std::string>& paths);

// The bytes of all `parts`, one after another, under the name of the first one.
std::unique_ptr<Input> join_inputs(std::vector<std::unique_ptr<Input>> parts);

// The index of join_inputs(parts): each part has a header and chunks of its own.
absl::StatusOr<BlockIndex> index_parts_untrusted(
    const std::vector<std::unique_ptr<Input>>& parts, const Geometry& geometry,
    FindingLog& findings, bool verifies_checksums);

}  // namespace arctrace::reader
