// The output of `arctrace info` as text.
#pragma once

#include <optional>
#include <string>

#include "reader/render/enabled_list.hpp"
#include "reader/render/patch_list.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Session, counts, processes, threads, modules, the parts of a buffer, and the first
// findings. `records_per_second`: of a buffer that is being written to. `patches` and
// `enabled` have seen all records; with `names` the functions that were to be patched and
// were left are listed. REQUIRES: trace.read() has been called.
std::string info_text(const Trace& trace,
                      std::optional<double> records_per_second = std::nullopt,
                      const PatchList& patches = {}, Symbolizer* names = nullptr,
                      const EnabledList& enabled = {});

}  // namespace arctrace::reader
