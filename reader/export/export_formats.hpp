// The table of export formats: their names, what each is for, and how it is made.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

struct ExportFormat {
  const char* name;    // the value of --to
  const char* help;    // what opens it, to follow the name
  const char* suffix;  // of the names of such files
  std::unique_ptr<Exporter> (*make)(const ExportSettings&);
  bool has_weight = false;                // it has sums, whose unit --weight chooses
  Grouping grouping = Grouping::kThread;  // whose sums, if --per does not say
  bool has_exact = false;   // it may leave calls out, except those that are asked for
  bool has_events = false;  // --where chooses among them
  bool is_binary = false;   // a terminal is no place for it
  // Viewers load all of it: larger files than this get a warning. 0: they do not.
  uint64_t comfortable_bytes = 0;
};

// All formats, in the order in which --help lists them.
std::span<const ExportFormat> export_formats();

// --to=folded: a line for each stack, "a;b;c 123", as scripts for flame graphs read it.
std::unique_ptr<Exporter> make_folded_export(const ExportSettings& settings);

// --to=callgrind: the text format of callgrind_annotate and KCachegrind.
std::unique_ptr<Exporter> make_callgrind_export(const ExportSettings& settings);

// --to=pprof: the gzipped protobuf of go tool pprof and its relatives.
std::unique_ptr<Exporter> make_pprof_export(const ExportSettings& settings);

// --to=chrome: the JSON of Chrome's trace viewer, which Perfetto and speedscope read too.
std::unique_ptr<Exporter> make_chrome_export(const ExportSettings& settings);

// --to=perfetto: the protobuf of ui.perfetto.dev and its trace processor.
std::unique_ptr<Exporter> make_perfetto_export(const ExportSettings& settings);

// --to=speedscope: the JSON of www.speedscope.app, a time line for each thread.
std::unique_ptr<Exporter> make_speedscope_export(const ExportSettings& settings);

// The largest such file, if the names of functions and threads leave space for the rest.
inline constexpr size_t kHtmlBytesMax = 5'000'000;

// --to=html: one HTML file with the page of `view`, and what it shows of the trace. Long
// calls are exact. Shorter ones that do not fit are shown as densities, and the page says
// so. It has flame graphs, tables and locks of the time that is exported.
std::unique_ptr<Exporter> make_html_export(const ExportSettings& settings);

// --to=sqlite: a database of calls, paths, threads, scheduling and events
// (docs/guide/sqlite.md).
std::unique_ptr<Exporter> make_sqlite_export(const ExportSettings& settings);

// --to=csv: a line for each call and event, for spreadsheets and data frames.
std::unique_ptr<Exporter> make_csv_export(const ExportSettings& settings);

// --to=ndjson: a JSON object a line for each call and event.
std::unique_ptr<Exporter> make_ndjson_export(const ExportSettings& settings);

}  // namespace arctrace::reader
