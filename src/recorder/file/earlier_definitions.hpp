// Reads the definitions in an earlier trace file of the same session. `arctrace recover`
// needs those that a recorder which died had already moved from the buffer into its file.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace arctrace {

// A block of definitions from a chunk of a file.
struct EarlierBlock {
  uint32_t index;
  uint64_t ticks;  // when the chunk was written
  std::vector<std::byte> bytes;
};

// The blocks of definitions in the trace file `path`, up to the last whole chunk.
// kInvalidArgument: it is not a trace file, or not one of the session with `header`.
absl::StatusOr<std::vector<EarlierBlock>> read_definitions_untrusted(
    const std::string& path, const arctrace_session_header& header);

}  // namespace arctrace
