// What traced processes executed that could not be traced, by their definitions.
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
  // REQUIRES: a block of definitions, our own copy. The same may come again.
  void note_untrusted(std::span<const std::byte> block);

  // Each once, some hundred at most.
  const std::set<UntracedProgram>& programs() const { return programs_; }

 private:
  std::set<UntracedProgram> programs_;
};

}  // namespace arctrace
