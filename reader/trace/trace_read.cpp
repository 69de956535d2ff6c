// Which blocks a reader of a trace, or of a range of it, needs, and their records in
// order of time.
#include <algorithm>

#include "reader/trace/buffer_slots.hpp"
#include "reader/trace/exclusive_source.hpp"
#include "reader/trace/shared_source.hpp"
#include "reader/trace/trace_impl.hpp"

namespace arctrace::reader {
namespace {

// The order of records of one moment: definitions before what uses them, what was
// interrupted before what interrupted it.
enum class Rank : uint64_t { kDefinitions, kExclusive, kShared };

uint64_t source_order(Rank rank, uint64_t within) {
  return static_cast<uint64_t>(rank) << 62 | (within & (~0ull >> 2));
}

}  // namespace

absl::Status Trace::Impl::plan_range() {
  if (range.is_all()) return absl::OkStatus();
  absl::StatusOr<ReadPlan> made = ReadPlan::make(
      {*input, clock, definitions, exclusive, shared_writers, listed, lists}, range);
  if (!made.ok()) return made.status();
  plan = *std::move(made);
  return verify_planned();
}

// Of each thread the first block, by which it is known, those that will be read, and
// those that should be by their time, wherever their serials put them. Of the shared
// blocks those that will be read.
absl::Status Trace::Impl::verify_planned() {
  for (const SharedRef& ref : shared) {
    if (ref.list == SIZE_MAX || is_passed_over(ref)) continue;
    const absl::StatusOr<bool> agrees = agrees_with_index(ref.block);
    if (!agrees.ok() || !*agrees) return agrees.status();
  }
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const ThreadIndex thread = definitions.find_thread(blocks.front().writer);
    const SkippedBlocks& skipped = plan.skipped(thread);
    const uint64_t from_ticks = skipped.is_any() ? skipped.until.ticks : 0;
    bool is_past = false;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const int64_t first_ns = clock.to_ns(blocks[i].base_ticks);
      const bool begins_after =
          first_ns >= range.until_ns && !plan.is_needed_after(thread, first_ns);
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
    if (!is_passed_over(ref)) bytes += ref.block.size - ref.block.records_offset();
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

// The first block that is there of those in which threads write together.
const Trace::Impl::SharedRef* Trace::Impl::oldest_of_chain() const {
  const SharedRef* oldest = nullptr;
  for (const SharedRef& ref : shared) {
    if (ref.block.kind != BlockRef::Kind::kShared || ref.block.of_kernel()) continue;
    if (oldest == nullptr || ref.block.handout < oldest->block.handout) oldest = &ref;
  }
  return oldest;
}

// Whether another collector may have taken a block, or a newer one its room. The first
// handouts of a session give its blocks one after the other.
bool Trace::Impl::lacks_blocks() const {
  std::vector<uint64_t> handouts;
  for (const SharedRef& ref : shared) handouts.push_back(ref.block.handout);
  for (const std::vector<BlockRef>& blocks : exclusive) {
    for (const BlockRef& block : blocks) handouts.push_back(block.handout);
  }
  std::sort(handouts.begin(), handouts.end());
  handouts.erase(std::unique(handouts.begin(), handouts.end()), handouts.end());
  return !handouts.empty() && handouts.back() >= handouts.size();
}

std::vector<std::unique_ptr<RecordSource>> Trace::Impl::open_sources() {
  std::vector<std::unique_ptr<RecordSource>> sources;
  sources.reserve(exclusive.size() + shared.size());
  for (const std::vector<BlockRef>& blocks : exclusive) {
    const uint32_t writer = blocks.front().writer;
    const ThreadIndex thread = definitions.find_thread(writer);
    const SkippedBlocks& skipped = plan.skipped(thread);
    if (skipped.first == 0 && skipped.end == blocks.size()) continue;
    sources.push_back(exclusive_source(*input, blocks, thread, skipped,
                                       source_order(Rank::kExclusive, writer), findings));
  }
  const bool is_overwritten = session.mode == ARCTRACE_MODE_OVERWRITE;
  const SharedRef* oldest = oldest_of_chain();
  for (const SharedRef& ref : shared) {
    if (is_passed_over(ref)) continue;
    const bool is_data = ref.block.kind == BlockRef::Kind::kShared;
    const bool is_oldest = &ref == oldest;
    sources.push_back(shared_source(
        *input, ref.block,
        ref.block.of_kernel() ? clock.to_ticks(ref.first_ticks) : ref.first_ticks,
        is_data ? source_order(Rank::kShared, ref.block.handout)
                : source_order(Rank::kDefinitions, ref.block.chunk),
        clock,
        !is_overwritten ? ChainGaps::kNone
        : is_oldest     ? ChainGaps::kBefore
                        : ChainGaps::kAnywhere,
        findings));
  }
  return sources;
}

absl::Status Trace::Impl::read(const RecordSink& sink) {
  findings.forget(opened);
  Emitter emitter(clock, definitions, fates, findings, sink, range, plan);
  if (absl::Status status = merge(open_sources(), emitter); !status.ok()) return status;
  if (!emitter.stopped()) {
    emit_unreported_losses(buffer, session, geometry.block_count, emitter);
  }
  summary = emitter.summary();
  // Those whose definitions did not fit are processes and threads too.
  summary.processes = std::max<uint64_t>(summary.processes, session.processes);
  summary.threads = std::max<uint64_t>(summary.threads, session.threads);
  // What the rest has is not missing.
  if (range.is_all() && !emitter.stopped()) {
    const bool is_in_part_elsewhere = session.resumed && lacks_blocks();
    totals.settle(session, definitions, fates, emitter, is_in_part_elsewhere, summary,
                  findings);
  }
  summary.filtered_out = totals.filtered_out();
  file_totals.settle(definitions.missing_files(), range, summary);
  summary.findings = findings.count();
  return absl::OkStatus();
}

}  // namespace arctrace::reader
