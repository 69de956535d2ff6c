#include "reader/trace/trace.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "reader/trace/block_index.hpp"
#include "reader/trace/bytes.hpp"
#include "reader/trace/definitions_loader.hpp"
#include "reader/trace/emitter.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/merge.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/session_header.hpp"
#include "reader/trace/shared_block.hpp"

namespace arctrace::reader {
namespace {

// Which goes first of records of one moment: what defines before what uses, what was
// interrupted before what interrupted it.
enum class Rank : uint64_t { kDefinitions, kExclusive, kShared };

uint64_t source_order(Rank rank, uint64_t within) {
  return static_cast<uint64_t>(rank) << 62 | (within & (~0ull >> 2));
}

// The number of a kernel record's process; 0 of others.
uint32_t tgid_untrusted(const RawRecord& record) {
  if (class_of(record.type) != RecordClass::kKernel) return 0;
  BodyReader body(record.body);
  body.u32();  // cpu
  return body.u32();
}

}  // namespace

struct Trace::Impl {
  struct SharedRef {
    BlockRef block;
    uint64_t first_ticks;
  };

  Impl(std::unique_ptr<Input> from, SessionHeader header, size_t max_findings)
      : input(std::move(from)),
        session(std::move(header.session)),
        geometry(header.geometry),
        clock(
            {session.start_ticks, session.start_monotonic_ns, session.start_realtime_ns},
            session.ticks_per_second),
        findings(max_findings) {}

  absl::Status load();
  absl::Status load_shared(const BlockRef& block, DefinitionsLoader& loader);
  void group_exclusive(const std::vector<BlockRef>& blocks);
  void check_serials(std::span<const BlockRef> blocks);
  void check_end(const BlockIndex& index);
  void add_unknown_writers();
  void add_unknown_process(const BlockRef& block);
  void add_slot_fates();
  absl::Status read(const RecordSink& sink);
  void add_totals_untrusted(const RawRecord& record);
  void settle_totals(const Emitter& emitter);
  bool emit_residual(Emitter& emitter, std::span<const uint64_t> lost,
                     std::span<const uint64_t> reported, uint32_t writer, uint32_t flags);

