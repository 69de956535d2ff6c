#include "reader/trace/event_fields.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/string_view.h>
#include <arctrace/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "reader/trace/format_names.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/near_names.hpp"
#include "src/protocol/field_condition.hpp"

namespace arctrace::reader {
namespace {

uint64_t load_number(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | uint64_t(bytes[i]);
  return value;
}

bool append_value(uint32_t type, std::span<const std::byte>& rest, FieldValue& out) {
  std::span<const std::byte> bytes;
  if (!take_field(type, rest, bytes)) return false;
  if (type == ARCTRACE_FIELD_STRING) {
    out.value = as_text(bytes);
    return true;
  }
  const uint64_t number = load_number(bytes);
  switch (type) {
    case ARCTRACE_FIELD_I8:
      out.value = int64_t{static_cast<int8_t>(number)};
      return true;
    case ARCTRACE_FIELD_I16:
      out.value = int64_t{static_cast<int16_t>(number)};
      return true;
    case ARCTRACE_FIELD_I32:
      out.value = int64_t{static_cast<int32_t>(number)};
      return true;
    case ARCTRACE_FIELD_I64:
      out.value = static_cast<int64_t>(number);
      return true;
    case ARCTRACE_FIELD_F32:
      out.value = double{std::bit_cast<float>(static_cast<uint32_t>(number))};
      return true;
    case ARCTRACE_FIELD_F64:
      out.value = std::bit_cast<double>(number);
      return true;
    case ARCTRACE_FIELD_BOOL:
      out.value = number != 0;
      return true;
    default:
      out.value = number;
      return true;
  }
}

void append_text(std::string& out, const FieldValue& field) {
  if (const auto* number = std::get_if<int64_t>(&field.value)) {
    absl::StrAppend(&out, *number);
  } else if (const auto* bits = std::get_if<uint64_t>(&field.value)) {
    if (field.field->type == ARCTRACE_FIELD_X64) {
      absl::StrAppend(&out, "0x", absl::Hex(*bits));
    } else {
      absl::StrAppend(&out, *bits);
    }
  } else if (std::holds_alternative<double>(field.value)) {
    out += real_text(field);
  } else if (const auto* truth = std::get_if<bool>(&field.value)) {
    out += *truth ? "true" : "false";
  } else {
    append_quoted(out, std::get<std::string_view>(field.value));
  }
}

}  // namespace

EventValues decode_event_untrusted(const EventLayout& layout,
                                   std::span<const std::byte> payload) {
  EventValues values;
  std::span<const std::byte> rest = payload;
  for (const EventField& field : layout.fields) {
    FieldValue value;
    value.field = &field;
    if (!append_value(field.type, rest, value)) return values;
    values.fields.push_back(value);
  }
  values.fits = rest.size() < 4;
  return values;
}

std::string real_text(const FieldValue& value) {
  const double real = std::get<double>(value.value);
  char digits[32];
  const auto end = value.field->type == ARCTRACE_FIELD_F32
                       ? std::to_chars(digits, std::end(digits), float(real))
                       : std::to_chars(digits, std::end(digits), real);
  return {digits, end.ptr};
}

void append_event_text(std::string& out, const EventValues& values) {
  for (const FieldValue& value : values.fields) {
    if (&value != values.fields.data()) out += ' ';
    append_escaped(out, value.field->name);
    out += '=';
    append_text(out, value);
  }
}

namespace {

using FilterCondition = EventFilter::Condition;

absl::string_view view(std::string_view text) { return {text.data(), text.size()}; }

bool can_be_compared(uint32_t type, const FilterCondition& condition) {
  return arctrace::can_be_compared(type, condition.given, condition.number);
}

// ---- What is wrong with a condition ------------------------------------------------

std::string unknown_field_text(const std::string& field, const FieldTypes& known) {
  constexpr size_t kShown = 16;
  if (known.empty()) return "no event has fields";
  std::vector<std::string> names;
  for (const auto& [name, types] : known) names.push_back(name);
  const std::vector<std::string> shown(
      names.begin(),
      names.begin() + static_cast<ptrdiff_t>(std::min(names.size(), kShown)));
  std::string list = absl::StrJoin(shown, ", ");
  if (names.size() > kShown)
    absl::StrAppend(&list, " and ", names.size() - kShown, " more");
  return absl::StrCat("no event has a field \"", field, "\"; there are ", list,
                      near_names(field, names));
}

// Explains why an operand does not fit. REQUIRES: the operand can be compared with none
// of the types.
std::string wrong_operand_text(const FilterCondition& condition,
                               const std::set<uint32_t>& types) {
  const FieldCondition& given = condition.given;
  std::string list;
  for (const uint32_t type : types) {
    absl::StrAppend(&list, list.empty() ? "" : " or ", field_type_text(type));
  }
  if (given.op == FieldOperator::kMatches) {
    return absl::StrCat("~ compares texts, and ", view(given.field), " is ", list);
  }
  const bool is_truth = types.contains(ARCTRACE_FIELD_BOOL) && types.size() == 1;
  FieldCondition equality = given;
  equality.op = FieldOperator::kEqual;
  if (is_truth &&
      arctrace::can_be_compared(ARCTRACE_FIELD_BOOL, equality, condition.number)) {
    return absl::StrCat(view(given.field), " is ", list, ", which only = and != compare");
  }
  return absl::StrCat("\"", view(given.operand), "\" is ",
                      is_truth ? "neither true nor false" : "not a number", ", and ",
                      view(given.field), " is ", list);
}

}  // namespace

RealBits real_bits_of(const FieldCondition& condition) {
  RealBits real;
  if (condition.is_quoted ||
      number_of(condition, real).kind == OperandNumber::Kind::kInteger) {
    return real;
  }
  const std::string_view digits = condition.operand.starts_with('-')
                                      ? condition.operand.substr(1)
                                      : condition.operand;
  if (digits.starts_with("0x") || digits.starts_with("0X")) return real;
  double f64 = 0;
  float f32 = 0;
  real.is_known = absl::SimpleAtod(view(condition.operand), &f64) &&
                  absl::SimpleAtof(view(condition.operand), &f32);
  real.f64 = std::bit_cast<uint64_t>(f64);
  real.f32 = std::bit_cast<uint32_t>(f32);
  return real;
}

FieldTypes field_types(const Definitions& definitions) {
  FieldTypes types;
  for (size_t i = 0; i < definitions.processes().size(); ++i) {
    for (const EventLayout* layout : definitions.layouts(static_cast<ProcessIndex>(i))) {
      for (const EventField& field : layout->fields) types[field.name].insert(field.type);
    }
  }
  return types;
}

std::string unmet_condition(const std::vector<std::string>& conditions,
                            const FieldTypes& known) {
  for (const std::string& text : conditions) {
    const FilterCondition condition(text);
    const auto found = known.find(std::string(condition.given.field));
    const bool can_hold =
        found != known.end() &&
        std::any_of(found->second.begin(), found->second.end(),
                    [&](uint32_t type) { return can_be_compared(type, condition); });
    if (can_hold) continue;
    return absl::StrCat(
        "--where '", text, "': ",
        found == known.end()
            ? unknown_field_text(std::string(condition.given.field), known)
            : wrong_operand_text(condition, found->second));
  }
  return {};
}

EventFilter::Condition::Condition(const std::string& condition)
    : text(std::make_shared<const std::string>(condition)),
      given(split_condition(*text)),
      number(number_of(given, real_bits_of(given))) {}

EventFilter::EventFilter(const std::vector<std::string>& conditions)
    : conditions_(conditions.begin(), conditions.end()) {}

absl::StatusOr<EventFilter> EventFilter::make(
    const Definitions& definitions, const std::vector<std::string>& conditions) {
  if (!conditions.empty()) {
    const std::string problem = unmet_condition(conditions, field_types(definitions));
    if (!problem.empty()) return absl::InvalidArgumentError(problem);
  }
  EventFilter filter(conditions);
  filter.set_definitions(definitions);
  return filter;
}

std::vector<std::string> EventFilter::texts() const {
  std::vector<std::string> texts;
  texts.reserve(conditions_.size());
  for (const Condition& condition : conditions_) texts.push_back(*condition.text);
  return texts;
}

bool EventFilter::admits(const Record& record) {
  if (!is_set() || record.type != ARCTRACE_TYPE_EVENT || meets_all(record)) return true;
  ++left_out_;
  return false;
}

bool EventFilter::meets_all(const Record& record) const {
  const Thread* thread = definitions_->thread(record.thread);
  BodyReader body(record.body);
  const uint32_t id = body.read<arctrace_event_body>().event;
  const EventLayout* layout =
      definitions_->layout(thread == nullptr ? kNoIndex : thread->process, id);
  if (layout == nullptr) return false;
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& asked) {
    std::span<const std::byte> rest = body.rest(), value;
    for (const EventField& field : layout->fields) {
      if (!take_field(field.type, rest, value)) return false;
      if (asked.given.field == field.name) {
        return meets_condition(field.type, value, asked.given, asked.number);
      }
    }
    return false;
  });
}

}  // namespace arctrace::reader
