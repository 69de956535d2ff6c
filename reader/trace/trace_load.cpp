// Loads the facts that are needed before a trace's records are read: its blocks,
// definitions and writers.
#include <algorithm>
#include <utility>

#include "reader/trace/block_writers.hpp"
#include "reader/trace/buffer_state.hpp"
#include "reader/trace/file_blocks.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/shared_block.hpp"
#include "reader/trace/stored_symbols.hpp"
#include "reader/trace/totals.hpp"
#include "reader/trace/trace_files.hpp"
#include "reader/trace/trace_impl.hpp"
#include "src/protocol/block_writers.hpp"

namespace arctrace::reader {

Trace::Impl::Impl(std::vector<std::unique_ptr<Input>> inputs, SessionHeader header,
                  const OpenOptions& options)
    : parts(std::move(inputs)),
      joined(parts.size() > 1 ? join_inputs(parts) : nullptr),
      input(joined != nullptr ? joined.get() : parts.front().get()),
      session(std::move(header.session)),
      geometry(header.geometry),
      clock({session.start_ticks, session.start_monotonic_ns, session.start_realtime_ns},
            session.ticks_per_second),
      findings(options.max_findings),
      verifies_checksums(options.verifies_checksums),
      // The totals of a buffer or a flight recorder are about all of its records.
      range(session.raw || session.mode == ARCTRACE_MODE_OVERWRITE ? TimeRange{}
                                                                   : options.range),
      live(options.live) {
  session.size_bytes = input->size();
}

absl::Status Trace::Impl::load(bool uses_index) {
  const absl::StatusOr<BlockIndex> index = find_blocks(uses_index);
  if (!index.ok()) return index.status();
  for (const BufferState::Slot& slot : buffer.slots) {
    session.may_lack_definitions |= slot.lost[ARCTRACE_LOST_DEFINITIONS] != 0;
  }
  DefinitionsLoader loader;
  absl::Status loaded = load_full_blocks(*index, loader);
  if (!loaded.ok() || wrong_index.has_value()) return loaded;
  if (session.raw) {
    if (absl::Status status = load_control_events(loader); !status.ok()) return status;
  }
  loader.build(session, clock, definitions, fates, findings);
  for (const BlockRef& block : index->blocks) {
    if (block.kind != BlockRef::Kind::kExclusive) continue;
    file_totals.add_block(block.chunk, block.base_ticks);
  }
  for (const SharedRef& ref : shared) {
    if (ref.block.kind != BlockRef::Kind::kShared || ref.block.of_kernel()) continue;
    file_totals.add_block(ref.block.chunk, ref.first_ticks);
  }
  session.files.given = parts.size();
  file_totals.describe(session.files);
  definitions.set_missing_files(file_totals.missing(clock));
  if (absl::Status status = load_symbols(index->symbols); !status.ok()) return status;
  end = {index->end, index->next_sequence};
  // The last file says that the recording finished, but an earlier one is cut off.
  if (index->lacks_middle) session.finished = false;
  check_end(*index);
  exclusive = group_exclusive(index->blocks);
  for (const std::vector<BlockRef>& blocks : exclusive) {
    check_serials(blocks, session, findings);
  }
  all_blocks = index->blocks;
  add_unknown_writers(exclusive, shared_writers, session, clock, definitions, findings);
  if (session.raw) {
    resolve_by_slots(buffer, session, definitions, fates);
    totals.add_slots(buffer);
  }
  drop_reported_calls(totals, definitions);
  if (session.mode == ARCTRACE_MODE_OVERWRITE) note_overwritten();
  if (live.has_value()) {
    note_live_kernel_gaps();
  } else {
    note_kernel_gaps(index->lacks_middle);
  }
  opened = findings.mark();
  return plan_range();
}

// Finds the blocks; indices are used only if a range will be read: else they save
// nothing.
absl::StatusOr<BlockIndex> Trace::Impl::find_blocks(bool uses_index) {
  if (session.raw) return index_buffer_untrusted(*input, geometry, findings, buffer);
  absl::StatusOr<FileBlocks> found =
      FileBlocks::find_untrusted(parts, geometry,
                                 {.verifies_checksums = verifies_checksums,
                                  .uses_index = uses_index && !range.is_all()},
                                 findings);
  if (!found.ok()) return found.status();
  file_blocks = *std::move(found);
  return file_blocks.index();
}

// Loads the blocks in which several write, and the collector's. If the writers of a block
// are listed, none of its records need be read. Stops at the first block that does not
// agree with its index.
absl::Status Trace::Impl::load_full_blocks(const BlockIndex& index,
                                           DefinitionsLoader& loader) {
  for (const BlockRef& block : index.blocks) {
    if (block.kind == BlockRef::Kind::kExclusive) continue;
    if (const auto writers = file_blocks.writers_of(block); writers.has_value()) {
      add_listed(block, *writers);
      continue;
    }
    const absl::StatusOr<bool> agrees = agrees_with_index(block);
    if (!agrees.ok() || !*agrees) return agrees.status();
    if (absl::Status status = load_shared(block, loader); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Whether the block is as its file's index says, if that was used.
absl::StatusOr<bool> Trace::Impl::agrees_with_index(const BlockRef& block) {
  if (session.raw) return true;
  absl::StatusOr<bool> agrees = file_blocks.agrees_untrusted(block, geometry);
  if (agrees.ok() && !*agrees) wrong_index = index_finding(block);
  return agrees;
}

void Trace::Impl::add_listed(const BlockRef& block, const FileBlocks::Listed& writers) {
  uint64_t first_ticks = UINT64_MAX;
  for (const arctrace_block_writer& writer : writers.writers) {
    shared_writers.add(writer.writer, writer.first_ticks);
    first_ticks = std::min(first_ticks, writer.first_ticks);
  }
  if (first_ticks == UINT64_MAX) first_ticks = 0;
  shared.push_back({block, first_ticks, listed.size()});
  listed.push_back(block);
  lists.add(writers.last_ticks, writers.writers);
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

// Loads the control events that the recorder of a file writes, from a buffer's control
// page.
absl::Status Trace::Impl::load_control_events(DefinitionsLoader& loader) {
  absl::StatusOr<std::vector<std::byte>> records =
      records_of_control_events_untrusted(*input, geometry);
  if (!records.ok()) return records.status();
  BlockRef ref;
  ref.kind = BlockRef::Kind::kCollector;
  ref.chunk = geometry.block_count;
  ref.offset = kAppendedOffset;
  ref.size = static_cast<uint32_t>(records->size());
  if (ref.size == 0) return absl::OkStatus();
  parts.front() = append_to_input(std::move(parts.front()), *std::move(records));
  input = parts.front().get();
  return load_shared(ref, loader);
}

// Notes what is missing at the beginning of a thread, of the chain or of a CPU, so that
// readers know it before they come to the first record.
void Trace::Impl::note_overwritten() {
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const BlockRef& first = blocks.front();
    Thread* thread = definitions.mutable_thread(definitions.find_thread(first.writer));
    const auto in_shared = shared_writers.all().find(first.writer);
    const bool is_later = in_shared == shared_writers.all().end() ||
                          in_shared->second.first_ticks >= first.base_ticks;
    if (thread == nullptr || first.serial == 0 || !is_later) continue;
    thread->overwritten_until_ns = clock.to_ns(first.base_ticks);
  }
  if (lacks_blocks()) {
    const SharedRef* oldest = oldest_of_chain();
    definitions.set_chain_begin(oldest == nullptr ? INT64_MAX
                                                  : clock.to_ns(oldest->first_ticks));
  }
  definitions.set_kernel_begins(kernel_blocks.find_begins(all_blocks, clock));
}

// The end of the present records is no gap: the next records are read next.
void Trace::Impl::note_live_kernel_gaps() {
  KernelGaps& gaps = definitions.mutable_kernel_gaps();
  for (const BufferState::CpuLoss& loss : live->cpu_losses) {
    gaps.add(clock.to_ns(clock.to_ticks(loss.since_monotonic_ns)), INT64_MAX, loss.cpu);
  }
  if (!live->has_writer) gaps.add(kernel_blocks.last_ns(clock), INT64_MAX, kCpuNotKnown);
  if (live->missed_ticks != UINT64_MAX) {
    gaps.add(clock.to_ns(live->missed_ticks), INT64_MAX, kCpuNotKnown);
  }
  gaps.finish();
}

// Notes the gaps in the kernel's records that ENABLED and LOST do not tell; the loader
// has added those.
void Trace::Impl::note_kernel_gaps(bool lacks_middle) {
  KernelGaps& gaps = definitions.mutable_kernel_gaps();
  const bool is_recorded_on = totals.written_by(ARCTRACE_WRITER_COLLECTOR).has_value();
  const bool is_cut = !session.raw && (!session.finished || !is_recorded_on);
  if (session.begins_elsewhere) gaps.add(INT64_MIN, session.started_ns, kCpuNotKnown);
  if (is_cut || session.begins_elsewhere || lacks_middle ||
      session.mode == ARCTRACE_MODE_OVERWRITE) {
    kernel_blocks.add_missing(all_blocks, clock, gaps);
  }
  if (is_cut) {
    kernel_blocks.add_ends(std::min(session.cpus_online, session.cpu_count), clock, gaps);
  }
  // A copy is made block by block, while records are written.
  const bool is_copy = session.copied_ns != INT64_MIN;
  if (is_copy) gaps.add(session.copied_ns, INT64_MAX, kCpuNotKnown);
  // The kernel's programs do not outlive their recorder.
  const bool is_recovered =
      is_copy && !session.begins_elsewhere && session.mode != ARCTRACE_MODE_OVERWRITE;
  if (is_recovered || (session.raw && !buffer.collector_alive)) {
    gaps.add(kernel_blocks.last_ns(clock), INT64_MAX, kCpuNotKnown);
  }
  for (const MissingFiles& files : definitions.missing_files()) {
    if (files.kernel_records != 0) gaps.add(files.from_ns, files.to_ns, kCpuNotKnown);
  }
  for (const BufferState::CpuLoss& loss : buffer.cpu_losses) {
    gaps.add(clock.to_ns(clock.to_ticks(loss.since_monotonic_ns)), INT64_MAX, loss.cpu);
  }
  gaps.finish();
}

// Reads the facts that are needed before the merge. The findings of the block come when
// it is read in the merge.
absl::Status Trace::Impl::load_shared(const BlockRef& ref, DefinitionsLoader& loader) {
  FindingLog unused(0);
  SharedBlock block;
  if (absl::Status status = block.load_untrusted(*input, ref, unused); !status.ok()) {
    return status;
  }
  if (ref.of_kernel()) kernel_blocks.add_untrusted(ref, block.records());
  const bool is_to_list = !range.is_all() && WriterLists::lists(ref);
  BlockWriters writers;
  for (const RawRecord& record : block.records()) {
    if (is_to_list) {
      writers.add_untrusted(record.writer, record.ticks, record.type, record.body);
    }
    load_record(record, ref, loader);
  }
  const uint64_t first = block.records().empty() ? 0 : block.records().front().ticks;
  shared.push_back({ref, first});
  if (is_to_list) {
    shared.back().list = listed.size();
    listed.push_back(ref);
    lists.add(writers.last_ticks(), writers.sorted());
  }
  return absl::OkStatus();
}

void Trace::Impl::load_record(const RawRecord& record, const BlockRef& ref,
                              DefinitionsLoader& loader) {
  const RecordClass record_class = class_of(record.type);
  if ((ref.kind == BlockRef::Kind::kDefinitions &&
       record_class == RecordClass::kDefinition) ||
      (ref.kind == BlockRef::Kind::kCollector &&
       (record_class == RecordClass::kCollector || record.type == ARCTRACE_TYPE_THREAD ||
        record.type == ARCTRACE_TYPE_LOST))) {
    loader.add_untrusted(record, ref.chunk);
  }
  if (ref.kind == BlockRef::Kind::kCollector && record.type == ARCTRACE_TYPE_TOTALS) {
    totals.add_untrusted(record);
  }
  if (ref.kind == BlockRef::Kind::kCollector && record.type == ARCTRACE_TYPE_FILES) {
    file_totals.add_untrusted(record, ref.chunk);
  }
  // Writers in definitions, and in the collector's records, do not count: these may name
  // writers whose own definitions were overwritten, or are in an earlier collector's
  // file.
  if (ref.kind != BlockRef::Kind::kShared) return;
  shared_writers.add_untrusted(record, ref);
  if (record.type == ARCTRACE_TYPE_EXECED) {
    loader.add_kernel_exec(record.writer & ~ARCTRACE_WRITER_KERNEL, record.ticks);
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

}  // namespace arctrace::reader
