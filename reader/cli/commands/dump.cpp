// arctrace dump: prints every record in order of time.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/options/dump_filter.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/render/dump_printer.hpp"
#include "reader/render/output.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/event_fields.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/trace.hpp"
#include "src/base/near_names.hpp"

namespace arctrace::cli {
namespace {

struct DumpOptions {
  std::vector<std::string> paths;
  OutputFormat format = OutputFormat::kText;
  TerminalOptions terminal;
  std::vector<std::string> fields, types;
  std::vector<uint32_t> pids, tids;
  DumpFilter filter;
  std::vector<std::string> where;
  uint64_t limit = UINT64_MAX;
  bool raw = false;
  bool no_header = false;
};

absl::StatusOr<std::vector<reader::DumpField>> parse_fields(const DumpOptions& options) {
  if (options.fields.empty()) return reader::default_dump_fields(options.raw);
  std::vector<reader::DumpField> fields;
  std::vector<std::string> names;
  for (const auto& [name, field] : reader::dump_field_names()) names.push_back(name);
  for (const std::string& wanted : options.fields) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    if (found == names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("dump: no field \"", wanted, "\"", near_names(wanted, names),
                       "; arctrace dump --help lists them"));
    }
    fields.push_back(reader::dump_field_names()[size_t(found - names.begin())].second);
  }
  return fields;
}

constexpr const char* kGap = "GAP";  // no record: the printer makes it

