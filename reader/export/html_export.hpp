// One HTML file with the page of `view`, and what it shows of the trace.
#pragma once

#include <memory>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

// The largest such file, if the names of functions and threads leave room.
inline constexpr size_t kHtmlBytesMax = 5'000'000;

// Long calls are exact; as many of the shorter ones as do not fit are densities, of which
// the page says so. It has flame graphs, tables and locks of the time that is exported.
std::unique_ptr<Exporter> make_html_export(const ExportSettings& settings);

}  // namespace arctrace::reader
