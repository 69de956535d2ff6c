#include "reader/cli/options/where_option.hpp"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <string_view>

#include "reader/cli/options/glob_option.hpp"
#include "src/protocol/field_condition.hpp"

namespace arctrace::cli {
namespace {

constexpr std::string_view kOperatorSigns = "=!<>~";

}  // namespace

std::optional<recording::Problem> condition_problem(const std::string& text) {
  const FieldCondition condition = split_condition(text);
  const size_t at = std::min(text.find_first_of(kOperatorSigns), text.size());
  if (condition.op == FieldOperator::kNone) {
    return recording::Problem{at, "not a condition such as \"id = 5\": = != < <= > >= ~"};
  }
  if (condition.field.empty())
    return recording::Problem{0, "no field before the operator"};
  const bool has_two_signs =
      text[at] != '~' && at + 1 < text.size() && text[at + 1] == '=';
  const size_t behind = at + (has_two_signs ? 2 : 1);
  if (condition.is_quoted) {
    if (condition.op != FieldOperator::kMatches) return std::nullopt;
  } else if (condition.operand.empty()) {
    return recording::Problem{behind,
                              "no value after the operator; \"\" is an empty text"};
  } else if (kOperatorSigns.find(condition.operand.front()) != std::string_view::npos) {
    return recording::Problem{
        behind,
        "no such operator, only = != < <= > >= ~; a value that begins with one "
        "of these signs stands between double quotes"};
  }
  if (condition.op == FieldOperator::kMatches) {
    if (const std::optional<recording::Problem> problem =
            recording::glob_problem(std::string(condition.operand))) {
      const auto begins = static_cast<size_t>(condition.operand.data() - text.data());
      return recording::Problem{begins + problem->first, problem->second};
    }
  }
  return std::nullopt;
}

CLI::Option* add_where_option(CLI::App& app, std::vector<std::string>& conditions,
                              const std::string& scope, const char* verb) {
  const auto take = [&conditions](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (const std::optional<recording::Problem> problem = condition_problem(text)) {
        throw CLI::ValidationError("--where",
                                   absl::StrCat("\"", text, "\": ", problem->second));
      }
      conditions.push_back(text);
    }
  };
  return app
      .add_option_function<std::vector<std::string>>(
          "--where", take,
          absl::StrCat("of events of the API, ", verb,
                       " only those of whose fields CONDITION holds: FIELD OP VALUE, "
                       "such as 'id >= 10', where OP is = != < <= > >= "
                       "or, for a GLOB of texts, ~; may be repeated, and then all must "
                       "hold. Events that are left out are counted",
                       scope))
      ->allow_extra_args(false)
      ->type_name("CONDITION");
}

}  // namespace arctrace::cli
