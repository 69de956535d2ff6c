// What an earlier file of a session defines: the names that a recorder that died had
// taken out of the buffer already.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace arctrace {

// A block of definitions, as a chunk of a file has it.
struct EarlierBlock {
  uint32_t index;
  uint64_t ticks;  // when that was written
  std::vector<std::byte> bytes;
};

// Those of the trace file `path`, as far as it goes. kInvalidArgument: it is no trace
// file, or not of the session that `header` is of.
absl::StatusOr<std::vector<EarlierBlock>> read_definitions_untrusted(
    const std::string& path, const arctrace_session_header& header);

}  // namespace arctrace
