// The facts of a session in words, for the heads of several outputs.
#pragma once

#include <string>
#include <vector>

#include "reader/trace/trace.hpp"

namespace arctrace::cli {

// A line each, escaped: file, recording, system, buffer.
std::vector<std::string> session_facts(const reader::Session& session);

// "1234 records, 3 lost (full 2, too_big 1), 1 torn, 2 findings"; what is 0 is left out,
// but records and lost.
std::string summary_line(const reader::Summary& summary);

// "1 finding", "2 findings"; `plural` if an s does not do.
std::string count_text(uint64_t count, const std::string& what,
                       const std::string& plural = {});

// "full 2, too_big 1"; empty if nothing was lost.
std::string losses_text(const reader::Summary& summary);

// Bytes as "64 MiB", "640 KiB", "100 bytes": rounded down to a tenth.
std::string bytes_text(uint64_t bytes);

// "2026-11-21 07:17:49.123 UTC"
std::string realtime_text(uint64_t realtime_ns);

// Arguments joined by blanks, those with blanks quoted; escaped.
std::string arguments_text(const std::vector<std::string>& arguments);

}  // namespace arctrace::cli
