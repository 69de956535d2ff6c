// How many records a session's writers counted, against those that a reader found.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <arctrace/format.h>

#include <array>
#include <cstdint>
#include <optional>

#include "reader/trace/buffer_state.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/emitter.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/record_cursor.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/summary.hpp"
#include "reader/trace/writer_fates.hpp"

namespace arctrace::reader {

class SessionTotals {
 public:
  // A TOTALS record, whose body is valid. Of several for one writer the last counts.
  void add_untrusted(const RawRecord& record);
  // What the slots of a buffer count.
  void add_slots(const BufferState& buffer);

  // The records that a writer committed; nullopt: nothing counts them.
  std::optional<uint64_t> written_by(uint32_t writer) const;

  // What the record filter left out, of the whole session.
  uint64_t filtered_out() const { return filtered_out_; }

  // After all records were emitted. In overwrite mode, records that were counted and are
  // not in the trace were overwritten, and LOST records may have been, too: `summary`
  // gets them, as it gets those that the file of an earlier collector has if some are in
  // one. Of another file that has the whole session, a finding if any is missing.
  void settle(const Session& session, const Definitions& definitions,
              const WriterFates& fates, const Emitter& emitter, bool is_in_part_elsewhere,
              Summary& summary, FindingLog& findings) const;

 private:
  void add_overwritten(const Definitions& definitions, const Emitter& emitter,
                       Summary& summary) const;
  // Where nothing is overwritten.
  void settle_kept(const Definitions& definitions, const WriterFates& fates,
                   const Emitter& emitter, bool is_in_part_elsewhere, Summary& summary,
                   FindingLog& findings) const;

  // By writer; ARCTRACE_WRITER_COLLECTOR: in the whole session.
  absl::flat_hash_map<uint32_t, uint64_t> written_;
  // By writer: 0 where it is not known whose the losses of a slot were.
  absl::flat_hash_map<uint32_t, uint64_t> lost_by_writer_;
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost_{};
  uint64_t filtered_out_ = 0;
};

}  // namespace arctrace::reader
