#include "reader/analysis/recorded_state.hpp"

#include <absl/container/btree_map.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "reader/analysis/name_expression.hpp"
#include "reader/replay/functions.hpp"
#include "reader/symbols/demangle.hpp"
#include "reader/symbols/name_patterns.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/recorded_times.hpp"
#include "src/base/glob.hpp"
#include "src/protocol/live_filter.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace::reader {
namespace {

// At most this many of the programs' own filters are told apart.
constexpr size_t kOwnFiltersMax = 16;
// Entries of a filter that its name shows.
constexpr size_t kEntriesShown = 4;

// Returns the time as an option has it: "1ms", "1500us".
std::string time_option(uint64_t time_ns) {
  for (const auto& [unit_ns, unit] :
       {std::pair(1'000'000'000, "s"), {1'000'000, "ms"}, {1000, "us"}}) {
    const auto ns = static_cast<uint64_t>(unit_ns);
    if (time_ns % ns == 0) return absl::StrCat(time_ns / ns, unit);
  }
  return absl::StrCat(time_ns, "ns");
}

// Names that a filter's text has after one of its marks.
class FilterNames {
 public:
  void add(std::string_view glob) {
    globs_.emplace_back(glob);
    // Functions have their demangled names.
    std::string shown = demangle_untrusted(std::string(glob));
    if (shown != glob) linked_.push_back(std::move(shown));
  }
  // Returns false if it cannot be told what the expression matches.
  bool add_expression(std::string_view text) {
    std::optional<NameExpression> made = NameExpression::compile_untrusted(text);
    if (!made.has_value()) return false;
    expressions_.push_back(*std::move(made));
    return true;
  }
  bool empty() const { return globs_.empty() && expressions_.empty(); }
  bool match(const std::string& name) {
    const std::vector<std::string> forms = name_forms(name);
    const auto has_form = [&forms](const std::string& glob) {
      return std::any_of(forms.begin(), forms.end(), [&glob](const std::string& form) {
        return glob_matches(glob, form);
      });
    };
    return std::any_of(globs_.begin(), globs_.end(), has_form) ||
           std::find(linked_.begin(), linked_.end(), name) != linked_.end() ||
           std::any_of(expressions_.begin(), expressions_.end(),
                       [&](NameExpression& one) { return one.match(name); });
  }
  // Whether `name` matches, or a name of the function that the trace does not have may.
  bool may_match(const std::string& name) {
    return match(name) || std::any_of(expressions_.begin(), expressions_.end(),
                                      [&](const NameExpression& one) {
                                        return one.may_match_linker_name(name);
                                      });
  }

 private:
  std::vector<std::string> globs_, linked_;
  std::vector<NameExpression> expressions_;
};

struct LeavingFilter {
  LeftOut what;
  bool is_live = false;
  FilterNames only, except;
  // The filter may leave out calls of any function: it has limits of depth or time, or
  // the functions that it is about are not known.
  bool is_about_all = false;

  // Adds an entry of the filter's text; returns it as people write it.
  std::string add(std::string_view entry) {
    const std::string text(entry.substr(std::min<size_t>(entry.size(), 1)));
    if (entry.starts_with(kFilterMark) || entry.starts_with(kNotraceMark)) {
      const bool is_only = entry.starts_with(kFilterMark);
      FilterNames& names = is_only ? only : except;
      if (!text.starts_with(kFilterRegex)) {
        names.add(text);
      } else if (!names.add_expression(text.substr(kFilterRegex.size()))) {
        is_about_all = true;
      }
      return (is_only ? "-F " : "-N ") + text;
    }
    if (take_mark(entry, kFilterModule)) return "-L " + std::string(entry);
    if (take_mark(entry, kFilterSize)) return "-Z " + std::string(entry);
    is_about_all = true;
    if (take_mark(entry, kFilterDepth)) return "-D " + std::string(entry);
    uint64_t min_ns = 0;
    if (take_mark(entry, kFilterTime) &&
        absl::SimpleAtoi(absl::string_view(entry.data(), entry.size()), &min_ns)) {
      return "-t " + time_option(min_ns);
    }
    return "what is not known";
  }

  void add_all(const std::vector<std::string>& entries) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const std::string shown = add(entries[i]);
      if (i < kEntriesShown) absl::StrAppend(&what.by, what.by.empty() ? "" : " ", shown);
    }
    if (entries.size() > kEntriesShown) what.by += " ...";
  }
};

// Returns the time range that was replayed.
TimeRange replayed_range(const Replay& replay) {
  TimeRange range{INT64_MAX, INT64_MIN};
  for (const ThreadTree& thread : replay.threads()) {
    range.from_ns = std::min(range.from_ns, thread.start_ns);
    range.until_ns = std::max(range.until_ns, thread.stop_ns);
  }
  return range;
}

void add_live_filters(const Definitions& definitions, const TimeRange& range,
                      std::vector<LeavingFilter>& filters) {
  for (const FilterStretch& live : definitions.live_filters().all()) {
    if (live.from_ns >= range.until_ns || live.to_ns <= range.from_ns) continue;
    LeavingFilter filter;
    filter.is_live = true;
    if (live.from_ns > range.from_ns) filter.what.from_ns = live.from_ns;
    if (live.to_ns < range.until_ns) filter.what.to_ns = live.to_ns;
    filter.what.by = "ctl";
    filter.add_all(live.entries);
    filters.push_back(std::move(filter));
  }
}

// Adds the filters with which processes were started: each once, with the number of its
// processes if others do not have it.
void add_own_filters(const Definitions& definitions,
                     std::vector<LeavingFilter>& filters) {
  absl::btree_map<std::vector<std::string>, uint64_t> by_entries;
  uint64_t processes = 0;
  for (ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    if (definitions.processes()[i].origin == 0) continue;
    ++processes;
    const std::vector<std::string> entries = definitions.call_filter(i);
    if (entries.empty()) continue;
    const bool is_full = by_entries.size() >= kOwnFiltersMax - 1;
    ++by_entries[is_full && !by_entries.contains(entries)
                     ? std::vector<std::string>{std::string(kUnknownFilter)}
                     : entries];
  }
  for (const auto& [entries, count] : by_entries) {
    LeavingFilter filter;
    filter.add_all(entries);
    if (count < processes) {
      absl::StrAppend(&filter.what.by, " (", count, " of ", processes, " processes)");
    }
    filters.push_back(std::move(filter));
  }
}

bool has_switched_off(const Definitions& definitions) {
  const auto processes = definitions.processes();
  return std::any_of(processes.begin(), processes.end(), [](const Process& process) {
    return !process.switched_off.empty();
  });
}

// Whether hooks record the function, so that filters apply: it is neither the kernel's
// nor made up.
bool is_filtered(const Function& function) {
  if (function.module == kKernelModule) return false;
  return !function.module.empty() ||
         !(function.name.starts_with('[') || function.name.starts_with("coroutine "));
}

// Calls use(function, since_ns) for each function of each process that was switched off
// there, by itself or by its parent before the fork.
template <class Use>
void for_each_switched_off(Replay& replay, const Use& use) {
  const Definitions& definitions = replay.definitions();
  for (ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    int64_t before_ns = INT64_MAX;
    ProcessIndex at = i;
    for (int depth = 0; depth < Definitions::kForkDepthMax; ++depth) {
      const Process* owner = definitions.process(at);
      if (owner == nullptr) break;
      for (const auto& [address, since_ns] : owner->switched_off) {
        const auto function = replay.resolver().known(i, address);
        if (function.has_value() && since_ns < before_ns) use(*function, since_ns);
      }
      before_ns = std::min(before_ns, owner->begin_ns());
      at = definitions.inherited_from(at);
    }
  }
}

// Returns when an event of the kernel's was not recorded, though it was at another time.
std::vector<LeftOut> times_without(const KernelEventTimes& times, uint32_t event,
                                   const TimeRange& range) {
  std::vector<LeftOut> without;
  for (const KernelEventTimes::Stretch& stretch : times.all()) {
    if ((stretch.events & event) != 0 || stretch.from_ns >= range.until_ns ||
        stretch.to_ns <= range.from_ns) {
      continue;
    }
    LeftOut& what = without.emplace_back();
    const bool is_first = &stretch == times.all().data();
    what.by = absl::StrCat(is_first ? "recording without " : "ctl --off ",
                           gate_text(event << ARCTRACE_KERNEL_EVENT_SHIFT));
    if (!is_first && stretch.from_ns > range.from_ns) what.from_ns = stretch.from_ns;
    if (stretch.to_ns < range.until_ns) what.to_ns = stretch.to_ns;
  }
  return without;
}

// Returns for each function one bit for each filter that excludes it by its name.
std::vector<uint64_t> excluding_filters(const Functions& functions,
                                        std::vector<LeavingFilter>& filters) {
  std::vector<uint64_t> excluded_by(functions.size());
  for (FunctionId i = 0; i < functions.size(); ++i) {
    if (!is_filtered(functions[i])) continue;
    for (size_t k = 0; k < filters.size(); ++k) {
      if (filters[k].except.may_match(functions[i].name))
        excluded_by[i] |= uint64_t{1} << k;
    }
  }
  return excluded_by;
}

// The state of a function in the call tree.
struct InTree {
  bool is_there = false;
  uint64_t within = 0;  // one bit for each filter that excludes one of its callers
};

static_assert(LiveFilters::kMax + kOwnFiltersMax <= 64, "a bit for each filter");

std::vector<InTree> functions_in_tree(const Replay& replay,
                                      const std::vector<uint64_t>& excluded_by) {
  const CallTree& tree = replay.tree();
  std::vector<InTree> in_tree(replay.functions().size());
  std::vector<uint64_t> within(tree.size());  // by node: itself included
  for (const ThreadTree& thread : replay.threads()) {
    for (NodeIndex at = thread.root; at != kNoNode;
         at = tree.next_in_preorder(at, thread.root)) {
      if (at == thread.root) continue;
      const CallNode& node = tree[at];
      InTree& function = in_tree[node.function];
      function.is_there = true;
      function.within |= within[node.parent];
      within[at] = within[node.parent] | excluded_by[node.function];
    }
  }
  return in_tree;
}

}  // namespace

