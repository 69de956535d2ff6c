// What a thread that forks has open, for its child: kept where fork does not wipe it.
#pragma once

#include <cstdint>

#include "src/stack/open_frames.hpp"

namespace arctrace {

struct ForkFrames {
  bool are_known;
  uint32_t depth;                   // how many frames readers should know
  uint32_t count;                   // how many of them are kept here: all, or none
  uint64_t keys[OpenFrames::kMax];  // outermost first
};

}  // namespace arctrace
