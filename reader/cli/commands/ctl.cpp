// arctrace ctl, start and stop: they change what a session records while it runs.
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/record_options.hpp"
#include "reader/render/output.hpp"
#include "reader/trace/trace.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recorder/kernel/kernel_requests.hpp"
#include "src/recording/patterns/live_filter.hpp"
#include "src/recording/patterns/unmatched.hpp"
#include "src/recording/session_gate.hpp"
#include "src/recording/session_variables.hpp"

namespace arctrace::cli {
namespace {

struct CtlOptions {
  std::string name;
  uint32_t on = 0, off = 0;                // enum arctrace_gate_bit
  uint32_t events_on = 0, events_off = 0;  // enum arctrace_kernel_event
  std::optional<uint32_t> high_water_percent;
  recording::CallFilterOptions functions;  // patterns of names only
  bool all_functions = false;
  recording::RecordFilterOptions records;
  bool all_records = false;

  bool changes_functions() const {
    return all_functions || !functions.filter.empty() || !functions.notrace.empty();
  }
};

// Prints warnings for names in the record filter that the session's programs do not have,
// as far as its buffer tells. Programs may still define an event or become a process, so
// where none has joined yet, nothing is said of events.
absl::Status warn_of_unmatched(const recording::RecordFilterOptions& filter,
                               const std::string& path) {
  const absl::StatusOr<reader::Trace> trace = reader::Trace::open(path);
  if (!trace.ok()) return trace.status();
  if (trace->buffer() == nullptr) return absl::OkStatus();
  for (const std::string& line : recording::unmatched_threads(filter, *trace->buffer())) {
    reader::print_warning(line);
  }
  const recording::EventLevels events = recording::events_of(trace->definitions());
  if (trace->definitions().processes().empty()) return absl::OkStatus();
  const char* note = trace->buffer()->collector_alive
                         ? "; definitions that the collector has taken were not looked at"
                         : "";
  for (const std::string& line : recording::unmatched_events(
           filter, events, reader::field_types(trace->definitions()))) {
    reader::print_warning(line + note);
  }
  const recording::DefinedNames names = recording::names_of(trace->definitions());
  for (const std::string& line : recording::unmatched_instants(filter, names)) {
    reader::print_warning(line + note);
  }
  return absl::OkStatus();
}

// Makes the kernel record other events.
absl::Status change_kernel_events(const recorder::Buffer& buffer,
                                  const CtlOptions& options) {
  const BufferView& view = buffer.view();
  if (buffer.map() < 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ctl: session ", options.name,
        " has no records of the kernel's by BPF: record --kernel or create --kernel "
        "makes one that has"));
  }
  recorder::ask_for_kernel_events(view, options.events_on, options.events_off);
  if (!is_live(IpcAtomics::load_acquire(view.control().collector_lock))) {
    reader::print_message(absl::StrCat("ctl: nobody collects session ", options.name,
                                       " now; the next arctrace attach records so"));
    return absl::OkStatus();
  }
  const absl::Status status =
      recorder::wait_for_kernel_events(view, options.events_on, options.events_off);
  return status.ok() ? absl::OkStatus()
                     : absl::Status(status.code(),
                                    absl::StrCat("ctl: session ", options.name, ": ",
                                                 std::string(status.message())));
}

absl::StatusOr<int> ctl(const CtlOptions& options) {
  absl::StatusOr<recorder::Buffer> buffer = recorder::open_session(options.name);
  if (!buffer.ok()) return buffer.status();
  const BufferView& view = buffer->view();
  // The filter changes before the gate, so that classes that the gate opens are filtered
  // from their first record on.
  if (options.changes_functions()) {
    if (const auto problem = recording::find_problem(options.functions)) {
      reader::print_error("ctl: " + problem->text());
      return 2;
    }
    const absl::StatusOr<recording::LiveFilter> filter =
        recording::make_live_filter(options.functions, buffer->path());
    if (!filter.ok()) return filter.status();
    for (const std::string& line : filter->warnings) reader::print_warning(line);
    absl::Status published = recorder::publish_live_filter(view, filter->text);
    if (!published.ok()) return published;
  }
  if (options.all_records || !options.records.empty()) {
    absl::Status filtered =
        recorder::set_record_filter(buffer->view(), options.records.text());
    if (!filtered.ok()) return filtered;
    if (absl::Status s = warn_of_unmatched(options.records, buffer->path()); !s.ok()) {
      return s;
    }
  }
  if ((options.on | options.off) != 0)
    recording::switch_gate(*buffer, options.on, options.off);
  if ((options.events_on | options.events_off) != 0) {
    if (absl::Status s = change_kernel_events(*buffer, options); !s.ok()) return s;
  }
  if (options.high_water_percent) {
    const uint64_t blocks = view.geometry().block_count;
    IpcAtomics::store_relaxed(
        view.control().high_water_blocks,
        static_cast<uint32_t>(blocks * *options.high_water_percent / 100));
  }
  return 0;
}

}  // namespace

