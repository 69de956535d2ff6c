// Reserves records in the thread's exclusive block on the slow path: changes the block,
// writes its opening records, and rebases times that are too far from the block's base. A
// block that is full while the buffer fills up is shown to the shim first.

#include <optional>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/process/work_claims.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/losses.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/opening_records.hpp"
#include "src/writer/slow_path.hpp"

namespace arctrace::writer {

namespace {

arctrace_shim_full_block* full_block_hook;  // null: there is none

// Whether the recorder falls behind. In overwrite mode the buffer is always full, and
// nobody has to keep up. The answer is a hint: the counts are of two moments, and other
// programs may overwrite them.
bool recorder_is_behind() {
  const Geometry& geometry = session.view.geometry();
  return geometry.mode != ARCTRACE_MODE_OVERWRITE &&
         blocks_in_use<IpcAtomics>(session.view.control()) >= geometry.block_count / 2;
}

void define_switched_off(const uint64_t* functions, uint32_t count, uint64_t ticks) {
  const arctrace_patches_body body{.process = 0,
                                   .verdict = ARCTRACE_PATCH_THROTTLED,
                                   .count = count,
                                   .listed = count,
                                   .reserved = 0};
  const BodyPart parts[] = {
      {&body, sizeof body},
      {functions, count * static_cast<uint32_t>(sizeof *functions)}};
  add_definition(ARCTRACE_TYPE_PATCHES, parts, 2,
                 offsetof(arctrace_patches_body, reserved), ticks);
}

// Shows the thread's open block to the shim before it is closed because it is full. Does
// nothing unless the recorder falls behind, with half of the buffer's blocks in use, or
// while another thread of the process examines its block.
void examine_full_block(const ThreadState& state, const ProcessState& process,
                        uint64_t ticks) {
  if (full_block_hook == nullptr || !state.block.is_open || !recorder_is_behind()) return;
  if (!claim_work(Work::kExamineFullBlock, process, state.slot.writer)) return;
  std::byte* begin =
      session.view.block(state.block.taken.index) + ARCTRACE_BLOCK_HEADER_SIZE;
  const std::byte* end = state.block.pos;
  uint32_t count;
  do {
    uint64_t functions[ARCTRACE_SHIM_SWITCHED_OFF_MAX];
    count = full_block_hook(begin, end, session.head_size, functions);
    if (count != 0) define_switched_off(functions, count, ticks);
  } while (count == ARCTRACE_SHIM_SWITCHED_OFF_MAX);
  // The end of this work also releases the table in which the hook counts.
  end_work(Work::kExamineFullBlock);
}

// Appends to the exclusive block if there is space. REQUIRES: ticks - base is at most
// session.delta_max, except of TIME.
Reservation append(ThreadState& state, uint16_t type, uint32_t body_size,
                   uint64_t ticks) {
  const uint32_t length = session.head_size + body_size;
  std::byte* begin;
  if (!find_space(state, length, begin)) return kNoReservation;
  return begin_own(state, begin, type, length, ticks_from_base(state, ticks));
}

// The store stays in order with the changes of the block around it, because a signal
// handler may come in between.
void set_has_block(ThreadState& state, bool value) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.block.is_open = value;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Writes LOST and STACK at the start of a fresh exclusive block, so that `keep` bytes
// stay free.
void write_opening(ThreadState& state, uint32_t keep, const OpeningState& opening) {
  const auto space = [&] {
    return static_cast<uint32_t>(state.block.end - state.block.pos);
  };
  constexpr uint32_t kLostBody = sizeof(arctrace_lost_body);
  const uint32_t stack_min = session.head_size + stack_body_size(state, 0);
  arctrace_writer_slot& slot = session.view.slot(state.slot.index);
  const bool all =
      report_own_losses(slot, state, opening.losses, [&](const Losses& losses) {
        if (space() < session.head_size + kLostBody + stack_min + keep) return false;
        const Reservation lost =
            append(state, ARCTRACE_TYPE_LOST, kLostBody, opening.frames.ticks);
        fill_lost(lost.body, losses, opening.since_ticks);
        ReportedLosses<IpcAtomics>::commit(session.view, slot, losses.cause, losses.until,
                                           lost.word0, lost.committed);
        return true;
      });
  if (!all) put_off_losses(state, opening);
  uint32_t stack_space = space() - session.head_size;
  stack_space = stack_space > keep ? stack_space - keep : 0;
  if (stack_space > stack_record_space()) stack_space = stack_record_space();
  if (stack_space < stack_body_size(state, 0)) stack_space = stack_body_size(state, 0);
  const StackReport report = reportable_frames(state, opening.frames.open, stack_space);
  const Reservation stack =
      append(state, ARCTRACE_TYPE_STACK, stack_body_size(state, report.count),
             opening.frames.ticks);
  if (stack.word0 == nullptr) {
    state.loss.stack_differs = true;
    return;
  }
  fill_stack(stack.body, state, report);
  IpcAtomics::store_release(word_at(stack.word0), stack.committed);  // I1
}

// Takes a block to be opened. False: there is none.
bool take_block(ThreadState& state) {
  const uint64_t freed = IpcAtomics::load_relaxed(session.view.control().freed);
  arctrace_writer_slot& slot = session.view.slot(state.slot.index);
  std::optional<Handout<IpcAtomics>::Taken> taken;
  if (!Handout<IpcAtomics>::rest_is_for_definitions(session.view)) {
    taken = Handout<IpcAtomics>::take(session.view, state.slot.index, slot.current);
  }
  wake_past_mark();
  if (!taken) {
    note_no_block(state, freed);
    return false;
  }
  state.loss.freed_seen = 0;
  state.block.taken = *taken;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.block.opening = state.block.serial + 1;
  return true;
}

struct Opening {
  std::byte* end;
  bool has_stack;
  uint64_t base_ticks;  // the base of the ticks of the records after it
};

// Finds the records that are already in a block that this thread owns and is opening: a
// writer call that never came back may have begun to open it. `base_ticks`: the header's,
// or those of a TIME record there.
Opening opening_of(std::byte* block, uint32_t size, uint64_t base_ticks) {
  const uint32_t time_word0 =
      ARCTRACE_WORD0(ARCTRACE_TYPE_TIME, session.head_size + sizeof(arctrace_time_body));
  uint32_t offset = ARCTRACE_BLOCK_HEADER_SIZE;
  bool has_stack = false;
  while (offset < size) {
    const uint32_t word0 = IpcAtomics::load_relaxed(word_at(block + offset));
    if (word0 == ARCTRACE_FILL) break;
    const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
    if (length == 0 || length % 4 != 0 || length > size - offset)
      return {block + size, true, base_ticks};
    has_stack = has_stack || word0 == ARCTRACE_WORD0(ARCTRACE_TYPE_STACK, length);
    if (word0 == time_word0) {
      std::byte* body = block + offset + session.head_size;
      base_ticks = part_at<arctrace_time_body>(body).ticks;
    }
    offset += length;
  }
  return {block + offset, has_stack, base_ticks};
}

// Sets the time from which records count theirs.
void set_base(ThreadState& state, uint64_t ticks) {
  state.block.base_ticks = ticks;
  state.block.word_ticks = ticks;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // A handler that has interrupted this may have taken the time.
  if (state.chain.handler_ticks >= ticks) state.block.word_ticks = 0;
}

// If the clock went back (a migration between unsynchronised CPUs), no time has passed.
uint64_t not_before_base(const ThreadState& state, uint64_t ticks) {
  const uint64_t base = state.block.base_ticks;
  return static_cast<int64_t>(ticks - base) < 0 ? base : ticks;
}

// Writes a TIME record, from which later records count their ticks. False: there is no
// space.
bool write_time(ThreadState& state, uint64_t ticks) {
  // The record's own stamp is as late as 32 bits can say: not before the records that
  // precede it, and not after those that follow.
  const Reservation time = append(state, ARCTRACE_TYPE_TIME, sizeof(arctrace_time_body),
                                  state.block.base_ticks + UINT32_MAX);
  if (time.word0 == nullptr) return false;
  part_at<arctrace_time_body>(time.body).ticks = ticks;
  IpcAtomics::store_release(word_at(time.word0), time.committed);  // I1
  set_base(state, ticks);
  return true;
}

// Has the block that was taken begin with the thread's opening records, or go on with
// those that an earlier call wrote there. These keep their times, because the calls of
// the handler that abandoned that call came after them. Returns the time of the records
// after them.
uint64_t open_block(ThreadState& state, const ProcessState& process, uint32_t keep,
                    uint64_t ticks) {
  std::byte* block = session.view.block(state.block.taken.index);
  const uint32_t size = session.view.geometry().block_size;
  const Opening begun = opening_of(block, size, state.block.base_ticks);
  OpeningState opening{{ticks, 0}, {}, 0};
  if (!begun.has_stack) opening = opening_state(state, ticks);
  // The call's other records with its own time must not precede these ones, either.
  bool is_rebased = opening.frames.ticks != ticks;
  if (begun.end == block + ARCTRACE_BLOCK_HEADER_SIZE) {
    const arctrace_block_form form =
        has_bare_heads() ? ARCTRACE_FORM_BARE : ARCTRACE_FORM_COMPACT;
    set_base(state, opening.frames.ticks);
    Handout<IpcAtomics>::open(
        session.view, state.block.taken,
        block_identity(state, process, form, ARCTRACE_CLASS_DATA, opening.frames.ticks));
    is_rebased = false;
  } else {
    set_base(state, begun.base_ticks);
  }
  state.block.set_space(begun.end, block + size);
  opening.frames.ticks = not_before_base(state, opening.frames.ticks);
  is_rebased =
      is_rebased || ticks_from_base(state, opening.frames.ticks) > session.delta_max;
  if (is_rebased && !write_time(state, opening.frames.ticks)) state.block.end_space();
  if (!begun.has_stack) write_opening(state, keep, opening);
  return opening.frames.ticks;
}

// Opens a fresh exclusive block with space for `keep` bytes after its opening records.
// `ticks` becomes the time of the record that follows them.
bool change_block(ThreadState& state, ProcessState& process, uint32_t keep,
                  uint64_t& ticks) {
  examine_full_block(state, process, ticks);
  close_block(state);
  if (!state.block.is_opening() && is_known_empty(state)) return false;
  const uint64_t freed = IpcAtomics::load_relaxed(session.view.control().freed);
  // Definitions come first, because without them no reader knows what the block's records
  // mean.
  if (!emit_definitions(state, process)) {
    note_no_block(state, freed);
    return false;
  }
  if (!state.block.is_opening() && !take_block(state)) return false;
  ticks = open_block(state, process, keep, ticks);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ++state.block.serial;  // open
  set_has_block(state, true);
  return true;
}

// Has later records count their ticks from this time. False: no space in this block.
bool rebase(ThreadState& state, uint32_t keep, uint64_t ticks) {
  const uint32_t time_length = session.head_size + sizeof(arctrace_time_body);
  std::byte* begin;
  if (!find_space(state, time_length + keep, begin)) return false;
  set_has_block(state, false);
  const bool written = write_time(state, ticks);
  set_has_block(state, true);
  return written;
}

}  // namespace

void set_full_block_hook(arctrace_shim_full_block* hook) { full_block_hook = hook; }

Reservation reserve_exclusive(ThreadState& state, ProcessState& process, uint16_t type,
                              uint32_t body_size, uint64_t ticks) {
  const uint32_t length = session.head_size + body_size;
  arctrace_writer_slot& slot = session.view.slot(state.slot.index);
  const uint32_t opening = session.head_size + stack_body_size(state, 0);
  const uint32_t space =
      session.view.geometry().block_size - ARCTRACE_BLOCK_HEADER_SIZE - opening;
  if (length > space || length > ARCTRACE_RECORD_LENGTH_MAX) {
    count_lost(slot, state, ARCTRACE_LOST_TOO_BIG, ticks);
    return kNoReservation;
  }
  if (has_bare_heads() && ticks <= state.chain.handler_ticks) {
    ticks = state.chain.handler_ticks + 1;
  }
  if (state.block.is_open) {
    ticks = not_before_base(state, ticks);
    if (ticks_from_base(state, ticks) <= session.delta_max ||
        rebase(state, length, ticks)) {
      const Reservation record = append(state, type, body_size, ticks);
      if (record.word0 != nullptr) {
        count_written(state);
        return record;
      }
    }
  }
  // A block whose opening was begun by an earlier call may have less space, or a STACK
  // from before a loss. A second block will do, unless the program overwrites the buffer
  // by mistake, or a signal handler loses records once more.
  constexpr int kTries = 2;
  for (int tries = 0; tries < kTries && change_block(state, process, length, ticks);
       ++tries) {
    if (state.loss.stack_differs) continue;
    ticks = not_before_base(state, ticks);
    const Reservation record = append(state, type, body_size, ticks);
    if (record.word0 != nullptr) {
      count_written(state);
      return record;
    }
  }
  count_lost(slot, state, ARCTRACE_LOST_FULL, ticks);
  return kNoReservation;
}

void close_block(ThreadState& state) {
  if (!state.block.is_open) return;
  set_has_block(state, false);
  state.block.forget();
  Handout<IpcAtomics>::close(session.view, state.block.taken);
}

}  // namespace arctrace::writer
