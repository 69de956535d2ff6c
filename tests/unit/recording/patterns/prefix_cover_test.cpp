// Covers of a set of names by prefix globs, which must match no forbidden name.
#include <doctest/doctest.h>
#include <fnmatch.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/recording/patterns/live_filter.hpp"

namespace arctrace::recording {
namespace {

using Globs = std::vector<std::string>;

constexpr Coverage kNo = Coverage::kForbidden;
constexpr Coverage kMay = Coverage::kAllowed;
constexpr Coverage kMust = Coverage::kWanted;

TEST_CASE("the shortest beginnings that no other name has") {
  CHECK(prefix_cover({}) == Globs{});
  CHECK(prefix_cover({{"a", kNo}}) == Globs{});
  CHECK(prefix_cover({{"a", kMust}}) == Globs{"a"});
  CHECK(prefix_cover({{"a", kMay}}) == Globs{});
  CHECK(prefix_cover({{"a", kMay}, {"ab", kMust}}) == Globs{"*"});
  CHECK(prefix_cover({{"a", kNo}, {"ab", kMust}, {"abc", kMust}}) == Globs{"ab*"});
  CHECK(prefix_cover({{"ab", kMust}, {"abc", kNo}, {"abd", kMust}}) ==
        Globs{"ab", "abd"});
  CHECK(prefix_cover({{"foo_a", kMust}, {"foo_b", kMust}, {"fox", kNo}}) ==
        Globs{"foo*"});
  CHECK(prefix_cover({{"*a", kMust}, {"*b", kMust}, {"x", kNo}}) == Globs{"\\**"});
  CHECK(prefix_cover({{"[x]", kMust}, {"y", kNo}}) == Globs{"\\[x]"});
}

TEST_CASE("globs match what they have to, and nothing that they must not") {
  std::mt19937 random(1);  // NOLINT: the same each time
  for (int turn = 0; turn < 300; ++turn) {
    std::set<std::string> words;
    const size_t wanted_count = 1 + random() % 40;
    while (words.size() < wanted_count) {
      std::string word;
      const size_t length = 1 + random() % 6;
      while (word.size() < length) word += "ab*\\[\xff"[random() % 6];
      words.insert(word);
    }
    std::vector<CoveredName> names;
    for (const std::string& word : words) {
      names.push_back({word, static_cast<Coverage>(random() % 3)});
    }
    const Globs globs = prefix_cover(names);
    size_t wanted = 0;
    for (const CoveredName& name : names) {
      const std::string text(name.name);
      const bool is_matched = std::any_of(
          globs.begin(), globs.end(),
          [&](const std::string& g) { return fnmatch(g.c_str(), text.c_str(), 0) == 0; });
      CAPTURE(text);
      if (name.coverage == kMust) CHECK(is_matched);
      if (name.coverage == kNo) CHECK_FALSE(is_matched);
      wanted += name.coverage == kMust ? 1 : 0;
    }
    CHECK(globs.size() <= wanted);
  }
}

}  // namespace
}  // namespace arctrace::recording
