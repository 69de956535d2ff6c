#include "reader/render/gap_list.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>

#include "reader/render/text_style.hpp"

namespace arctrace::reader {
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
