// Specs of -A and -R in uftrace's letters, and how the shim decodes them.
#include "src/recording/patterns/arg_spec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "src/shim_protocol/arg_spec_code.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {
namespace {

// The specs as the shim reads them. REQUIRES: `spec` has no problem.
std::vector<arctrace_shim_arg_spec> read_by_shim(const std::string& spec,
                                                 bool of_result) {
  CAPTURE(spec);
  REQUIRE_FALSE(arg_spec_problem(spec, of_result).has_value());
  const std::string text = encoded_arg_specs(spec, of_result);
  REQUIRE(text.size() % shim::kArgSpecSize == 0);
  std::vector<arctrace_shim_arg_spec> specs;
  for (size_t at = 0; at < text.size(); at += shim::kArgSpecSize) {
    arctrace_shim_arg_spec one{};
    REQUIRE(shim::decode_arg_spec(text.c_str() + at, one));
    specs.push_back(one);
  }
  return specs;
}

arctrace_shim_arg_spec read_one(const std::string& spec, bool of_result = false) {
  const std::vector<arctrace_shim_arg_spec> specs = read_by_shim(spec, of_result);
  REQUIRE(specs.size() == 1);
  CHECK(specs[0].failure == ARCTRACE_SHIM_FAILS_NEVER);
  return specs[0];
}

bool has_problem(const std::string& spec, bool of_result = false) {
  return arg_spec_problem(spec, of_result).has_value();
}

TEST_CASE("arg specs: each letter has its kind, its usual size, and its sizes") {
  struct Letter {
    char letter;
    uint8_t kind, usual_size;
    bool has_sizes;
  };
  for (const Letter& letter : {Letter{'d', ARCTRACE_VALUE_SIGNED, 8, true},
                               {'i', ARCTRACE_VALUE_SIGNED, 8, true},
                               {'u', ARCTRACE_VALUE_UNSIGNED, 8, true},
                               {'x', ARCTRACE_VALUE_HEX, 8, true},
                               {'o', ARCTRACE_VALUE_OCTAL, 8, true},
                               {'c', ARCTRACE_VALUE_CHAR, 1, false},
                               {'p', ARCTRACE_VALUE_POINTER, 8, false},
                               {'s', ARCTRACE_VALUE_STRING, 8, false},
                               {'b', ARCTRACE_VALUE_BOOL, 1, false},
                               {'S', ARCTRACE_SHIM_STD_STRING, 8, false}}) {
    const std::string spec = std::string("f@arg2/") + letter.letter;
    const arctrace_shim_arg_spec usual = read_one(spec);
    CHECK(usual.argument == 2);
    CHECK(usual.kind == letter.kind);
    CHECK(usual.size == letter.usual_size);
    const arctrace_shim_arg_spec result =
        read_one(std::string("f@retval/") + letter.letter, true);
    CHECK(result.argument == 0);
    CHECK(result.kind == letter.kind);
    for (const unsigned bits : {8u, 16u, 32u, 64u}) {
      const std::string sized = spec + std::to_string(bits);
      CAPTURE(sized);
      CHECK(has_problem(sized) != letter.has_sizes);
      if (letter.has_sizes) CHECK(read_one(sized).size == bits / 8);
    }
  }
}

TEST_CASE("arg specs: floating point is fparg's and retval's, of 32 or 64 bits") {
  CHECK(read_one("f@fparg1").kind == ARCTRACE_VALUE_FLOAT);
  CHECK(read_one("f@fparg1").size == 8);
  CHECK(read_one("f@fparg1/f").size == 8);
  CHECK(read_one("f@fparg1/f32").size == 4);
  CHECK(read_one("f@fparg1/32").size == 4);
  CHECK(read_one("f@fparg1/64").size == 8);
  CHECK(read_one("f@retval/f32", true).size == 4);
  CHECK(read_one("f@retval/f32", true).kind == ARCTRACE_VALUE_FLOAT);
  for (const char* spec : {"f@fparg1/8", "f@fparg1/f8", "f@fparg1/i32", "f@arg1/f32"}) {
    CAPTURE(std::string(spec));
    CHECK(has_problem(spec));
  }
  // Digits alone are a format of fparg only.
  CHECK(has_problem("f@arg1/32"));
  CHECK(has_problem("f@retval/32", true));
}

TEST_CASE("arg specs: numbers up to the last word of the stack that is read") {
  const unsigned args = ARCTRACE_SHIM_ARGUMENTS_MAX + ARCTRACE_SHIM_STACK_WORDS_MAX;
  const unsigned floats = ARCTRACE_SHIM_VECTORS_MAX + ARCTRACE_SHIM_STACK_WORDS_MAX;
  for (unsigned number = 1; number <= args; ++number) {
    CHECK(read_one("f@arg" + std::to_string(number)).argument == number);
  }
  for (unsigned number = 1; number <= floats; ++number) {
    CHECK(read_one("f@fparg" + std::to_string(number)).argument == number);
  }
  CHECK(has_problem("f@arg" + std::to_string(args + 1)));
  CHECK(has_problem("f@fparg" + std::to_string(floats + 1)));
  for (const char* number : {"0", "-1", "+1", " 1", "1 ", "1x", "4294967297", "257"}) {
    CAPTURE(std::string(number));
    CHECK(has_problem(std::string("f@arg") + number));
  }
}

TEST_CASE("arg specs: several, in the order that the user wrote") {
  const auto specs = read_by_shim("re:^a@b@arg3/x16,fparg1,arg1/s", false);
  REQUIRE(specs.size() == 3);
  CHECK(specs[0].argument == 3);
  CHECK(specs[0].kind == ARCTRACE_VALUE_HEX);
  CHECK(specs[0].size == 2);
  CHECK(specs[1].kind == ARCTRACE_VALUE_FLOAT);
  CHECK(specs[2].argument == 1);
  CHECK(specs[2].kind == ARCTRACE_VALUE_STRING);

  std::string most = "f@arg1";
  for (int i = 1; i < ARCTRACE_SHIM_RECORDED_ARGS_MAX; ++i) most += ",arg1";
  CHECK(read_by_shim(most, false).size() == ARCTRACE_SHIM_RECORDED_ARGS_MAX);
  CHECK(has_problem(most + ",arg1"));
  CHECK(has_problem("f@arg1,,arg2"));
  CHECK(has_problem("f@arg1/s/s"));
}

TEST_CASE("arg specs: a pattern alone asks for what the types have") {
  CHECK(encoded_arg_specs("f", false) == std::string{shim::kTypedArgs});
  CHECK(encoded_arg_specs("f", true) == std::string{shim::kTypedRetval});
  CHECK_FALSE(has_problem(""));  // the pattern's problem, not the spec's
}

TEST_CASE("arg specs: the first problem is reported with its offset") {
  const auto problem = arg_spec_problem("f@arg1/s,arg2/y,arg99", false);
  REQUIRE(problem.has_value());
  CHECK(problem->first == 14);
  CHECK(problem->second == "not a format: d i u x o c p s S b f");
}

}  // namespace
}  // namespace arctrace::recording