absl::Status parse_types(const std::vector<std::string>& names, DumpFilter& filter) {
  for (const std::string& name : names) {
    if (name == kGap) {
      filter.asks_for_gaps = true;
      continue;
    }
    const std::optional<uint16_t> type = reader::type_of_name(name);
    if (!type.has_value()) {
      std::vector<std::string> known{kGap};
      for (uint16_t t = 0; t < reader::kKnownTypes; ++t) {
        if (!reader::type_name(t).empty()) known.emplace_back(reader::type_name(t));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("dump: no record type \"", name, "\"", near_names(name, known)));
    }
    filter.types.insert(*type);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> dump(DumpOptions& options) {
  const absl::StatusOr<std::vector<reader::DumpField>> fields = parse_fields(options);
  if (!fields.ok()) return fields.status();
  DumpFilter& filter = options.filter;
  filter.pids.insert(options.pids.begin(), options.pids.end());
  filter.tids.insert(options.tids.begin(), options.tids.end());
  if (absl::Status s = parse_types(options.types, filter); !s.ok()) return s;
  const std::vector<std::string> paths = files_or_sessions(options.paths);
  absl::StatusOr<reader::Trace> trace =
      open_with_abandoned_buffer(paths, {.range = filter.range});
  if (!trace.ok()) return trace.status();
  const std::unique_ptr<recorder::ActingWithRights> rights = act_as_owner(paths.front());

  const reader::Definitions& definitions = trace->definitions();
  absl::StatusOr<reader::EventFilter> events =
      reader::EventFilter::make(definitions, options.where);
  if (!events.ok()) return events.status();
  reader::Symbolizer symbolizer;
  reader::EffectListener listener;
  reader::ReplayOptions replay_options;
  replay_options.listener = &listener;
  replay_options.ticks = &trace->clock();
  replay_options.mode = trace->session().mode;
  replay_options.wants_thread = [&](reader::ThreadIndex thread) {
    return filter.wants_thread(definitions, thread);
  };
  reader::Replay replay(definitions, &symbolizer, replay_options);
  const bool json = options.format == OutputFormat::kJson;
  reader::RecordDescriber describer(*trace, replay.resolver(),
                                    {options.raw, options.raw || json});
  reader::Output output;
  if (!json) options.terminal.apply_to(output);
  reader::DumpPrinter printer(*trace, describer, output, *fields);

  reader::FunctionPatterns functions(filter.functions);
  reader::GapFinder gaps(definitions, &trace->clock(), trace->session().mode);
  int64_t now_ns = 0;
  uint64_t printed = 0;
  const auto print_gap = [&](const reader::Gap& gap) {
    const bool is_wanted =
        gap.thread == reader::kNoIndex || filter.wants_thread(definitions, gap.thread);
    if (!is_wanted || !filter.wants_gaps() || !filter.wants_time(now_ns)) return;
    if (json) {
      printer.print_gap_json(gap, now_ns);
    } else {
      printer.print_gap_text(gap, now_ns);
    }
    if (filter.asks_for_gaps) ++printed;
  };

  const bool header = !json && !options.no_header;
  if (header) printer.print_header(options.raw);
  bool whole = true;
  std::optional<ReadProgress> progress(std::in_place, *trace, true);
  const absl::Status status = trace->read([&](const reader::Record& record) {
    progress->count(record);
    if (printed >= options.limit || record.time_ns >= filter.range.until_ns ||
        !output.good()) {
      whole = false;
      return false;
    }
    now_ns = record.time_ns;
    if (const std::optional<reader::Gap> gap = gaps.add(record)) print_gap(*gap);
    if (!filter.wants_thread(definitions, record.thread)) return true;
    listener.clear();
    replay.add(record);
    const reader::Thread* thread = definitions.thread(record.thread);
    const reader::ProcessIndex process =
        thread == nullptr ? reader::kNoIndex : thread->process;
    if (!filter.wants_time(record.time_ns) || !filter.wants_type(record.type) ||
        !filter.wants_function(record, listener.effect(), process, replay.resolver(),
                               functions) ||
        !events->admits(record)) {
      return true;
    }
    if (json) {
      printer.print_json(record, listener.effect(), options.raw);
    } else {
      printer.print_text(record, listener.effect());
    }
    ++printed;
    return true;
  });
  progress.reset();
  if (!status.ok()) return status;
  if (whole) {
    for (const reader::Gap& gap : gaps.finish(&trace->summary())) print_gap(gap);
  }
  if (events->is_set() && json) printer.print_left_out_json(*events, now_ns);
  if (events->is_set() && header) printer.print_left_out_text(*events);
  if (header && whole) printer.print_footer();
  printer.finish();
  if (absl::Status s = output.finish(); !s.ok()) return s;
  // An empty output would look like a trace without records.
  const bool has_filters = filter.is_set() || events->is_set();
  if (printed == 0 && options.limit != 0 && has_filters) {
    reader::print_warning("no record passes the filters");
  }
  return 0;
}

}  // namespace

Runner add_dump(CLI::App& root) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* app = root.add_subcommand("dump", "print every record in order of time");
  add_files_option(*app, options->paths);
  add_format_option(*app, options->format);
  add_text_options(*app, options->terminal);
  CLI::Option* fields =
      app->add_option(
             "--fields", options->fields,
             "the columns of text: time, delta, wall, cpu, ticks, pid, tid, name, "
             "writer, place, type, content")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->type_name("FIELD");
  add_thread_options(*app, options->pids, options->tids);
  app->add_option(
         "--type", options->types,
         "print only records of these types, such as ENTER,EVENT, or their numbers; GAP: "
         "where records are missing")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("TYPE");
  add_pattern_option(
      *app, "-F,--function", options->filter.functions,
      "print only entries and exits of functions that match PATTERN; may be repeated");
  add_where_option(*app, options->where, "");
  add_time_range_option(*app, options->filter.range);
  app->add_option("-n,--limit", options->limit, "stop after N records")
      ->check(not_negative())
      ->type_name("N");
  app->add_flag("--raw", options->raw,
                "add ticks, writers, offsets in the file, and addresses");
  app->add_flag("--no-header", options->no_header, "print only the records");
  app->footer(absl::StrCat(
      "Times are seconds since the start of the session. JSON is one object per line:\n"
      "time_ns, pid, tid, type, and the fields of the type. An EXIT shows the function\n"
      "that it leaves, which follows from the records before it. Lines that begin with\n"
      "# are not records. A PATTERN is as for report.\n",
      kFilesNote));
  return [options, fields]() -> absl::StatusOr<int> {
    if (fields->count() != 0 && options->format == OutputFormat::kJson) {
      return absl::InvalidArgumentError("dump: --fields applies to --format=text only");
    }
    absl::Status counted = count_from_end_of(options->paths, options->filter.range);
    if (!counted.ok()) return counted;
    return dump(*options);
  };
}

}  // namespace arctrace::cli
