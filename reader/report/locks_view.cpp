#include "reader/report/locks_view.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <iterator>

#include "reader/analysis/lock_table.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/thread_labels.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kSharesMax = 3;  // of one kind in a row's text

using LockRow = std::pair<LockId, LockSums>;

class LocksView : public View {
 public:
  explicit LocksView(const ViewSettings& settings)
      : options_(settings.options), locks_(*settings.definitions) {}

  ReplayListener* call_listener() override { return &locks_; }
  void begin_text(Replay& replay, const WriteText& /*write*/) override {
    locks_.set_functions(replay.functions());
  }
  void begin_json(Replay& replay, JsonWriter& /*json*/) override {
    locks_.set_functions(replay.functions());
  }

  absl::Status write_text(Replay& replay, const WriteText& write) override {
    FunctionLabels labels(replay, options_.lines);
    std::string text = "\n";
    std::string head;
    append_right(head, "Waited", 13);
    append_right(head, "Waits", 9);
    append_right(head, "Held", 13);
    append_right(head, "Holds", 9);
    append_tinted(text, options_.style, Tint::kHead, head + "  Lock");
    text += '\n';
    if (!write(text)) return absl::OkStatus();
    const std::vector<LockRow> rows = sorted_rows();
    uint64_t shown = 0;
    for (const LockRow& row : rows) {
      if (shown == options_.limit) break;
      ++shown;
      if (!write(row_text(row, replay, labels))) return absl::OkStatus();
    }
    write(hidden_rows_text(rows.size() - shown) + deadlocks_text(replay) + notes_text());
    return absl::OkStatus();
  }

