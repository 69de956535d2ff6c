#include "reader/cli/options/trace_options.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "reader/analysis/tree_groups.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/export/export_file.hpp"
#include "reader/render/text_style.hpp"
#include "src/base/glob.hpp"
#include "src/base/near_names.hpp"

namespace arctrace::cli {
namespace {

void add_min_duration(CLI::App& app, uint64_t& min_duration_ns) {
  app.add_option_function<std::string>(
         "-t,--min-duration",
         [&min_duration_ns](const std::string& text) {
           const absl::StatusOr<int64_t> parsed = recording::parse_time_ns(text);
           if (!parsed.ok() || *parsed < 0) {
             throw CLI::ValidationError(
                 "--min-duration", parsed.ok() ? "\"" + text + "\" is negative"
                                               : std::string(parsed.status().message()));
           }
           min_duration_ns = static_cast<uint64_t>(*parsed);
         },
         "hide calls that took less time, such as 10us; calls that are open at the "
         "end stay")
      ->type_name("TIME");
}

}  // namespace

bool ReplayFilterOptions::wants_thread(const reader::Definitions& definitions,
                                       reader::ThreadIndex thread) const {
  const reader::Thread* facts = definitions.thread(thread);
  const reader::Process* process = definitions.process_of(thread);
  const auto has = [](const std::vector<uint32_t>& list, uint32_t value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  if (facts == nullptr || !has(tids, facts->tid)) return false;
  if (!has(pids, definitions.pid_of(thread))) return false;
  if (processes.empty()) return true;
  const std::string program = process == nullptr ? "" : process->executable;
  const std::string name = program.substr(program.rfind('/') + 1);
  const std::string called = reader::process_label(definitions, facts->process);
  return std::any_of(processes.begin(), processes.end(), [&](const std::string& glob) {
    if (glob.find('/') != std::string::npos) return glob_matches(glob, program);
    return glob_matches(glob, called) || glob_matches(glob, name);
  });
}

bool ReplayFilterOptions::wants_gap(const reader::Definitions& definitions,
                                    const reader::Gap& gap) const {
  if (gap.to_ns < filter.from_ns || gap.from_ns >= filter.until_ns) return false;
  return gap.thread == reader::kNoIndex || !has_thread_filter() ||
         wants_thread(definitions, gap.thread);
}

void add_full_names_option(CLI::App& app, bool& full_names) {
  app.add_flag(
      "--full-names", full_names,
      "show C++ functions with return types, template arguments and parameters, and "
      "copies by their own names");
}

void add_replay_filter_options(CLI::App& app, ReplayFilterOptions& options,
                               const std::string& functions_help) {
  const std::string group = "Filters";
  const auto add_list = [&](const char* name, auto& list, const char* type,
                            const char* help) {
    app.add_option(name, list, help)
        ->delimiter(',')
        ->check(not_empty())
        ->allow_extra_args(false)
        ->type_name(type)
        ->group(group);
  };
  add_list("--pid", options.pids, "PID,...", "show only these processes");
  add_list("--tid", options.tids, "TID,...", "show only these threads");
  app.add_flag("--all-threads", options.all_threads,
               "show also threads of other processes that appear in the kernel's records")
      ->group(group);
  add_glob_option(app, "--process", options.processes,
                  "show only processes whose program matches GLOB: the name by which it "
                  "was called or that of its file, or its path if GLOB contains a /; may "
                  "be repeated")
      ->group(group);
  if (!functions_help.empty()) {
    add_pattern_option(app, "-F,--function", options.filter.only, functions_help)
        ->group(group);
  }
  add_pattern_option(
      app, "-N,--exclude", options.filter.except,
      "hide functions that match PATTERN, and what they call; may be repeated")
      ->group(group);
  app.add_option("-D,--depth", options.filter.max_depth,
                 "show at most N frames within one another")
      ->type_name("N")
      ->group(group);
  add_time_range_option(app, options.range)->group(group);
  add_min_duration(app, options.filter.min_duration_ns);
  app.get_option("--min-duration")->group(group);
}

namespace {

using reader::ExportFormat;
using reader::ExportWeight;
using reader::Grouping;

const std::vector<std::pair<std::string, ExportWeight>> kWeights = {
    {"wall", ExportWeight::kWall},
    {"cpu", ExportWeight::kCpu},
    {"off-cpu", ExportWeight::kOffCpu},
    {"count", ExportWeight::kCount}};

const std::vector<std::pair<std::string, Grouping>> kGroupings = {
    {"thread", Grouping::kThread},
    {"process", Grouping::kProcess},
    {"name", Grouping::kName},
    {"all", Grouping::kAll}};

constexpr const char* kNotes =
    "OUT appears under its name only when it is complete: an error or Ctrl-C leaves\n"
    "nothing, and an OUT that was there before stays as it was. With -o - a reader of\n"
    "the pipe sees what has been written so far.\n"
    "\n"
    "Several FILEs are those of one recording with --size-limit, in any order.\n"
    "\n"
    "Calls, times and filters are those of arctrace report. Names are made harmless:\n"
    "control characters and bytes that are not UTF-8 become \\n or \\x1b, and what\n"
    "follows 4096 bytes is cut off.";

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const ExportFormat& format : reader::export_formats()) {
    names.emplace_back(format.name);
  }
  return names;
}

// Returns the names of the formats for which `holds`: "folded, pprof".
template <class Holds>
std::string formats_that(const Holds& holds) {
  std::string names;
  for (const ExportFormat& format : reader::export_formats()) {
    if (holds(format)) absl::StrAppend(&names, names.empty() ? "" : ", ", format.name);
  }
  return names;
}

// Returns a line for each format.
std::string formats_help() {
  std::string text = "Formats:\n";
  for (const ExportFormat& format : reader::export_formats()) {
    text += "  ";
    reader::append_left(text, format.name, 13);
    absl::StrAppend(&text, format.help, "\n");
  }
  return text;
}

// "; chrome and speedscope write .json files", if `name` is the end of such names.
std::string formats_that_write(const std::string& name) {
  std::vector<std::string> found;
  const std::string suffix = "." + CLI::detail::to_lower(name);
  for (const ExportFormat& format : reader::export_formats()) {
    if (std::string_view(format.suffix).ends_with(suffix))
      found.emplace_back(format.name);
  }
  if (name.empty() || found.empty()) return {};
  return absl::StrCat("; ", absl::StrJoin(found, " and "),
                      found.size() == 1 ? " writes " : " write ", suffix, " files");
}

void add_format(CLI::App& app, ExportOptions& options) {
  app.add_option_function<std::string>(
         "--to",
         [&options](const std::string& name) {
           for (const ExportFormat& format : reader::export_formats()) {
             if (CLI::detail::to_lower(name) == format.name) options.format = &format;
           }
           if (options.format != nullptr) return;
           const std::string near =
               formats_that_write(name) + near_names(name, format_names());
           throw CLI::ValidationError(
               "--to", absl::StrCat("there is no format \"", name, "\"",
                                    near.empty() ? "; it is one of " : near,
                                    near.empty() ? either_of(format_names()) : ""));
         },
         "the format: what opens each is listed below")
      ->required()
      ->type_name(absl::StrJoin(format_names(), "|"));
}

}  // namespace

