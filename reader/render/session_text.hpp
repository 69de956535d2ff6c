// Facts, sums and losses of a session in words, for the heads and ends of several
// outputs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reader/streams/json_writer.hpp"
#include "reader/trace/kept_span.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// A line each, escaped: file, recording, system, buffer.
std::vector<std::string> session_facts(const Session& session);

// What is to be known of times that are not exact, in a line; empty: they are exact.
std::string stamps_text(const Session& session);

// Members stamps and resolution_ns; and mean_age_ns and longest_step_ns, or null. Nothing
// if times are exact.
void write_stamps_json(const Session& session, JsonWriter& json);

// "1234 records, 3 lost (full 2, too_big 1), 1 torn, 2 findings". Counts that are 0 do
// not appear, except those of records and of losses.
std::string summary_line(const Summary& summary);

// ", 1,204 kernel records"; empty if there are none.
std::string kernel_records_text(uint64_t records);

// Tells which files of its recording are read, and what happened to the others; empty for
// a recording in one file.
std::string files_text(const RecordingFiles& files);

// A line about the identities that a session has given, once a quarter of them are; else
// empty.
std::string identities_text(uint32_t processes, uint32_t threads);

// "1 finding", "2 findings". `plural` is for words whose plural is not formed by an s.
std::string count_text(uint64_t count, const std::string& what,
                       const std::string& plural = {});

// A number of bytes as "64 MiB", "640 KiB" or "100 bytes", rounded down to a tenth.
std::string bytes_text(uint64_t bytes);

// "2026-11-21 07:17:49.123 UTC"
std::string realtime_text(uint64_t realtime_ns);

// A command line: arguments joined by blanks, those with blanks quoted; escaped.
std::string command_line_text(const std::vector<std::string>& arguments);

// Lost records by the cause of their loss, in text and in JSON.

// "full 2, too_big 1"; empty if nothing was lost. `by_cause`: counts by the
// ARCTRACE_LOST_ number of the cause.
std::string losses_text(std::span<const uint64_t> by_cause);

// ", 5 overwritten, 3 in another file, 2 torn, 1 unfinished": what a trace lacks besides
// what was lost; empty if that is nothing.
std::string other_missing_text(const Summary& summary);

// "the records of all threads are there for the last 93.1 ms, from 0.443000000 s on"; and
// if there is less of the kernel's: "; the kernel's for the last 20.0 ms, from ..."
std::string kept_span_text(const KeptSpan& span);

// Member `name`: an object with a number for each cause.
void write_losses_json(std::string_view name, std::span<const uint64_t> by_cause,
                       JsonWriter& json);

}  // namespace arctrace::reader
