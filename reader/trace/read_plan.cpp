#include "reader/trace/read_plan.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "reader/trace/block_index.hpp"

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

  absl::Status plan(std::vector<SkippedBlocks>& skipped,
                    std::vector<bool>& needs_listed) {
    find_first_records();
    need_beginnings();
    need_parents();
    list_pieces();
    skipped.resize(definitions_.threads().size());
    for (ThreadIndex thread = 0; thread < pieces_.size(); ++thread) {
      const absl::StatusOr<SkippedBlocks> found = skip(thread);
      if (!found.ok()) return found.status();
      skipped[thread] = *found;
    }
    if (source_.lists.is_complete()) needs_listed = find_needed_blocks(skipped);
    return absl::OkStatus();
  }

  // By thread: the time up to which all of its records are read.
  const std::vector<int64_t>& whole_until_ns() const { return whole_until_ns_; }

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

  // The parts of a program's lifetime begin within the frames that are open then.
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

  // Returns the time up to which a fork child's parent must be read to know the frames in
  // which the child begins: the frames at the time of the fork or, if that is not known,
  // at the child's first record, or at the parent's last call of fork before that.
  // INT64_MAX: the child has no beginning.
  int64_t parent_tells_until_ns(ThreadIndex child, const Process& process) const {
    const bool is_known = process.forked_ns != INT64_MIN;
    return is_known && first_ns_[child] >= range_.until_ns ? process.forked_ns
                                                           : first_ns_[child];
  }

  // Whether a fork child may have begun before the range's end.
  bool reaches_range(ThreadIndex child, const Process& process) const {
    if (definitions_.threads()[child].end_ns < range_.from_ns) return false;
    return process.forked_ns != INT64_MIN
               ? std::min(process.forked_ns, first_ns_[child]) < range_.until_ns
               : first_ns_[child] != INT64_MAX;
  }

  // A fork child begins in frames of its parent, so the parent's are needed. Which of the
  // parent's calls of fork was the child's may depend on the children before.
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
      if (reaches_range(i, *process)) wanted.push_back(i);
    }
    std::vector<bool> is_done(definitions_.processes().size());
    while (!wanted.empty()) {
      const ThreadIndex child = wanted.back();
      wanted.pop_back();
      need_until(child, first_ns_[child]);
      const Process& process_of_child = *definitions_.process_of(child);
      const ProcessIndex parent = definitions_.find_process(process_of_child.parent_id);
      if (parent == kNoIndex) continue;
      for (const ThreadIndex thread : threads[parent]) {
        need_until(thread, parent_tells_until_ns(child, process_of_child));
      }
      if (is_done[parent]) continue;
      is_done[parent] = true;
      for (const ThreadIndex other : children[parent]) {
        need_until(other, first_ns_[other]);
      }
      // The parent's own frames begin in those of its own parent.
      for (const ThreadIndex thread : threads[parent]) {
        const Process& process = *definitions_.process(parent);
        if (process.origin == ARCTRACE_ORIGIN_FORK &&
            is_first_thread(definitions_.threads()[thread])) {
          wanted.push_back(thread);
        }
      }
    }
  }

  absl::Status find_facts(BlockRef& block) {
    if ((block.facts & ARCTRACE_FACT_KNOWN) != 0) return absl::OkStatus();
    const absl::StatusOr<uint16_t> facts =
        scan_facts_untrusted(source_.input, block, scratch_);
    if (!facts.ok()) return facts.status();
    block.facts = *facts;
    return absl::OkStatus();
  }

  // The records of a thread in one block. Pieces are in the order of their places.
  struct Piece {
    ThreadPlace place;  // of its first record, or earlier
    size_t block = 0;   // index into the thread's exclusive blocks, or into the lists
    uint32_t facts = 0;
    bool is_listed = false;
  };

  void list_pieces() {
    pieces_.resize(definitions_.threads().size());
    exclusive_of_.resize(pieces_.size());
    for (std::vector<BlockRef>& blocks : source_.exclusive) {
      const ThreadIndex thread = definitions_.find_thread(blocks.front().writer);
      if (thread == kNoIndex) continue;
      exclusive_of_[thread] = &blocks;
      for (size_t i = 0; i < blocks.size(); ++i) {
        pieces_[thread].push_back({{blocks[i].base_ticks, 0}, i, 0, false});
      }
    }
    const std::span<const WriterLists::Block> lists = source_.lists.blocks();
    for (size_t i = 0; i < lists.size(); ++i) {
      for (const arctrace_block_writer& writer : source_.lists.writers(lists[i])) {
        const ThreadIndex thread = definitions_.find_thread(writer.writer);
        if (thread == kNoIndex) continue;
        pieces_[thread].push_back(
            {{writer.first_ticks, source_.listed[i].handout}, i, writer.facts, true});
      }
    }
    for (std::vector<Piece>& pieces : pieces_) {
      std::stable_sort(pieces.begin(), pieces.end(),
                       [](const Piece& a, const Piece& b) { return a.place < b.place; });
    }
  }

  // Whether the thread's exclusive blocks do not go back in time.
  static bool is_in_order(const std::vector<BlockRef>& blocks) {
    return std::is_sorted(
        blocks.begin(), blocks.end(),
        [](const BlockRef& a, const BlockRef& b) { return a.base_ticks < b.base_ticks; });
  }

  absl::StatusOr<uint32_t> facts_of(ThreadIndex thread, const Piece& piece) {
    if (piece.is_listed) return piece.facts;
    BlockRef& block = (*exclusive_of_[thread])[piece.block];
    if (absl::Status status = find_facts(block); !status.ok()) return status;
    return block.facts;
  }

  // Whether a thread of a fork child begins in the frames that fork copied: no STACK
  // tells how many of these have been left later.
  absl::StatusOr<bool> begins_in_copied_frames(ThreadIndex thread) {
    const Process* process = definitions_.process_of(thread);
    if (process == nullptr || process->origin != ARCTRACE_ORIGIN_FORK) return false;
    for (const bool is_listed : {false, true}) {
      const std::vector<Piece>& pieces = pieces_[thread];
      const auto first = std::find_if(
          pieces.begin(), pieces.end(),
          [is_listed](const Piece& piece) { return piece.is_listed == is_listed; });
      if (first == pieces.end()) continue;
      const absl::StatusOr<uint32_t> facts = facts_of(thread, *first);
      if (!facts.ok()) return facts.status();
      if ((*facts & ARCTRACE_FACT_FRAMES) != 0) return true;
    }
    return false;
  }

  // Whether all records of the thread, and its end, come before the range.
  bool ended_before(ThreadIndex thread) const {
    if (definitions_.life_end_ns(thread) >= range_.from_ns) return false;
    for (const Piece& piece : pieces_[thread]) {
      const uint64_t last = piece.is_listed
                                ? source_.lists.blocks()[piece.block].last_ticks
                                : (*exclusive_of_[thread])[piece.block].written_ticks;
      if (last == 0 || to_ns(last) >= range_.from_ns) return false;
    }
    return true;
  }

  // Returns the number of pieces that begin before `time_ns`, or at it.
  size_t pieces_until(ThreadIndex thread, int64_t time_ns) const {
    const std::vector<Piece>& pieces = pieces_[thread];
    size_t count = 0;
    while (count < pieces.size() && to_ns(pieces[count].place.ticks) <= time_ns) ++count;
    return count;
  }

  absl::StatusOr<SkippedBlocks> skip(ThreadIndex thread) {
    constexpr SkippedBlocks kNothing;
    const std::vector<Piece>& pieces = pieces_[thread];
    if (range_.from_ns == INT64_MIN || pieces.empty()) return kNothing;
    if (!source_.lists.is_complete() && is_in_shared(thread)) return kNothing;
    if (exclusive_of_[thread] != nullptr && !is_in_order(*exclusive_of_[thread])) {
      return kNothing;
    }
    const int64_t whole_ns = whole_until_ns_[thread];
    const size_t first = whole_ns == INT64_MIN ? 0 : pieces_until(thread, whole_ns);
    if (ended_before(thread)) return skipped(thread, first, pieces.size());
    // The last piece that begins before the range is needed, and one more: they tell the
    // stack before the range whatever came between these two.
    const size_t before = pieces_until(thread, range_.from_ns - 1);
    if (before < 2) return kNothing;
    const absl::StatusOr<bool> copied = begins_in_copied_frames(thread);
    if (!copied.ok()) return copied.status();
    if (*copied) return kNothing;
    for (size_t end = before - 2; end > first; --end) {
      const absl::StatusOr<uint32_t> facts = facts_of(thread, pieces[end]);
      if (!facts.ok()) return facts.status();
      const bool tells_stack = pieces[end].is_listed
                                   ? (*facts & ARCTRACE_FACT_WHOLE_STACK) != 0
                                   : (*facts & ARCTRACE_FACT_PARTIAL_STACK) == 0;
      if (!tells_stack) continue;
      // The first piece that is read counts, too: if it begins on a coroutine's stack, no
      // STACK tells the other stacks.
      for (size_t i = 0; i <= end; ++i) {
        const absl::StatusOr<uint32_t> needed = facts_of(thread, pieces[i]);
        if (!needed.ok()) return needed.status();
        if ((*needed & ARCTRACE_FACT_NEEDED) != 0) return kNothing;
      }
      return skipped(thread, first, end);
    }
    return kNothing;
  }

  bool is_in_shared(ThreadIndex thread) const {
    const auto shared = source_.shared.all().find(definitions_.threads()[thread].writer);
    return shared != source_.shared.all().end() &&
           shared->second.first_ticks != UINT64_MAX;
  }

  // Returns the pieces [first, end) as skipped ones.
  SkippedBlocks skipped(ThreadIndex thread, size_t first, size_t end) const {
    const std::vector<Piece>& pieces = pieces_[thread];
    if (first >= end) return {};
    const auto exclusive_before = [&](size_t piece) {
      return static_cast<size_t>(
          std::count_if(pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(piece),
                        [](const Piece& other) { return !other.is_listed; }));
    };
    SkippedBlocks blocks;
    blocks.first = exclusive_before(first);
    blocks.end = exclusive_before(end);
    blocks.from = pieces[first].place;
    blocks.until =
        end < pieces.size() ? pieces[end].place : ThreadPlace{UINT64_MAX, UINT64_MAX};
    return blocks;
  }

  // Returns the listed blocks that have records that are not skipped. After the range,
  // only a thread's next record that is no STACK or LOST is needed.
  std::vector<bool> find_needed_blocks(std::span<const SkippedBlocks> skipped) const {
    std::vector<bool> needed(source_.lists.blocks().size());
    for (ThreadIndex thread = 0; thread < pieces_.size(); ++thread) {
      for (const Piece& piece : pieces_[thread]) {
        if (!piece.is_listed) continue;
        const uint64_t last_ticks = source_.lists.blocks()[piece.block].last_ticks;
        const bool is_skipped = !(piece.place < skipped[thread].from) &&
                                last_ticks < skipped[thread].until.ticks;
        if (is_skipped) continue;
        needed[piece.block] = true;
        const int64_t first_ns = to_ns(piece.place.ticks);
        if (first_ns >= range_.until_ns && first_ns > whole_until_ns_[thread] &&
            (piece.facts & ARCTRACE_FACT_TELLS) != 0) {
          break;
        }
      }
    }
    return needed;
  }

  const ReadPlan::Source& source_;
  const Definitions& definitions_;
  const TimeRange range_;
  std::vector<int64_t> whole_until_ns_;               // by thread
  std::vector<int64_t> first_ns_;                     // by thread: its first record
  std::vector<std::vector<Piece>> pieces_;            // by thread
  std::vector<std::vector<BlockRef>*> exclusive_of_;  // by thread; nullptr: it has none
  std::vector<std::byte> scratch_;
};

}  // namespace

absl::StatusOr<ReadPlan> ReadPlan::make(const Source& source, const TimeRange& range) {
  ReadPlan plan;
  Planner planner(source, range);
  const absl::Status status = planner.plan(plan.skipped_, plan.needs_listed_);
  if (!status.ok()) return status;
  plan.whole_until_ns_ = planner.whole_until_ns();
  return plan;
}

}  // namespace arctrace::reader
