// Sums of the calls of a trace.
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/recorded_state.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/c_api/trace_handle.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/trace/gaps.hpp"

using arctrace::reader::failed;
using arctrace::reader::guarded;

struct arctrace_reader_profile {
  struct Group {
    std::string name;
    arctrace_reader_group facts{};
    std::vector<arctrace_reader_function_sums> functions;
    std::vector<arctrace_reader_node> nodes;
  };
  struct Function {
    std::string name, module, left_out_by;
  };
  std::vector<Function> functions;  // by number
  std::vector<Group> groups;
  std::deque<std::string> reasons;
  std::vector<arctrace_reader_missing> missing;
};

namespace arctrace::reader {
namespace {

// The most gaps that are kept, and the most causes.
constexpr size_t kMissingKept = 10'000;

// The gaps that meet a range of time.
class GapCollector {
 public:
  explicit GapCollector(const ReplayFilter& filter) : filter_(filter) {}

  const std::vector<Gap>& gaps() const { return gaps_; }
  uint64_t left_out() const { return left_out_; }

  void add(const Gap& gap) {
    if (gap.to_ns < filter_.from_ns || gap.from_ns >= filter_.until_ns) return;
    if (gaps_.size() < kMissingKept) {
      gaps_.push_back(gap);
    } else {
      ++left_out_;
    }
  }

 private:
  const ReplayFilter& filter_;
  std::vector<Gap> gaps_;
  uint64_t left_out_ = 0;
};

// Copies what a finished replay has, so that the profile needs no trace.
class ProfileMaker {
 public:
  ProfileMaker(Replay& replay, const FunctionTimes& times,
               arctrace_reader_profile& profile)
      : replay_(replay), recorded_(replay), times_(times), profile_(profile) {}

  void make(Grouping grouping, const GapCollector& gaps) {
    add_missing(gaps);
    const Functions& functions = replay_.functions();
    profile_.functions.reserve(functions.size());
    for (FunctionId i = 0; i < functions.size(); ++i) {
      profile_.functions.push_back({functions[i].name, std::string(functions[i].module),
                                    left_out_by(recorded_.of(i))});
    }
    const TreeGroups groups(replay_, grouping, TreeGroups::Of::kThreadsAndInterrupts);
    profile_.groups.reserve(groups.groups().size());
    for (const TreeGroup& group : groups.groups()) add_group(group);
  }

 private:
  void add_missing(const GapCollector& gaps) {
    const Definitions& definitions = replay_.definitions();
    for (const Gap& gap : gaps.gaps()) {
      arctrace_reader_missing& made = add_missing(gap_reason_text(gap), false);
      if (const Thread* thread = definitions.thread(gap.thread); thread != nullptr) {
        made.pid = definitions.pid_of(gap.thread);
        made.tid = thread->tid;
      }
      made.cpu = gap.cpu.value_or(ARCTRACE_READER_NONE);
      if (gap.from_known) made.from_ns = gap.from_ns;
      made.to_ns = gap.to_ns;
      made.records = gap.records.value_or(ARCTRACE_READER_UNKNOWN);
    }
    if (gaps.left_out() != 0) add_missing(more_text(gaps.left_out()), false);
    const std::span<const CallsLeftOut> causes = recorded_.causes();
    for (const CallsLeftOut& cause :
         causes.first(std::min(causes.size(), kMissingKept))) {
      arctrace_reader_missing& made = add_missing(cause.what.by, true);
      made.from_ns = cause.what.from_ns.value_or(INT64_MIN);
      made.to_ns = cause.what.to_ns.value_or(INT64_MAX);
    }
    if (causes.size() > kMissingKept) {
      add_missing(more_text(causes.size() - kMissingKept), true);
    }
  }

  static std::string more_text(uint64_t more) { return absl::StrCat(more, " more"); }

