// The conditions of --snapshot-when.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <variant>

#include "src/recording/patching/patch_check.hpp"
#include "src/recording/patterns/arg_spec.hpp"
#include "src/shim_protocol/arg_spec_code.hpp"

namespace arctrace::recording {
namespace {

// The condition as the shim decodes it; its pattern must be `pattern`.
arctrace_shim_call_condition decoded(const std::string& text,
                                     const std::string& pattern) {
  arctrace_shim_call_condition condition{};
  const auto parsed = parse_snapshot_condition(text);
  const auto* found = std::get_if<SnapshotCondition>(&parsed);
  REQUIRE_MESSAGE(found != nullptr, text);
  CHECK(found->pattern == pattern);
  CHECK(shim::decode_call_condition(found->code.c_str(), condition));
  return condition;
}

TEST_CASE("snapshot condition: a call's time") {
  auto condition = decoded("serve > 20ms", "serve");
  CHECK(condition.is_result == 0);
  CHECK(condition.compare == ARCTRACE_SHIM_MORE);
  CHECK(condition.value == 20'000'000);
  condition = decoded("  re:^(a|b c)$   >=  1.5us ", "  re:^(a|b c)$");
  CHECK(condition.compare == ARCTRACE_SHIM_MORE_OR_EQUAL);
  CHECK(condition.value == 1500);
  CHECK(decoded("operator > > 1s", "operator >").value == 1'000'000'000);
}

TEST_CASE("snapshot condition: what a call returns") {
  auto condition = decoded("read returns < 0", "read");
  CHECK(condition.is_result == 1);
  CHECK(condition.compare == ARCTRACE_SHIM_LESS);
  CHECK(condition.size == 4);
  CHECK(condition.is_signed == 1);
  CHECK(condition.value == 0);
  condition = decoded("seek returns/i64 = -1", "seek");
  CHECK(condition.compare == ARCTRACE_SHIM_EQUAL);
  CHECK(condition.size == 8);
  CHECK(condition.value == UINT64_MAX);
  condition = decoded("flags returns/u8 >= 0x80", "flags");
  CHECK(condition.size == 1);
  CHECK(condition.is_signed == 0);
  CHECK(condition.value == 0x80);
  for (const char* text : {"malloc = NULL", "malloc returns == NULL"}) {
    condition = decoded(text, "malloc");
    CHECK(condition.is_result == 1);
    CHECK(condition.compare == ARCTRACE_SHIM_EQUAL);
    CHECK(condition.size == 8);
    CHECK(condition.value == 0);
  }
  CHECK(decoded("find != NULL", "find").compare == ARCTRACE_SHIM_OTHER);
  CHECK(decoded("f returns <= 3", "f").compare == ARCTRACE_SHIM_LESS_OR_EQUAL);
}

TEST_CASE("snapshot condition: without spaces, where it is clear what is meant") {
  for (const char* text : {"serve>20ms", "serve> 20ms", "serve >20ms", " serve>20ms "}) {
    CAPTURE(text);
    CHECK(decoded(text, text[0] == ' ' ? " serve" : "serve").value == 20'000'000);
  }
  CHECK(decoded("re:^(a|b c)$>=1s", "re:^(a|b c)$").compare ==
        ARCTRACE_SHIM_MORE_OR_EQUAL);
  CHECK(decoded("f<int>::g>1s", "f<int>::g").value == 1'000'000'000);
  CHECK(decoded("malloc=NULL", "malloc").compare == ARCTRACE_SHIM_EQUAL);
  CHECK(decoded("malloc!=NULL", "malloc").compare == ARCTRACE_SHIM_OTHER);
  CHECK(decoded("read returns<0", "read").compare == ARCTRACE_SHIM_LESS);
  CHECK(decoded("flags returns/u8>=0x80", "flags").value == 0x80);
  // The sign may be the end of an operator's name, or of template arguments.
  const auto refused_at = [](const std::string& text) {
    const auto parsed = parse_snapshot_condition(text);
    const auto* problem = std::get_if<Problem>(&parsed);
    REQUIRE(problem != nullptr);
    CHECK(problem->second.find("put spaces around it") != std::string::npos);
    return problem->first;
  };
  CHECK(refused_at("operator>20ms") == 8);
  CHECK(refused_at("operator>>1s") == 8);
  CHECK(refused_at("operator->1s") == 9);
  CHECK(refused_at("f<int>20ms") == 5);
  CHECK(refused_at("f<int>>20ms") == 5);
  CHECK(refused_at("f<int>=NULL") == 5);
  CHECK(decoded("f<int> > 20ms", "f<int>").value == 20'000'000);
}

TEST_CASE("snapshot condition: what is none") {
  for (const char* text : {"",
                           ">",
                           "f",
                           "f >",
                           "f > ",
                           "> 20ms",
                           "f < 20ms",
                           "f = 20ms",
                           "f > -1ms",
                           "f > 20",
                           "f > x",
                           "f ~ 3",
                           "f returns",
                           "f returns 3",
                           "f returns < x",
                           "f returns < 1.5",
                           "f returns < --1",
                           "f returns/i7 < 1",
                           "f returns/ < 1",
                           "f returns/f64 < 1",
                           "returns < 1",
                           ">20ms",
                           "f<20ms",
                           "f>x",
                           "f>",
                           "f=>20ms",
                           "f~3",
                           "f returns < 99999999999999999999"}) {
    CHECK_MESSAGE(std::holds_alternative<Problem>(parse_snapshot_condition(text)), text);
  }
}

TEST_CASE("snapshot condition: of which it is known before that no call meets it") {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const auto unmet = [&program](const std::string& condition,
                                std::vector<std::string> patch) {
    CallFilterOptions options;
    options.snapshot_when = {condition};
    options.patch = std::move(patch);
    const std::vector<std::string> lines = unmet_conditions(options, program);
    REQUIRE(lines.size() < 2);
    return lines.empty() ? "" : lines.front();
  };
  CHECK(
      unmet("decode_call_cond1tion > 1s", {})
          .starts_with("no call of " + program +
                       " will meet --snapshot-when "
                       "\"decode_call_cond1tion > 1s\": no function of the program or "
                       "of its libraries matches, and what it executes is not examined; "
                       "did you mean \""));
  CHECK(unmet("main > 1s", {}).ends_with(": main was not built with hooks: try -P main"));
  CHECK(unmet("memcpy > 1s", {}).empty());
  CHECK(unmet("qsort > 1s", {}).empty());
  CallFilterOptions script;
  script.snapshot_when = {"main > 1s"};
  CHECK(unmet_conditions(script, "/etc/passwd").empty());
#ifdef __x86_64__
  CHECK(unmet("main > 1s", {"main"}).empty());
  CHECK(unmet("main > 1s", {"other"}).ends_with(": main is not patched: try -P main"));
  CHECK(unmet("re:^_start$ > 1s", {"."}).find(": _start cannot be patched: ") !=
        std::string::npos);
#endif
}

TEST_CASE("snapshot condition: codes that are none") {
  arctrace_shim_call_condition condition{};
  const std::string good =
      shim::encode_call_condition({.is_result = true, .value = 5}).text;
  CHECK(shim::decode_call_condition(good.c_str(), condition));
  CHECK(condition.value == 5);
  CHECK_FALSE(shim::decode_call_condition("", condition));
  CHECK_FALSE(shim::decode_call_condition((good + "0").c_str(), condition));
  for (const size_t at : {size_t{0}, size_t{1}, size_t{2}, size_t{10}}) {
    std::string bad = good;
    bad[at] = 'x';
    CHECK_FALSE(shim::decode_call_condition(bad.c_str(), condition));
    // No time is less than 0: a call fulfils it never.
    CHECK(condition.is_result == 0);
    CHECK(condition.compare == ARCTRACE_SHIM_LESS);
    CHECK(condition.value == 0);
  }
}

}  // namespace
}  // namespace arctrace::recording
