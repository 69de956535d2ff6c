#include "reader/trace/event_filter.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <arctrace/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "reader/trace/bytes.hpp"
#include "reader/trace/event_payload.hpp"
#include "reader/trace/format_names.hpp"
#include "src/base/glob.hpp"
#include "src/base/near_names.hpp"

namespace arctrace::reader {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64,
              "a long double holds every integer of 64 bits and every double");

using FilterCondition = EventFilter::Condition;
using FieldTypes = std::map<std::string, std::set<uint32_t>>;  // by the field's name

// ---- Operands ------------------------------------------------------------------

std::optional<EventFilter::Number> number_in(const std::string& text) {
  const bool is_negative = text.starts_with('-');
  const std::string digits = text.substr(is_negative ? 1 : 0);
  const bool is_hex = digits.starts_with("0x") || digits.starts_with("0X");
  const bool is_decimal =
      !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
  uint64_t magnitude = 0;
  if (is_hex ? absl::SimpleHexAtoi(digits, &magnitude)
             : is_decimal && absl::SimpleAtoi(digits, &magnitude)) {
    const auto whole = static_cast<long double>(magnitude);
    const long double number = is_negative ? -whole : whole;
    return EventFilter::Number{number, number};
  }
  double real = 0;
  float rounded = 0;
  if (is_hex || !absl::SimpleAtod(text, &real) || !absl::SimpleAtof(text, &rounded)) {
    return std::nullopt;
  }
  // Beyond the range of f32, which rounding would make an infinity.
  const bool is_too_large = std::isinf(rounded) && !std::isinf(real);
  return EventFilter::Number{
      static_cast<long double>(real),
      is_too_large ? static_cast<long double>(real) : static_cast<long double>(rounded)};
}

std::optional<bool> truth_in(const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

bool is_equality(FieldOperator op) {
  return op == FieldOperator::kEqual || op == FieldOperator::kNotEqual;
}

// Whether a field of this type can be compared with the operand.
bool can_be_compared(uint32_t type, const FilterCondition& condition) {
  switch (type) {
    case ARCTRACE_FIELD_STRING:
      return true;
    case ARCTRACE_FIELD_BOOL:
      return condition.truth.has_value() && is_equality(condition.given.op);
    default:
      return condition.number.has_value() &&
             condition.given.op != FieldOperator::kMatches;
  }
}

// ---- What is wrong with a condition ------------------------------------------------

FieldTypes field_types(const Definitions& definitions) {
  FieldTypes types;
  for (size_t i = 0; i < definitions.processes().size(); ++i) {
    for (const EventLayout* layout : definitions.layouts(static_cast<ProcessIndex>(i))) {
      for (const EventField& field : layout->fields) types[field.name].insert(field.type);
    }
  }
  return types;
}

std::string unknown_field_text(const std::string& field, const FieldTypes& known) {
  constexpr size_t kShown = 16;
  if (known.empty()) return "no event of the trace has fields";
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

// REQUIRES: the operand can be compared with none of the types.
std::string wrong_operand_text(const FilterCondition& condition,
                               const std::set<uint32_t>& types) {
  const FieldCondition& given = condition.given;
  std::string list;
  for (const uint32_t type : types) {
    absl::StrAppend(&list, list.empty() ? "" : " or ", field_type_text(type));
  }
  if (given.op == FieldOperator::kMatches) {
    return absl::StrCat("~ compares texts, and ", given.field, " is ", list);
  }
  const bool is_truth = types.contains(ARCTRACE_FIELD_BOOL) && types.size() == 1;
  if (is_truth && condition.truth.has_value()) {
    return absl::StrCat(given.field, " is ", list, ", which only = and != compare");
  }
  return absl::StrCat("\"", given.operand, "\" is ",
                      is_truth ? "neither true nor false" : "not a number", ", and ",
                      given.field, " is ", list);
}

// ---- Comparing -----------------------------------------------------------------

bool holds(FieldOperator op, std::partial_ordering order) {
  switch (op) {
    case FieldOperator::kEqual:
      return std::is_eq(order);
    case FieldOperator::kNotEqual:
      return std::is_neq(order);
    case FieldOperator::kLess:
      return std::is_lt(order);
    case FieldOperator::kLessOrEqual:
      return std::is_lteq(order);
    case FieldOperator::kGreater:
      return std::is_gt(order);
    case FieldOperator::kGreaterOrEqual:
      return std::is_gteq(order);
    case FieldOperator::kMatches:
      break;
  }
  return false;
}

std::partial_ordering order_of_numbers(long double value, long double operand) {
  if (std::isnan(value) && std::isnan(operand)) return std::partial_ordering::equivalent;
  return value <=> operand;
}

long double number_of(const FieldValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value.value)) {
    return static_cast<long double>(*number);
  }
  if (const auto* bits = std::get_if<uint64_t>(&value.value)) {
    return static_cast<long double>(*bits);
  }
  return static_cast<long double>(std::get<double>(value.value));
}

