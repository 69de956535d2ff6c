// Collects from blocks of definitions the programs that traced processes executed and
// that could not be traced. The summary of a recording lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <tuple>

namespace arctrace {

struct UntracedProgram {
  std::string path;  // as it was executed; untrusted bytes
  uint32_t why;      // enum arctrace_untraced
  bool operator<(const UntracedProgram& other) const {
    return std::tie(path, why) < std::tie(other.path, other.why);
  }
};

class UntracedPrograms {
 public:
  // Notes the programs in a copy of a block of definitions. The same block may be passed
  // again.
  void note_untrusted(std::span<const std::byte> block);

  // Each program once, 256 at most.
  const std::set<UntracedProgram>& programs() const { return programs_; }

 private:
  std::set<UntracedProgram> programs_;
};

}  // namespace arctrace