void add_export_options(CLI::App& app, ExportOptions& options) {
  add_format(app, options);
  app.add_option("-o,--output", options.output,
                 "the file to write; - is standard output; a FIFO or device is written "
                 "into; without it, a file beside the trace with the format's suffix, "
                 "such as arctrace.json")
      ->check(not_empty())
      ->type_name("OUT");
  app.add_flag("--force", options.force, "replace OUT if it exists");
  app.add_flag("--partial", options.partial,
               "export what there is of a trace that was cut off, or of a session that "
               "is not yet finished");
  add_files_option(app, options.paths);
  const std::string weighed =
      formats_that([](const ExportFormat& format) { return format.has_weight; });
  const auto take = [&options](auto ExportOptions::*member) {
    return [&options, member](auto value) {
      options.*member = value;
      options.has_sum_options = true;
    };
  };
  add_choice_option<ExportWeight>(
      app, "--weight", kWeights, take(&ExportOptions::weight),
      absl::StrCat("what the numbers of ", weighed,
                   " are: ns in the function itself, of all time or of that on or off a "
                   "CPU (which needs record --kernel), or calls"))
      ->default_str("wall");
  add_choice_option<Grouping>(app, "--per", kGroupings, take(&ExportOptions::grouping),
                              absl::StrCat("whose stacks ", weighed,
                                           " add up: those of each thread, of each "
                                           "process, of the threads of a name, or of "
                                           "all"))
      ->default_str("thread, but of folded name");
  app.add_option_function<std::vector<std::string>>(
         "--exact",
         [&options](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             options.exact.push_back(time_range_of("--exact", text));
           }
         },
         absl::StrCat("have ", formats_that([](const ExportFormat& format) {
                        return format.has_exact;
                      }),
                      " keep every call from START up to STOP; without it, short calls "
                      "of a large trace are left out, except those on the critical "
                      "path; may be repeated"))
      ->allow_extra_args(false)
      ->type_name("START~STOP");
  app.add_flag("--debuginfod", options.download,
               "download debug files from the servers in DEBUGINFOD_URLS");
  add_full_names_option(app, options.full_names);
  add_replay_filter_options(app, options,
                            "show only functions that match PATTERN, and what they call; "
                            "may be repeated");
  add_where_option(app, options.where,
                   absl::StrCat("; with ", formats_that([](const ExportFormat& format) {
                                  return format.has_events;
                                })))
      ->group("Filters");
  app.footer(formats_help() + kNotes);
}