  absl::Status write_json(Replay& replay, JsonWriter& json) override {
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
        json.member("lock", address_text(waiter.lock));
        json.end();
      }
      json.end();
    }
    json.end();
    json.member("calls_without_lock", locks_.calls_without_lock());
    return absl::OkStatus();
  }

 private:
  std::vector<LockRow> sorted_rows() const {
    std::vector<LockRow> rows(locks_.locks().begin(), locks_.locks().end());
    std::stable_sort(rows.begin(), rows.end(), [this](const auto& a, const auto& b) {
      if (options_.sort == SortKey::kCalls) return a.second.acquired > b.second.acquired;
      if (options_.sort == SortKey::kBase) return a.second.held_ns > b.second.held_ns;
      return a.second.waited_ns > b.second.waited_ns;
    });
    return rows;
  }

  static std::string address_text(const LockId& lock) {
    return absl::StrCat("0x", absl::Hex(lock.address));
  }

  // "server+0x4060" for a lock that a program or library contains, else the address.
  static std::string lock_name(const LockId& lock, const Definitions& definitions) {
    const Module* module =
        definitions.module_at(lock.process, lock.address, INT64_MAX - 1);
    if (module == nullptr) return address_text(lock);
    return absl::StrCat(module->path.substr(module->path.rfind('/') + 1), "+0x",
                        absl::Hex(lock.address - module->start));
  }

  static std::string path_or_thread(const std::vector<FunctionId>& path,
                                    FunctionLabels& labels) {
    const size_t cut = path.size() - std::min(path.size(), kPathFunctionsMax);
    std::string text;
    for (size_t i = cut; i < path.size(); ++i) {
      absl::StrAppend(&text, text.empty() ? "" : " > ", labels.text(path[i]));
    }
    return text.empty() ? "no recorded function" : text;
  }

  std::string row_text(const LockRow& row, const Replay& replay,
                       FunctionLabels& labels) const {
    const auto& [lock, sums] = row;
    const Definitions& definitions = replay.definitions();
    std::string text;
    append_right(text, sums.waits == 0 ? "-" : duration_text(sums.waited_ns), 13);
    append_right(text, sums.waits == 0 ? "-" : absl::StrCat(sums.waits), 9);
    append_right(text, sums.holds == 0 ? "-" : duration_text(sums.held_ns), 13);
    append_right(text, sums.holds == 0 ? "-" : absl::StrCat(sums.holds), 9);
    text += "  ";
    const Process* process = definitions.process(lock.process);
    append_name(text,
                absl::StrCat(lock_kind_name(sums.kind), " ",
                             escaped(lock_name(lock, definitions))),
                process == nullptr ? "" : absl::StrCat(" of ", process->pid), false,
                options_.style);
    const auto append_span = [&](const char* what, const LockSpan& span) {
      if (span.thread == kNoIndex) return;
      std::string line = absl::StrCat("      ", what, ": ");
      if (span.duration_ns != 0) {
        absl::StrAppend(&line, duration_text(span.duration_ns), " by ");
      }
      absl::StrAppend(&line, thread_title(definitions, span.thread), " in ");
      append_name(line, path_or_thread(span.path, labels), "", false, options_.style);
      text += line;
    };
    append_span("longest wait", sums.longest_wait);
    append_span("last had by", sums.holder);
    append_span("longest hold", sums.longest_hold);
    const auto append_shares = [&](const char* before, const char* after,
                                   const std::vector<LockShare>& shares) {
      for (size_t i = 0; i < std::min(shares.size(), kSharesMax); ++i) {
        const LockShare& share = shares[i];
        std::string line =
            absl::StrCat("        ", before, duration_text(share.waited_ns), after,
                         thread_title(definitions, share.thread), " in ");
        append_name(line, path_or_thread(share.path, labels), "", false, options_.style);
        text += line;
      }
      if (shares.size() > kSharesMax) {
        absl::StrAppend(&text, "        and ", shares.size() - kSharesMax, " more\n");
      }
    };
    append_shares("meanwhile waited: ", " by ", by_time(sums.longest_hold_waiters));
    const std::vector<LockShare> holders = holders_of(sums);
    if (!holders.empty()) text += "      waited for\n";
    append_shares("", " while it was had by ", holders);
    return text;
  }

  static std::vector<LockShare> by_time(std::vector<LockShare> shares) {
    std::stable_sort(
        shares.begin(), shares.end(),
        [](const LockShare& a, const LockShare& b) { return a.waited_ns > b.waited_ns; });
    return shares;
  }

  // Who had the lock while others waited; that for which they waited longest comes first.
  static std::vector<LockShare> holders_of(const LockSums& sums) {
    std::vector<LockShare> holders;
    std::copy_if(sums.waited_for.begin(), sums.waited_for.end(),
                 std::back_inserter(holders),
                 [](const LockShare& share) { return share.waited_ns > 0; });
    return by_time(std::move(holders));
  }

  std::string deadlocks_text(const Replay& replay) const {
    std::string text;
    for (const std::vector<LockWaiter>& ring : locks_.deadlocks()) {
      text += "\n";
      append_tinted(text, options_.style, Tint::kTrouble, "Deadlock at the end:");
      text += "\n";
      for (const LockWaiter& waiter : ring) {
        absl::StrAppend(&text, "  ", thread_title(replay.definitions(), waiter.thread),
                        " waits for ",
                        escaped(lock_name(waiter.lock, replay.definitions())), ", which ",
                        thread_title(replay.definitions(), waiter.holder), " has\n");
      }
    }
    return text;
  }

  std::string notes_text() const {
    std::string text = "\n";
    if (locks_.calls_without_lock() != 0) {
      absl::StrAppend(&text, count_text(locks_.calls_without_lock(), "lock call"),
                      " without arguments, which name the lock: record with -a, or with "
                      "-A 'pthread_*'\n");
    } else if (locks_.locks().empty()) {
      text += "No lock call is in this trace.\n";
    }
    return text + "Locks inside libraries are seen only with record --nest-libcall.\n";
  }

  static void write_row_json(const LockRow& row, const Replay& replay,
                             FunctionLabels& labels, JsonWriter& json) {
    const auto& [lock, sums] = row;
    const Process* process = replay.definitions().process(lock.process);
    json.begin_object();
    json.member("kind", lock_kind_name(sums.kind));
    json.member("pid", process == nullptr ? 0 : process->pid);
    json.member("address", address_text(lock));
    json.member("name", lock_name(lock, replay.definitions()));
    json.member("acquired", sums.acquired);
    json.member("waits", sums.waits);
    json.member("waited_ns", sums.waited_ns);
    json.member("holds", sums.holds);
    json.member("held_ns", sums.held_ns);
    json.member("wakes", sums.wakes);
    write_span_json("longest_wait", sums.longest_wait, replay, labels, json);
    write_span_json("holder", sums.holder, replay, labels, json);
    write_span_json("longest_hold", sums.longest_hold, replay, labels, json);
    write_shares_json("longest_hold_waiters", by_time(sums.longest_hold_waiters), replay,
                      labels, json);
    write_shares_json("waited_for", holders_of(sums), replay, labels, json);
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
    write_thread_ids_json(replay.definitions(), span.thread, json);
    json.key("path").begin_array();
    for (const FunctionId function : span.path) json.value(labels[function].name);
    json.end();
    json.end();
  }

  const ViewOptions options_;
  LockTable locks_;
};

}  // namespace

std::unique_ptr<View> make_locks_view(const ViewSettings& settings) {
  return std::make_unique<LocksView>(settings);
}

}  // namespace arctrace::reader
