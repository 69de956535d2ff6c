// Reads the chunks of an earlier trace file of the same session: `arctrace recover` adds
// them to the records that a dead recorder's buffer still has, and a collector that takes
// the place of another one begins its file with the definitions.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace arctrace::recorder {

// A chunk of a file.
struct EarlierChunk {
  arctrace_chunk_header header;
  std::vector<std::byte> payload;

  // The hand-out of its block; nullopt if it is not a block of class data.
  std::optional<uint64_t> data_handout() const;
};

// The chunks of the trace file `path`, up to the last whole one: those with blocks of
// definitions, or with `all`, all. kInvalidArgument: it is not a trace file, or not one
// of the session with `header`.
absl::StatusOr<std::vector<EarlierChunk>> read_chunks_untrusted(
    const std::string& path, const arctrace_session_header& header, bool all);

}  // namespace arctrace::recorder
