#include "writer_shim/patch/patch_report.hpp"

#include <arctrace/format.h>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"

namespace arctrace::shim {

void report_skipped_functions(int image, const PatchTable& table) {
  constexpr uint64_t kBegin = kPatchTableOffset + sizeof table;
  if (table.skips_size > table.bytes - kBegin) return;
  const uint64_t end = kBegin + table.skips_size;
  PatchSkips skips;
  uint64_t functions[kPatchListedMax];
  for (uint64_t at = kBegin; end - at >= sizeof skips;) {
    if (sys::pread(image, &skips, sizeof skips, at) != sizeof skips ||
        skips.listed > kPatchListedMax || skips.listed > skips.count) {
      return;
    }
    at += sizeof skips;
    const uint64_t size = skips.listed * sizeof *functions;
    if (size > end - at ||
        sys::pread(image, functions, size, at) != static_cast<long>(size)) {
      return;
    }
    at += size;
    arctrace_shim_patches(skips.verdict, skips.count, functions, skips.listed);
  }
}

void PatchReport::add(uint64_t function) {
  if (count_ == kPatchListedMax) flush();
  functions_[count_++] = function;
}

void PatchReport::flush() {
  if (count_ != 0) arctrace_shim_patches(verdict_, count_, functions_, count_);
  count_ = 0;
}

}  // namespace arctrace::shim