RecordedStates::RecordedStates(Replay& replay) {
  const Definitions& definitions = replay.definitions();
  const Functions& functions = replay.functions();
  const TimeRange range = replayed_range(replay);
  std::vector<LeavingFilter> filters;
  add_own_filters(definitions, filters);
  add_live_filters(definitions, range, filters);
  const uint32_t events = definitions.kernel_events().ever();
  if (filters.empty() && events == 0 && !has_switched_off(definitions)) return;
  states_.resize(functions.size());

  const std::vector<uint64_t> excluded_by = excluding_filters(functions, filters);
  const std::vector<InTree> in_tree = functions_in_tree(replay, excluded_by);

  CallsLeftOut off{{"switched off", std::nullopt, std::nullopt}};
  for_each_switched_off(replay, [&](FunctionId function, int64_t since_ns) {
    if (!in_tree[function].is_there || since_ns >= range.until_ns) return;
    std::optional<LeftOut>& until = states_[function].until;
    if (!until.has_value()) ++off.functions;
    if (!until.has_value() || *until->from_ns > since_ns) {
      until = LeftOut{off.what.by, since_ns, std::nullopt};
    }
    off.what.from_ns = std::min(off.what.from_ns.value_or(since_ns), since_ns);
  });
  if (off.functions != 0) causes_.push_back(off);

  for (size_t k = 0; k < filters.size(); ++k) {
    LeavingFilter& filter = filters[k];
    CallsLeftOut cause{filter.what, true, 0, filter.is_live};
    for (FunctionId i = 0; i < functions.size(); ++i) {
      if (!in_tree[i].is_there || !is_filtered(functions[i])) continue;
      const uint64_t bit = uint64_t{1} << k;
      const bool is_excluded = (excluded_by[i] & bit) != 0;
      const bool is_one_of = filter.only.empty() || filter.only.match(functions[i].name);
      if (!is_excluded && is_one_of && !filter.is_about_all &&
          (in_tree[i].within & bit) == 0) {
        continue;
      }
      ++cause.functions;
      RecordedState& state = states_[i];
      const bool is_to_the_end = filter.is_live && filter.what.from_ns.has_value() &&
                                 !filter.what.to_ns.has_value();
      if (!is_excluded || !is_to_the_end) {
        state.partly.push_back(filter.what);
      } else if (!state.until.has_value() ||
                 *state.until->from_ns > *filter.what.from_ns) {
        state.until = filter.what;
      }
    }
    causes_.push_back(std::move(cause));
  }
  for (uint32_t event = 1; event <= ARCTRACE_KERNEL_EVENTS_ALL; event <<= 1) {
    if ((events & event & ~uint32_t{ARCTRACE_KERNEL_BLOCK_IO}) == 0) continue;
    for (const LeftOut& what : times_without(definitions.kernel_events(), event, range)) {
      CallsLeftOut cause{what, true, 0, true};
      for (FunctionId i = 0; i < functions.size(); ++i) {
        if (!in_tree[i].is_there || kernel_event_of(functions[i]) != event) continue;
        ++cause.functions;
        if (what.from_ns.has_value() && !what.to_ns.has_value()) {
          states_[i].until = what;
        } else {
          states_[i].partly.push_back(what);
        }
      }
      causes_.push_back(std::move(cause));
    }
  }
  for (FunctionId i = 0; i < functions.size(); ++i) {
    if (!states_[i].is_complete()) incomplete_.push_back(i);
  }
}

const RecordedState& RecordedStates::of(FunctionId function) const {
  static const auto& complete = *new RecordedState();
  return function < states_.size() ? states_[function] : complete;
}

}  // namespace arctrace::reader
