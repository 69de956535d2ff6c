// The types of arguments and return values in DWARF data.
#include "reader/symbols/function_types.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/unit/symbols/fixtures.hpp"

namespace arctrace::reader {
namespace {

using Kind = TypedArg::Kind;

// The types of the functions of a fixture that have some, by name.
std::map<std::string, FunctionTypes> types_in(const std::string& name) {
  const auto addresses = nm_addresses(fixture(name), "");
  std::set<uint64_t> wanted;
  for (const auto& [function, address] : addresses) wanted.insert(address);
  const ModuleTypes types = read_function_types_untrusted(
      fixture(name), DebugFiles(rooted_at("/nonexistent")), wanted, {});
  std::map<std::string, FunctionTypes> found;
  for (const auto& [function, address] : addresses) {
    const auto at = types.defined.find(address);
    if (at != types.defined.end()) found[function] = at->second;
  }
  return found;
}

// "name:kind size@position" of each arg, then of the retval.
std::string text_of(const FunctionTypes& types) {
  std::string text;
  const auto add = [&text](const TypedArg& value) {
    constexpr const char* kKinds[] = {"i", "u", "b", "c", "p", "s", "S", "f"};
    text += value.name + ":" + kKinds[static_cast<int>(value.kind)] +
            std::to_string(value.size) + "@" + std::to_string(value.position) + " ";
  };
  for (const TypedArg& argument : types.args) add(argument);
  if (types.retval) add(*types.retval);
  return text;
}

TEST_CASE("arguments and results as the compiler has them") {
  auto types = types_in("typed.so");
  CHECK(text_of(types.at("typed_scalars")) ==
        "a:i1@1 b:u8@2 c:b1@3 d:f4@1 e:f8@2 f:u1@4 :f8@0 ");
  CHECK(text_of(types.at("typed_pointers")) == "text:s8@1 any:p8@2 string:S8@3 :s8@0 ");
  CHECK(text_of(types.at("typed_pair")) == "number:i4@2 real:f8@2 :i4@0 ");
  CHECK(text_of(types.at("typed_large")) == "number:i4@2 ");
  CHECK(text_of(types.at("typed_holder")) == "number:i4@2 :i4@0 ");
  CHECK(text_of(types.at("typed_many")) ==
        "a:i8@1 b:i8@2 c:i8@3 d:i8@4 e:i8@5 f:i8@6 g:i8@7 h:f8@1 :i8@0 ");
  CHECK(text_of(types.at("typed_stacked")) == "g:c1@7 h:f8@7 i:i2@8 :i4@0 ");
}

// Without a limit this would take years.
TEST_CASE("types and scopes that would be gone through without end") {
  auto types = types_in("hostile.so");
  CHECK_FALSE(types.contains("hostile_copies"));
  CHECK_FALSE(types.contains("hostile_contents"));
  CHECK_FALSE(types.contains("hostile_result"));
}

TEST_CASE("what stands after hostile data is found") {
  CHECK(text_of(types_in("hostile.so")["harmless"]) == "parameter:i4@1 ");
}

}  // namespace
}  // namespace arctrace::reader
