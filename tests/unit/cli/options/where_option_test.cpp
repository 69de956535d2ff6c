// --where: how a condition is split, and which texts are no condition.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "reader/cli/options/options.hpp"
#include "src/protocol/field_condition.hpp"

namespace arctrace::cli {
namespace {

void parses(const std::string& text, const std::string& field, FieldOperator op,
            const std::string& operand, bool is_quoted = false) {
  CAPTURE(text);
  CHECK_FALSE(condition_problem(text).has_value());
  const FieldCondition condition = split_condition(text);
  CHECK(condition.field == field);
  CHECK(condition.op == op);
  CHECK(condition.operand == operand);
  CHECK(condition.is_quoted == is_quoted);
}

void refuses(const std::string& text, size_t at, const std::string& what) {
  CAPTURE(text);
  const std::optional<recording::Problem> problem = condition_problem(text);
  REQUIRE(problem.has_value());
  CHECK(problem->first == at);
  CHECK(problem->second.starts_with(what));
}

TEST_CASE("--where: field, operator, value") {
  parses("id=5", "id", FieldOperator::kEqual, "5");
  parses(" id == 5 ", "id", FieldOperator::kEqual, "5");
  parses("id != -0x10", "id", FieldOperator::kNotEqual, "-0x10");
  parses("id < 5", "id", FieldOperator::kLess, "5");
  parses("id <= 5", "id", FieldOperator::kLessOrEqual, "5");
  parses("id > 5", "id", FieldOperator::kGreater, "5");
  parses("id>=5", "id", FieldOperator::kGreaterOrEqual, "5");
  parses("name ~ a*=b", "name", FieldOperator::kMatches, "a*=b");
  // Fields may have blanks, texts any characters.
  parses("a b = c d", "a b", FieldOperator::kEqual, "c d");
  parses("name = \"=5 \"", "name", FieldOperator::kEqual, "=5 ", true);
  parses("name = \"\"", "name", FieldOperator::kEqual, "", true);
  parses("name = \"", "name", FieldOperator::kEqual, "\"");
  parses("name ~ \"*\"", "name", FieldOperator::kMatches, "*", true);
}

TEST_CASE("--where: what is no condition") {
  refuses("", 0, "not a condition such as");
  refuses("id", 2, "not a condition such as");
  refuses("id ! 5", 3, "not a condition such as");
  refuses("= 5", 0, "no field before the operator");
  refuses("id =", 4, "no value after the operator");
  refuses("id =  ", 4, "no value after the operator");
  refuses("id =~ 5", 4, "no such operator");
  refuses("id <> 5", 4, "no such operator");
  refuses("name ~ a[", 8, "no ] to this [");
  refuses("name ~ \"\"", 8, "an empty pattern");
}

}  // namespace
}  // namespace arctrace::cli