bool meets(const FieldValue& value, const FilterCondition& condition) {
  const uint32_t type = value.field->type;
  if (!can_be_compared(type, condition)) return false;
  const FieldCondition& given = condition.given;
  if (const auto* text = std::get_if<std::string_view>(&value.value)) {
    if (given.op == FieldOperator::kMatches) return glob_matches(given.operand, *text);
    return holds(given.op, *text <=> std::string_view(given.operand));
  }
  if (const auto* truth = std::get_if<bool>(&value.value)) {
    return (*truth == *condition.truth) == (given.op == FieldOperator::kEqual);
  }
  const long double operand =
      type == ARCTRACE_FIELD_F32 ? condition.number->as_f32 : condition.number->exact;
  return holds(given.op, order_of_numbers(number_of(value), operand));
}

}  // namespace

EventFilter::EventFilter(std::vector<FieldCondition> conditions) {
  for (FieldCondition& given : conditions) {
    Condition condition;
    condition.given = std::move(given);
    if (!condition.given.is_quoted) {
      condition.number = number_in(condition.given.operand);
      condition.truth = truth_in(condition.given.operand);
    }
    conditions_.push_back(std::move(condition));
  }
}

absl::StatusOr<EventFilter> EventFilter::make(const Definitions& definitions,
                                              std::vector<FieldCondition> conditions) {
  EventFilter filter(std::move(conditions));
  filter.set_definitions(definitions);
  if (const std::string problem = filter.problem(); !problem.empty()) {
    return absl::InvalidArgumentError(problem);
  }
  return filter;
}

std::string EventFilter::problem() const {
  if (!is_set()) return {};
  const FieldTypes known = field_types(*definitions_);
  for (const Condition& condition : conditions_) {
    const auto found = known.find(condition.given.field);
    const bool can_hold =
        found != known.end() &&
        std::any_of(found->second.begin(), found->second.end(),
                    [&](uint32_t type) { return can_be_compared(type, condition); });
    if (can_hold) continue;
    return absl::StrCat("--where '", condition.given.text, "': ",
                        found == known.end()
                            ? unknown_field_text(condition.given.field, known)
                            : wrong_operand_text(condition, found->second));
  }
  return {};
}

std::vector<std::string> EventFilter::texts() const {
  std::vector<std::string> texts;
  texts.reserve(conditions_.size());
  for (const Condition& condition : conditions_) texts.push_back(condition.given.text);
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
  const EventValues values = decode_event_untrusted(*layout, body.rest());
  return std::all_of(
      conditions_.begin(), conditions_.end(), [&](const Condition& condition) {
        const auto found = std::find_if(
            values.fields.begin(), values.fields.end(), [&](const FieldValue& value) {
              return value.field->name == condition.given.field;
            });
        return found != values.fields.end() && meets(*found, condition);
      });
}

}  // namespace arctrace::reader
