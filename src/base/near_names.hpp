// Suggestions for names that were mistyped: "did you mean ...?"
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <optional>
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

// Whether `text` has `part` anywhere, in any case.
inline bool contains_name(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) {
                       return std::tolower(static_cast<unsigned char>(a)) ==
                              std::tolower(static_cast<unsigned char>(b));
                     }) != text.end();
}

// How far `candidate` is from `name`: 0 if it begins with it, 1 if it contains it, or the
// number of letters in which they differ, of all of it or of what follows the last "::".
// nullopt: it is not near.
inline std::optional<size_t> near_distance(std::string_view name,
                                           std::string_view candidate) {
  constexpr size_t kLongest = 64;      // longer names are no typing errors
  constexpr size_t kShortestPart = 3;  // shorter parts are in too many names
  if (!name.empty() && candidate.starts_with(name)) return 0;
  if (name.size() >= kShortestPart && contains_name(candidate, name)) return 1;
  if (name.size() > kLongest) return std::nullopt;
  std::optional<size_t> nearest;
  const auto compare = [&](std::string_view with) {
    // The dashes of options are no letters that were typed right.
    const size_t dashes = std::min(with.find_first_not_of('-'), with.size());
    const size_t most = 1 + (with.size() - dashes) / 4;
    if (with.size() > name.size() + most || name.size() > with.size() + most) return;
    const size_t differs = name_distance(name, with);
    if (differs <= most && (!nearest || differs < *nearest)) nearest = differs;
  };
  compare(candidate);
  const size_t scope = candidate.rfind("::");
  if (scope != std::string_view::npos) compare(candidate.substr(scope + 2));
  return nearest;
}

// Those few of `names` that begin with `name`, contain it, or differ from it by a few
// letters, the nearest first and each once.
inline std::vector<std::string> nearest_names(std::string_view name,
                                              const std::vector<std::string>& names) {
  constexpr size_t kShownMax = 6;
  std::vector<std::pair<size_t, std::string_view>> near;  // by distance
  for (const std::string& candidate : names) {
    const std::optional<size_t> differs = near_distance(name, candidate);
    if (differs) near.emplace_back(*differs, candidate);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> shown;
  for (const auto& [differs, candidate] : near) {
    if (shown.size() == kShownMax) break;
    if (std::find(shown.begin(), shown.end(), candidate) == shown.end()) {
      shown.emplace_back(candidate);
    }
  }
  return shown;
}

// "; did you mean "a" or "b"?"; empty without names.
inline std::string did_you_mean(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += text.empty() ? "; did you mean \"" : " or \"";
    text += name;
    text += '"';
  }
  return text.empty() ? text : text + "?";
}

// The same for the nearest of `names`.
inline std::string near_names(std::string_view name,
                              const std::vector<std::string>& names) {
  return did_you_mean(nearest_names(name, names));
}

}  // namespace arctrace
