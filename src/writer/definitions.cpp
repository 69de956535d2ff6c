// Writes the definitions of the process to the buffer, and writes all of them again when
// earlier copies may be gone.
#include "src/writer/definitions.hpp"

#include <sys/prctl.h>

#include <algorithm>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/process_facts.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/process/work_claims.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/control_events.hpp"
#include "src/protocol/definitions_life.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/record.hpp"
#include "src/writer/shared_records.hpp"

namespace arctrace::writer {

namespace {

// The first field of every definition's body.
constexpr uint32_t kProcessSize = sizeof(arctrace_string_body::process);

// The session identity of the process whose facts were read, but have not been written
// because there was no space; 0: none. In a fork child it may be an ancestor's.
uint32_t facts_read_for;

uint32_t body_max() {
  return record_length_max(session.view.geometry()) - ARCTRACE_FULL_HEAD_SIZE;
}

bool write_process(ThreadState& state, ProcessState& process, const ProcessFacts& facts) {
  constexpr uint32_t kFixedAndPaddings = sizeof(arctrace_process_body) +
                                         sizeof(arctrace_process_fork) +
                                         2U * sizeof(uint32_t);
  uint32_t space = body_max() - kFixedAndPaddings;
  const uint32_t n = facts.executable_size < space ? facts.executable_size : space;
  space -= n;
  const uint32_t m = facts.arguments_size < space ? facts.arguments_size : space;
  const arctrace_process_body body{.process = process.id,
                                   .parent = process.parent_id,
                                   .pid = process.pid,
                                   .ppid = facts.parent_pid,
                                   .uid = facts.user,
                                   .origin = process.origin,
                                   .start_ticks = process.start_ticks,
                                   .executable_size = n,
                                   .arguments_size = m};
  const arctrace_process_fork fork{.forker = IpcAtomics::load_relaxed(process.forker),
                                   .forked_ticks = process.forked_ticks};
  const BodyPart parts[] = {{&body, sizeof body},
                            {facts.executable(), n},
                            {facts.arguments(), m},
                            {&fork, sizeof fork}};
  const bool has_fork = fork.forker != 0 || fork.forked_ticks != 0;
  return write_parts(state, process, ARCTRACE_TYPE_PROCESS, parts, has_fork ? 4 : 3,
                     process.start_ticks);
}

bool write_inherited(ThreadState& state, ProcessState& process) {
  const ForkFrames* frames = inherited_frames(process);
  if (frames == nullptr) return true;
  constexpr auto kKeySize = static_cast<uint32_t>(sizeof frames->keys[0]);
  const uint32_t space =
      body_max() - static_cast<uint32_t>(sizeof(arctrace_inherited_body));
  const uint32_t count = std::min(frames->count, space / kKeySize);
  const arctrace_inherited_body body{
      .process = process.id, .depth = frames->depth, .count = count};
  const BodyPart parts[] = {{&body, sizeof body},
                            {frames->keys + (frames->count - count), count * kKeySize}};
  return write_parts(state, process, ARCTRACE_TYPE_INHERITED, parts, 2,
                     process.start_ticks);
}

// Writes the age of the process when it began to record, unless it was forked, or its
// exec was noted.
bool write_age(ThreadState& state, ProcessState& process) {
  if (process.origin != ARCTRACE_ORIGIN_EXEC || !may_call_kernel()) return true;
  bool is_noted = false;
  for_each_control_event_untrusted(execs(session.view), 0, [&](uint64_t, uint32_t pid) {
    is_noted |= pid == process.pid;
  });
  if (is_noted) return true;
  const arctrace_session_header& header =
      *reinterpret_cast<const arctrace_session_header*>(session.view.base());
  const uint64_t age_ns = read_process_age_ns();
  const uint64_t rate = header.ticks_per_second;
  if (age_ns == 0 || rate == 0) return true;
  // Definitions may be written again much later.
  const uint64_t since_start = session_ticks() - process.start_ticks;
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t since_ns =
      since_start / rate * kSecond + since_start % rate * kSecond / rate;
  const arctrace_age_body body{.process = process.id,
                               .reserved = 0,
                               .age_ns = age_ns > since_ns ? age_ns - since_ns : 0};
  const BodyPart parts[] = {{&body, sizeof body}};
  return write_parts(state, process, ARCTRACE_TYPE_AGE, parts, 1, process.start_ticks);
}

// Writes the PID namespace by whose numbers the kernel's records name this process.
bool write_pid_namespace(ThreadState& state, ProcessState& process, uint32_t inode) {
  const auto& header =
      *reinterpret_cast<const arctrace_session_header*>(session.view.base());
  // perf's events have the numbers of the recorder's namespace, which is usually the
  // process' too.
  if ((header.features_optional & ARCTRACE_FEATURE_PERF) != 0) return true;
  if (inode == 0 || inode == kFirstPidNamespace) return true;
  const arctrace_pid_namespace_body body{.process = process.id, .inode = inode};
  const BodyPart parts[] = {{&body, sizeof body}};
  return write_parts(state, process, ARCTRACE_TYPE_PID_NAMESPACE, parts, 1,
                     process.start_ticks);
}

bool write_own_thread(ThreadState& state, ProcessState& process) {
  char kernel_name[16] = {};
  const char* name = state.name;
  if (name[0] == '\0' && !may_call_kernel()) {
    name = process_facts().thread_name;
  } else if (name[0] == '\0') {
    raw_syscall(SYS_prctl, PR_GET_NAME, sys::pointer_argument(kernel_name));
    name = kernel_name;
  }
  return write_thread(state, process,
                      {state.slot.writer, state.slot.tid, state.slot.start_ticks, name},
                      session_ticks());
}

bool write_definition(ThreadState& state, ProcessState& process, Definition& definition) {
  // Definitions that were retired before this process began concern its ancestors only;
  // those retired before all was begun anew, only records that were made before. An
  // ancestor's patches are in the ancestor's records, and may take many times the space
  // of the other definitions of a short child.
  const uint64_t since =
      std::max(process.start_ticks, IpcAtomics::load_acquire(process.since_ticks));
  if (IpcAtomics::load_acquire(definition.retired_ticks) <= since ||
      (definition.type == ARCTRACE_TYPE_MODULE_GONE && definition.ticks <= since) ||
      (definition.type == ARCTRACE_TYPE_PATCHES &&
       definition.ticks < process.start_ticks)) {
    return true;
  }
  IpcAtomics::fetch_add_relaxed(process.emitted_bytes, uint64_t{definition.size});
  std::byte* body = definition.body();
  uint32_t size = definition.size;
  uint32_t length = 0;
  __builtin_memcpy(&length, body + definition.cut_at, sizeof length);
  if (size > body_max()) {
    const uint32_t rest = size - padded_size(length);
    if (rest > body_max()) return true;  // a block of this size can't have it at all
    length = (body_max() - rest) & ~3u;
    size = rest + length;
  }
  const uint64_t ticks =
      definition.ticks > process.start_ticks ? definition.ticks : process.start_ticks;
  const uint32_t rest_at = definition.cut_at + static_cast<uint32_t>(sizeof length);
  const BodyPart parts[] = {{&process.id, kProcessSize},
                            {body + kProcessSize, definition.cut_at - kProcessSize},
                            {&length, sizeof length},
                            {body + rest_at, size - rest_at}};
  return write_parts(state, process, static_cast<uint16_t>(definition.type), parts, 4,
                     ticks);
}

// Whether retired definitions of this process take space that others may need.
bool is_worth_compacting(ProcessState& process) {
  const Geometry& geometry = session.view.geometry();
  if (geometry.mode != ARCTRACE_MODE_OVERWRITE) return false;
  constexpr uint64_t kTimes = 4;
  const uint64_t used =
      IpcAtomics::load_relaxed(session.view.control().definition_blocks);
  const uint64_t valid = valid_definition_bytes();
  return used >= geometry.block_count / 4 &&
         IpcAtomics::load_relaxed(process.emitted_bytes) >
             kTimes * (valid + geometry.block_size);
}

// Has all definitions that are not retired written again, and gives the earlier copies up
// as soon as no record needs them.
void compact(const ThreadState& state, ProcessState& process) {
  if (!claim_work(Work::kCompactDefinitions, process, state.slot.writer)) return;
  const BufferView& view = session.view;
  const uint64_t next = IpcAtomics::load_acquire(view.control().next);
  for (uint32_t i = 0; i < view.geometry().block_count; ++i) {
    arctrace_block_header& header = view.block_header(i);
    // C2 acquire, matches C1.
    if (IpcAtomics::load_acquire(header.magic) != ARCTRACE_BLOCK_MAGIC ||
        !DefinitionsLife<IpcAtomics>::is_definitions(header) ||
        IpcAtomics::load_relaxed(header.process) != process.id) {
      continue;
    }
    uint64_t retired = 0;
    IpcAtomics::compare_exchange_acq_rel(header.retired, retired, next);
  }
  IpcAtomics::store_relaxed(process.emitted_bytes, uint64_t{0});
  IpcAtomics::store_release(process.since_ticks, session_ticks());
  IpcAtomics::fetch_add_acq_rel(process.compactions, uint32_t{1});
  end_work(Work::kCompactDefinitions);
}

// Counts the definitions for which there was no space, each once.
void count_missing(ThreadState& state, ProcessState& process) {
  uint64_t missing = 0;
  uint32_t no = 0;
  if (IpcAtomics::load_relaxed(process.defined) == 0 &&
      IpcAtomics::compare_exchange_acq_rel(process.self_counted, no, uint32_t{1})) {
    ++missing;
  }
  if (!state.definitions.has_thread && !state.definitions.is_counted) {
    state.definitions.is_counted = true;
    ++missing;
  }
  const uint64_t emitted = IpcAtomics::load_acquire(process.emitted);
  uint64_t counted = IpcAtomics::load_acquire(process.counted);
  const bool is_ahead =
      counted != 0 &&
      (emitted == 0 || definition_at(counted)->number > definition_at(emitted)->number);
  uint64_t last = is_ahead ? counted : emitted;
  uint64_t found = 0;
  for (;;) {
    const uint64_t next = definition_after(last);
    if (next == 0) break;
    last = next;
    ++found;
  }
  if (found != 0 &&
      IpcAtomics::compare_exchange_acq_rel(process.counted, counted, last)) {
    missing += found;
  }
  if (missing == 0) return;
  arctrace_writer_slot& slot = session.view.slot(state.slot.index);
  count_lost(slot, state, ARCTRACE_LOST_DEFINITIONS, session_ticks());
  add_to_lost(slot, ARCTRACE_LOST_DEFINITIONS, missing - 1);
}

// The generation for which the process' definitions are to be written.
uint32_t definitions_generation(ProcessState& process) {
  return IpcAtomics::load_relaxed(session.view.control().definitions_round) +
         IpcAtomics::load_acquire(process.compactions);
}

// Two threads may write the same definition at once: the second copy is equal. False:
// there is no space.
bool emit_missing(ThreadState& state, ProcessState& process) {
  const uint32_t generation = definitions_generation(process);
  if (uint32_t seen = IpcAtomics::load_relaxed(process.generation);
      seen != generation &&
      IpcAtomics::compare_exchange_acq_rel(process.generation, seen, generation)) {
    renew_definitions(process);
  }
  if (state.definitions.thread_generation != generation) {
    state.definitions.thread_generation = generation;
    state.definitions.has_thread = false;
  }
  if (IpcAtomics::load_acquire(process.defined) == 0) {
    // If there was no space, each slow path tries again; it does not read the facts
    // again, by eight system calls.
    const bool are_read = IpcAtomics::load_relaxed(facts_read_for) == process.id;
    const ProcessFacts& facts = are_read ? last_process_facts() : process_facts();
    IpcAtomics::store_relaxed(facts_read_for, process.id);
    if (!write_process(state, process, facts) ||
        !write_pid_namespace(state, process, facts.pid_namespace) ||
        !write_age(state, process) || !write_inherited(state, process)) {
      return false;
    }
    IpcAtomics::store_relaxed(facts_read_for, uint32_t{0});
    IpcAtomics::store_release(process.defined, uint32_t{1});
  }
  if (!state.definitions.has_thread) {
    if (!write_own_thread(state, process)) return false;
    state.definitions.has_thread = true;
  }
  // If another generation begins meanwhile, the thread that began it writes the rest;
  // otherwise this loop might never end.
  while (IpcAtomics::load_relaxed(process.generation) == generation) {
    uint64_t done = IpcAtomics::load_acquire(process.emitted);
    const uint64_t next = definition_after(done);
    if (next == 0) break;
    if (!write_definition(state, process, *definition_at(next))) return false;
    IpcAtomics::compare_exchange_acq_rel(process.emitted, done, next);
  }
  return true;
}

}  // namespace

bool write_parts(ThreadState& state, ProcessState& process, uint16_t type,
                 const BodyPart* parts, uint32_t part_count, uint64_t ticks) {
  const Reservation record =
      reserve_definition(state, process, type, parts_size(parts, part_count), ticks);
  if (record.word0 == nullptr) return false;
  copy_parts(record.body, parts, part_count);
  commit(record);
  return true;
}

bool write_thread(ThreadState& state, ProcessState& process, const ThreadFacts& thread,
                  uint64_t ticks) {
  const auto n =
      static_cast<uint32_t>(text_length(thread.name, sizeof ThreadState::name - 1));
  const arctrace_thread_body body{.writer = thread.writer,
                                  .process = process.id,
                                  .tid = thread.tid,
                                  .name_size = n,
                                  .start_ticks = thread.start_ticks};
  const BodyPart parts[] = {{&body, sizeof body}, {thread.name, n}};
  return write_parts(state, process, ARCTRACE_TYPE_THREAD, parts, 2, ticks);
}

void renew_definitions(ProcessState& process) {
  const uint64_t chain = IpcAtomics::load_acquire(process.definitions_chain);
  if (chain != 0 && BlockName::index(chain) < session.view.geometry().block_count) {
    close_shared<IpcAtomics>(session.view, BlockName::index(chain),
                             BlockName::generation(chain));
  }
  IpcAtomics::store_relaxed(process.emitted_bytes, uint64_t{0});
  IpcAtomics::store_release(process.defined, uint32_t{0});
  IpcAtomics::store_release(process.emitted, uint64_t{0});
}

bool emit_definitions(ThreadState& state, ProcessState& process) {
  if (is_worth_compacting(process)) compact(state, process);
  if (emit_missing(state, process)) {
    state.definitions.are_enough = true;
    return true;
  }
  if (session.view.geometry().mode != ARCTRACE_MODE_OVERWRITE) {
    return state.definitions.are_enough;
  }
  // The definitions may never fit into the half of the blocks that they get.
  count_missing(state, process);
  return true;
}

void emit_from_this_thread() {
  if (!session.joined) return;
  const WriterCall writer_call;
  ThreadState* state = thread_local_state.state;
  if (writer_call.refused() || state == nullptr || !state->attached) return;
  if (ProcessState* process = current_process(session_ticks()); process != nullptr) {
    emit_definitions(*state, *process);
  }
}

}  // namespace arctrace::writer
