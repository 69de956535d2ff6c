#include "reader/trace/kept_span.hpp"

#include <algorithm>

namespace arctrace::reader {

std::optional<KeptSpan> kept_span(const Session& session,
                                  const Definitions& definitions) {
  if (session.copied_ns == INT64_MIN) return std::nullopt;
  int64_t from_ns = definitions.chain_begin_ns();
  for (const Thread& thread : definitions.threads()) {
    from_ns = std::max(from_ns, thread.overwritten_until_ns);
  }
  if (from_ns == INT64_MIN) return std::nullopt;
  return KeptSpan{std::min(from_ns, session.copied_ns), session.copied_ns};
}

}  // namespace arctrace::reader
