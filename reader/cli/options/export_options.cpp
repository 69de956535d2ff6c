#include "reader/cli/options/export_options.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "reader/cli/options/where_option.hpp"
#include "reader/export/export_file.hpp"
#include "reader/render/text_style.hpp"
#include "src/base/near_names.hpp"

namespace arctrace::cli {
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

// The names of the formats for which `holds`: "folded, pprof".
template <class Holds>
std::string formats_that(const Holds& holds) {
  std::string names;
  for (const ExportFormat& format : reader::export_formats()) {
    if (holds(format)) absl::StrAppend(&names, names.empty() ? "" : ", ", format.name);
  }
  return names;
}

// A line for each format.
std::string formats_help() {
  std::string text = "Formats:\n";
  for (const ExportFormat& format : reader::export_formats()) {
    text += "  ";
    reader::append_left(text, format.name, 13);
    absl::StrAppend(&text, format.help, "\n");
  }
  return text;
}

void add_format(CLI::App& app, ExportOptions& options) {
  app.add_option_function<std::string>(
         "--to",
         [&options](const std::string& name) {
           for (const ExportFormat& format : reader::export_formats()) {
             if (CLI::detail::to_lower(name) == format.name) options.format = &format;
           }
           if (options.format != nullptr) return;
           const std::string near = near_names(name, format_names());
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
                 "into")
      ->required()
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
                                           "process, or of all"))
      ->default_str("thread");
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
  add_replay_filter_options(app, options,
                            "show only functions that match GLOB, and what they call; "
                            "may be repeated");
  add_where_option(app, options.where,
                   absl::StrCat("; with ", formats_that([](const ExportFormat& format) {
                                  return format.has_events;
                                })))
      ->group("Filters");
  app.footer(formats_help() + kNotes);
}

absl::Status complete_export_options(ExportOptions& options) {
  options.take_range();
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

}  // namespace arctrace::cli