  std::unique_ptr<Input> input;
  Session session;
  Geometry geometry;
  ClockMap clock;
  FindingLog findings;
  FindingLog::Mark opened;  // the findings of load()
  BufferState buffer;
  Definitions definitions;
  WriterFates fates;
  std::vector<std::vector<BlockRef>> exclusive;  // by writer, each sorted by serial
  std::vector<SharedRef> shared;                 // of full form
  // Those that have records in `shared`; the kernel's with their process' number.
  absl::flat_hash_map<uint32_t, uint32_t> shared_writers;
  // What TOTALS records or a buffer's slots count, by writer; 0: the session.
  absl::flat_hash_map<uint32_t, uint64_t> written;
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost_total{};
  Summary summary;
};

absl::Status Trace::Impl::load() {
  const absl::StatusOr<BlockIndex> index =
      session.raw ? index_buffer_untrusted(*input, geometry, findings, buffer)
                  : index_file_untrusted(*input, geometry, findings);
  if (!index.ok()) return index.status();
  DefinitionsLoader loader;
  for (const BlockRef& block : index->blocks) {
    if (block.kind == BlockRef::Kind::kExclusive) continue;
    if (absl::Status status = load_shared(block, loader); !status.ok()) return status;
  }
  loader.build(session, clock, definitions, fates, findings);
  check_end(*index);
  group_exclusive(index->blocks);
  add_unknown_writers();
  if (session.raw) add_slot_fates();
  opened = findings.mark();
  return absl::OkStatus();
}

// Only what must be known before the merge; findings of the block come when it is read.
absl::Status Trace::Impl::load_shared(const BlockRef& ref, DefinitionsLoader& loader) {
  FindingLog unused(0);
  SharedBlock block;
  if (absl::Status status = block.load_untrusted(*input, ref, unused); !status.ok()) {
    return status;
  }
  for (const RawRecord& record : block.records()) {
    const RecordClass record_class = class_of(record.type);
    if ((ref.kind == BlockRef::Kind::kDefinitions &&
         record_class == RecordClass::kDefinition) ||
        (ref.kind == BlockRef::Kind::kCollector &&
         record_class == RecordClass::kCollector)) {
      loader.add_untrusted(record, ref.place);
    }
    if (ref.kind == BlockRef::Kind::kCollector && record.type == ARCTRACE_TYPE_TOTALS) {
      add_totals_untrusted(record);
    }
    // The collector and other definitions may name writers whose own are not here: they
    // were overwritten, or are in an earlier collector's file.
    if (ref.kind == BlockRef::Kind::kShared) {
      shared_writers.try_emplace(record.writer, tgid_untrusted(record));
    }
  }
  const uint64_t first = block.records().empty() ? 0 : block.records().front().ticks;
  shared.push_back({ref, first});
  return absl::OkStatus();
}

// Of several, as later ones of a file are, the last counts.
void Trace::Impl::add_totals_untrusted(const RawRecord& record) {
  BodyReader body(record.body);
  written[record.writer] = body.u64();
  if (record.writer != ARCTRACE_WRITER_COLLECTOR) return;
  for (uint64_t& lost : lost_total) lost = body.u64();
}

// Where old blocks are overwritten, what was counted and is not there is overwritten; so
// are LOST records.
void Trace::Impl::settle_totals(const Emitter& emitter) {
  if (session.mode != ARCTRACE_MODE_OVERWRITE) return;
  const auto missing = [](uint64_t counted, uint64_t found) {
    return counted > found ? counted - found : 0;
  };
  for (const auto& [writer, count] : written) {
    if (writer == ARCTRACE_WRITER_COLLECTOR) {
      summary.overwritten =
          missing(count, summary.records + summary.torn + summary.unfinished);
      continue;
    }
    const ThreadIndex thread = definitions.find_thread(writer);
    if (thread >= summary.overwritten_by_thread.size()) continue;
    summary.overwritten_by_thread[thread] = missing(
        count, summary.records_by_thread[thread] + emitter.in_progress_of(thread));
  }
  for (size_t cause = 0; cause < lost_total.size(); ++cause) {
    const uint64_t more = missing(lost_total[cause], summary.lost_by_cause[cause]);
    summary.lost_by_cause[cause] += more;
    summary.lost += more;
  }
}

void Trace::Impl::group_exclusive(const std::vector<BlockRef>& blocks) {
  absl::flat_hash_map<uint32_t, size_t> place_of;  // writer -> index into `exclusive`
  for (const BlockRef& block : blocks) {
    if (block.kind != BlockRef::Kind::kExclusive) continue;
    const auto [place, is_new] = place_of.try_emplace(block.writer, exclusive.size());
    if (is_new) exclusive.emplace_back();
    exclusive[place->second].push_back(block);
  }
  for (std::vector<BlockRef>& list : exclusive) {
    std::sort(list.begin(), list.end(), [](const BlockRef& a, const BlockRef& b) {
      return std::tie(a.serial, a.handout) < std::tie(b.serial, b.handout);
    });
    check_serials(list);
  }
}

// Blocks are missing for good reasons where old ones are overwritten, or in what is left
// in a buffer or in a file that was cut off.
void Trace::Impl::check_serials(std::span<const BlockRef> blocks) {
  const bool may_have_gaps =
      session.raw || !session.finished || session.mode == ARCTRACE_MODE_OVERWRITE;
  uint64_t expected = session.resumed ? blocks.front().serial : 0;
  for (const BlockRef& block : blocks) {
    if (block.serial < expected || (block.serial > expected && !may_have_gaps)) {
      findings.add(Rule::kBlockSerial,
                   absl::StrCat("writer ", block.writer, ": serial ", block.serial,
                                " where ", expected, " should be"),
                   block.place);
    }
    expected = block.serial + 1;
  }
}

void Trace::Impl::check_end(const BlockIndex& index) {
  if (session.raw) return;
  if (!session.finished) {
    findings.add(Rule::kFileFinished, "the file was cut off; it is good up to there");
  } else if (index.blocks.back().kind != BlockRef::Kind::kCollector) {
    findings.add(Rule::kBehindFinished, "a block", index.blocks.back().place);
  }
}

void Trace::Impl::add_unknown_writers() {
  const auto report = [&](uint32_t writer, uint64_t place) {
    findings.add(Rule::kRecordWriter, absl::StrCat("writer ", writer), place);
  };
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const BlockRef& block = blocks.front();
    if (definitions.find_thread(block.writer) != kNoIndex) continue;
    report(block.writer, block.place);
    add_unknown_process(block);
    Thread thread;
    thread.writer = block.writer;
    thread.process = definitions.find_process(block.process);
    thread.tid = block.tid;
    thread.start_ns = clock.to_ns(block.base_ticks);
    definitions.add_thread(std::move(thread));
  }
  for (const auto& [writer, tgid] : shared_writers) {
    if (definitions.find_thread(writer) != kNoIndex) continue;
    Thread thread;
    thread.writer = writer;
    if (thread.of_kernel()) {
      thread.tid = writer & ~ARCTRACE_WRITER_KERNEL;
      thread.tgid = tgid;
    } else {
      report(writer, 0);
    }
    definitions.add_thread(std::move(thread));
  }
}

void Trace::Impl::add_unknown_process(const BlockRef& block) {
  if (block.process == 0 || definitions.find_process(block.process) != kNoIndex) return;
  findings.add(Rule::kDefinitionProcess, absl::StrCat("process ", block.process),
               block.place);
  Process process;
  process.id = block.process;
  process.pid = block.pid;
  definitions.add_process(std::move(process));
}

