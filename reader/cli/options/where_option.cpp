#include "reader/cli/options/where_option.hpp"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "reader/cli/options/glob_option.hpp"

namespace arctrace::cli {
namespace {

using reader::FieldCondition;
using reader::FieldOperator;

constexpr std::string_view kOperatorSigns = "=!<>~";

// Signs that begin with another one come before it.
constexpr std::array<std::pair<std::string_view, FieldOperator>, 8> kOperators = {
    {{"==", FieldOperator::kEqual},
     {"=", FieldOperator::kEqual},
     {"!=", FieldOperator::kNotEqual},
     {"<=", FieldOperator::kLessOrEqual},
     {"<", FieldOperator::kLess},
     {">=", FieldOperator::kGreaterOrEqual},
     {">", FieldOperator::kGreater},
     {"~", FieldOperator::kMatches}}};

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

std::variant<FieldCondition, Problem> parse_field_condition(const std::string& text) {
  const std::string_view whole = text;
  const size_t at = std::min(whole.find_first_of(kOperatorSigns), whole.size());
  const auto* const found = std::find_if(
      kOperators.begin(), kOperators.end(),
      [&](const auto& known) { return whole.substr(at).starts_with(known.first); });
  if (found == kOperators.end()) {
    return Problem{at, "not a condition such as \"id = 5\": = != < <= > >= ~"};
  }
  const size_t behind = at + found->first.size();
  FieldCondition condition;
  condition.text = text;
  condition.field = without_blanks(whole.substr(0, at));
  condition.op = found->second;
  if (condition.field.empty()) return Problem{0, "no field before the operator"};
  std::string_view operand = without_blanks(whole.substr(behind));
  if (operand.empty()) {
    return Problem{behind, "no value after the operator; \"\" is an empty text"};
  }
  if (kOperatorSigns.find(operand.front()) != std::string_view::npos) {
    return Problem{
        behind,
        "no such operator, only = != < <= > >= ~; a value that begins with one "
        "of these signs stands between double quotes"};
  }
  condition.is_quoted =
      operand.size() >= 2 && operand.front() == '"' && operand.back() == '"';
  if (condition.is_quoted) operand = operand.substr(1, operand.size() - 2);
  condition.operand = operand;
  if (condition.op == FieldOperator::kMatches) {
    if (const std::optional<Problem> problem = glob_problem(condition.operand)) {
      const auto begins = static_cast<size_t>(operand.data() - whole.data());
      return Problem{begins + problem->first, problem->second};
    }
  }
  return condition;
}

CLI::Option* add_where_option(CLI::App& app, std::vector<FieldCondition>& conditions,
                              const std::string& scope) {
  const auto take = [&conditions](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      std::variant<FieldCondition, Problem> parsed = parse_field_condition(text);
      if (const auto* problem = std::get_if<Problem>(&parsed)) {
        throw CLI::ValidationError("--where",
                                   absl::StrCat("\"", text, "\": ", problem->second));
      }
      conditions.push_back(std::move(std::get<FieldCondition>(parsed)));
    }
  };
  return app
      .add_option_function<std::vector<std::string>>(
          "--where", take,
          absl::StrCat("of events of the API, show only those of whose fields CONDITION "
                       "holds: FIELD OP VALUE, such as 'id >= 10', where OP is = != < <= "
                       "> >= or, for a GLOB of texts, ~; may be repeated, and then all "
                       "must hold. Events that are left out are counted",
                       scope))
      ->allow_extra_args(false)
      ->type_name("CONDITION");
}

}  // namespace arctrace::cli
