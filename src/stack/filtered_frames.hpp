// The call filter's part of a thread's open frames: whether each frame has been recorded,
// and which filter applies to the functions that it calls.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/stack/open_frames.hpp"

namespace arctrace {

// What holds for the functions that are called in a frame.
struct FilterContext {
  uint16_t level;          // frames that count for the depth limit
  bool is_filtered_in;     // inside a function that -F matched
  bool is_notrace;         // inside a function that -N matched
  uint16_t filter_number;  // of the live filter by which that holds, its lower half
  bool operator==(const FilterContext&) const = default;
};

struct FilteredFrame {
  enum class Reporting : uint8_t { kReported, kHidden, kWaiting };
  uint64_t ticks;  // of the entry
  FilterContext inside;
  Reporting reporting;
  bool has_locks;  // its arguments are locks, which stand in its ENTER
  // Where the arguments of a waiting call end in FilteredFrames::waiting_args, in words;
  // they begin where those of the frame around it end.
  uint16_t args_end;
};

// Used once `seen` is set. Frames that were open before then have zeros here: readers
// know them.
struct FilteredFrames {
  static constexpr uint32_t kWaitingArgsMax = 8192;  // words
  using Reporting = FilteredFrame::Reporting;

  // Index + 1 of an open frame before which none waits to be reported; 0: none waits.
  uint32_t first_waiting;
  // How many frames were open when the filter was first seen, also beyond
  // OpenFrames::kMax: readers know them.
  uint32_t reported_depth;
  bool seen;
  bool may_wait;  // calls wait to be reported until they have lasted long enough
  FilteredFrame frames[OpenFrames::kMax];
  uint32_t waiting_args[kWaitingArgsMax];  // bodies of ARGUMENTS records, and locks

  // Whether readers know the open frame with index `i`.
  bool is_reported(uint32_t i) const {
    return !seen || (i < OpenFrames::kMax && frames[i].reporting == Reporting::kReported);
  }

  // Whether readers are never to know it.
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

  // Where the arguments begin of a frame that has `depth` frames around it.
  uint32_t args_begin(uint32_t depth) const {
    return depth == 0 ? 0 : frames[depth - 1].args_end;
  }
};

}  // namespace arctrace
