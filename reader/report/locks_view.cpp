// The text about a lock, and the view "locks".
#include "reader/report/locks_view.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "reader/analysis/lock_table.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kSharesMax = 3;  // of one kind in the lines of a lock

bool can_be_held(LockKind kind) {
  return kind != LockKind::kCondition && kind != LockKind::kSemaphore;
}

std::string path_or_thread(const std::vector<FunctionId>& path, FunctionLabels& labels) {
  const size_t cut = path.size() - std::min(path.size(), kPathFunctionsMax);
  std::string text;
  for (size_t i = cut; i < path.size(); ++i) {
    absl::StrAppend(&text, text.empty() ? "" : " > ", labels.text(path[i]));
  }
  return text.empty() ? "no recorded function" : text;
}

}  // namespace

std::string lock_address_text(const LockId& lock) {
  return absl::StrCat("0x", absl::Hex(lock.address));
}

std::string LockNames::name(const LockId& lock) {
  const Module* module =
      definitions_.module_at(lock.process, lock.address, INT64_MAX - 1);
  if (module == nullptr) return lock_address_text(lock);
  const std::string file = module->path.substr(module->path.rfind('/') + 1);
  const uint64_t address = lock.address - module->bias;
  const StoredFunction* stored =
      definitions_.symbols().find(module->path, module->build_id, address);
  const std::string variable =
      stored != nullptr && stored->start <= address
          ? DataSymbols::name_in(stored->name, stored->start, address)
          : variables_.name_at(module->path, module->build_id, address);
  return variable.empty()
             ? absl::StrCat(file, "+0x", absl::Hex(lock.address - module->start))
             : absl::StrCat(variable, " in ", file);
}

std::string LockNames::title(const LockId& lock, const LockSums& sums) {
  return absl::StrCat(lock_kind_name(sums.kind), " ", escaped(name(lock)));
}

std::string LockNames::waiter_text(const LockWaiter& waiter) {
  return absl::StrCat(thread_title(definitions_, waiter.thread), " waits for ",
                      escaped(name(waiter.lock)), ", which ",
                      thread_title(definitions_, waiter.holder), " has");
}

std::string open_locks_text(const LockSums& sums) {
  if (sums.open_waits == 0 && sums.open_holds == 0) return {};
  std::string text = " [open: ";
  if (sums.open_waits != 0) text += count_text(sums.open_waits, "wait");
  if (sums.open_waits != 0 && sums.open_holds != 0) text += ", ";
  if (sums.open_holds != 0) text += count_text(sums.open_holds, "hold");
  return text + "]";
}

std::string lock_owner(const LockId& lock, const Definitions& definitions) {
  const Process* process = definitions.process(lock.process);
  return process == nullptr ? "" : absl::StrCat(" of ", process->pid);
}

std::vector<LockShare> shares_by_time(std::vector<LockShare> shares) {
  std::stable_sort(
      shares.begin(), shares.end(),
      [](const LockShare& a, const LockShare& b) { return a.waited_ns > b.waited_ns; });
  return shares;
}

std::vector<LockShare> lock_holders(const LockSums& sums) {
  std::vector<LockShare> holders;
  std::copy_if(sums.waited_for.begin(), sums.waited_for.end(),
               std::back_inserter(holders),
               [](const LockShare& share) { return share.waited_ns > 0; });
  return shares_by_time(std::move(holders));
}

std::vector<LockLine> lock_lines(const LockSums& sums, const Definitions& definitions,
                                 FunctionLabels& labels) {
  std::vector<LockLine> lines;
  const auto add_span = [&](const char* what, const LockSpan& span) {
    if (span.thread == kNoIndex) return;
    std::string before = absl::StrCat(what, ": ");
    if (span.duration_ns != 0) {
      absl::StrAppend(&before, duration_text(span.duration_ns),
                      span.is_open ? " [open] by " : " by ");
    }
    absl::StrAppend(&before, thread_title(definitions, span.thread), " in ");
    lines.push_back({0, std::move(before), path_or_thread(span.path, labels)});
  };
  const auto add_shares = [&](const char* before, const char* after,
                              const std::vector<LockShare>& shares) {
    const size_t shown = std::min(shares.size(), kSharesMax);
    for (size_t i = 0; i < shown; ++i) {
      const LockShare& share = shares[i];
      lines.push_back({1,
                       absl::StrCat(before, duration_text(share.waited_ns), after,
                                    thread_title(definitions, share.thread), " in "),
                       path_or_thread(share.path, labels)});
    }
    if (shares.size() == shown) return;
    uint64_t others_ns = 0;
    for (size_t i = shown; i < shares.size(); ++i) others_ns += shares[i].waited_ns;
    lines.push_back({1,
                     absl::StrCat(before, duration_text(others_ns), after, "others (",
                                  shares.size() - shown, ")"),
                     {}});
  };
  add_span("longest wait", sums.longest_wait);
  add_span("last had by", sums.holder);
  add_span("longest hold", sums.longest_hold);
  add_shares("meanwhile waited: ", " by ", shares_by_time(sums.longest_hold_waiters));
  if (sums.waited_ns == 0 || !can_be_held(sums.kind)) return lines;
  lines.push_back({0, "waited for", {}});
  add_shares("", " while it was had by ", lock_holders(sums));
  if (sums.waited_for_nobody_ns != 0) {
    lines.push_back({1,
                     absl::StrCat(duration_text(sums.waited_for_nobody_ns),
                                  " while nobody was seen to have it"),
                     {}});
  }
  return lines;
}

std::vector<std::string> lock_notes(const LockTable& locks) {
  std::vector<std::string> notes;
  if (locks.calls_without_lock() != 0) {
    notes.push_back(absl::StrCat(
        count_text(locks.calls_without_lock(), "lock call"),
        " of which the lock is not known: with other arguments by -A, lost, or begun "
        "before what is shown"));
  } else if (locks.locks().empty()) {
    notes.emplace_back("No lock call is in this trace.");
  }
  if (locks.holds_without_end() != 0) {
    notes.push_back(absl::StrCat(count_text(locks.holds_without_end(), "hold"),
                                 " of which the end was not seen, and which are not "
                                 "counted"));
  }
  if (std::any_of(locks.locks().begin(), locks.locks().end(), [](const auto& lock) {
        return !open_locks_text(lock.second).empty();
      })) {
    notes.emplace_back(
        "[open]: it went on when its thread, the trace or the time range ended, up to "
        "which it is counted.");
  }
  notes.emplace_back("Locks inside libraries are seen only with record --nest-libcall.");
  return notes;
}

namespace {

using LockRow = std::pair<LockId, LockSums>;

class LocksView : public View {
 public:
  explicit LocksView(const ViewSettings& settings)
      : options_(settings.options),
        locks_(*settings.definitions),
        names_(*settings.definitions) {}

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
                absl::StrCat(names_.title(lock, sums), recording_note(sums, replay),
                             open_locks_text(sums)),
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

  static void write_shares_json(const char* key, const std::vector<LockShare>& shares,
                                const Replay& replay, FunctionLabels& labels,
                                JsonWriter& json) {
    json.key(key).begin_array();
    for (const LockShare& share : shares) {
      json.begin_object();
      write_thread_ids_json(replay.definitions(), share.thread, json);
      json.key("path").begin_array();
      for (const FunctionId function : share.path) json.value(labels[function].name);
      json.end();
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
    json.key("path").begin_array();
    for (const FunctionId function : span.path) json.value(labels[function].name);
    json.end();
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
