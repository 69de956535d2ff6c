#include "reader/trace/trace.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "reader/trace/block_index.hpp"
#include "reader/trace/buffer_moments.hpp"
#include "reader/trace/definitions_loader.hpp"
#include "reader/trace/emitter.hpp"
#include "reader/trace/exclusive_source.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/index_buffer.hpp"
#include "reader/trace/index_chunk.hpp"
#include "reader/trace/index_file.hpp"
#include "reader/trace/joined_files.hpp"
#include "reader/trace/merge.hpp"
#include "reader/trace/read_plan.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/session_header.hpp"
#include "reader/trace/shared_block.hpp"
#include "reader/trace/shared_source.hpp"
#include "reader/trace/shared_writers.hpp"
#include "reader/trace/stored_symbols.hpp"
#include "reader/trace/writer_fates.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

// The order of records of one moment: definitions before what uses them, what was
// interrupted before what interrupted it.
enum class Rank : uint64_t { kDefinitions, kExclusive, kShared };

uint64_t source_order(Rank rank, uint64_t within) {
  return static_cast<uint64_t>(rank) << 62 | (within & (~0ull >> 2));
}

}  // namespace

struct Trace::Impl {
  struct SharedRef {
    BlockRef block;
    uint64_t first_ticks;
  };

  Impl(std::unique_ptr<Input> from, SessionHeader header, const OpenOptions& options)
      : input(std::move(from)),
        session(std::move(header.session)),
        geometry(header.geometry),
        clock(
            {session.start_ticks, session.start_monotonic_ns, session.start_realtime_ns},
            session.ticks_per_second),
        findings(options.max_findings),
        verifies_checksums(options.verifies_checksums),
        // The totals of a buffer or a flight recorder are about all of its records.
        range(session.raw || session.mode == ARCTRACE_MODE_OVERWRITE ? TimeRange{}
                                                                     : options.range) {}

  absl::Status load();
  absl::StatusOr<BlockIndex> index_files();
  absl::StatusOr<BlockIndex> index_one_file();
  absl::StatusOr<bool> agrees_with_index(const BlockRef& block);
  absl::Status load_shared(const BlockRef& block, DefinitionsLoader& loader);
  absl::Status load_moments(DefinitionsLoader& loader);
  absl::Status load_symbols(std::span<const SymbolsRef> chunks);
  void group_exclusive(const std::vector<BlockRef>& blocks);
  void check_serials(std::span<const BlockRef> blocks);
  void check_end(const BlockIndex& index);
  void add_unknown_writers();
  void add_unknown_process(const BlockRef& block);
  void add_slot_fates();
  void drop_reported_calls();
  absl::Status plan_range();
  absl::Status verify_planned();
  absl::Status read(const RecordSink& sink);
  uint64_t bytes_to_read() const;
  void add_totals_untrusted(const RawRecord& record);
  void settle_totals(const Emitter& emitter);
  void check_totals(const Emitter& emitter);
  bool emit_residual(Emitter& emitter, std::span<const uint64_t> lost,
                     std::span<const uint64_t> reported, uint32_t writer, uint32_t flags);

  std::unique_ptr<Input> input;
  std::vector<std::unique_ptr<Input>> parts;  // before load(): what `input` shall be
  Session session;
  Geometry geometry;
  ClockMap clock;
  FindingLog findings;
  const bool verifies_checksums;
  const TimeRange range;  // what read() reads
  ReadPlan plan;
  bool is_from_index = false;          // where the blocks are
  std::optional<Finding> wrong_index;  // what load() found: it must be done without
  FindingLog::Mark opened;             // after the findings of load()
  BufferState buffer;
  Definitions definitions;
  WriterFates fates;
  std::vector<BlockRef> all_blocks;
  End end;
  std::vector<std::vector<BlockRef>> exclusive;  // by writer, each sorted by serial
  std::vector<SharedRef> shared;                 // of full form
  SharedWriters shared_writers;                  // of records in `shared`
  // What TOTALS records or a buffer's slots count, by writer; 0: in the whole session.
  absl::flat_hash_map<uint32_t, uint64_t> written;
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost_total{};
  Summary summary;
};

