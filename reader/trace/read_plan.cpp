#include "reader/trace/read_plan.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "reader/trace/block_facts.hpp"

namespace arctrace::reader {
namespace {

class Planner {
 public:
  Planner(const ReadPlan::Source& source, const TimeRange& range)
      : source_(source),
        definitions_(source.definitions),
        range_(range),
        whole_until_ns_(definitions_.threads().size(), INT64_MIN),
        first_ns_(definitions_.threads().size(), INT64_MAX) {}

  absl::StatusOr<std::vector<SkippedBlocks>> plan() {
    find_first_records();
    need_beginnings();
    need_parents();
    std::vector<SkippedBlocks> skipped(definitions_.threads().size());
    for (std::vector<BlockRef>& blocks : source_.exclusive) {
      const ThreadIndex thread = definitions_.find_thread(blocks.front().writer);
      if (thread == kNoIndex) continue;
      absl::StatusOr<SkippedBlocks> found = skip(thread, blocks);
      if (!found.ok()) return found.status();
      skipped[thread] = *found;
    }
    return skipped;
  }

 private:
  int64_t to_ns(uint64_t ticks) const { return source_.clock.to_ns(ticks); }

  void find_first_records() {
    for (const auto& [writer, facts] : source_.shared.all()) {
      const ThreadIndex thread = definitions_.find_thread(writer);
      if (thread != kNoIndex && facts.first_ticks != UINT64_MAX) {
        first_ns_[thread] = to_ns(facts.first_ticks);
      }
    }
    for (const std::vector<BlockRef>& blocks : source_.exclusive) {
      const ThreadIndex thread = definitions_.find_thread(blocks.front().writer);
      if (thread == kNoIndex) continue;
      first_ns_[thread] = std::min(first_ns_[thread], to_ns(blocks.front().base_ticks));
    }
  }

  void need_until(ThreadIndex thread, int64_t time_ns) {
    whole_until_ns_[thread] = std::max(whole_until_ns_[thread], time_ns);
  }

  bool is_first_thread(const Thread& thread) const {
    const Process* process = definitions_.process(thread.process);
    return process != nullptr && process->pid == thread.tid;
  }

  // The parts of a program's life begin within the frames that are open then.
  void need_beginnings() {
    for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
      const Thread& thread = definitions_.threads()[i];
      if (!is_first_thread(thread) || thread.end_ns < range_.from_ns) continue;
      const Process& process = *definitions_.process(thread.process);
      for (const int64_t begin_ns : {process.main_ns, process.exit_ns}) {
        if (begin_ns < range_.from_ns) need_until(i, begin_ns);
      }
    }
  }

  // A fork child begins in frames of its parent: those that are open when the child's
  // first record comes, or at the parent's last call of fork before that. Which call that
  // is depends on the children before.
  void need_parents() {
    absl::flat_hash_map<ProcessIndex, std::vector<ThreadIndex>> children, threads;
    std::vector<ThreadIndex> wanted;  // fork children whose first frames are needed
    for (ThreadIndex i = 0; i < definitions_.threads().size(); ++i) {
      const Thread& thread = definitions_.threads()[i];
      const Process* process = definitions_.process(thread.process);
      if (process == nullptr) continue;
      threads[thread.process].push_back(i);
      if (process->origin != ARCTRACE_ORIGIN_FORK || !is_first_thread(thread)) continue;
      children[definitions_.find_process(process->parent_id)].push_back(i);
      if (thread.end_ns >= range_.from_ns && first_ns_[i] < range_.until_ns) {
        wanted.push_back(i);
      }
    }
    std::vector<bool> is_done(definitions_.processes().size());
    while (!wanted.empty()) {
      const ThreadIndex child = wanted.back();
      wanted.pop_back();
      need_until(child, first_ns_[child]);
      const ProcessIndex parent =
          definitions_.find_process(definitions_.process_of(child)->parent_id);
      if (parent == kNoIndex) continue;
      for (const ThreadIndex thread : threads[parent]) {
        need_until(thread, first_ns_[child]);
      }
      if (is_done[parent]) continue;
      is_done[parent] = true;
      for (const ThreadIndex other : children[parent]) {
        need_until(other, first_ns_[other]);
      }
      // The parent's own frames begin in those of its parent.
      for (const ThreadIndex thread : threads[parent]) {
        const Process& process = *definitions_.process(parent);
        if (process.origin == ARCTRACE_ORIGIN_FORK &&
            is_first_thread(definitions_.threads()[thread])) {
          wanted.push_back(thread);
        }
      }
    }
  }

