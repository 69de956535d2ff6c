// Attaches threads, decides where a thread writes, and reserves records on the slow path.
#include "src/writer/slow_path.hpp"

#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/block_state.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/opening_records.hpp"
#include "src/writer/shared_records.hpp"

namespace arctrace::writer {

namespace {

// In the adaptive scope a thread has exclusive blocks while it writes much, and writes
// into the session's shared chain otherwise: so many threads that write little take few
// blocks, and a busy thread contends with none.

// The number of bytes that a thread writes into the chain before the next decision where
// it writes.
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

// Whether the thread filled its share of the chain within a tenth of a second.
bool is_busy(const ThreadState& state, uint64_t ticks) {
  return state.chain.since_ticks != 0 &&
         ticks - state.chain.since_ticks < session.ticks_per_second / 10;
}

// Whether the thread has not filled its block within a second. The base may be a little
// later than now, by the coarse clock.
bool is_slow(const ThreadState& state, uint64_t ticks) {
  return ticks > state.block.base_ticks &&
         ticks - state.block.base_ticks > session.ticks_per_second;
}

void begin_chain_bytes(ThreadState& state, uint64_t ticks) {
  state.chain.budget = chain_bytes();
  state.chain.since_ticks = ticks;
}

// Closes the chain's block if it was handed out before the thread's last exclusive block,
// because a thread's records are to be in the order of its blocks.
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
  uint64_t last = state.block.base_ticks;
  if (last < state.chain.handler_ticks) last = state.chain.handler_ticks;
  state.chain.not_before = ticks > last ? ticks : last;
  close_block(state);
  close_older_chain_block(state);
  state.has_own_blocks = false;
  begin_chain_bytes(state, ticks);
}

bool stays_in_own_blocks(ThreadState& state, uint32_t body_size, uint64_t ticks) {
  std::byte* begin;
  const bool has_space =
      state.block.is_open && find_space(state, session.head_size + body_size, begin);
  if (state.block.is_open && is_slow(state, ticks)) return false;
  return has_space || are_blocks_plenty(kToGoOn);
}

// Whether the record that is about to be written, with `body_size` bytes after its head
// and stamped `ticks`, belongs into an exclusive block. Sets `ticks` to a time that keeps
// the thread's records in order. Only for the outermost writer call.
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
  if (length > state.chain.budget) {
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
  state.chain.budget -= length < state.chain.budget ? length : state.chain.budget;
  return false;
}

ReportWaitingCalls* waiting_calls_reporter;  // null: no call ever waits
bool has_vfork_children;  // when the session was joined; no hook saw them begin

// Whether a vfork child runs here, with the thread-local storage of a thread that has no
// slot in the session. A slot would be the child's, and free when the child ends, while
// the thread goes on with it.
bool runs_in_vfork_child() {
  if (thread_local_state.is_vforking) return true;
  const uint32_t pid = known_pid();
  return has_vfork_children && pid != 0 && may_call_kernel() && sys::getpid() != pid;
}

// Writes the records that precede a thread's record in the chain: definitions, without
// which readers do not know what it means, and LOST records, without which it would
// follow the last record before the losses as if nothing had been between. `frames`
// becomes the record's. False: there is no space.
bool prepare_chain(Nesting nesting, ThreadState& state, ProcessState& process,
                   FramesState& frames) {
  if (is_known_full(state)) return false;
  arctrace_control& control = session.view.control();
  const uint64_t freed = IpcAtomics::load_relaxed(control.freed);
  const uint64_t chain = IpcAtomics::load_relaxed(control.shared_current);
  if (!emit_definitions(state, process)) {
    note_no_block(state, freed);
    state.loss.full_chain = chain;
    return false;
  }
  const bool has_lost = state.loss.pending || state.loss.stack_differs;
  return nesting.nested() || !has_lost || begin_in_chain(state, process, frames);
}

// Reserves in the shared chain, after the records that precede the record there.
Reservation reserve_in_chain(Nesting nesting, ThreadState& state, ProcessState& process,
                             uint16_t type, uint32_t body_size, uint64_t ticks) {
  // A record that is too long needs none of this, because it is lost.
  const bool is_too_long =
      ARCTRACE_FULL_HEAD_SIZE + body_size > record_length_max(session.view.geometry());
  FramesState frames{ticks, 0};
  if (!nesting.nested()) frames = frames_state(state, ticks);
  if (!is_too_long && !prepare_chain(nesting, state, process, frames)) {
    count_lost(session.view.slot(state.slot.index), state, ARCTRACE_LOST_FULL, ticks);
    return kNoReservation;
  }
  // The call's other records with its own time must not precede this one, either.
  if (frames.ticks != ticks) state.chain.not_before = frames.ticks;
  return reserve_shared(nesting, state, process, type, body_size, frames);
}

// Clears the name of a block that is not this call's: a fork child may have stored it,
// which went on with the call of this thread that its parent's handler interrupted. While
// the name is there, the block is not recycled.
void drop_stray_name(ThreadState& state) {
  uint32_t& name = state.slot.slot().active[0];
  if (IpcAtomics::load_relaxed(name) != 0) release_active(&name);
}

}  // namespace