absl::Status Trace::Impl::load() {
  const absl::StatusOr<BlockIndex> index =
      session.raw ? index_buffer_untrusted(*input, geometry, findings, buffer)
                  : index_files();
  if (!index.ok()) return index.status();
  for (const BufferState::Slot& slot : buffer.slots) {
    session.may_lack_definitions |= slot.lost[ARCTRACE_LOST_DEFINITIONS] != 0;
  }
  DefinitionsLoader loader;
  for (const BlockRef& block : index->blocks) {
    if (block.kind == BlockRef::Kind::kExclusive) continue;
    const absl::StatusOr<bool> agrees = agrees_with_index(block);
    if (!agrees.ok() || !*agrees) return agrees.status();
    if (absl::Status status = load_shared(block, loader); !status.ok()) return status;
  }
  if (session.raw) {
    if (absl::Status status = load_moments(loader); !status.ok()) return status;
  }
  loader.build(session, clock, definitions, fates, findings);
  if (absl::Status status = load_symbols(index->symbols); !status.ok()) return status;
  end = {index->end, index->next_sequence};
  // The last file says that the recording finished, and an earlier one is cut off.
  if (index->lacks_middle) session.finished = false;
  check_end(*index);
  group_exclusive(index->blocks);
  all_blocks = index->blocks;
  add_unknown_writers();
  if (session.raw) {
    add_slot_fates();
    // The lock on the memory is the collector's.
    if (!buffer.collector_alive) session.pinned_bytes = 0;
    session.processes = buffer.processes;
    session.threads = buffer.threads;
  }
  drop_reported_calls();
  opened = findings.mark();
  return plan_range();
}

absl::StatusOr<BlockIndex> Trace::Impl::index_files() {
  if (parts.empty()) return index_one_file();
  absl::StatusOr<BlockIndex> index = index_parts_untrusted(
      parts, geometry, findings, verifies_checksums && session.has_checksums);
  input = join_inputs(std::exchange(parts, {}));
  session.size_bytes = input->size();
  return index;
}

// By its index, if only a range will be read. Else that saves nothing.
absl::StatusOr<BlockIndex> Trace::Impl::index_one_file() {
  const FileIndexPlace place{session.index_offset, session.has_checksums};
  if (place.offset != 0 && !range.is_all() && !verifies_checksums) {
    absl::StatusOr<std::optional<BlockIndex>> found =
        read_index_untrusted(*input, place, geometry, findings);
    if (!found.ok()) return found.status();
    is_from_index = found->has_value();
    if (is_from_index) return **std::move(found);
  }
  absl::StatusOr<BlockIndex> walked = index_file_untrusted(
      *input, geometry, findings, verifies_checksums && session.has_checksums);
  if (!walked.ok() || !verifies_checksums || place.offset == 0) return walked;
  const absl::Status checked =
      check_index_untrusted(*input, place, geometry, *walked, findings);
  if (!checked.ok()) return checked;
  return walked;
}

// Whether the block is what the file's index says of it.
absl::StatusOr<bool> Trace::Impl::agrees_with_index(const BlockRef& block) {
  if (!is_from_index) return true;
  absl::StatusOr<bool> agrees = is_as_indexed_untrusted(*input, block, geometry);
  if (agrees.ok() && !*agrees) wrong_index = index_finding(block);
  return agrees;
}

absl::Status Trace::Impl::load_symbols(std::span<const SymbolsRef> chunks) {
  std::vector<std::byte> payload;
  size_t all = 0;
  for (const SymbolsRef& chunk : chunks) {
    if (chunk.size > StoredSymbols::kBytesMax - all) {
      findings.add(Rule::kSymbolsChunk, "there are too many bytes in all", chunk.chunk);
      break;
    }
    all += chunk.size;
    payload.resize(chunk.size);
    const absl::StatusOr<size_t> read = input->read(chunk.offset, payload);
    if (!read.ok()) return read.status();
    payload.resize(*read);
    if (!definitions.mutable_symbols().add_untrusted(payload)) {
      findings.add(Rule::kSymbolsChunk, "it ends inside an entry", chunk.chunk);
    }
  }
  return absl::OkStatus();
}

// What the recorder of a file writes, from a buffer's control page.
absl::Status Trace::Impl::load_moments(DefinitionsLoader& loader) {
  absl::StatusOr<std::vector<std::byte>> records =
      records_of_moments_untrusted(*input, geometry);
  if (!records.ok()) return records.status();
  BlockRef ref;
  ref.kind = BlockRef::Kind::kCollector;
  ref.chunk = geometry.block_count;
  ref.offset = kAppendedOffset;
  ref.size = static_cast<uint32_t>(records->size());
  if (ref.size == 0) return absl::OkStatus();
  input = append_to_input(std::move(input), *std::move(records));
  return load_shared(ref, loader);
}

