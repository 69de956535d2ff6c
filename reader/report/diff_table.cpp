#include "reader/report/diff_table.hpp"

#include <absl/container/btree_set.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "reader/render/left_out.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/replay/functions.hpp"
#include "reader/replay/shown_names.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// With fewer columns than this, names take the place of the numbers of calls.
constexpr size_t kWideColumns = 100;
// With fewer than this, they take that of the times off the CPU.
constexpr size_t kKernelColumns = 160;

// "-1.234 ms"
std::string difference_text(uint64_t before_ns, uint64_t after_ns) {
  if (before_ns == after_ns) return "-";
  return after_ns > before_ns ? "+" + duration_text(after_ns - before_ns)
                              : "-" + duration_text(before_ns - after_ns);
}

bool is_whole(double number) { return number == std::floor(number); }

// The mean of the runs: "1,428", "0.3", and "0.001" if one of a thousand made one call.
std::string calls_text(double calls) {
  constexpr double kExactMax = 10;
  if (calls >= kExactMax || is_whole(calls)) {
    return grouped_text(static_cast<uint64_t>(std::llround(calls)));
  }
  constexpr double kDigitMin = 0.1;
  return calls < kDigitMin ? absl::StrFormat("%.1g", calls)
                           : absl::StrFormat("%.1f", calls);
}

std::string time_text(const MeanSums& sums, uint64_t time_ns) {
  return sums.is_absent() ? "-" : duration_text(time_ns);
}

// "-36.4", in percent of what was before.
std::string change_text(uint64_t before, uint64_t after) {
  if (before == 0) return after == 0 ? "-" : "new";
  if (after == 0) return "gone";
  const double ratio = static_cast<double>(after) / static_cast<double>(before);
  return absl::StrFormat("%+.1f", 100 * (ratio - 1));
}

uint64_t mean(const std::vector<double>& all) {
  double sum = 0;
  for (const double value : all) sum += value;
  return static_cast<uint64_t>(std::max(sum / static_cast<double>(all.size()), 0.0));
}

// The values of one member, or member function, of all runs of a side.
template <class Member>
std::vector<double> values_of(const std::vector<DiffRun>& runs, Member member) {
  std::vector<double> found;
  found.reserve(runs.size());
  for (const DiffRun& run : runs)
    found.push_back(static_cast<double>(std::invoke(member, run)));
  return found;
}

// The means of a time of whole runs, with their noise, if it is known.
struct RunTimes {
  uint64_t before_ns = 0, after_ns = 0;
  std::optional<uint64_t> noise_ns;
};

template <class Member>
RunTimes run_times(const DiffTable& table, Member member) {
  const std::vector<double> before = values_of(table.before, member);
  const std::vector<double> after = values_of(table.after, member);
  RunTimes times = {mean(before), mean(after), std::nullopt};
  if (const std::optional<double> noise = noise_of(before, after)) {
    times.noise_ns = static_cast<uint64_t>(*noise);
  }
  return times;
}

bool is_noise(uint64_t before_ns, uint64_t after_ns, std::optional<uint64_t> noise_ns) {
  const uint64_t difference =
      after_ns > before_ns ? after_ns - before_ns : before_ns - after_ns;
  return noise_ns.has_value() && difference <= *noise_ns;
}

// "8.39 ms -> 5.97 ms, -28.9 %, within the noise"
std::string run_times_text(const RunTimes& times) {
  return absl::StrCat(
      duration_text(times.before_ns), " -> ", duration_text(times.after_ns), ", ",
      change_text(times.before_ns, times.after_ns), " %",
      is_noise(times.before_ns, times.after_ns, times.noise_ns) ? ", within the noise"
                                                                : "");
}

std::string side_text(const char* name, const std::vector<DiffRun>& runs) {
  std::string text = name;
  uint64_t lost = 0;
  absl::btree_set<std::string> left_out;
  for (const DiffRun& run : runs) {
    absl::StrAppend(&text, &run == &runs.front() ? " " : ", ", escaped(run.path));
    lost += run.summary.lost;
    for (const CallsLeftOut& cause : run.left_out)
      left_out.insert(escaped(cause.what.by));
  }
  absl::StrAppend(&text, ", ", count_text(runs.size(), "run"));
  if (lost != 0) {
    absl::StrAppend(&text, "; ", count_text(lost, "record"),
                    " lost: calls and times are lower bounds");
  }
  const char* before = "; calls were left out: ";
  for (const std::string& by : left_out) {
    absl::StrAppend(&text, std::exchange(before, ", "), by);
  }
  return text + "\n";
}

