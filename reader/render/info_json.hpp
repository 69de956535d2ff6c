// The output of `arctrace info` as JSON.
#pragma once

#include <optional>

#include "reader/render/enabled_list.hpp"
#include "reader/render/patch_list.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// One object: session, summary, processes (with modules), threads, buffer (of a raw one),
// findings. Times are ns since the session's start, or null. `patches` and `enabled`
// have seen all records; with `names` the functions that were to be patched and were left
// are listed. REQUIRES: trace.read() has been called.
void write_info_json(const Trace& trace, std::optional<double> records_per_second,
                     JsonWriter& json, const PatchList& patches = {},
                     Symbolizer* names = nullptr, const EnabledList& enabled = {});

}  // namespace arctrace::reader