// A thread that has written records since a call began to wait has reported or left the
// call: what a copy of the buffer has of it is older than that.
void Trace::Impl::drop_reported_calls() {
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    const auto counted = written.find(thread.writer);
    if (counted == written.end() || counted->second != thread.waiting_since_written) {
      thread.waiting.clear();
    }
  }
}

// Reads what must be known before the merge. The findings of the block come when it is
// read in the merge.
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
      loader.add_untrusted(record, ref.chunk);
    }
    if (ref.kind == BlockRef::Kind::kCollector && record.type == ARCTRACE_TYPE_TOTALS) {
      add_totals_untrusted(record);
    }
    // Not in definitions, nor in the collector's records: those may name writers whose
    // own definitions were overwritten, or are in an earlier collector's file.
    if (ref.kind == BlockRef::Kind::kShared) {
      shared_writers.add_untrusted(record, ref);
      if (record.type == ARCTRACE_TYPE_EXECED) {
        loader.add_kernel_exec(record.writer & ~ARCTRACE_WRITER_KERNEL, record.ticks);
      }
    }
  }
  const uint64_t first = block.records().empty() ? 0 : block.records().front().ticks;
  shared.push_back({ref, first});
  return absl::OkStatus();
}

// Of several for one writer the last counts.
void Trace::Impl::add_totals_untrusted(const RawRecord& record) {
  const auto totals = load_part_untrusted<arctrace_totals_body>(record.body);
  written[record.writer] = totals.written;
  if (record.writer != ARCTRACE_WRITER_COLLECTOR) return;
  for (size_t cause = 0; cause < lost_total.size(); ++cause) {
    lost_total[cause] = totals.lost[cause];
  }
}

// In overwrite mode, records that were counted and are not in the trace were overwritten.
// LOST records may have been, too.
void Trace::Impl::settle_totals(const Emitter& emitter) {
  if (session.mode != ARCTRACE_MODE_OVERWRITE) return check_totals(emitter);
  const auto missing = [](uint64_t counted, uint64_t found) {
    return counted > found ? counted - found : 0;
  };
  for (const auto& [writer, count] : written) {
    if (writer == ARCTRACE_WRITER_COLLECTOR) {
      summary.overwritten =
          missing(count, summary.records + summary.torn + summary.unfinished +
                             emitter.user_records_lost_by_file());
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

// Of a file that has the whole session.
void Trace::Impl::check_totals(const Emitter& emitter) {
  const auto counted = written.find(ARCTRACE_WRITER_COLLECTOR);
  if (session.raw || session.resumed || !session.finished || counted == written.end()) {
    return;
  }
  const auto died = static_cast<uint64_t>(
      std::count_if(fates.begin(), fates.end(),
                    [](const auto& fate) { return fate.second == WriterFate::kDead; }));
  const uint64_t found = summary.records + summary.torn + summary.unfinished +
                         emitter.user_records_lost_by_file() + died;
  if (found >= counted->second) return;
  findings.add(Rule::kTotals, absl::StrCat(counted->second, " counted, ",
                                           counted->second - found, " missing"));
}

void Trace::Impl::group_exclusive(const std::vector<BlockRef>& blocks) {
  absl::flat_hash_map<uint32_t, size_t> index_of;  // writer -> index into `exclusive`
  for (const BlockRef& block : blocks) {
    if (block.kind != BlockRef::Kind::kExclusive) continue;
    const auto [entry, is_new] = index_of.try_emplace(block.writer, exclusive.size());
    if (is_new) exclusive.emplace_back();
    exclusive[entry->second].push_back(block);
  }
  for (std::vector<BlockRef>& list : exclusive) {
    std::sort(list.begin(), list.end(), [](const BlockRef& a, const BlockRef& b) {
      return std::tie(a.serial, a.handout) < std::tie(b.serial, b.handout);
    });
    check_serials(list);
  }
}

// Missing blocks are no breach in overwrite mode, in a buffer, in a file that was cut
// off, or if another file has them.
void Trace::Impl::check_serials(std::span<const BlockRef> blocks) {
  const bool may_have_gaps = session.raw || !session.finished || session.resumed ||
                             session.mode == ARCTRACE_MODE_OVERWRITE;
  uint64_t expected = session.resumed ? blocks.front().serial : 0;
  for (const BlockRef& block : blocks) {
    if (block.serial < expected || (block.serial > expected && !may_have_gaps)) {
      findings.add(Rule::kBlockSerial,
                   absl::StrCat("writer ", block.writer, ": serial ", block.serial,
                                " where ", expected, " should be"),
                   block.chunk);
    }
    expected = block.serial + 1;
  }
}

void Trace::Impl::check_end(const BlockIndex& index) {
  if (session.raw) return;
  if (!session.finished) {
    findings.add(Rule::kFileFinished, "the file was cut off; it is good up to there");
  } else if (index.blocks.back().kind != BlockRef::Kind::kCollector) {
    findings.add(Rule::kAfterFinished, "a block", index.blocks.back().chunk);
  }
}

void Trace::Impl::add_unknown_writers() {
  const auto report = [&](uint32_t writer, uint64_t chunk) {
    if (session.may_lack_definitions) return;
    findings.add(Rule::kRecordWriter, absl::StrCat("writer ", writer), chunk);
  };
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const BlockRef& block = blocks.front();
    if (definitions.find_thread(block.writer) != kNoIndex) continue;
    report(block.writer, block.chunk);
    add_unknown_process(block);
    Thread thread;
    thread.writer = block.writer;
    thread.process = definitions.find_process(block.process);
    thread.tid = block.tid;
    thread.start_ns = clock.to_ns(block.base_ticks);
    definitions.add_thread(std::move(thread));
  }
  // Sorted, so that threads are numbered alike each time.
  for (const uint32_t writer : shared_writers.sorted()) {
    if (definitions.find_thread(writer) != kNoIndex) continue;
    Thread thread;
    thread.writer = writer;
    if (thread.of_kernel()) {
      thread.tid = writer & ~ARCTRACE_WRITER_KERNEL;
      const SharedFacts& facts = shared_writers.all().at(writer);
      thread.tgid = facts.tgid;
      if (facts.name.has_value()) thread.names.push_back({INT64_MIN, *facts.name});
    } else {
      report(writer, 0);
    }
    definitions.add_thread(std::move(thread));
  }
}

void Trace::Impl::add_unknown_process(const BlockRef& block) {
  if (block.process == 0 || definitions.find_process(block.process) != kNoIndex) return;
  if (!session.may_lack_definitions) {
    findings.add(Rule::kDefinitionProcess, absl::StrCat("process ", block.process),
                 block.chunk);
  }
  Process process;
  process.id = block.process;
  process.pid = block.pid;
  definitions.add_process(std::move(process));
}

// In a buffer, a writer is alive if it holds a slot.
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
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    Thread& thread = *definitions.mutable_thread(i);
    thread.ended_unseen =
        !thread.of_kernel() && fates[thread.writer] == WriterFate::kDead;
  }
}

