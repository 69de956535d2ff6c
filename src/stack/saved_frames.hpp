// The call filter's part of a thread's open frames, and the saved frames of coroutine
// stacks: those of stacks on which the thread does not run.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/stack/open_calls.hpp"

namespace arctrace::writer {

// The filter's context of the functions that are called in a frame. It is one word, so
// that it stays in a register where a call is entered. All zero is that of a thread's
// outermost functions, without a live filter.
class FilterContext {
 public:
  // The context outside of all frames while this live filter is in force; the lower half
  // of its number is kept.
  static FilterContext outermost(uint32_t filter_number) {
    FilterContext context{};
    context.word_ = uint64_t{filter_number} << kNumberShift;
    return context;
  }

  // How many frames count for the depth limit.
  uint32_t level() const { return static_cast<uint32_t>(word_ & kLevelMask); }
  // Whether it is inside a function that -F matched.
  bool is_filtered_in() const { return (word_ & kFilteredIn) != 0; }
  // Whether it is inside a function that -N matched.
  bool is_notrace() const { return (word_ & kNotrace) != 0; }
  // Whether this live filter decided it.
  bool is_by(uint32_t filter_number) const {
    return word_ >> kNumberShift == (filter_number & kNumberMask);
  }

  void set_notrace() { word_ |= kNotrace; }
  void set_filtered_in() { word_ = (word_ & ~kLevelMask) | kFilteredIn; }
  void forget_level() { word_ &= ~kLevelMask; }
  void count_level() { word_ += (word_ & kLevelMask) == kLevelMask ? 0 : 1; }

  bool operator==(const FilterContext&) const = default;

 private:
  static constexpr uint64_t kLevelMask = 0xFFFF, kNumberMask = 0xFFFF;
  static constexpr uint64_t kFilteredIn = 1 << 16, kNotrace = 1 << 17;
  static constexpr unsigned kNumberShift = 48;

  uint64_t word_;
};

struct FilteredFrame {
  enum class Reporting : uint8_t { kReported, kHidden, kWaiting };
  uint64_t ticks;  // of the entry
  FilterContext inside;
  Reporting reporting;
  bool has_locks;  // its arguments are locks, which stand in its ENTER
  // The end, in words, of the arguments of a waiting call in
  // FilteredFrames::waiting_args; they begin at the end of those of the frame around it.
  uint16_t args_end;
};

// The call filter's part of a thread's open frames: whether each frame has been recorded,
// and which filter applies to the functions that it calls. Used once `seen` is set.
// Frames that were open before then have zeros here: readers know them.
struct FilteredFrames {
  static constexpr uint32_t kWaitingArgsMax = 8192;  // words
  using Reporting = FilteredFrame::Reporting;

  FilteredFrame frames[OpenFrames::kMax];
  uint32_t waiting_args[kWaitingArgsMax];  // bodies of ARGUMENTS records, and locks
  // The words below are beside what follows in a thread's state, so that a thread without
  // filtered frames touches one page for all of them.
  // Index + 1 of an open frame before which none waits to be recorded; 0: none waits.
  uint32_t first_waiting;
  // How many frames were open when the filter was first seen, also beyond
  // OpenFrames::kMax: readers know them.
  uint32_t reported_depth;
  bool seen;
  bool may_wait;  // calls wait to be recorded until they have lasted long enough

  // Whether readers know the open frame with index `i`.
  bool is_reported(uint32_t i) const {
    return !seen || (i < OpenFrames::kMax && frames[i].reporting == Reporting::kReported);
  }

  // Whether readers are never to know the open frame with index `i`.
  bool is_hidden(uint32_t i) const {
    return seen && i < OpenFrames::kMax && frames[i].reporting == Reporting::kHidden;
  }

  // How many of the outermost `depth` open frames readers know.
  uint32_t reported_frames(uint32_t depth) const {
    if (!seen) return depth;
    uint32_t reported = 0;
    for (uint32_t i = 0; i < depth && i < OpenFrames::kMax; ++i) {
      if (frames[i].reporting == Reporting::kReported) ++reported;
    }
    const uint32_t deep = depth < reported_depth ? depth : reported_depth;
    return deep > OpenFrames::kMax ? reported + deep - OpenFrames::kMax : reported;
  }

  // The beginning of the arguments of a frame that has `depth` frames around it.
  uint32_t args_begin(uint32_t depth) const {
    return depth == 0 ? 0 : frames[depth - 1].args_end;
  }
};

// The saved frames of the stacks on which a thread does not run at present: its own stack
// while it runs a coroutine, and those of other coroutines.
//
// A stack has the entry that its number gives. If another stack's number gives the same
// entry, the frames there are forgotten; if there is no space left, those of all
// coroutines are. Those of the thread's own stack never are.
//
// All zero is a valid empty object.
class SavedFrames {
 public:
  // Saves the frames of the stack with this number, from which the thread goes.
  // `written_in`: see was_written_in().
  void save(uint32_t number, const OpenFrames& open, const FilteredFrames& filtered,
            uint64_t written_in);

  // Whether the frames of this stack are saved.
  bool has(uint32_t number) const { return find(number) != nullptr; }

  // Whether they were saved with the same value of `written_in`.
  bool was_written_in(uint32_t number, uint64_t written_in) const {
    const Stack* stack = find(number);
    return stack != nullptr && stack->written_in == written_in;
  }

  // Makes the saved frames of this stack the open ones, and forgets them here. If they
  // are not saved, there are none.
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
    bool has_filtered;     // there was a filter when the frames were saved
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

  uint32_t used_chunks_;  // chunks from here on were never used
  uint32_t free_chunk_;   // index + 1 of the first free one; 0: none
  uint32_t free_chunk_count_;
  Stack own_;
  Stack stacks_[kStacks];
  Chunk chunks_[kChunks];
};

}  // namespace arctrace::writer
