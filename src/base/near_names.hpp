// Suggestions for names that were mistyped: "did you mean ...?"
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arctrace {

// The number of letters to change, add or remove in one to get the other, in any case.
inline size_t name_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// "; did you mean "a" or "b"?" for those few of `names` that begin with `name` or
// differ from it by a few letters, the nearest first; empty if there are none.
inline std::string near_names(std::string_view name,
                              const std::vector<std::string>& names) {
  constexpr size_t kLongest = 64;  // longer names are no typing errors
  constexpr size_t kShownMax = 6;
  std::vector<std::pair<size_t, std::string_view>> near;  // by distance
  for (const std::string& candidate : names) {
    const bool begins = !name.empty() && candidate.starts_with(name);
    if (!begins && name.size() > kLongest) continue;
    const size_t differs = begins ? 0 : name_distance(name, candidate);
    if (differs <= 1 + candidate.size() / 4) near.emplace_back(differs, candidate);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  near.resize(std::min(near.size(), kShownMax));
  std::string found;
  for (const auto& [differs, candidate] : near) {
    found += found.empty() ? "; did you mean \"" : " or \"";
    found += candidate;
    found += '"';
  }
  return found.empty() ? found : found + "?";
}

}  // namespace arctrace
