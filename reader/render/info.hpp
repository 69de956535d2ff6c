// The output of `arctrace info`, as text and as JSON, with the findings, which are
// breaches of SPEC.md in a trace, as `check` shows them too.
#pragma once

#include <optional>
#include <string>

#include "reader/render/gap_list.hpp"
#include "reader/render/patch_list.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// The output of `arctrace info` as text: session, counts, processes, threads, modules,
// the parts of a buffer, and the first findings. `records_per_second`: of a buffer that
// is being written to. `patches` and `enabled` have seen all records; with `names` the
// functions that were to be patched and were skipped are listed. REQUIRES: trace.read()
// has been called.
std::string info_text(const Trace& trace,
                      std::optional<double> records_per_second = std::nullopt,
                      const PatchList& patches = {}, Symbolizer* names = nullptr,
                      const EnabledList& enabled = {});

// The output of `arctrace info` as JSON, one object: session, summary, processes (with
// modules), threads, buffer (of a raw one), findings. Times are ns since the session's
// start, or null. `patches` and `enabled` have seen all records; with `names` the
// functions that were to be patched and were skipped are listed. REQUIRES: trace.read()
// has been called.
void write_info_json(const Trace& trace, std::optional<double> records_per_second,
                     JsonWriter& json, const PatchList& patches = {},
                     Symbolizer* names = nullptr, const EnabledList& enabled = {});

// "R3 chunk 12, byte 144: TEXT: it is too short (a record is long enough for ...)";
// one line, escaped.
std::string finding_text(const Finding& finding, const Session& session);

// Member "findings" of the object that is open: an array of rule, message, chunk (of a
// buffer: block) and offset.
void write_findings_json(const Trace& trace, JsonWriter& json);

}  // namespace arctrace::reader
