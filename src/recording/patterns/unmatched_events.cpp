#include "src/recording/patterns/unmatched_events.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "reader/trace/text_escape.hpp"
#include "src/base/glob.hpp"
#include "src/base/near_names.hpp"
#include "src/protocol/record_filter.hpp"
#include "src/recording/patterns/pattern_hints.hpp"

namespace arctrace::recording {
namespace {

// Adds a line for each of the globs that an option has which matches none of the names.
// `what` has these names: "event".
void add_unmatched(const std::string& what, const std::string& option,
                   const std::vector<std::string>& globs,
                   const std::vector<std::string>& names,
                   std::vector<std::string>& lines) {
  for (const std::string& glob : globs) {
    const bool is_matched =
        std::any_of(names.begin(), names.end(),
                    [&](const std::string& name) { return glob_matches(glob, name); });
    if (is_matched) continue;
    const std::string line =
        absl::StrCat("no ", what, " matches ", option, " ", reader::escaped(glob));
    if (names.empty()) {
      lines.push_back(line + ": programs have defined none");
      continue;
    }
    std::vector<std::string> shown;
    shown.reserve(names.size());
    for (const std::string& name : names) shown.push_back(reader::escaped(name));
    lines.push_back(line + near_names(plain_part(glob), shown));
  }
}

}  // namespace

std::vector<std::string> unmatched_events(const RecordFilterOptions& filter,
                                          const EventLevels& events,
                                          const reader::FieldTypes& fields) {
  std::vector<std::string> lines;
  std::vector<std::string> names;
  for (const auto& [name, level] : events) names.push_back(name);
  add_unmatched("event", "--event", filter.events, names, lines);
  add_unmatched("event", "--no-event", filter.not_events, names, lines);
  if (filter.level && !events.empty()) {
    const uint32_t lowest =
        std::min_element(events.begin(), events.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->second;
    if (lowest > *filter.level) {
      lines.push_back(absl::StrCat("no event has level ", *filter.level,
                                   " or less: the lowest that programs have defined is ",
                                   lowest));
    }
  }
  const std::string unmet = reader::unmet_condition(filter.where, fields);
  if (!unmet.empty()) lines.push_back(reader::escaped(unmet));
  if (!lines.empty() || events.empty()) return lines;
  const std::string text = filter.text();
  const bool admits_one =
      std::any_of(events.begin(), events.end(), [&text](const auto& event) {
        return admits_event(text, event.first, event.second);
      });
  if (!admits_one) {
    lines.emplace_back(
        "--event, --no-event and --level together admit none of the events that programs "
        "have defined");
  }
  return lines;
}

std::vector<std::string> unmatched_instants(const RecordFilterOptions& filter,
                                            const DefinedNames& names) {
  std::vector<std::string> lines;
  const std::vector<std::string> all(names.begin(), names.end());
  add_unmatched("instant or counter", "--mark", filter.instants, all, lines);
  add_unmatched("instant or counter", "--no-mark", filter.not_instants, all, lines);
  if (!lines.empty() || filter.instants.empty()) return lines;
  const std::string text = filter.text();
  if (std::none_of(all.begin(), all.end(), [&text](const std::string& name) {
        return admits_instant(text, name);
      })) {
    lines.emplace_back(
        "--mark and --no-mark together admit none of the names that programs have "
        "defined");
  }
  return lines;
}

EventLevels events_of(const reader::Definitions& definitions) {
  EventLevels events;
  for (reader::ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    for (const reader::EventLayout* layout : definitions.layouts(i)) {
      const auto [known, is_new] = events.try_emplace(layout->name, layout->level);
      if (!is_new) known->second = std::min(known->second, layout->level);
    }
  }
  return events;
}

DefinedNames names_of(const reader::Definitions& definitions) {
  DefinedNames names;
  for (reader::ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    for (const std::string_view name : definitions.names(i)) names.emplace(name);
  }
  return names;
}

std::vector<std::string> unmatched_threads(const RecordFilterOptions& filter,
                                           const reader::BufferState& buffer) {
  using Slot = reader::BufferState::Slot;
  std::vector<std::string> lines;
  const auto add = [&](const char* what, const std::vector<uint32_t>& numbers,
                       uint32_t Slot::*number) {
    for (const uint32_t wanted : numbers) {
      const bool is_there = std::any_of(
          buffer.slots.begin(), buffer.slots.end(),
          [&](const Slot& slot) { return slot.alive && slot.*number == wanted; });
      if (!is_there) {
        lines.push_back(absl::StrCat("no ", what, " ", wanted,
                                     " writes into the session at present"));
      }
    }
  };
  add("process", filter.pids, &Slot::pid);
  add("thread", filter.tids, &Slot::tid);
  return lines;
}

}  // namespace arctrace::recording