class DiffText {
 public:
  DiffText(const DiffTable& table, const ViewOptions& options)
      : table_(table),
        options_(options),
        is_total_(options.sort == SortKey::kTotal),
        has_calls_(options.style.width == 0 || options.style.width >= kWideColumns),
        known_(table.clock == ReportClock::kWall &&
                       (options.style.width == 0 || options.style.width >= kKernelColumns)
                   ? table.diff.known_times()
                   : KnownTimes::kNone) {
    names_.set_full(table.full_names);
    for (const FunctionChange& change : table.changes) {
      functions_.intern(change.module, change.name, {});
    }
  }

  std::string head() const {
    const RunTimes wall = run_times(table_, &DiffRun::program_wall_ns);
    std::string text =
        side_text("before:", table_.before) + side_text("after: ", table_.after);
    absl::StrAppend(&text, "wall:   ", run_times_text(wall), "\n", own_work_text(wall));
    if (const std::optional<ProgramPair> pair = table_.diff.paired_programs()) {
      absl::StrAppend(&text, "functions of ", escaped(pair->before),
                      " are compared with those of ", escaped(pair->after), "\n");
    }
    if (table_.clock != ReportClock::kWall) {
      const bool is_cpu = table_.clock == ReportClock::kCpu;
      absl::StrAppend(&text, is_cpu ? "on CPU: " : "off:    ",
                      run_times_text(run_times(table_, &DiffRun::clock_ns)),
                      "; this is compared: times of functions are those ",
                      is_cpu ? "on a CPU\n" : "off the CPU\n");
    }
    if (!table_.diff.is_noise_known()) {
      text += "noise not known: compare several runs, as in A1 A2 -- B1 B2\n";
    }
    std::string head;
    append_right(head, is_total_ ? "Total before" : "Self before", 13);
    append_right(head, "after", 13);
    append_right(head, "Change", 13);
    append_right(head, "%", 9);
    if (has_calls_) {
      append_right(head, "Calls before", 14);
      append_right(head, "after", 12);
    }
    if (known_ != KnownTimes::kNone) {
      append_right(head, has_ready() ? "Blocked before" : "Off CPU before", 16);
      append_right(head, "after", 12);
    }
    if (has_ready()) {
      append_right(head, "No CPU before", 15);
      append_right(head, "after", 12);
    }
    text += '\n';
    append_tinted(text, options_.style, Tint::kHead, head + "  Name");
    return text + "\n";
  }

  std::string row(const FunctionChange& change) {
    const uint64_t before_ns = is_total_ ? change.before.total_ns : change.before.self_ns;
    const uint64_t after_ns = is_total_ ? change.after.total_ns : change.after.self_ns;
    const bool noise = is_noise(before_ns, after_ns,
                                is_total_ ? change.total_noise_ns : change.self_noise_ns);
    std::string row;
    append_right(row, time_text(change.before, before_ns), 13);
    append_right(row, time_text(change.after, after_ns), 13);
    append_right(row, difference_text(before_ns, after_ns), 13);
    append_right(row, share_text(change, before_ns, after_ns), 9);
    if (has_calls_) {
      append_right(row, change.before.calls == 0 ? "-" : calls_text(change.before.calls),
                   14);
      append_right(row, change.after.calls == 0 ? "-" : calls_text(change.after.calls),
                   12);
    }
    append_off(row, change);
    row += "  ";
    const std::string name =
        escaped(names_[functions_.intern(change.module, change.name, {})]);
    const size_t used = columns_of(row) + std::min(name.size(), kCutName);
    append_name(row, name, notes(change, noise, used), false, options_.style);
    return row;
  }

 private:
  // Whether a thread that could run without a CPU is told from one that could not run.
  bool has_ready() const { return known_ == KnownTimes::kReady; }

  void append_off(std::string& row, const FunctionChange& change) const {
    if (known_ == KnownTimes::kNone) return;
    const auto off_ns = [this](const MeanSums& sums) {
      return has_ready() ? sums.blocked_ns() : sums.off_ns;
    };
    append_right(row, duration_text(off_ns(change.before)), 16);
    append_right(row, duration_text(off_ns(change.after)), 12);
    if (!has_ready()) return;
    append_right(row, duration_text(change.before.ready_ns), 15);
    append_right(row, duration_text(change.after.ready_ns), 12);
  }

  // A line with the time of the tracer's own work, which is not in the wall times; empty
  // if it is less than 1 % of them on each side.
  std::string own_work_text(const RunTimes& wall) const {
    const uint64_t before_ns = mean(values_of(table_.before, &DiffRun::own_wall_ns));
    const uint64_t after_ns = mean(values_of(table_.after, &DiffRun::own_wall_ns));
    if (before_ns <= wall.before_ns / 100 && after_ns <= wall.after_ns / 100) return {};
    return absl::StrCat("        and ", duration_text(before_ns), " -> ",
                        duration_text(after_ns), " of arctrace's own work\n");
  }

  // A name is cut to this width before its notes are dropped.
  static constexpr size_t kCutName = 16;

