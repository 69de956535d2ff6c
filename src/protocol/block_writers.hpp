// The writers whose records a block has, and the facts that a reader of a range needs of
// them before it reads the block: for blocks of full form, and for exclusive ones. The
// recorder notes them; a reader computes them where they are not noted.
#pragma once

#include <arctrace/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/untrusted_bytes.hpp"

namespace arctrace {

// Facts of an exclusive block's records that its header does not have. They decide
// whether the reader of a range may skip the block (ARCTRACE_FACT_*).

// Whether a record of this type has facts that no later STACK repeats.
constexpr bool is_needed_later(uint32_t type) {
  return type == ARCTRACE_TYPE_COROUTINE || type == ARCTRACE_TYPE_VFORK_BEGIN ||
         type == ARCTRACE_TYPE_VFORK_END || type == ARCTRACE_TYPE_EXIT_NAMED;
}

// The facts that a committed record adds to its block's. `body` is the record after its
// head.
inline uint16_t facts_of_record_untrusted(uint32_t type,
                                          std::span<const std::byte> body) {
  if (is_needed_later(type)) return ARCTRACE_FACT_NEEDED;
  if (type != ARCTRACE_TYPE_STACK || body.size() < sizeof(arctrace_stack_body)) return 0;
  const auto stack = load_part_untrusted<arctrace_stack_body>(body);
  uint16_t facts = 0;
  if (stack.count < stack.depth) facts |= ARCTRACE_FACT_PARTIAL_STACK;
  if (stack.depth != 0) facts |= ARCTRACE_FACT_FRAMES;
  if (body.size() > sizeof stack + uint64_t{stack.count} * sizeof(uint64_t)) {
    facts |= ARCTRACE_FACT_NEEDED;
  }
  return facts;
}

// Whether the WRITERS chunks of a file list the writers of such a block.
constexpr bool has_listed_writers(const arctrace_block_header& header) {
  return header.form == ARCTRACE_FORM_FULL && header.block_class == ARCTRACE_CLASS_DATA &&
         header.writer != ARCTRACE_WRITER_KERNEL;
}

class BlockWriters {
 public:
  void clear() {
    writers_.clear();
    states_.clear();
    table_.clear();
    last_ = 0;
    last_ticks_ = 0;
  }

  // Adds a committed record that is no filler. To be called in the order of the block, or
  // of the records' ticks. `body` is what follows the record's head.
  void add_untrusted(uint32_t writer, uint64_t ticks, uint32_t type,
                     std::span<const std::byte> body) {
    if (last_ >= writers_.size() || writers_[last_].writer != writer)
      last_ = find(writer);
    arctrace_block_writer& entry = writers_[last_];
    State& state = states_[last_];
    last_ticks_ = std::max(last_ticks_, ticks);
    if (is_needed_later(type)) entry.facts |= ARCTRACE_FACT_NEEDED;
    const bool is_stack = type == ARCTRACE_TYPE_STACK;
    const bool is_loss = type == ARCTRACE_TYPE_LOST;
    if (!is_stack && !is_loss) entry.facts |= ARCTRACE_FACT_TELLS;
    const uint16_t of_stack = is_stack ? facts_of_record_untrusted(type, body) : 0;
    entry.facts |= of_stack & ARCTRACE_FACT_NEEDED;
    if (ticks < entry.first_ticks) {
      entry.first_ticks = ticks;
      state.first_facts = of_stack & ARCTRACE_FACT_FRAMES;
    }
    if (!is_loss && ticks < state.first_ticks) {
      state.first_ticks = ticks;
      const bool is_whole =
          body.size() >= sizeof(arctrace_stack_body) &&
          (of_stack & (ARCTRACE_FACT_NEEDED | ARCTRACE_FACT_PARTIAL_STACK)) == 0;
      state.is_whole = is_stack && is_whole;
    }
  }

  // The entries by writer. Nothing may be added afterwards.
  std::span<const arctrace_block_writer> sorted() {
    for (size_t i = 0; i < writers_.size(); ++i) {
      writers_[i].facts |= states_[i].first_facts;
      if (states_[i].is_whole) writers_[i].facts |= ARCTRACE_FACT_WHOLE_STACK;
    }
    std::sort(writers_.begin(), writers_.end(),
              [](const arctrace_block_writer& a, const arctrace_block_writer& b) {
                return a.writer < b.writer;
              });
    return writers_;
  }
  uint64_t last_ticks() const { return last_ticks_; }

 private:
  struct State {
    uint64_t first_ticks = UINT64_MAX;  // of a record other than LOST
    uint32_t first_facts = 0;
    bool is_whole = false;
  };

  // The index of the writer's entry. The table has indices + 1 by a hash of the writer,
  // or the next free place after that, and is less than half full.
  size_t find(uint32_t writer) {
    if (table_.size() <= 2 * writers_.size()) grow();
    size_t at = place_of(writer);
    while (table_[at] != 0 && writers_[table_[at] - 1].writer != writer) {
      at = (at + 1) % table_.size();
    }
    if (table_[at] == 0) {
      writers_.push_back({writer, 0, UINT64_MAX});
      states_.emplace_back();
      table_[at] = static_cast<uint32_t>(writers_.size());
    }
    return table_[at] - 1;
  }
  size_t place_of(uint32_t writer) const {
    constexpr uint32_t kOdd = 2654435769;  // spreads numbers that follow one another
    const uint32_t spread = writer * kOdd;
    return spread % table_.size();
  }
  void grow() {
    table_.assign(std::max<size_t>(16, 4 * table_.size()), 0);
    for (size_t i = 0; i < writers_.size(); ++i) {
      size_t at = place_of(writers_[i].writer);
      while (table_[at] != 0) at = (at + 1) % table_.size();
      table_[at] = static_cast<uint32_t>(i + 1);
    }
  }

  std::vector<arctrace_block_writer> writers_;
  std::vector<State> states_;  // of each of writers_
  std::vector<uint32_t> table_;
  size_t last_ = 0;  // index of the last record's writer
  uint64_t last_ticks_ = 0;
};

}  // namespace arctrace