Runner add_ctl(CLI::App& root) {
  auto options = std::make_shared<CtlOptions>();
  CLI::App* app =
      root.add_subcommand("ctl", "change what a session records while it runs");
  add_session_option(*app, options->name);
  add_classes_and_events_option(
      *app, "--on", options->on, options->events_on,
      "record these classes: functions, events, marks, kernel, all; or these events of "
      "the kernel's: syscalls, page-faults, signals, contention, block-io, irq");
  add_classes_and_events_option(*app, "--off", options->off, options->events_off,
                                "do not record these any more");
  app->add_option("--high-water", options->high_water_percent,
                  "wake the collector when PERCENT of the blocks are used; 0 = never")
      ->check(from_to(0, recorder::kHighWaterPercentMax))
      ->type_name("PERCENT");
  const auto add_patterns = [app](const char* flags, std::vector<std::string>& patterns,
                                  const char* what) {
    return app->add_option(flags, patterns, what)
        ->type_name("PATTERN")
        ->allow_extra_args(false)
        ->group("What to trace, from each function's next call on");
  };
  add_patterns(
      "-F,--trace", options->functions.filter,
      "trace only functions and scopes that match PATTERN, and what they call; may be "
      "repeated");
  add_patterns(
      "-N,--no-trace", options->functions.notrace,
      "do not trace functions and scopes that match PATTERN, nor what they call; takes "
      "precedence over -F; may be repeated");
  app->add_flag(
         "--trace-all", options->all_functions,
         "trace what the programs were started with: all functions, or those of -F "
         "and -N of record")
      ->excludes("--trace")
      ->excludes("--no-trace")
      ->group("What to trace, from each function's next call on");
  constexpr const char* kRecordsGroup = "What to record";
  CLI::Option* all = app->add_flag("--record-all", options->all_records,
                                   "record all events, instants and counters, of all "
                                   "processes and threads")
                         ->group(kRecordsGroup);
  for (CLI::Option* option : add_record_filter_options(*app, options->records, true)) {
    option->group(kRecordsGroup);
    all->excludes(option);
  }
  app->footer(
      "-F and -N replace the patterns of an earlier call; --event, --no-event, --level,\n"
      "--mark, --no-mark, --pid and --tid together replace those of an earlier call. A\n"
      "PATTERN is as in record. A regular expression, or the name of a C++ function as\n"
      "in its source, applies to the functions that the session's programs have now. If\n"
      "more match than a session can hold, prefixes of their linker names that no other\n"
      "function has are used instead.");
  return [options] { return ctl(*options); };
}

// arctrace start: switches the recording of a session on.
Runner add_start(CLI::App& root) {
  auto name = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("start", "switch a session's recording on");
  add_session_option(*app, *name);
  return [name]() -> absl::StatusOr<int> {
    if (absl::Status s = recording::switch_session(*name, ARCTRACE_GATE_ALL, 0); !s.ok())
      return s;
    return 0;
  };
}

// arctrace stop: switches the recording of a session off.
Runner add_stop(CLI::App& root) {
  auto name = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("stop", "switch a session's recording off");
  add_session_option(*app, *name);
  return [name]() -> absl::StatusOr<int> {
    if (absl::Status s = recording::switch_session(*name, 0, ARCTRACE_GATE_ALL); !s.ok())
      return s;
    return 0;
  };
}

}  // namespace arctrace::cli
