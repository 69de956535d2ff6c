// What a buffer in overwrite mode still held when it was copied: the time of which the
// records of all threads are there.
#pragma once

#include <cstdint>
#include <optional>

#include "reader/trace/definitions.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

struct KeptSpan {
  int64_t from_ns = 0;   // before it, records of some thread were overwritten
  int64_t until_ns = 0;  // when the copy began
  // Before it, records of the kernel on some CPU were overwritten; nothing: none were.
  std::optional<int64_t> kernel_from_ns;

  uint64_t ns() const { return since(from_ns); }
  // The kernel's blocks are not those of threads, and may hold less or more.
  bool has_less_of_kernel() const { return kernel_from_ns.value_or(from_ns) > from_ns; }
  uint64_t kernel_ns() const { return since(kernel_from_ns.value_or(from_ns)); }

  uint64_t since(int64_t begin_ns) const {
    return until_ns <= begin_ns
               ? 0
               : static_cast<uint64_t>(until_ns) - static_cast<uint64_t>(begin_ns);
  }
};

// nullopt: the trace is no copy of a buffer, or no record was overwritten. The trace has
// to be opened, but not read.
std::optional<KeptSpan> kept_span(const Session& session, const Definitions& definitions);

}  // namespace arctrace::reader