absl::Status Trace::Impl::plan_range() {
  if (range.is_all()) return absl::OkStatus();
  absl::StatusOr<ReadPlan> made =
      ReadPlan::make({*input, clock, definitions, exclusive, shared_writers}, range);
  if (!made.ok()) return made.status();
  plan = *std::move(made);
  return is_from_index ? verify_planned() : absl::OkStatus();
}

// Of each thread the first block, by which it is known, those that will be read, and
// those that should be by their time, wherever their serials put them.
absl::Status Trace::Impl::verify_planned() {
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const SkippedBlocks& skipped =
        plan.skipped(definitions.find_thread(blocks.front().writer));
    const uint64_t from_ticks =
        skipped.end > skipped.first ? blocks[skipped.end].base_ticks : 0;
    bool is_past = false;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const bool begins_after = clock.to_ns(blocks[i].base_ticks) >= range.until_ns;
      const bool is_read = i == 0 || i < skipped.first || (i >= skipped.end && !is_past);
      // After the range its next record is read, which is in its next block.
      is_past |= begins_after && i >= skipped.end;
      const bool is_of_range = !begins_after && blocks[i].base_ticks >= from_ticks;
      if (!is_read && !is_of_range) continue;
      const absl::StatusOr<bool> agrees = agrees_with_index(blocks[i]);
      if (!agrees.ok() || !*agrees) return agrees.status();
    }
  }
  return absl::OkStatus();
}

uint64_t Trace::Impl::bytes_to_read() const {
  uint64_t bytes = 0;
  for (const SharedRef& ref : shared) {
    bytes += ref.block.size - ref.block.records_offset();
  }
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const SkippedBlocks& skipped =
        plan.skipped(definitions.find_thread(blocks.front().writer));
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i >= skipped.first && i < skipped.end) continue;
      if (clock.to_ns(blocks[i].base_ticks) >= range.until_ns) break;
      bytes += blocks[i].size - blocks[i].records_offset();
    }
  }
  return bytes;
}

