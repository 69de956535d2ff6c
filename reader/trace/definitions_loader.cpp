#include "reader/trace/definitions_loader.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <tuple>

#include "reader/trace/bytes.hpp"
#include "reader/trace/definitions_builder.hpp"

namespace arctrace::reader {

void DefinitionsLoader::add_untrusted(const RawRecord& record, uint64_t chunk) {
  held_.push_back({record.ticks,
                   chunk,
                   record.offset,
                   record.type,
                   record.writer,
                   {record.body.begin(), record.body.end()}});
}

void DefinitionsLoader::add_kernel_exec(uint32_t pid, uint64_t monotonic_ns) {
  kernel_execs_.emplace_back(pid, monotonic_ns);
}

void DefinitionsLoader::build_clock(ClockMap& clock, FindingLog& findings) const {
  std::vector<ClockSync> syncs;
  for (const Held& held : held_) {
    if (held.type != ARCTRACE_TYPE_CLOCK_SYNC) continue;
    const auto body = load_part_untrusted<arctrace_clock_sync_body>(held.body);
    syncs.push_back({body.ticks, body.monotonic_ns, body.realtime_ns});
  }
  std::sort(syncs.begin(), syncs.end(), [](const ClockSync& a, const ClockSync& b) {
    return std::tie(a.ticks, a.monotonic_ns) < std::tie(b.ticks, b.monotonic_ns);
  });
  const uint64_t rejected = clock.set_syncs(syncs);
  if (rejected != 0) {
    findings.add(Rule::kClockSync, absl::StrCat(rejected, " of ", syncs.size(),
                                                " clock syncs do not rise"));
  }
}

void DefinitionsLoader::build(Session& session, ClockMap& clock, Definitions& definitions,
                              WriterFates& fates, FindingLog& findings) {
  build_clock(clock, findings);
  std::sort(held_.begin(), held_.end(), [](const Held& a, const Held& b) {
    return std::tuple(build_order(a.type), a.ticks, a.chunk, a.offset) <
           std::tuple(build_order(b.type), b.ticks, b.chunk, b.offset);
  });
  // Known before all definitions, also before those that are older than the file.
  for (const Held& held : held_) {
    if (held.type == ARCTRACE_TYPE_TOTALS) {
      const auto body = load_part_untrusted<arctrace_totals_body>(held.body);
      session.may_lack_definitions |= body.lost[ARCTRACE_LOST_DEFINITIONS] != 0;
    }
    if (held.type != ARCTRACE_TYPE_SESSION) continue;
    const auto body = load_part_untrusted<arctrace_session_body>(held.body);
    session.may_lack_definitions |= body.what == ARCTRACE_SESSION_STARTED &&
                                    (body.detail & ARCTRACE_SESSION_ELSEWHERE) != 0;
  }
  DefinitionsBuilder builder(session, clock, definitions, fates, findings);
  for (const Held& held : held_) {
    builder.apply(held.type, held.writer, held.ticks, BodyReader(held.body), held.chunk,
                  held.offset);
  }
  for (const auto& [pid, monotonic_ns] : kernel_execs_) {
    builder.add_kernel_exec(pid, monotonic_ns);
  }
  builder.finish();
  held_.clear();
  held_.shrink_to_fit();
}

}  // namespace arctrace::reader
