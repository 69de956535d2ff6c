// The open frames of the stacks on which a thread does not run at present: its own stack
// while it runs a coroutine, and those of other coroutines.
//
// A stack has the entry that its number gives. Another one's number may give the same
// entry; then the frames of the one that was there are forgotten, and so they are of all
// coroutines when there is no room left. Those of the thread's own stack never are.
#pragma once

#include <cstdint>

#include "src/stack/filtered_frames.hpp"
#include "src/stack/open_frames.hpp"

namespace arctrace {

// All zero is a valid empty one.
class ParkedStacks {
 public:
  // Keeps the frames of the stack with this number, which the thread leaves.
  // `written_in`: see was_written_in().
  void park(uint32_t number, const OpenFrames& open, const FilteredFrames& filtered,
            uint64_t written_in);

  // Whether the frames of this stack are kept.
  bool has(uint32_t number) const { return find(number) != nullptr; }

  // Whether it was parked with the same value of `written_in`.
  bool was_written_in(uint32_t number, uint64_t written_in) const {
    const Stack* stack = find(number);
    return stack != nullptr && stack->written_in == written_in;
  }

  // Makes the frames of this stack the open ones, and forgets them here. There are none
  // if they are not kept.
  void resume(uint32_t number, OpenFrames& open, FilteredFrames& filtered);

  void clear();

 private:
  static constexpr uint32_t kStacks = 1024;
  static constexpr uint32_t kChunks = 2048;
  static constexpr uint32_t kChunkFrames = 8;
  static constexpr uint32_t kChunksOfOne = OpenFrames::kMax / kChunkFrames;
  static_assert(OpenFrames::kMax % kChunkFrames == 0 && kChunks >= 2 * kChunksOfOne);

  struct Stack {
    uint32_t name;  // number + 1; 0: free
    uint32_t depth;
    uint32_t reported_depth;
    uint32_t first_chunk;  // index + 1; 0: none
    bool has_filtered;     // there was a filter when it was parked
    uint64_t written_in;
  };
  struct Chunk {
    uint32_t next;  // index + 1; 0: the last
    OpenFrame frames[kChunkFrames];
    FilteredFrame filtered[kChunkFrames];
  };

  const Stack* find(uint32_t number) const {
    const Stack& stack = number == 0 ? own_ : stacks_[number % kStacks];
    return stack.name == number + 1 ? &stack : nullptr;
  }
  Stack& entry(uint32_t number) { return number == 0 ? own_ : stacks_[number % kStacks]; }
  uint32_t take_chunk();
  void forget_coroutines();
  void free_chunks(Stack& stack);

  uint32_t used_chunks_;  // from here on they were never used
  uint32_t free_chunk_;   // index + 1 of the first free one; 0: none
  uint32_t free_chunk_count_;
  Stack own_;
  Stack stacks_[kStacks];
  Chunk chunks_[kChunks];
};

}  // namespace arctrace