void expect_vfork_children() { has_vfork_children = true; }

void set_report_waiting_calls(ReportWaitingCalls* report) {
  waiting_calls_reporter = report;
}

ThreadState* attached_thread(Nesting nesting, uint64_t ticks) {
  ThreadState* state = thread_local_state.state;
  if (state != nullptr && state->attached) return state;
  // A nested call does not attach, because the interrupted one may be attaching, which
  // would take two slots.
  return nesting.nested() || runs_in_vfork_child() ? nullptr : attach_thread(ticks);
}

void attach_this_thread() {
  const WriterCall writer_call;
  if (!session.joined || writer_call.nested() || writer_call.refused()) return;
  attached_thread(writer_call, session_ticks());
}

ThreadState* recording_thread(Nesting nesting, uint64_t ticks) {
  ThreadState* state = attached_thread(nesting, ticks);
  if (state != nullptr) return state;
  if (runs_in_vfork_child()) return nullptr;
  arctrace_control& control = session.view.control();
  arctrace_loss_cause cause = ARCTRACE_LOST_NO_SLOT;
  if (nesting.nested()) {
    cause = ARCTRACE_LOST_NESTED;
  } else if (!has_next_identity(control.process_next) ||
             !has_next_identity(control.writer_next)) {
    cause = ARCTRACE_LOST_IDENTITY;
  }
  count_lost_without_slot(control, cause);
  return nullptr;
}

// By the clock word, the records of a handler that interrupts the writer, which stand in
// the chain, and those of the thread's own block might have one time, and readers would
// not know in which order they came. So the handler's are later by a tick, and those that
// follow in the block are later still (reserve_exclusive()). In the chain alone the
// places tell the order.
uint64_t handler_ticks(ThreadState& state, uint64_t ticks) {
  const bool has_own_blocks =
      session.view.geometry().scope == ARCTRACE_SCOPE_THREAD || state.has_own_blocks;
  const uint64_t first =
      has_own_blocks ? state.block.base_ticks + 1 : state.chain.not_before;
  uint64_t& last = state.chain.handler_ticks;
  if (ticks < first) ticks = first;
  if (ticks < last) ticks = last;
  last = ticks;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.block.word_ticks = 0;
  return ticks;
}

Reservation reserve_slow(Nesting nesting, uint16_t type, uint32_t body_size,
                         uint64_t ticks) {
  if (!session.joined || nesting.refused()) return kNoReservation;
  ThreadState* state = recording_thread(nesting, ticks);
  if (state == nullptr) return kNoReservation;
  ProcessState* process = current_process(ticks);
  if (process == nullptr) return kNoReservation;
  if (has_bare_heads() && nesting.nested()) ticks = handler_ticks(*state, ticks);
  if (!nesting.nested()) drop_stray_name(*state);
  if (nesting.nested() && state->loss.stack_differs) {
    count_lost(session.view.slot(state->slot.index), *state, ARCTRACE_LOST_FULL, ticks);
    return kNoReservation;
  }
  if (state->filtered.first_waiting != 0 && !nesting.nested())
    waiting_calls_reporter(nesting, *state);
  const bool differs = state->loss.stack_differs;
  if (nesting.nested() || !writes_own_blocks(*state, body_size, ticks)) {
    const Reservation record =
        reserve_in_chain(nesting, *state, *process, type, body_size, ticks);
    // There was no space for the STACK.
    if (differs && state->chain.block == 0) state->loss.stack_differs = true;
    return record;
  }
  return reserve_exclusive(*state, *process, type, body_size, ticks);
}

void note_lost_change(Nesting nesting, ThreadState& state) {
  state.loss.stack_differs = true;
  // A nested call must not touch the block: the outermost call does it at its end.
  if (nesting.outermost()) require_stack(state);
}

}  // namespace arctrace::writer
