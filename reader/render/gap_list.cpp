#include "reader/render/gap_list.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kChangesKept = 1000;
constexpr size_t kChangesShown = 20;

bool is_of_record_filter(std::string_view entry) {
  for (const std::string_view mark :
       {kFilterEvent, kFilterNotEvent, kFilterLevel, kFilterInstant, kFilterNotInstant,
        kFilterWhere, kFilterPid, kFilterTid}) {
    if (entry.starts_with(mark)) return true;
  }
  return false;
}

const std::vector<std::string> kUnknown = {"?"};

void append_filter(std::string& text, const char* name,
                   const std::vector<std::string>& entries) {
  if (entries.empty()) return;
  absl::StrAppend(&text, "; ", name, ":");
  for (const std::string& entry : entries) {
    absl::StrAppend(&text, " ", entry == "?" ? "not known any more" : escaped(entry));
  }
}

}  // namespace

void EnabledList::note(const Record& record) {
  if (record.type != ARCTRACE_TYPE_ENABLED) return;
  const std::string_view filter = enabled_filter_untrusted(record.body);
  Entry entry{record.time_ns,
              load_part_untrusted<arctrace_enabled_body>(record.body).gate,
              {},
              {}};
  size_t unknown = 0;
  for_each_filter_entry(filter, [&](std::string_view text) {
    if (text == kUnknown.front()) {
      ++unknown;
    } else {
      (is_of_record_filter(text) ? entry.records : entry.functions).emplace_back(text);
    }
  });
  // One of the two filters may be known. If it has no entries, it is not known which one
  // it is.
  if (unknown != 0 && entry.functions.empty()) entry.functions = kUnknown;
  if (unknown != 0 && entry.records.empty()) entry.records = kUnknown;
  const ThreadFilter threads(filter, 0, 0);
  excludes_functions_ |= (entry.gate & ARCTRACE_GATE_FUNCTIONS) == 0 ||
                         !entry.functions.empty() || threads.by_pid || threads.by_tid;
  // Each file of a split recording repeats the state, so equal entries are skipped.
  const bool is_new = kept_.empty() || unknown != 0 || kept_.back().gate != entry.gate ||
                      kept_.back().functions != entry.functions ||
                      kept_.back().records != entry.records;
  if (!is_new) return;
  ++count_;
  if (kept_.size() < kChangesKept) kept_.push_back(std::move(entry));
}

std::string EnabledList::text_of(const Entry& entry) {
  std::string text = gate_text(entry.gate);
  if (entry.functions == kUnknown && entry.records == kUnknown) {
    append_filter(text, "filters", kUnknown);
    return text;
  }
  append_filter(text, "live filter", entry.functions);
  append_filter(text, "record filter", entry.records);
  return text;
}

std::string EnabledList::text() const {
  if (kept_.empty()) return {};
  const Entry& first = kept_.front();
  const bool is_all = kept_.size() == 1 &&
                      (first.gate & ARCTRACE_GATE_ALL) == ARCTRACE_GATE_ALL &&
                      first.functions.empty() && first.records.empty();
  if (is_all) return {};
  std::string text;
  for (size_t i = 0; i < std::min(kept_.size(), kChangesShown); ++i) {
    absl::StrAppend(&text, "recorded from ", seconds_text(kept_[i].from_ns),
                    " s on: ", text_of(kept_[i]), "\n");
  }
  if (count_ > kChangesShown) {
    absl::StrAppend(&text, "  (", count_text(count_ - kChangesShown, "more change"),
                    ")\n");
  }
  return text;
}

void EnabledList::write_json(JsonWriter& json) const {
  const auto write_entries = [&json](const char* name,
                                     const std::vector<std::string>& entries) {
    json.key(name).begin_array();
    for (const std::string& entry : entries) json.value(std::string_view(entry));
    json.end();
  };
  json.key("enabled").begin_array();
  for (const Entry& entry : kept_) {
    json.begin_object();
    json.member("from_ns", entry.from_ns);
    json.member("recorded", gate_text(entry.gate));
    write_entries("live_filter", entry.functions);
    write_entries("record_filter", entry.records);
    json.end();
  }
  json.end();
  json.member("enabled_left_out", count_ - kept_.size());
}

namespace {

constexpr size_t kGapsKept = 10'000;
constexpr size_t kRowsShown = 20;

}  // namespace

void GapList::add(const Gap& gap) {
  ++count_;
  if (kept_.size() < kGapsKept) kept_.push_back(gap);
  const bool is_loss =
      gap.reason != Gap::Reason::kOff && gap.reason != Gap::Reason::kFiltered;
  if (is_loss && gap.from_known && gap.from_ns <= gap.to_ns &&
      (!longest_.has_value() ||
       gap.to_ns - gap.from_ns > longest_->to_ns - longest_->from_ns)) {
    longest_ = gap;
  }
}

std::string GapList::text() const {
  if (count_ == 0) return {};
  std::string text = "\nGaps, of which records are missing:\n";
  append_right(text, "From", 17);
  append_right(text, "To", 17);
  append_right(text, "Records", 13);
  text += "  ";
  append_left(text, "Of", 20);
  text += "Reason\n";
  for (size_t i = 0; i < std::min(kept_.size(), kRowsShown); ++i) {
    const Gap& gap = kept_[i];
    append_right(text, gap.from_known ? seconds_text(gap.from_ns) : "not known", 17);
    append_right(text, seconds_text(gap.to_ns), 17);
    append_right(text, gap.records ? grouped_text(*gap.records) : "not known", 13);
    text += "  ";
    append_left(text, gap_subject_text(gap, definitions_), 19);
    absl::StrAppend(&text, " ", gap_reason_text(gap), "\n");
  }
  if (count_ > kRowsShown)
    absl::StrAppend(&text, "  (", count_ - kRowsShown, " more gaps)\n");
  return text;
}

void GapList::write_json(JsonWriter& json) const {
  json.key("gaps").begin_array();
  for (const Gap& gap : kept_) {
    json.begin_object();
    write_gap_json(gap, definitions_, json);
    json.end();
  }
  json.end();
  json.member("gaps_left_out", count_ - kept_.size());
}

std::string gap_subject_text(const Gap& gap, const Definitions& definitions) {
  if (gap.cpu.has_value()) return absl::StrCat("cpu ", *gap.cpu);
  const Thread* thread = definitions.thread(gap.thread);
  if (thread == nullptr) return "session";
  return absl::StrCat("thread ", definitions.pid_of(gap.thread), "/", thread->tid);
}

void write_gap_json(const Gap& gap, const Definitions& definitions, JsonWriter& json) {
  json.member("reason", gap_reason_text(gap));
  const Thread* thread = definitions.thread(gap.thread);
  json.member("pid", definitions.has_pid(gap.thread)
                         ? std::optional(definitions.pid_of(gap.thread))
                         : std::nullopt);
  json.member("tid", thread == nullptr ? std::nullopt : std::optional(thread->tid));
  json.member("cpu", gap.cpu);
  json.member("from_ns", gap.from_known ? std::optional(gap.from_ns) : std::nullopt);
  json.member("to_ns", gap.to_ns);
  json.member("records", gap.records);
}

}  // namespace arctrace::reader
