#include "src/recording/patterns/record_filter.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <string_view>

#include "reader/trace/event_filter.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace::recording {
namespace {

template <class Value>
void append(std::string& text, std::string_view mark, const Value& value) {
  absl::StrAppend(&text, std::string(mark), value);
  text += '\0';
}

// As WhereEntry takes it apart.
std::string where_entry(const std::string& text) {
  const FieldCondition condition = split_condition(text);
  const RealBits real = reader::real_bits_of(condition);
  if (real.is_known) {
    return absl::StrFormat("%s #%016x%08x", text, real.f64, real.f32);
  }
  if (condition.is_quoted || !WhereEntry(text).has_real) return text;
  // A text that ends like that.
  const auto begin = static_cast<size_t>(condition.operand.data() - text.data());
  return absl::StrCat(text.substr(0, begin), "\"", std::string(condition.operand), "\"");
}

}  // namespace

bool RecordFilterOptions::empty() const {
  return events.empty() && not_events.empty() && !level && instants.empty() &&
         not_instants.empty() && where.empty() && pids.empty() && tids.empty();
}

std::string RecordFilterOptions::text() const {
  std::string text;
  for (const std::string& glob : events) append(text, kFilterEvent, glob);
  for (const std::string& glob : not_events) append(text, kFilterNotEvent, glob);
  if (level) append(text, kFilterLevel, *level);
  for (const std::string& glob : instants) append(text, kFilterInstant, glob);
  for (const std::string& glob : not_instants) append(text, kFilterNotInstant, glob);
  for (const std::string& one : where) append(text, kFilterWhere, where_entry(one));
  for (const uint32_t pid : pids) append(text, kFilterPid, pid);
  for (const uint32_t tid : tids) append(text, kFilterTid, tid);
  return text;
}

}  // namespace arctrace::recording
