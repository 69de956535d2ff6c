// Options that say what is recorded of which programs: the filters of calls and of
// records, and classes of records.
#include <arctrace/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reader/cli/options/options.hpp"
#include "reader/cli/options/record_options.hpp"

namespace arctrace::cli {

void add_traced_options(CLI::App& app, recording::RecordOptions& options) {
  CLI::Option* of_program = app.add_flag_callback(
      "--libcall",
      [&options] { options.library_calls = recording::LibraryCalls::kProgram; },
      "record the library calls of the program itself (default)");
  CLI::Option* none = app.add_flag_callback(
      "--no-libcall",
      [&options] { options.library_calls = recording::LibraryCalls::kNone; },
      "record no library calls, only functions compiled for tracing, and events");
  app.add_flag_callback(
         "--nest-libcall",
         [&options] { options.library_calls = recording::LibraryCalls::kAll; },
         "record the calls between libraries as well")
      ->excludes(of_program, none);
  none->excludes(of_program);
  add_call_filter_options(app, options.filter);
}

void add_joined_option(CLI::App& app, std::vector<pid_t>& pids, const std::string& help) {
  app.add_option("-p,--pid", pids, help)
      ->delimiter(',')
      ->check(process_id())
      ->type_name("PID,...");
}

namespace {

using recording::CallFilterOptions;

void add_arg_options(CLI::App& app, CallFilterOptions& options) {
  const auto add = [&app](const char* flags, std::vector<std::string>& specs,
                          const char* type, const char* what) {
    app.add_option(flags, specs, what)
        ->type_name(type)
        ->allow_extra_args(false)
        ->group("Arguments and results");
  };
  add("-A,--argument", options.args, "PATTERN[@ARG,...]",
      "record arguments of functions, such as \"open@arg1/s,arg2/x32\"; may be "
      "repeated, as -R");
  add("-R,--retval", options.retvals, "PATTERN[@retval]",
      "record what functions return, such as \"open@retval/i32\"");
  app.add_flag("-a,--auto-args", options.auto_args,
               "record arguments and results of common functions of libc")
      ->group("Arguments and results");
}

}  // namespace

CLI::Option* add_snapshot_when_option(CLI::App& app, CallFilterOptions& options) {
  return app
      .add_option(
          "--snapshot-when", options.snapshot_when,
          "with --mode=overwrite, take a snapshot when a call ends that fulfils "
          "this, at most one a second: \"PATTERN > 20ms\", \"PATTERN returns < 0\", "
          "\"PATTERN = NULL\"; may be repeated")
      ->type_name("CONDITION")
      ->allow_extra_args(false);
}

void add_call_filter_options(CLI::App& app, CallFilterOptions& options) {
  const auto add = [&app](const char* flags, std::vector<std::string>& patterns,
                          const char* what) {
    app.add_option(flags, patterns, what)
        ->type_name("PATTERN")
        ->allow_extra_args(false)
        ->group("What to trace");
  };
  add("-F,--filter", options.filter,
      "only functions and scopes that match, and what they call; may be repeated, as -N "
      "and -L");
  add("-N,--notrace", options.notrace,
      "not functions and scopes that match, nor what they call: stronger than -F");
  add("-L,--module", options.modules,
      "only functions of program files and libraries whose name matches");
  add("-P,--patch", options.patch,
      "also the program's own functions that match, though it was not built for tracing; "
      "\".\" for all, lib:LIBRARY or lib:LIBRARY:PATTERN for those of libraries: x86-64 "
      "only; may be repeated");
  add("--entry-only", options.entry_only,
      "of functions that match, record only that they are called: they return twice or "
      "look at their caller, and arctrace does not find that out by itself");
  app.add_option(
         "-D,--depth", options.depth,
         "only N functions within one another, counted anew from each that -F matches")
      ->check(from_to(1, 1024))
      ->type_name("N")
      ->group("What to trace");
  app.add_option(
         "-t,--time-filter", options.time,
         "only calls that last so long, such as 20us; shorter ones leave no records")
      ->type_name("TIME")
      ->group("What to trace");
  add_arg_options(app, options);
  add_size_option(
      app, "-Z,--size-filter", [&options](uint64_t size) { options.size = size; },
      UINT64_MAX,
      "only functions whose code has so many bytes, as far as that is known; 1: all. "
      "Without it, -P with a wildcard leaves those of fewer than 64 that neither call "
      "nor loop")
      ->group("What to trace");
}

namespace {

constexpr uint32_t kLevelMax = 7;

CLI::Option* add_numbers(CLI::App& app, const std::string& name,
                         std::vector<uint32_t>& numbers, const std::string& what) {
  return app.add_option(name, numbers, what)
      ->delimiter(',')
      ->check(not_negative())
      ->allow_extra_args(false);
}

}  // namespace

std::vector<CLI::Option*> add_record_filter_options(
    CLI::App& app, recording::RecordFilterOptions& filter, bool with_threads) {
  std::vector<CLI::Option*> options{
      add_glob_option(app, "--event", filter.events,
                      "record only events of the API whose names match GLOB; may be "
                      "repeated"),
      add_glob_option(app, "--no-event", filter.not_events,
                      "record no events of the API whose names match GLOB; takes "
                      "precedence over --event; may be repeated"),
      app.add_option("--level", filter.level,
                     "record only events of the API whose level is N or less: 0 the most "
                     "important, 7 all")
          ->check(from_to(0, kLevelMax))
          ->type_name("N"),
      add_glob_option(app, "--mark", filter.instants,
                      "of instants and counters of the API, record only those whose "
                      "names match GLOB; may be repeated"),
      add_glob_option(app, "--no-mark", filter.not_instants,
                      "record no instants and counters of the API whose names match "
                      "GLOB; takes precedence over --mark; may be repeated"),
      add_where_option(app, filter.where, "", "record")};
  if (!with_threads) return options;
  options.push_back(add_numbers(app, "--pid", filter.pids,
                                "record functions, events and marks only of these "
                                "processes; may be repeated")
                        ->type_name("PID,..."));
  options.push_back(add_numbers(app, "--tid", filter.tids,
                                "the same for threads; with --pid, of these as well")
                        ->type_name("TID,..."));
  return options;
}

namespace {

const std::map<std::string, uint32_t> kClasses = {{"functions", ARCTRACE_GATE_FUNCTIONS},
                                                  {"events", ARCTRACE_GATE_EVENTS},
                                                  {"marks", ARCTRACE_GATE_MARKS},
                                                  {"kernel", ARCTRACE_GATE_KERNEL},
                                                  {"all", ARCTRACE_GATE_ALL}};
// The kernel's events by the names of the options of `record`.
const std::map<std::string, uint32_t> kKernelEvents = {
    {"syscalls", ARCTRACE_KERNEL_SYSCALLS}, {"page-faults", ARCTRACE_KERNEL_FAULTS},
    {"signals", ARCTRACE_KERNEL_SIGNALS},   {"contention", ARCTRACE_KERNEL_CONTENTION},
    {"block-io", ARCTRACE_KERNEL_BLOCK_IO}, {"irq", ARCTRACE_KERNEL_INTERRUPTS}};

// Adds an option whose values are these names; store(name) is called for each value.
template <class Store>
CLI::Option* add_names_option(CLI::App& app, const std::string& flag,
                              const std::map<std::string, uint32_t>& names, Store store,
                              const std::string& help) {
  return app
      .add_option_function<std::vector<std::string>>(
          flag,
          [store](const std::vector<std::string>& given) {
            for (const std::string& name : given) store(name);
          },
          help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(names))
      ->type_name("CLASS");
}

}  // namespace

CLI::Option* add_classes_option(CLI::App& app, const std::string& flag, uint32_t& bits,
                                const std::string& help) {
  return add_names_option(
      app, flag, kClasses,
      [&bits](const std::string& name) { bits |= kClasses.at(name); }, help);
}

CLI::Option* add_classes_and_events_option(CLI::App& app, const std::string& flag,
                                           uint32_t& bits, uint32_t& events,
                                           const std::string& help) {
  static const std::map<std::string, uint32_t> kAll = [] {
    std::map<std::string, uint32_t> all = kClasses;
    all.insert(kKernelEvents.begin(), kKernelEvents.end());
    return all;
  }();
  return add_names_option(
      app, flag, kAll,
      [&bits, &events](const std::string& name) {
        const auto event = kKernelEvents.find(name);
        if (event != kKernelEvents.end()) {
          events |= event->second;
        } else {
          bits |= kClasses.at(name);
        }
      },
      help);
}

}  // namespace arctrace::cli