  // Adds an entry of no thread or CPU that covers all the time.
  arctrace_reader_missing& add_missing(std::string reason, bool on_purpose) {
    arctrace_reader_missing& made = profile_.missing.emplace_back();
    made = {};
    made.size = sizeof made;
    made.on_purpose = on_purpose ? 1 : 0;
    made.cpu = ARCTRACE_READER_NONE;
    made.reason = profile_.reasons.emplace_back(std::move(reason)).c_str();
    made.from_ns = INT64_MIN;
    made.to_ns = INT64_MAX;
    made.records = ARCTRACE_READER_UNKNOWN;
    return made;
  }

  void add_group(const TreeGroup& group) {
    arctrace_reader_profile::Group& made = profile_.groups.emplace_back();
    made.name = group.name;
    add_functions(group, made);
    add_nodes(group, made);
    const CallNode& root = (*group.tree)[group.root];
    arctrace_reader_group& facts = made.facts;
    facts.size = sizeof facts;
    facts.number = group.index;
    facts.pid = group.pid;
    facts.tid = group.tid;
    facts.threads = group.threads;
    facts.total_ns = root.total_ns;
    facts.self_ns = root.self_ns;
    facts.function_count = made.functions.size();
    facts.node_count = made.nodes.size();
    facts.name = made.name.c_str();
  }

  void add_functions(const TreeGroup& group, arctrace_reader_profile::Group& made) {
    for (const FunctionTotal& total :
         function_totals(*group.tree, replay_.functions(), group.root, SortKey::kTotal)) {
      const auto& function = profile_.functions[total.function];
      arctrace_reader_function_sums sums{};
      sums.size = sizeof sums;
      sums.recursion = total.recursion;
      sums.name = function.name.c_str();
      sums.module = function.module.c_str();
      sums.calls = total.calls;
      sums.self_ns = total.self_ns;
      sums.total_ns = total.total_ns;
      sums.cpu_ns = total.cpu.cpu_ns;
      sums.off_cpu_ns = total.cpu.off_ns;
      sums.not_known_ns = total.cpu.unknown_ns;
      sums.left_out_by = function.left_out_by.c_str();
      set_left_out(sums, recorded_.of(total.function));
      set_times(sums, times_.find(group, total.function));
      made.functions.push_back(sums);
    }
  }

  static std::string left_out_by(const RecordedState& state) {
    std::string text = state.until.has_value() ? state.until->by : std::string();
    for (const LeftOut& what : state.partly) {
      text += (text.empty() ? "" : ", ") + what.by;
    }
    return text;
  }

  static void set_left_out(arctrace_reader_function_sums& sums,
                           const RecordedState& state) {
    sums.until_ns =
        state.until.has_value() ? state.until->from_ns.value_or(INT64_MIN) : INT64_MAX;
    sums.partly_from_ns = INT64_MAX;
    sums.partly_to_ns = state.partly.empty() ? INT64_MAX : INT64_MIN;
    for (const LeftOut& what : state.partly) {
      sums.partly_from_ns =
          std::min(sums.partly_from_ns, what.from_ns.value_or(INT64_MIN));
      sums.partly_to_ns = std::max(sums.partly_to_ns, what.to_ns.value_or(INT64_MAX));
    }
  }

  static void set_times(arctrace_reader_function_sums& sums,
                        const DurationHistogram* times) {
    const auto quantile = [times](uint64_t per_mille) {
      return times == nullptr
                 ? ARCTRACE_READER_UNKNOWN
                 : times->quantile_ns(per_mille).value_or(ARCTRACE_READER_UNKNOWN);
    };
    const bool is_known = times != nullptr;
    sums.avg_ns = is_known ? times->average_ns() : ARCTRACE_READER_UNKNOWN;
    sums.min_ns = is_known ? times->min_ns() : ARCTRACE_READER_UNKNOWN;
    sums.max_ns = is_known ? times->max_ns() : ARCTRACE_READER_UNKNOWN;
    sums.p50_ns = quantile(500);
    sums.p90_ns = quantile(900);
    sums.p99_ns = quantile(990);
    sums.p999_ns = quantile(999);
  }

