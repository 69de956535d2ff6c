#include "reader/render/report_parts.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// The columns that remain for a name and the blanks before it.
constexpr size_t kNameColumns = 24;

using enum KnownTimes;

constexpr ColumnType kColumnTypes[] = {
    {Column::kCalls, "calls", "Calls", 12, 3, true, kNone, kReady, false},
    {Column::kSelfPercent, "self%", "%Self", 8, 9, true, kNone, kReady, false},
    {Column::kTotalPercent, "total%", "%Total", 8, 6, true, kNone, kReady, false},
    {Column::kSelf, "self", "Self", 13, 2, true, kNone, kReady, false},
    {Column::kTotal, "total", "Total", 13, 1, true, kNone, kReady, false},
    {Column::kOnCpu, "on-cpu", "On CPU", 13, 5, true, kOffCpu, kReady, false},
    {Column::kOffCpu, "off-cpu", "Off CPU", 13, 4, true, kOffCpu, kOffCpu, false},
    {Column::kBlocked, "blocked", "Blocked", 13, 4, true, kReady, kReady, false},
    {Column::kNoCpu, "no-cpu", "No CPU", 13, 7, true, kReady, kReady, false},
    {Column::kAvg, "avg", "Avg", 13, 8, false, kNone, kReady, true},
    {Column::kMin, "min", "Min", 13, 13, false, kNone, kReady, true},
    {Column::kP50, "p50", "p50", 13, 10, false, kNone, kReady, true},
    {Column::kP90, "p90", "p90", 13, 11, false, kNone, kReady, true},
    {Column::kP99, "p99", "p99", 13, 7, false, kNone, kReady, true},
    {Column::kP999, "p99.9", "p99.9", 13, 12, false, kNone, kReady, true},
    {Column::kMax, "max", "Max", 13, 7, false, kNone, kReady, true},
};

const ColumnType& type_of(Column column) {
  return *std::find_if(std::begin(kColumnTypes), std::end(kColumnTypes),
                       [&](const ColumnType& type) { return type.column == column; });
}

std::optional<uint64_t> time_value(Column column, const DurationHistogram& times) {
  switch (column) {
    case Column::kAvg:
      return times.average_ns();
    case Column::kMin:
      return times.min_ns();
    case Column::kP50:
      return times.quantile_ns(500);
    case Column::kP90:
      return times.quantile_ns(900);
    case Column::kP99:
      return times.quantile_ns(990);
    case Column::kP999:
      return times.quantile_ns(999);
    default:
      return times.max_ns();
  }
}

}  // namespace

std::span<const ColumnType> column_types() { return kColumnTypes; }

std::optional<uint64_t> column_value(Column column, const RowSums& sums) {
  switch (column) {
    case Column::kCalls:
      return sums.calls;
    case Column::kSelfPercent:
    case Column::kSelf:
      return sums.self_ns;
    case Column::kTotalPercent:
    case Column::kTotal:
      return sums.total_ns;
    case Column::kOnCpu:
      return sums.cpu.cpu_ns;
    case Column::kOffCpu:
      return sums.cpu.off_ns;
    case Column::kBlocked:
      return sums.cpu.blocked_ns();
    case Column::kNoCpu:
      return sums.cpu.ready_ns;
    default:
      break;
  }
  if (sums.times == nullptr) return std::nullopt;
  return time_value(column, *sums.times);
}

std::string column_text(Column column, const RowSums& sums) {
  const std::optional<uint64_t> value = column_value(column, sums);
  if (!value.has_value()) return "-";
  if (column == Column::kCalls) return grouped_text(*value);
  if (column == Column::kSelfPercent || column == Column::kTotalPercent) {
    return percent_text(*value, sums.all_ns);
  }
  return type_of(column).needs_times ? call_time_text(*value) : duration_text(*value);
}

Columns::Columns(const ViewOptions& options, KnownTimes known, size_t other) {
  const bool is_default = options.columns.empty();
  if (is_default) {
    for (const ColumnType& type : kColumnTypes) {
      if (type.by_default && known >= type.needs && known <= type.most) {
        shown_.push_back(&type);
      }
    }
  } else {
    for (const Column column : options.columns) shown_.push_back(&type_of(column));
  }
  if (options.style.width == 0) return;
  size_t used = other + kNameColumns;
  for (const ColumnType* type : shown_) used += type->width;
  while (used > options.style.width && shown_.size() > 1) {
    const auto least = std::max_element(
        shown_.begin(), shown_.end(),
        [](const ColumnType* a, const ColumnType* b) { return a->rank < b->rank; });
    used -= (*least)->width;
    if (!is_default) dropped_.push_back(*least);
    shown_.erase(least);
  }
}

