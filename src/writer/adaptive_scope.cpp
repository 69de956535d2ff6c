#include "src/writer/adaptive_scope.hpp"

#include "src/process/session.hpp"
#include "src/protocol/block_counts.hpp"
#include "src/protocol/shared_close.hpp"
#include "src/writer/exclusive_records.hpp"
#include "src/writer/reservation.hpp"

namespace arctrace {
namespace {

// What a thread writes into the chain before it is decided again where it writes.
constexpr uint32_t kChainBytes = 8u << 10;

uint32_t chain_bytes() {
  const uint32_t max = record_length_max(session.view.geometry());
  return max < kChainBytes ? max : kChainBytes;
}

// Whether blocks may be taken for a single thread: only while all but the last 1/`part`
// of them are not in use. The last half is for threads that have blocks already and fill
// them, and the last quarter for the chain, which serves any number of threads.
bool are_blocks_plenty(uint64_t part) {
  const uint64_t count = session.view.geometry().block_count;
  return blocks_in_use<IpcAtomics>(session.view.control()) < count - count / part;
}
constexpr uint64_t kToBegin = 2;
constexpr uint64_t kToGoOn = 4;

// It filled what it may write into the chain within a tenth of a second.
bool is_busy(const ThreadState& state, uint64_t ticks) {
  return state.chain.since_ticks != 0 &&
         ticks - state.chain.since_ticks < session.ticks_per_second / 10;
}

// It has not filled its block within a second. The base may be a little later than now,
// by the coarse clock.
bool is_slow(const ThreadState& state, uint64_t ticks) {
  return ticks > state.block.base_ticks &&
         ticks - state.block.base_ticks > session.ticks_per_second;
}

void begin_chain_bytes(ThreadState& state, uint64_t ticks) {
  state.chain.left = chain_bytes();
  state.chain.since_ticks = ticks;
}

// The chain's block, if it was handed out before the thread's last exclusive block, takes
// no more records: a thread's records are to be in the order of its blocks.
void close_older_chain_block(const ThreadState& state) {
  const uint64_t chain = IpcAtomics::load_acquire(session.view.control().shared_current);
  if (chain == 0 || BlockName::index(chain) >= session.view.geometry().block_count) {
    return;
  }
  const uint32_t index = BlockName::index(chain);
  uint64_t& handout = session.view.block_header(index).handout;
  if (IpcAtomics::load_relaxed(handout) < state.block.taken.handout) {
    close_shared<IpcAtomics>(session.view, index, BlockName::generation(chain));
  }
}

void leave_own_blocks(ThreadState& state, uint64_t ticks) {
  const uint64_t base = state.block.base_ticks;
  state.chain.not_before = ticks > base ? ticks : base;
  close_block(state);
  close_older_chain_block(state);
  state.has_own_blocks = false;
  begin_chain_bytes(state, ticks);
}

bool stays_in_own_blocks(ThreadState& state, uint32_t body_size, uint64_t ticks) {
  std::byte* begin;
  const bool has_room = state.block.is_open &&
                        find_room(state, ARCTRACE_COMPACT_HEAD_SIZE + body_size, begin);
  if (state.block.is_open && is_slow(state, ticks)) return false;
  return has_room || are_blocks_plenty(kToGoOn);
}

}  // namespace

bool writes_own_blocks(ThreadState& state, uint32_t body_size, uint64_t& ticks) {
  const uint32_t scope = session.view.geometry().scope;
  if (scope == ARCTRACE_SCOPE_THREAD) return true;
  if (state.has_own_blocks) {
    if (stays_in_own_blocks(state, body_size, ticks)) return true;
    leave_own_blocks(state, ticks);
  }
  if (ticks < state.chain.not_before) ticks = state.chain.not_before;
  state.chain.take_grant_back();
  const uint32_t length = ARCTRACE_FULL_HEAD_SIZE + body_size;
  if (length > state.chain.left) {
    if (scope == ARCTRACE_SCOPE_ADAPTIVE && is_busy(state, ticks) &&
        are_blocks_plenty(kToBegin)) {
      state.has_own_blocks = true;
      state.chain.leave_block();
      // The coarse clock may not have moved since the last record in the chain.
      ++ticks;
      return true;
    }
    begin_chain_bytes(state, ticks);
  }
  state.chain.left -= length < state.chain.left ? length : state.chain.left;
  return false;
}

}  // namespace arctrace
