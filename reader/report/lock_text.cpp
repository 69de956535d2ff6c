#include "reader/report/lock_text.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <iterator>
#include <utility>

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

LockNames::Name LockNames::find(const LockId& lock) {
  const Module* module =
      definitions_.module_at(lock.process, lock.address, INT64_MAX - 1);
  if (module == nullptr) return {lock_address_text(lock)};
  const std::string file = module->path.substr(module->path.rfind('/') + 1);
  const uint64_t address = lock.address - module->bias;
  const auto named = [&](const std::string& variable, uint64_t start) {
    return Name{absl::StrCat(variables_.name_in(module->path, module->build_id, variable,
                                                start, address),
                             " in ", file),
                true};
  };
  const StoredFunction* stored =
      definitions_.symbols().find(module->path, module->build_id, address);
  if (stored != nullptr && stored->start <= address) {
    return named(stored->name, stored->start);
  }
  if (const DataSymbols::Variable* variable =
          variables_.find(module->path, module->build_id, address)) {
    return named(variable->name, variable->start);
  }
  return {absl::StrCat(file, "+0x", absl::Hex(lock.address - module->start))};
}

std::string LockNames::name(const LockId& lock) { return find(lock).text; }

std::string LockNames::title(const LockId& lock, const LockSums& sums,
                             FunctionLabels& labels) {
  const Name name = find(lock);
  std::string title = absl::StrCat(lock_kind_name(sums.kind), " ", escaped(name.text));
  if (!name.is_variable && !sums.first_path.empty()) {
    absl::StrAppend(&title, ", first in ", labels.text(sums.first_path.back()));
  }
  return title;
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

}  // namespace arctrace::reader
