// Collects from blocks of definitions what the summary of a recording says of functions
// that were to be patched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>

namespace arctrace {

class PatchNotes {
 public:
  // Notes what a copy of a block of definitions says. The same block may be passed again.
  void note_untrusted(std::span<const std::byte> block);

  // The addresses of functions that were switched off because their calls filled the
  // buffer: at most 65,536.
  const std::set<uint64_t>& switched_off() const { return switched_off_; }

  // Why nothing was patched in some processes: enum arctrace_patch_verdict.
  const std::set<uint32_t>& refusals() const { return refusals_; }

 private:
  std::set<uint64_t> switched_off_;
  std::set<uint32_t> refusals_;
};

}  // namespace arctrace
