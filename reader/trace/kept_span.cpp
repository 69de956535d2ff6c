#include "reader/trace/kept_span.hpp"

#include <algorithm>

namespace arctrace::reader {

std::optional<KeptSpan> kept_span(const Session& session,
                                  const Definitions& definitions) {
  if (session.copied_ns == INT64_MIN) return std::nullopt;
  int64_t from_ns = INT64_MIN;
  for (const Thread& thread : definitions.threads()) {
    from_ns = std::max(from_ns, thread.overwritten_until_ns);
  }
  // Blocks are written anew in their order: if nothing is left of the shared chain, it
  // was older than all that is left of threads' own blocks.
  const int64_t chain_ns = definitions.chain_begin_ns();
  if (chain_ns != INT64_MAX || from_ns == INT64_MIN)
    from_ns = std::max(from_ns, chain_ns);
  std::optional<int64_t> kernel_from_ns;
  for (const CpuBegin& begin : definitions.kernel_begins()) {
    const int64_t time_ns = std::min(begin.first_ns, session.copied_ns);
    kernel_from_ns = std::max(kernel_from_ns.value_or(time_ns), time_ns);
  }
  if (from_ns == INT64_MIN) {
    if (!kernel_from_ns.has_value()) return std::nullopt;
    from_ns = std::max(session.started_ns, int64_t{0});
  }
  return KeptSpan{std::min(from_ns, session.copied_ns), session.copied_ns,
                  kernel_from_ns};
}

}  // namespace arctrace::reader