namespace {

// Returns the name beside a trace of a file that is made of it: "arctrace.json" of
// "arctrace.data". What a session has is in memory, so its file is put into the current
// directory.
std::string name_beside(const std::string& trace, const char* suffix) {
  constexpr std::string_view kTraceSuffix = ".data";
  std::string name = trace;
  struct stat status {};
  if (::stat(trace.c_str(), &status) != 0 || name.starts_with("/dev/") ||
      name.starts_with("/run/")) {
    name.erase(0, name.rfind('/') + 1);
  }
  if (name.size() > kTraceSuffix.size() && name.ends_with(kTraceSuffix)) {
    name.resize(name.size() - kTraceSuffix.size());
  }
  return name + suffix;
}

}  // namespace

absl::Status complete_export_options(ExportOptions& options) {
  options.take_range();
  if (options.output.empty()) {
    options.output = name_beside(options.paths.front(), options.format->suffix);
  }
  const ExportFormat& format = *options.format;
  if (options.has_sum_options && !format.has_weight) {
    return absl::InvalidArgumentError(
        absl::StrCat("export: --weight and --per do not apply to --to=", format.name));
  }
  if (!options.exact.empty() && !format.has_exact) {
    return absl::InvalidArgumentError(
        absl::StrCat("export: --exact does not apply to --to=", format.name,
                     ", which leaves no call out"));
  }
  if (!options.where.empty() && !format.has_events) {
    return absl::InvalidArgumentError(absl::StrCat(
        "export: --where does not apply to --to=", format.name, ", which has no events"));
  }
  if (options.to_stdout()) {
    if (!format.is_binary || ::isatty(STDOUT_FILENO) != 1) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "export: ", format.name, " is not text: -o FILE, or -o - into a pipe"));
  }
  for (const std::string& path : options.paths) {
    if (!reader::ExportFile::is_same_file(path, options.output)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("export: ", options.output, " is the trace itself"));
  }
  return absl::OkStatus();
}

namespace {

constexpr const char* kTuiNotes =
    "The views: summary, functions, call trees, processes and threads, locks, and the\n"
    "critical path, with the numbers that report has with the same filters. Of a\n"
    "function, its callers and callees and its slowest calls, with their arguments.\n"
    "\n"
    "Keys: 1 to 6 and Tab choose a view, arrows, pages, Home, End, g and G a row; Enter\n"
    "goes into the function of a row, Backspace back; Right, Left and Space unfold and\n"
    "fold, e and c all below a row; s, > and < sort by another column, r the other way\n"
    "round; / looks for a name, n and N for the next one and the one before; p has the\n"
    "trees by thread, by process, or one of all; ? lists the keys, q leaves.\n"
    "t asks for a range of time, which is all that is read then; nothing: all of it.\n"
    "\n"
    "The trace is read once when it is opened; meanwhile threads are shown, and how "
    "long\n"
    "it takes. Of a long one, it is read again for the slowest calls of a function when\n"
    "these are asked for. Esc or Ctrl-C stops that. A terminal\n"
    "of 40 columns and 10 lines is enough; wider ones show more columns. Colours are\n"
    "those of the terminal, unless NO_COLOR is set.\n"
    "\n";

}  // namespace

void add_tui_options(CLI::App& app, TuiOptions& options) {
  add_files_option(app, options.paths);
  app.add_flag("--partial", options.partial, "show what a session's buffer holds now");
  add_replay_filter_options(
      app, options,
      "show only functions that match PATTERN, and what they call; may be repeated");
  add_full_names_option(app, options.full_names);
  app.add_flag("--debuginfod", options.download,
               "download debug files from the servers in DEBUGINFOD_URLS");
  app.footer(absl::StrCat(kTuiNotes, kFilesNote));
}

namespace {

constexpr const char* kViewNotes =
    "The page is served on 127.0.0.1 only, and only to whoever has its address, which\n"
    "holds a random token. Ctrl-C ends it. The trace stays where it is: what the page\n"
    "shows is read from it when it is asked for.\n"
    "\n"
    "The page opens at once, whatever the size of the trace: which threads ran, how\n"
    "densely they wrote, and each call of a range that is zoomed into. The sums of the\n"
    "whole time follow when all of it has been read; the page says how long that takes.\n"
    "A range takes least time in a file with an index, as record writes it. A session's\n"
    "buffer is read first.\n"
    "\n"
    "From another machine: ssh -L PORT:127.0.0.1:PORT HOST, with --port PORT there.\n"
    "\n";

}  // namespace

void add_view_options(CLI::App& app, ViewPageOptions& options) {
  add_files_option(app, options.paths);
  app.add_option("--port", options.port, "the port to listen on; 0: any that is free")
      ->check(from_to(0, UINT16_MAX))
      ->default_str("0")
      ->type_name("PORT");
  app.add_flag("--no-open", options.no_open,
               "print the address, and open no browser: without this option one is "
               "opened if there is a desktop, and the user is not root");
  app.add_flag("--partial", options.partial,
               "show what there is of a trace that was cut off, or of a session that is "
               "not yet finished");
  add_full_names_option(app, options.full_names);
  app.add_flag("--debuginfod", options.download,
               "download debug files from the servers in DEBUGINFOD_URLS");
  app.footer(absl::StrCat(kViewNotes, kFilesNote));
}

}  // namespace arctrace::cli
