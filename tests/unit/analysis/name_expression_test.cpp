// Expressions of filters, matched against the names that reports have.
#include "reader/analysis/name_expression.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>

namespace arctrace::testing {
namespace {

using reader::NameExpression;

bool matches(const std::string& text, const std::string& name) {
  std::optional<NameExpression> expression = NameExpression::compile_untrusted(text);
  REQUIRE(expression.has_value());
  return expression->match(name);
}

TEST_CASE("expression: a function matches with its parameters, without, and as a copy") {
  CHECK(matches("^work$", "work"));
  CHECK(matches("^work$", "work(int)"));
  CHECK(matches("^work\\(int\\)$", "work(int) [clone .part.0]"));
  CHECK(matches("^work$", "work.constprop.0"));
  CHECK(matches("[xk]$", "work"));
  CHECK_FALSE(matches("^or", "work"));
  CHECK(matches("serve$", "Shop.serve_12"));
}

TEST_CASE("expression: one that may take very long, or is none, is refused") {
  for (const char* text : {"(a*)\\1", "a{9}{9}{9}{9}", "(", "[a"}) {
    CAPTURE(text);
    CHECK_FALSE(NameExpression::compile_untrusted(text).has_value());
  }
  CHECK_FALSE(NameExpression::compile_untrusted(std::string(257, 'a')).has_value());
  CHECK(NameExpression::compile_untrusted(std::string(256, 'a')).has_value());
}

TEST_CASE("expression: it matches the same after very many names") {
  std::optional<NameExpression> expression =
      NameExpression::compile_untrusted(".*b................$");
  REQUIRE(expression.has_value());
  std::string name(400, 'a');
  for (size_t i = 0; i < 1000; ++i) {
    name[i % name.size()] = i % 3 == 0 ? 'b' : 'a';
    CHECK(expression->match(name) == (name[name.size() - 17] == 'b'));
  }
}

TEST_CASE("expression: which may match a C++ function by its linker's name") {
  const auto may = [](const std::string& text, const std::string& name) {
    return NameExpression::compile_untrusted(text)->may_match_linker_name(name);
  };
  CHECK(may("v$", "work()"));
  CHECK(may("^_Z4work", "work()"));
  CHECK(may("^w?", "work()"));
  CHECK(may("^x|v$", "work()"));
  CHECK_FALSE(may("^wo", "work()"));
  CHECK(may("7h", "ab::inner::descend"));    // Rust
  CHECK(may("^camlShop", "Shop.serve_12"));  // OCaml
  CHECK(may("^shop__", "shop.serve"));       // Ada
  CHECK_FALSE(may("^wo", "work.constprop.0"));
  CHECK_FALSE(may("v$", "work"));
}

}  // namespace
}  // namespace arctrace::testing