  // The number of blocks up to the last one that begins before `time_ns`, or at it.
  size_t blocks_until(const std::vector<BlockRef>& blocks, int64_t time_ns) const {
    size_t count = 0;
    while (count < blocks.size() && to_ns(blocks[count].base_ticks) <= time_ns) ++count;
    return count;
  }

  absl::Status find_facts(BlockRef& block) {
    if ((block.facts & ARCTRACE_FACT_KNOWN) != 0) return absl::OkStatus();
    const absl::StatusOr<uint16_t> facts =
        scan_facts_untrusted(source_.input, block, scratch_);
    if (!facts.ok()) return facts.status();
    block.facts = *facts;
    return absl::OkStatus();
  }

  // Whether a shared block before the range has a record of the writer that is needed.
  bool is_needed_in_shared(uint32_t writer) const {
    const auto shared = source_.shared.all().find(writer);
    return shared != source_.shared.all().end() &&
           shared->second.first_needed_ticks != UINT64_MAX &&
           to_ns(shared->second.first_needed_ticks) < range_.from_ns;
  }

  // Whether a thread of a fork child begins in the frames that fork copied: how many of
  // these have been left later, no STACK tells.
  absl::StatusOr<bool> begins_in_copied_frames(ThreadIndex thread, BlockRef& first) {
    const Process* process = definitions_.process_of(thread);
    if (process == nullptr || process->origin != ARCTRACE_ORIGIN_FORK) return false;
    const auto shared = source_.shared.all().find(first.writer);
    if (shared != source_.shared.all().end() && shared->second.begins_in_frames) {
      return true;
    }
    if (absl::Status status = find_facts(first); !status.ok()) return status;
    return (first.facts & ARCTRACE_FACT_FRAMES) != 0;
  }

  absl::StatusOr<SkippedBlocks> skip(ThreadIndex thread, std::vector<BlockRef>& blocks) {
    constexpr SkippedBlocks kNothing;
    if (range_.from_ns == INT64_MIN) return kNothing;
    // The last block that begins before the range, and one more: its stack is known
    // before the range whatever came between these two.
    const size_t before = blocks_until(blocks, range_.from_ns - 1);
    if (before < 2) return kNothing;
    const size_t end = before - 2;
    const absl::StatusOr<bool> copied = begins_in_copied_frames(thread, blocks.front());
    if (!copied.ok()) return copied.status();
    if (*copied) return kNothing;
    if (is_needed_in_shared(blocks.front().writer)) return kNothing;
    // The first block that is read, too: if it begins on a coroutine's stack, no STACK
    // tells what the others are.
    for (size_t i = 0; i <= end; ++i) {
      if (absl::Status status = find_facts(blocks[i]); !status.ok()) return status;
      if ((blocks[i].facts & ARCTRACE_FACT_NEEDED) != 0) return kNothing;
    }
    const int64_t whole_ns = whole_until_ns_[thread];
    const size_t first = whole_ns == INT64_MIN ? 0 : blocks_until(blocks, whole_ns);
    if (first >= end) return kNothing;
    if ((blocks[end].facts & ARCTRACE_FACT_PARTIAL_STACK) != 0) return kNothing;
    // Those in shared blocks are needed as long as those in exclusive ones.
    int64_t from_ns = whole_ns == INT64_MIN ? whole_ns : whole_ns + 1;
    if (first != 0) from_ns = std::max(from_ns, to_ns(blocks[first].base_ticks));
    return SkippedBlocks{first, end, from_ns, to_ns(blocks[end].base_ticks)};
  }

  const ReadPlan::Source& source_;
  const Definitions& definitions_;
  const TimeRange range_;
  std::vector<int64_t> whole_until_ns_;  // by thread: up to then it is read whole
  std::vector<int64_t> first_ns_;        // by thread: its first record
  std::vector<std::byte> scratch_;
};

}  // namespace

absl::StatusOr<ReadPlan> ReadPlan::make(const Source& source, const TimeRange& range) {
  absl::StatusOr<std::vector<SkippedBlocks>> skipped = Planner(source, range).plan();
  if (!skipped.ok()) return skipped.status();
  ReadPlan plan;
  plan.skipped_ = *std::move(skipped);
  return plan;
}

}  // namespace arctrace::reader
