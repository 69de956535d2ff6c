#include "reader/cli/options/near_names.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "reader/replay/filter.hpp"
#include "src/base/function_names.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::cli {
namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// The number of letters to change, add or remove in one to get the other, in any case.
size_t distance(std::string_view a, std::string_view b) {
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

}  // namespace

std::string near_names(std::string_view name, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 64;  // longer names are no typing errors
  constexpr size_t kShownMax = 6;
  size_t shown = 0;
  std::string found;
  for (const std::string& candidate : names) {
    const bool begins = !name.empty() && candidate.starts_with(name);
    if (!begins && (name.size() > kLongest ||
                    distance(name, candidate) > 1 + candidate.size() / 4)) {
      continue;
    }
    if (++shown > kShownMax) break;
    found += (found.empty() ? "; did you mean \"" : " or \"") + candidate + "\"";
  }
  return found.empty() ? found : found + "?";
}

std::string unmatched_glob(const std::vector<std::string>& globs,
                           const std::vector<std::string>& functions) {
  for (const std::string& glob : globs) {
    std::vector<std::string> names;
    bool is_matched = false;
    for (const std::string& name : functions) {
      is_matched = is_matched || reader::matches_any({glob}, name);
      names.emplace_back(without_parameters(name));
    }
    if (is_matched) continue;
    return "no function of the trace matches \"" + glob + "\"" +
           near_names(plain_part(glob), names);
  }
  return {};
}

std::string plain_part(std::string_view pattern) {
  if (pattern.starts_with(shim::kRegexMark)) {
    pattern.remove_prefix(shim::kRegexMark.size());
  }
  std::string plain;
  for (const char c : pattern) {
    if (std::string_view("*?[]^$.\\+").find(c) == std::string_view::npos) plain += c;
  }
  return plain;
}

}  // namespace arctrace::cli
