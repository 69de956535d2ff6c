#include "reader/cli/options/record_filter_options.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "reader/cli/options/glob_option.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/where_option.hpp"

namespace arctrace::cli {
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

}  // namespace arctrace::cli
