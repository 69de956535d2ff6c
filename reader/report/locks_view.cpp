#include "reader/report/locks_view.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "reader/analysis/lock_table.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/text_style.hpp"
#include "reader/report/lock_text.hpp"

namespace arctrace::reader {
namespace {

using LockRow = std::pair<LockId, LockSums>;

class LocksView : public View {
 public:
  explicit LocksView(const ViewSettings& settings)
      : options_(settings.options),
        locks_(*settings.definitions),
        names_(*settings.definitions, {.allow_download = settings.has_debuginfod}) {}

  ReplayListener* call_listener() override { return &locks_; }
  void begin_text(Replay& replay, const WriteText& /*write*/) override {
    locks_.set_functions(replay.functions());
  }
  void begin_json(Replay& replay, JsonWriter& /*json*/) override {
    locks_.set_functions(replay.functions());
  }

  absl::Status write_text(Replay& replay, const WriteText& write) override {
    locks_.finish(replay.threads());
    FunctionLabels labels(replay, options_.lines);
    std::string text = "\n";
    std::string head;
    const std::vector<LockRow> rows = sorted_rows();
    const LockSums most = rows.empty() ? LockSums{} : rows.front().second;
    const bool is_by_held = options_.sort == SortKey::kSelf;
    const bool is_by_waited = !is_by_held && options_.sort != SortKey::kCalls;
    const TimeScale scale = time_scale(is_by_held ? most.held_ns : most.waited_ns);
    const auto head_of = [&](const char* name, bool is_sorted) {
      return is_sorted ? absl::StrCat(name, " ", scale.unit) : std::string(name);
    };
    append_right(head, head_of("Waited", is_by_waited), 13);
    append_right(head, "Waits", 9);
    append_right(head, head_of("Held", is_by_held), 13);
    append_right(head, "Holds", 9);
    const auto waited_text = [&](uint64_t time_ns) {
      return is_by_waited ? scaled_text(time_ns, scale) : duration_text(time_ns);
    };
    const auto held_text = [&](uint64_t time_ns) {
      return is_by_held ? scaled_text(time_ns, scale) : duration_text(time_ns);
    };
    append_tinted(text, options_.style, Tint::kHead, head + "  Lock");
    text += '\n';
    if (!write(text)) return absl::OkStatus();
    uint64_t shown = 0;
    bool has_note = false;
    for (const LockRow& row : rows) {
      if (shown == options_.limit) break;
      ++shown;
      has_note |= !recording_note(row.second, replay).empty();
      const LockSums& sums = row.second;
      std::string columns;
      append_right(columns, waited_text(sums.waited_ns), 13);
      append_right(columns, sums.waits == 0 ? "-" : grouped_text(sums.waits), 9);
      append_right(columns, held_text(sums.held_ns), 13);
      append_right(columns, sums.holds == 0 ? "-" : grouped_text(sums.holds), 9);
      if (!write(row_text(columns, row, replay, labels))) return absl::OkStatus();
    }
    write(hidden_rows_text(rows.size() - shown) +
          (has_note ? "  [recording]: half or more of the time that it was held is what "
                      "recording itself takes\n"
                    : "") +
          deadlocks_text() + notes_text());
    return absl::OkStatus();
  }

  absl::Status write_json(Replay& replay, JsonWriter& json) override {
    locks_.finish(replay.threads());
    FunctionLabels labels(replay, options_.lines);
    json.key("locks").begin_array();
    uint64_t shown = 0;
    for (const LockRow& row : sorted_rows()) {
      if (shown++ >= options_.limit || !json.good()) break;
      write_row_json(row, replay, labels, json);
    }
    json.end();
    json.key("deadlocks").begin_array();
    for (const std::vector<LockWaiter>& ring : locks_.deadlocks()) {
      json.begin_array();
      for (const LockWaiter& waiter : ring) {
        json.begin_object();
        write_thread_ids_json(replay.definitions(), waiter.thread, json);
        json.member("lock", lock_address_text(waiter.lock));
        json.end();
      }
      json.end();
    }
    json.end();
    json.member("calls_without_lock", locks_.calls_without_lock());
    json.member("holds_without_end", locks_.holds_without_end());
    return absl::OkStatus();
  }

 private:
  std::vector<LockRow> sorted_rows() const {
    std::vector<LockRow> rows(locks_.locks().begin(), locks_.locks().end());
    std::stable_sort(rows.begin(), rows.end(), [this](const auto& a, const auto& b) {
      if (options_.sort == SortKey::kCalls) return a.second.acquired > b.second.acquired;
      if (options_.sort == SortKey::kSelf) return a.second.held_ns > b.second.held_ns;
      return a.second.waited_ns > b.second.waited_ns;
    });
    return rows;
  }

