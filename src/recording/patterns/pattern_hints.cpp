#include "src/recording/patterns/pattern_hints.hpp"

#include "reader/replay/filter.hpp"
#include "src/base/function_names.hpp"
#include "src/base/near_names.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

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

}  // namespace arctrace::recording
