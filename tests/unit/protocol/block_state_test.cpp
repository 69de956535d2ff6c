// The protocol's words bit by bit: block states, names of blocks, and the collector
// lock.
#include "src/protocol/block_state.hpp"

#include <doctest/doctest.h>

namespace arctrace {
namespace {

TEST_CASE("block state: the bit picture of SPEC.md") {
  const BlockState state{0x89ABCDEF, 0x1234, ARCTRACE_PHASE_CLOSED};
  CHECK(state.pack() == 0x89ABCDEF12340004u);
  const BlockState back = BlockState::unpack(0x89ABCDEF12340004u);
  CHECK(back.generation == 0x89ABCDEF);
  CHECK(back.slot == 0x1234);
  CHECK(back.phase == ARCTRACE_PHASE_CLOSED);
  CHECK(state.with(ARCTRACE_PHASE_DRAINING).pack() == 0x89ABCDEF12340005u);
}

TEST_CASE("block state: a damaged word is no phase that anybody acts on") {
  const auto phase = static_cast<uint32_t>(BlockState::unpack(0xFFFFFFFFFFFFFFFFu).phase);
  CHECK(phase > ARCTRACE_PHASE_RESETTING);
  CHECK(static_cast<uint32_t>(BlockState::unpack(0).phase) < ARCTRACE_PHASE_FREE);
}

TEST_CASE("block name: 0 is no name, whatever the generation") {
  CHECK(BlockName::make(0, 0) != 0);
  const uint64_t name = BlockName::make(7, 41);
  CHECK(BlockName::index(name) == 41);
  CHECK(BlockName::generation(name) == 7);
  // A hostile value gives an index that no buffer has, instead of a wrong one.
  CHECK(BlockName::index(uint64_t{7} << 32) == UINT32_MAX);
}

TEST_CASE("lock word: live only with a tid and without the kernel's mark") {
  CHECK_FALSE(is_live(0));
  CHECK(is_live(1));
  CHECK(is_live(0x80000001));  // FUTEX_WAITERS
  CHECK_FALSE(is_live(kOwnerDied | 1));
  CHECK_FALSE(is_live(kBeingReaped));
}

}  // namespace
}  // namespace arctrace