absl::Status Trace::Impl::read(const RecordSink& sink) {
  findings.forget(opened);
  Emitter emitter(clock, definitions, fates, findings, sink, range, plan);
  std::vector<std::unique_ptr<RecordSource>> sources;
  sources.reserve(exclusive.size() + shared.size());
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const uint32_t writer = blocks.front().writer;
    const ThreadIndex thread = definitions.find_thread(writer);
    sources.push_back(exclusive_source(*input, blocks, thread, plan.skipped(thread),
                                       source_order(Rank::kExclusive, writer), findings));
  }
  for (const SharedRef& ref : shared) {
    const bool is_data = ref.block.kind == BlockRef::Kind::kShared;
    sources.push_back(shared_source(
        *input, ref.block,
        ref.block.of_kernel() ? clock.to_ticks(ref.first_ticks) : ref.first_ticks,
        is_data ? source_order(Rank::kShared, ref.block.handout)
                : source_order(Rank::kDefinitions, ref.block.chunk),
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
  // Those whose definitions did not fit are processes and threads too.
  summary.processes = std::max<uint64_t>(summary.processes, session.processes);
  summary.threads = std::max<uint64_t>(summary.threads, session.threads);
  if (range.is_all()) settle_totals(emitter);
  summary.findings = findings.count();
  return absl::OkStatus();
}

// Emits LOST records, as the collector would have, for the losses that a buffer's
// counters have and no LOST record in it reports.
bool Trace::Impl::emit_residual(Emitter& emitter, std::span<const uint64_t> lost,
                                std::span<const uint64_t> reported, uint32_t writer,
                                uint32_t flags) {
  BlockRef nowhere;
  nowhere.kind = BlockRef::Kind::kCollector;
  nowhere.chunk = geometry.block_count;
  for (uint32_t cause = 0; cause < lost.size(); ++cause) {
    if (lost[cause] <= reported[cause]) continue;
    const arctrace_lost_body body{.cause = cause,
                                  .flags = flags | ARCTRACE_LOST_RESIDUAL,
                                  .count = lost[cause] - reported[cause],
                                  .since_ticks = 0};
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
  auto impl = std::make_unique<Impl>(std::move(input), *header, options);
  if (absl::Status status = impl->load(); !status.ok()) return status;
  if (const std::optional<Finding> wrong = impl->wrong_index) {
    header->session.index_offset = 0;
    impl = std::make_unique<Impl>(std::move(impl->input), *std::move(header), options);
    impl->findings.add(*wrong);
    if (absl::Status status = impl->load(); !status.ok()) return status;
  }
  return Trace(std::move(impl));
}

absl::StatusOr<Trace> Trace::open(const std::vector<std::string>& paths,
                                  OpenOptions options) {
  if (paths.size() == 1) return open(paths.front(), options);
  absl::StatusOr<std::vector<std::unique_ptr<Input>>> parts = open_parts(paths);
  if (!parts.ok()) return parts.status();
  absl::StatusOr<SessionHeader> header = read_session_header_untrusted(*parts->front());
  if (!header.ok()) return header.status();
  auto impl = std::make_unique<Impl>(nullptr, *std::move(header), options);
  impl->parts = *std::move(parts);
  if (absl::Status status = impl->load(); !status.ok()) return status;
  return Trace(std::move(impl));
}

Trace::Trace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trace::Trace(Trace&&) noexcept = default;
Trace& Trace::operator=(Trace&&) noexcept = default;
Trace::~Trace() = default;

const Session& Trace::session() const { return impl_->session; }
const Definitions& Trace::definitions() const { return impl_->definitions; }
std::span<const BlockRef> Trace::blocks() const { return impl_->all_blocks; }
Trace::End Trace::end() const { return impl_->end; }
const ClockMap& Trace::clock() const { return impl_->clock; }
const BufferState* Trace::buffer() const {
  return impl_->session.raw ? &impl_->buffer : nullptr;
}
absl::Status Trace::read(const RecordSink& sink) { return impl_->read(sink); }
uint64_t Trace::bytes_to_read() const { return impl_->bytes_to_read(); }
const Summary& Trace::summary() const { return impl_->summary; }
std::span<const Finding> Trace::findings() const { return impl_->findings.kept(); }
uint64_t Trace::finding_count() const { return impl_->findings.count(); }
void Trace::add_finding(Finding finding) { add_findings({&finding, 1}, 1); }
void Trace::add_findings(std::span<const Finding> kept, uint64_t count) {
  impl_->findings.add_all(kept, count);
  impl_->summary.findings = impl_->findings.count();
}

}  // namespace arctrace::reader
