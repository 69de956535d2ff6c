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

  // Why nothing of the program was patched in some processes (PATCH_SMALL: not all), and
  // nothing of some library: enum arctrace_patch_verdict.
  const std::set<uint32_t>& refusals() const { return refusals_; }
  const std::set<uint32_t>& library_refusals() const { return library_refusals_; }

 private:
  std::set<uint64_t> switched_off_;
  std::set<uint32_t> refusals_;
  std::set<uint32_t> library_refusals_;
};

}  // namespace arctrace
