// Reports which functions were patched, and why others were not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/shim_protocol/patching.hpp"

namespace arctrace::shim {

// Reports the functions that the command has skipped: those that follow the table in its
// file.
void report_skipped_functions(int image, const PatchTable& table);

// Counts functions, and reports them in groups.
class PatchReport {
 public:
  // `verdict`: enum arctrace_patch_verdict.
  explicit PatchReport(uint32_t verdict) : verdict_(verdict) {}
  ~PatchReport() { flush(); }
  PatchReport(const PatchReport&) = delete;
  PatchReport& operator=(const PatchReport&) = delete;

  void add(uint64_t function);

 private:
  void flush();

  const uint32_t verdict_;
  uint32_t count_ = 0;
  uint64_t functions_[kPatchListedMax]{};
};

}  // namespace arctrace::shim