  // Returns how much of the time that the lock was held was recording: the end of the
  // call that took it, and the beginning of the call that released it, if one did, but
  // not the calls in between.
  static uint64_t overhead_ps(const LockSums& sums, const Replay& replay) {
    return (sums.holds * 2 - sums.open_holds) *
           replay.costs().of_call(ARCTRACE_HOOK_LIBRARY_CALL).outside_ps;
  }

  static std::string recording_note(const LockSums& sums, const Replay& replay) {
    return overhead_note(sums.held_ns, overhead_ps(sums, replay), replay);
  }

  // Ends a row whose columns are in `columns` with the lock, and the notes about it.
  std::string row_text(const std::string& columns, const LockRow& row,
                       const Replay& replay, FunctionLabels& labels) {
    const auto& [lock, sums] = row;
    std::string text = columns + "  ";
    append_name(text,
                absl::StrCat(names_.title(lock, sums, labels),
                             recording_note(sums, replay), open_locks_text(sums)),
                lock_owner(lock, replay.definitions()), false, options_.style);
    for (const LockLine& line : lock_lines(sums, replay.definitions(), labels)) {
      std::string shown(6 + 2 * line.level, ' ');
      append_name(shown += line.before, line.path, "", false, options_.style);
      text += shown;
    }
    return text;
  }

  std::string deadlocks_text() {
    std::string text;
    for (const std::vector<LockWaiter>& ring : locks_.deadlocks()) {
      text += "\n";
      append_tinted(text, options_.style, Tint::kTrouble, kDeadlockHead);
      text += "\n";
      for (const LockWaiter& waiter : ring) {
        absl::StrAppend(&text, "  ", names_.waiter_text(waiter), "\n");
      }
    }
    return text;
  }

  std::string notes_text() const {
    std::string text = "\n";
    for (const std::string& note : lock_notes(locks_)) absl::StrAppend(&text, note, "\n");
    return text;
  }

  void write_row_json(const LockRow& row, const Replay& replay, FunctionLabels& labels,
                      JsonWriter& json) {
    const auto& [lock, sums] = row;
    const Process* process = replay.definitions().process(lock.process);
    json.begin_object();
    json.member("kind", lock_kind_name(sums.kind));
    json.member("pid", process == nullptr ? 0 : process->pid);
    json.member("address", lock_address_text(lock));
    json.member("name", names_.name(lock));
    json.key("first_path");
    write_functions_json(sums.first_path, labels, json);
    json.member("acquired", sums.acquired);
    json.member("waits", sums.waits);
    json.member("open_waits", sums.open_waits);
    json.member("waited_ns", sums.waited_ns);
    json.member("holds", sums.holds);
    json.member("open_holds", sums.open_holds);
    json.member("held_ns", sums.held_ns);
    write_overhead_json(overhead_ps(sums, replay), replay, json);
    json.member("wakes", sums.wakes);
    write_span_json("longest_wait", sums.longest_wait, replay, labels, json);
    write_span_json("holder", sums.holder, replay, labels, json);
    write_span_json("longest_hold", sums.longest_hold, replay, labels, json);
    write_shares_json("longest_hold_waiters", shares_by_time(sums.longest_hold_waiters),
                      replay, labels, json);
    write_shares_json("waited_for", lock_holders(sums), replay, labels, json);
    json.member("waited_for_nobody_ns", sums.waited_for_nobody_ns);
    json.end();
  }

  static void write_functions_json(const std::vector<FunctionId>& path,
                                   const FunctionLabels& labels, JsonWriter& json) {
    json.begin_array();
    for (const FunctionId function : path) json.value(labels[function].name);
    json.end();
  }

  static void write_shares_json(const char* key, const std::vector<LockShare>& shares,
                                const Replay& replay, FunctionLabels& labels,
                                JsonWriter& json) {
    json.key(key).begin_array();
    for (const LockShare& share : shares) {
      json.begin_object();
      write_thread_ids_json(replay.definitions(), share.thread, json);
      json.key("path");
      write_functions_json(share.path, labels, json);
      json.member("waited_ns", share.waited_ns);
      json.end();
    }
    json.end();
  }

  static void write_span_json(const char* key, const LockSpan& span, const Replay& replay,
                              FunctionLabels& labels, JsonWriter& json) {
    json.key(key);
    if (span.thread == kNoIndex) {
      json.value(nullptr);
      return;
    }
    json.begin_object();
    json.member("duration_ns", span.duration_ns);
    json.member("start_ns", span.start_ns);
    json.member("open", span.is_open);
    write_thread_ids_json(replay.definitions(), span.thread, json);
    json.key("path");
    write_functions_json(span.path, labels, json);
    json.end();
  }

  const ViewOptions options_;
  LockTable locks_;
  LockNames names_;
};

}  // namespace

std::unique_ptr<View> make_locks_view(const ViewSettings& settings) {
  return std::make_unique<LocksView>(settings);
}

}  // namespace arctrace::reader
