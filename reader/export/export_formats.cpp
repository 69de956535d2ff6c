#include "reader/export/export_formats.hpp"

#include <array>

namespace arctrace::reader {
namespace {

// Viewers have all of such a file in memory, some of it twice.
constexpr uint64_t kComfortableJson = 100'000'000;

constexpr std::array kFormats = {
    ExportFormat{.name = "perfetto",
                 .help = "time line for ui.perfetto.dev and its trace processor",
                 .suffix = ".pftrace",
                 .make = make_perfetto_export,
                 .has_events = true,
                 .is_binary = true},
    ExportFormat{.name = "chrome",
                 .help = "the same as JSON, for chrome://tracing and speedscope, too",
                 .suffix = ".json",
                 .make = make_chrome_export,
                 .has_events = true,
                 .comfortable_bytes = kComfortableJson},
    ExportFormat{.name = "html",
                 .help = "the page of arctrace view as one file, for any browser",
                 .suffix = ".html",
                 .make = make_html_export,
                 .has_exact = true},
    ExportFormat{.name = "speedscope",
                 .help = "time line and flame graph for www.speedscope.app",
                 .suffix = ".speedscope.json",
                 .make = make_speedscope_export,
                 .comfortable_bytes = kComfortableJson},
    ExportFormat{.name = "folded",
                 .help = "a line for each stack, for scripts that make flame graphs",
                 .suffix = ".folded",
                 .make = make_folded_export,
                 .has_weight = true,
                 .grouping = Grouping::kName},
    ExportFormat{.name = "pprof",
                 .help = "sums for go tool pprof, gzipped",
                 .suffix = ".pb.gz",
                 .make = make_pprof_export,
                 .has_weight = true,
                 .is_binary = true},
    ExportFormat{.name = "callgrind",
                 .help = "sums for callgrind_annotate and KCachegrind",
                 .suffix = ".callgrind",
                 .make = make_callgrind_export,
                 .has_weight = true},
    ExportFormat{.name = "csv",
                 .help = "a line for each call and event",
                 .suffix = ".csv",
                 .make = make_csv_export,
                 .has_events = true},
    ExportFormat{.name = "ndjson",
                 .help = "a JSON object a line for each call and event",
                 .suffix = ".ndjson",
                 .make = make_ndjson_export,
                 .has_events = true},
    ExportFormat{.name = "sqlite",
                 .help = "a database for SQL: calls, paths, threads, scheduling, events",
                 .suffix = ".db",
                 .make = make_sqlite_export,
                 .has_events = true,
                 .is_binary = true},
};

}  // namespace

std::span<const ExportFormat> export_formats() { return kFormats; }

}  // namespace arctrace::reader
