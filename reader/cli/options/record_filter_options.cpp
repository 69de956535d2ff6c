#include "reader/cli/options/record_filter_options.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <CLI/CLI.hpp>
#include <string_view>

#include "reader/cli/options/glob_option.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/where_option.hpp"
#include "reader/trace/event_filter.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace::cli {
namespace {

constexpr uint32_t kLevelMax = 7;

template <class Value>
void append(std::string& text, std::string_view mark, const Value& value) {
  absl::StrAppend(&text, std::string(mark), value);
  text += '\0';
}

// As WhereEntry takes it apart.
std::string where_entry(const std::string& text) {
  const FieldCondition condition = split_condition(text);
  const RealBits real = reader::real_bits_of(condition);
  if (real.is_known) {
    return absl::StrFormat("%s #%016x%08x", text, real.f64, real.f32);
  }
  if (condition.is_quoted || !WhereEntry(text).has_real) return text;
  // A text that ends like that.
  const auto begin = static_cast<size_t>(condition.operand.data() - text.data());
  return absl::StrCat(text.substr(0, begin), "\"", std::string(condition.operand), "\"");
}

CLI::Option* add_numbers(CLI::App& app, const std::string& name,
                         std::vector<uint32_t>& numbers, const std::string& what) {
  return app.add_option(name, numbers, what)
      ->delimiter(',')
      ->check(not_negative())
      ->allow_extra_args(false);
}

}  // namespace

bool RecordFilterOptions::empty() const {
  return events.empty() && not_events.empty() && !level && instants.empty() &&
         not_instants.empty() && where.empty() && pids.empty() && tids.empty();
}

std::string RecordFilterOptions::text() const {
  std::string text;
  for (const std::string& glob : events) append(text, kFilterEvent, glob);
  for (const std::string& glob : not_events) append(text, kFilterNotEvent, glob);
  if (level) append(text, kFilterLevel, *level);
  for (const std::string& glob : instants) append(text, kFilterInstant, glob);
  for (const std::string& glob : not_instants) append(text, kFilterNotInstant, glob);
  for (const std::string& one : where) append(text, kFilterWhere, where_entry(one));
  for (const uint32_t pid : pids) append(text, kFilterPid, pid);
  for (const uint32_t tid : tids) append(text, kFilterTid, tid);
  return text;
}

std::vector<CLI::Option*> add_record_filter_options(CLI::App& app,
                                                    RecordFilterOptions& filter,
                                                    bool with_threads) {
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
