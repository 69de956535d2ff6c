#include "src/recording/patterns/glob_problem.hpp"

#include "src/base/glob.hpp"

namespace arctrace::recording {

std::optional<Problem> glob_problem(const std::string& pattern) {
  if (pattern.empty()) return Problem{0, "an empty pattern"};
  const GlobCheck check = check_glob(pattern);
  switch (check.fault) {
    case GlobFault::kNone:
      return std::nullopt;
    case GlobFault::kOpenBracket:
      return Problem{check.offset,
                     "no ] to this [; a backslash before it makes it plain"};
    case GlobFault::kClass:
      return Problem{check.offset, "no classes as in [[:alpha:]]; [a-z] is a range"};
    default:
      return Problem{check.offset, "nothing after the backslash"};
  }
}

}  // namespace arctrace::recording
