// Lost records by the cause of their loss, in text and in JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reader/streams/json_writer.hpp"
#include "reader/trace/summary.hpp"

namespace arctrace::reader {

// "full 2, too_big 1"; empty if nothing was lost. `by_cause`: counts by the
// ARCTRACE_LOST_ number of the cause.
std::string losses_text(std::span<const uint64_t> by_cause);

// ", 5 overwritten, 3 in another file, 2 torn, 1 unfinished": what a trace lacks besides
// what was lost; empty if that is nothing.
std::string other_missing_text(const Summary& summary);

// Member `name`: an object with a number for each cause.
void write_losses_json(std::string_view name, std::span<const uint64_t> by_cause,
                       JsonWriter& json);

}  // namespace arctrace::reader