void Columns::set_scale(SortKey sort, uint64_t largest_ns) {
  scaled_.reset();
  if (sort == SortKey::kSelf) scaled_ = Column::kSelf;
  if (sort == SortKey::kTotal) scaled_ = Column::kTotal;
  scale_ = time_scale(largest_ns);
}

std::string Columns::head() const {
  std::string head;
  for (const ColumnType* type : shown_) {
    append_right(head,
                 is_scaled(type->column) ? absl::StrCat(type->head, " ", scale_.unit)
                                         : std::string(type->head),
                 type->width);
  }
  return head;
}

void Columns::append(std::string& row, const RowSums& sums) const {
  for (const ColumnType* type : shown_) {
    append_right(row,
                 is_scaled(type->column)
                     ? scaled_text(*column_value(type->column, sums), scale_)
                     : column_text(type->column, sums),
                 type->width);
  }
}

std::string Columns::dropped_text() const {
  if (dropped_.empty()) return {};
  std::string text = "  (no room for";
  for (const ColumnType* type : dropped_) {
    absl::StrAppend(&text, type == dropped_.front() ? " " : ", ", type->name);
  }
  return text + ": --wide shows all)\n";
}

bool need_times(std::span<const Column> columns) {
  return std::any_of(columns.begin(), columns.end(),
                     [](Column column) { return type_of(column).needs_times; });
}