  // Returns the notes after a name that ends at column `used`. If the terminal is too
  // narrow, the module is dropped first, then the calls: the reader must not miss that a
  // difference is noise.
  std::string notes(const FunctionChange& change, bool noise, size_t used) const {
    const auto fits = [&](const std::string& text) {
      return options_.style.width == 0 || used + text.size() <= options_.style.width;
    };
    std::string last;
    if (noise) last = fits(" [within the noise]") ? " [within the noise]" : " [noise]";
    std::string calls;
    if (!has_calls_ && change.before.calls != change.after.calls) {
      calls = absl::StrCat(" [", calls_text(change.before.calls), " -> ",
                           calls_text(change.after.calls), " calls]");
    }
    std::string module = escaped(change.module.substr(change.module.rfind('/') + 1));
    if (!module.empty()) module.insert(0, " in ");
    if (fits(module + calls + last)) return module + calls + last;
    return fits(calls + last) ? calls + last : last;
  }

  static std::string share_text(const FunctionChange& change, uint64_t before_ns,
                                uint64_t after_ns) {
    if (change.before.is_absent() && !change.after.is_absent()) return "new";
    if (change.after.is_absent() && !change.before.is_absent()) return "gone";
    return before_ns == 0 ? "-" : change_text(before_ns, after_ns);
  }

  const DiffTable& table_;
  const ViewOptions& options_;
  const bool is_total_;
  const bool has_calls_;
  const KnownTimes known_;  // those that have columns
  Functions functions_;     // those of the changes
  ShownNames names_{functions_};
};

void write_runs_json(const char* key, const std::vector<DiffRun>& runs, ReportClock clock,
                     JsonWriter& json) {
  json.key(key).begin_array();
  for (const DiffRun& run : runs) {
    json.begin_object();
    json.member("file", run.path);
    json.member("records", run.summary.records);
    json.member("lost", run.summary.lost);
    json.member("duration_ns", run.summary.duration_ns);
    json.member("wall_ns", run.wall_ns);
    if (clock != ReportClock::kWall) json.member("clock_ns", run.clock_ns);
    json.member("arctrace_ns", run.own_work_ns);
    json.member("arctrace_wall_ns", run.own_wall_ns);
    write_left_out_json(run.left_out, json);
    json.end();
  }
  json.end();
}

// One run has a whole number, and so have runs that are alike.
void write_calls_json(const char* key, double calls, JsonWriter& json) {
  if (is_whole(calls)) {
    json.member(key, static_cast<uint64_t>(calls));
  } else {
    json.member(key, calls);
  }
}

}  // namespace

void write_diff_text(const DiffTable& table, const ViewOptions& options,
                     const WriteText& write) {
  DiffText text(table, options);
  if (!write(text.head())) return;
  uint64_t rows = 0;
  for (const FunctionChange& change : table.changes) {
    if (rows == options.limit) break;
    ++rows;
    if (!write(text.row(change))) return;
  }
  write(hidden_rows_text(table.changes.size() - rows));
}

void write_diff_json(const DiffTable& table, const ViewOptions& options,
                     JsonWriter& json) {
  write_runs_json("runs_a", table.before, table.clock, json);
  write_runs_json("runs_b", table.after, table.clock, json);
  json.member("noise_known", table.diff.is_noise_known());
  json.member("clock", clock_name(table.clock));
  json.key("paired_programs").begin_array();
  if (const std::optional<ProgramPair> pair = table.diff.paired_programs()) {
    json.value(pair->before);
    json.value(pair->after);
  }
  json.end();
  json.key("functions").begin_array();
  const KnownTimes known = table.diff.known_times();
  uint64_t rows = 0;
  for (const FunctionChange& change : table.changes) {
    if (rows++ >= options.limit || !json.good()) break;
    json.begin_object();
    json.member("name", change.name);
    json.member("module", change.module);
    write_calls_json("calls_a", change.before.calls, json);
    write_calls_json("calls_b", change.after.calls, json);
    json.member("base_ns_a", change.before.self_ns);
    json.member("base_ns_b", change.after.self_ns);
    json.member("cum_ns_a", change.before.total_ns);
    json.member("cum_ns_b", change.after.total_ns);
    json.member("base_noise_ns", change.self_noise_ns);
    json.member("cum_noise_ns", change.total_noise_ns);
    if (known != KnownTimes::kNone) {
      json.member("off_cpu_ns_a", change.before.off_ns);
      json.member("off_cpu_ns_b", change.after.off_ns);
    }
    if (known == KnownTimes::kReady) {
      json.member("ready_ns_a", change.before.ready_ns);
      json.member("ready_ns_b", change.after.ready_ns);
    }
    json.end();
  }
  json.end();
}

}  // namespace arctrace::reader