// In a buffer, a writer lives if it holds a slot.
void Trace::Impl::add_slot_fates() {
  for (const Thread& thread : definitions.threads()) {
    fates[thread.writer] = WriterFate::kDead;
  }
  for (const BufferState::Slot& slot : buffer.slots) {
    if (slot.alive) fates[slot.writer] = WriterFate::kAlive;
    if (slot.writer != 0) written[slot.writer] = slot.written;
    written[ARCTRACE_WRITER_COLLECTOR] += slot.written_all;
    for (size_t cause = 0; cause < lost_total.size(); ++cause) {
      lost_total[cause] += slot.lost[cause];
    }
  }
  for (size_t cause = 0; cause < lost_total.size(); ++cause) {
    lost_total[cause] += buffer.session_lost[cause];
  }
}

absl::Status Trace::Impl::read(const RecordSink& sink) {
  findings.forget(opened);
  Emitter emitter(clock, definitions, fates, findings, sink);
  std::vector<std::unique_ptr<RecordSource>> sources;
  sources.reserve(exclusive.size() + shared.size());
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const uint32_t writer = blocks.front().writer;
    sources.push_back(exclusive_source(*input, blocks, definitions.find_thread(writer),
                                       source_order(Rank::kExclusive, writer), findings));
  }
  for (const SharedRef& ref : shared) {
    const bool is_data = ref.block.kind == BlockRef::Kind::kShared;
    sources.push_back(shared_source(
        *input, ref.block,
        ref.block.of_kernel() ? clock.to_ticks(ref.first_ticks) : ref.first_ticks,
        is_data ? source_order(Rank::kShared, ref.block.handout)
                : source_order(Rank::kDefinitions, ref.block.place),
        clock, session.mode == ARCTRACE_MODE_OVERWRITE, findings));
  }
  if (absl::Status status = merge(std::move(sources), emitter); !status.ok()) {
    return status;
  }
  bool more = !emitter.stopped();
  for (const BufferState::Slot& slot : buffer.slots) {
    more = more && emit_residual(emitter, slot.lost, slot.reported, slot.writer, 0);
  }
  const std::array<uint64_t, ARCTRACE_LOST_CAUSES> nothing{};
  if (more) {
    emit_residual(emitter, buffer.session_lost, nothing, ARCTRACE_WRITER_COLLECTOR,
                  ARCTRACE_LOST_SESSION);
  }
  summary = emitter.summary();
  settle_totals(emitter);
  summary.findings = findings.count();
  return absl::OkStatus();
}

// What a buffer's counters know and no LOST record says: as the collector would have.
bool Trace::Impl::emit_residual(Emitter& emitter, std::span<const uint64_t> lost,
                                std::span<const uint64_t> reported, uint32_t writer,
                                uint32_t flags) {
  BlockRef nowhere;
  nowhere.kind = BlockRef::Kind::kCollector;
  nowhere.place = geometry.block_count;
  for (uint32_t cause = 0; cause < lost.size(); ++cause) {
    if (lost[cause] <= reported[cause]) continue;
    struct {
      uint32_t cause, flags;
      uint64_t count, since_ticks;
    } const body{cause, flags | ARCTRACE_LOST_RESIDUAL, lost[cause] - reported[cause], 0};
    RawRecord record;
    record.ticks = session.start_ticks;  // the emitter makes it no earlier than the last
    record.writer = writer;
    record.type = ARCTRACE_TYPE_LOST;
    record.body = std::as_bytes(std::span(&body, 1));
    if (!emitter.emit(record, emitter.thread_of(writer), nowhere, false)) return false;
  }
  return true;
}

absl::StatusOr<Trace> Trace::open(const std::string& path, OpenOptions options) {
  absl::StatusOr<std::unique_ptr<Input>> input = open_file(path);
  if (!input.ok()) return input.status();
  return open(*std::move(input), options);
}

absl::StatusOr<Trace> Trace::open(std::unique_ptr<Input> input, OpenOptions options) {
  absl::StatusOr<SessionHeader> header = read_session_header_untrusted(*input);
  if (!header.ok()) return header.status();
  auto impl =
      std::make_unique<Impl>(std::move(input), *std::move(header), options.max_findings);
  if (absl::Status status = impl->load(); !status.ok()) return status;
  return Trace(std::move(impl));
}

Trace::Trace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trace::Trace(Trace&&) noexcept = default;
Trace& Trace::operator=(Trace&&) noexcept = default;
Trace::~Trace() = default;

const Session& Trace::session() const { return impl_->session; }
const Definitions& Trace::definitions() const { return impl_->definitions; }
const ClockMap& Trace::clock() const { return impl_->clock; }
const BufferState* Trace::buffer() const {
  return impl_->session.raw ? &impl_->buffer : nullptr;
}
absl::Status Trace::read(const RecordSink& sink) { return impl_->read(sink); }
const Summary& Trace::summary() const { return impl_->summary; }
std::span<const Finding> Trace::findings() const { return impl_->findings.kept(); }
uint64_t Trace::finding_count() const { return impl_->findings.count(); }
void Trace::add_finding(Finding finding) { add_findings({&finding, 1}, 1); }
void Trace::add_findings(std::span<const Finding> kept, uint64_t count) {
  impl_->findings.add_all(kept, count);
  impl_->summary.findings = impl_->findings.count();
}

}  // namespace arctrace::reader