namespace {

constexpr double kHotPercent = 10;

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string group_title(const TreeGroup& group, Grouping grouping) {
  std::string threads =
      absl::StrCat(group.threads, group.threads == 1 ? " thread" : " threads");
  switch (grouping) {
    case Grouping::kThread:
      return absl::StrCat(escaped(group.name), " ", group.pid, "/", group.tid);
    case Grouping::kProcess:
      return absl::StrCat(escaped(group.name), " ", group.pid, ", ", threads);
    case Grouping::kAll:
    case Grouping::kName:
      break;
  }
  return threads;
}

std::string end_text(const TreeGroup& group) {
  if (group.end_within_ns == 0) return {};
  return absl::StrCat(", ended up to ", duration_text(group.end_within_ns), " earlier");
}

void begin_group_json(const TreeGroup& group, Grouping grouping, JsonWriter& json) {
  json.begin_object();
  if (grouping != Grouping::kAll) json.member("pid", group.pid);
  if (grouping == Grouping::kThread) json.member("tid", group.tid);
  json.member("name", group.name);
  if (group.end_within_ns != 0) json.member("end_within_ns", group.end_within_ns);
  if (grouping != Grouping::kThread) json.member("threads", group.threads);
}

const char* grouping_key(Grouping grouping) {
  switch (grouping) {
    case Grouping::kThread:
      return "threads";
    case Grouping::kProcess:
      return "processes";
    case Grouping::kAll:
    case Grouping::kName:
      break;
  }
  return "all";
}

void write_function_json(FunctionId function, FunctionLabels& labels, JsonWriter& json) {
  json.member("name", labels[function].name);
  json.member("module", labels[function].module);
  if (!labels.line(function).empty()) json.member("line", labels.line(function));
}

void write_sums_json(uint64_t calls, uint64_t self_ns, uint64_t total_ns,
                     JsonWriter& json) {
  json.member("calls", calls);
  json.member("base_ns", self_ns);
  json.member("cum_ns", total_ns);
}

void write_cpu_json(const CpuTime& cpu, KnownTimes known, JsonWriter& json) {
  if (known == KnownTimes::kNone) return;
  json.member("cpu_ns", cpu.cpu_ns);
  json.member("off_cpu_ns", cpu.off_ns);
  if (known == KnownTimes::kReady) json.member("ready_ns", cpu.ready_ns);
  if (cpu.unknown_ns != 0) json.member("not_known_ns", cpu.unknown_ns);
  json.member("switches", cpu.switches);
}

void write_overhead_json(uint64_t overhead_ps, const Replay& replay, JsonWriter& json) {
  // The time of the tracer's own work is known without the costs of hooks.
  const bool is_known = replay.knows_costs() || overhead_ps != 0;
  if (is_known) json.member("overhead_ns", overhead_ps / 1000);
}

std::string overhead_note(uint64_t self_ns, uint64_t overhead_ps, const Replay& replay) {
  const uint64_t overhead_ns = overhead_ps / 1000;
  // The note is for times of which recording took half or more, before they were
  // corrected.
  const uint64_t least_ns = replay.is_corrected() ? overhead_ns : 2 * overhead_ns;
  return overhead_ns != 0 && self_ns <= least_ns ? " [recording]" : "";
}

const char* clock_name(ReportClock clock) {
  switch (clock) {
    case ReportClock::kWall:
      return "wall";
    case ReportClock::kCpu:
      return "cpu";
    case ReportClock::kOffCpu:
      break;
  }
  return "off-cpu";
}

std::string own_work_note(FunctionId function, uint64_t overhead_ps,
                          const Replay& replay) {
  if (function == kRootFunction || function != replay.functions().own_work()) return {};
  return absl::StrCat(" [", duration_text(overhead_ps / 1000), ", in no sum]");
}

std::string overhead_legend(bool has_note, const Replay& replay) {
  if (!has_note) return {};
  return replay.is_corrected()
             ? "  [recording]: half or more of the time was what recording itself took\n"
             : "  [recording]: half or more of the time is what recording itself takes, "
               "which --corrected takes off\n";
}

bool is_large_enough(uint64_t total_ns, uint64_t all_ns, const ViewOptions& options) {
  return options.min_percent <= 0 || percent(total_ns, all_ns) >= options.min_percent;
}

void write_times_json(const DurationHistogram* times, JsonWriter& json) {
  const auto member = [&](const char* name, const auto& value_of) {
    json.member(name, times == nullptr ? std::nullopt
                                       : std::optional<uint64_t>(value_of(*times)));
  };
  member("avg_ns", [](const DurationHistogram& t) { return t.average_ns(); });
  member("min_ns", [](const DurationHistogram& t) { return t.min_ns(); });
  member("max_ns", [](const DurationHistogram& t) { return t.max_ns(); });
  for (const auto& [name, per_mille] :
       {std::pair("p50_ns", 500), std::pair("p90_ns", 900), std::pair("p99_ns", 990),
        std::pair("p999_ns", 999)}) {
    member(name, [per_mille = static_cast<uint64_t>(per_mille)](
                     const DurationHistogram& t) { return t.quantile_ns(per_mille); });
  }
}

void append_cpu(std::string& out, const CpuTime& cpu, KnownTimes known) {
  if (known == KnownTimes::kNone) return;
  append_right(out, duration_text(cpu.cpu_ns), 13);
  if (known == KnownTimes::kReady) {
    append_right(out, duration_text(cpu.blocked_ns()), 13);
    append_right(out, duration_text(cpu.ready_ns), 13);
  } else {
    append_right(out, duration_text(cpu.off_ns), 13);
  }
}

const char* cpu_head(KnownTimes known) {
  switch (known) {
    case KnownTimes::kNone:
      return "";
    case KnownTimes::kOffCpu:
      return "       On CPU      Off CPU";
    case KnownTimes::kReady:
      return "       On CPU      Blocked       No CPU";
  }
  return "";
}

void append_name(std::string& row, const std::string& name, const std::string& notes,
                 bool hot, const TextStyle& style) {
  const size_t used = columns_of(row) + notes.size();
  const size_t left = style.width > used ? style.width - used : 1;
  const std::string shown = style.width == 0 ? name : cut_name(name, left, style);
  if (hot) {
    append_tinted(row, style, Tint::kHot, shown);
  } else {
    row += shown;
  }
  append_tinted(row, style, Tint::kTrouble, notes);
  row += '\n';
}

bool is_hot(uint64_t self_ns, uint64_t all_ns) {
  return percent(self_ns, all_ns) >= kHotPercent;
}

std::string hidden_rows_text(uint64_t rows) {
  if (rows == 0) return {};
  return absl::StrCat("  (", grouped_text(rows), rows == 1 ? " row" : " rows",
                      " not shown)\n");
}

}  // namespace arctrace::reader