  void add_nodes(const TreeGroup& group, arctrace_reader_profile::Group& made) {
    absl::flat_hash_map<NodeIndex, uint32_t> number_of;
    walk_tree(*group.tree, replay_.functions(), group.root, SortKey::kTotal,
              [&](const TreePosition& at) {
                const CallNode& node = (*group.tree)[at.node];
                const auto& function = profile_.functions[node.function];
                const auto number = static_cast<uint32_t>(made.nodes.size());
                number_of.emplace(at.node, number);
                arctrace_reader_node row{};
                row.size = sizeof row;
                row.level = at.level;
                row.parent = at.level == 0 ? ARCTRACE_READER_NONE
                                           : number_of.at(at.path[at.level - 1]);
                row.name = at.level == 0 ? made.name.c_str() : function.name.c_str();
                row.module = at.level == 0 ? "" : function.module.c_str();
                row.calls = node.calls;
                row.self_ns = node.self_ns;
                row.total_ns = node.total_ns;
                made.nodes.push_back(row);
                return Step::kInto;
              });
  }

  const Replay& replay_;
  const RecordedStates recorded_;
  const FunctionTimes& times_;
  arctrace_reader_profile& profile_;
};

int make_profile(arctrace_reader_trace& handle, const ReplayFilter& filter,
                 Grouping grouping, arctrace_reader_profile& profile) {
  Trace& trace = handle.trace;
  FunctionTimes times(trace.definitions(), grouping);
  Symbolizer symbolizer(handle.symbols);
  Replay replay(trace.definitions(), &symbolizer,
                replay_options_for(trace, filter, &times));
  GapCollector gaps(filter);
  ReplayWatch watch;
  watch.gap = [&gaps](const Gap& gap) { gaps.add(gap); };
  if (const auto read = run_replay(trace, replay, watch); !read.ok()) {
    return failed(read.status());
  }
  handle.facts.sum_up(trace);
  ProfileMaker(replay, times, profile).make(grouping, gaps);
  return ARCTRACE_READER_OK;
}

}  // namespace
}  // namespace arctrace::reader

int arctrace_reader_profile_make(arctrace_reader_trace* trace,
                                 const arctrace_reader_filter* filter, uint32_t grouping,
                                 arctrace_reader_profile** profile) {
  return guarded([&] {
    const std::optional<arctrace::reader::ReplayFilter> shown =
        arctrace::reader::read_filter(filter);
    if (!shown.has_value() || grouping > ARCTRACE_READER_ALL) {
      return failed(ARCTRACE_READER_ARGUMENT,
                    "profile: the filter is not set, or an unknown grouping");
    }
    if (trace->is_busy) {
      return failed(ARCTRACE_READER_BUSY, "profile: the trace has a cursor");
    }
    auto made = std::make_unique<arctrace_reader_profile>();
    const int result = arctrace::reader::make_profile(
        *trace, *shown, static_cast<arctrace::reader::Grouping>(grouping), *made);
    if (result == ARCTRACE_READER_OK) *profile = made.release();
    return result;
  });
}

const arctrace_reader_group* arctrace_reader_profile_group(
    const arctrace_reader_profile* profile, size_t number) {
  return number < profile->groups.size() ? &profile->groups[number].facts : nullptr;
}

const arctrace_reader_function_sums* arctrace_reader_profile_function(
    const arctrace_reader_profile* profile, size_t group, size_t row) {
  if (group >= profile->groups.size()) return nullptr;
  const auto& functions = profile->groups[group].functions;
  return row < functions.size() ? &functions[row] : nullptr;
}

const arctrace_reader_node* arctrace_reader_profile_node(
    const arctrace_reader_profile* profile, size_t group, size_t node) {
  if (group >= profile->groups.size()) return nullptr;
  const auto& nodes = profile->groups[group].nodes;
  return node < nodes.size() ? &nodes[node] : nullptr;
}

const arctrace_reader_missing* arctrace_reader_profile_missing(
    const arctrace_reader_profile* profile, size_t number) {
  return number < profile->missing.size() ? &profile->missing[number] : nullptr;
}

void arctrace_reader_profile_free(arctrace_reader_profile* profile) { delete profile; }
