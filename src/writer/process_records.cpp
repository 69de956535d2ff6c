// Scans the loader's modules, and records names of threads, execs and the end of the
// process.
#include "src/writer/process_records.hpp"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/process_facts.hpp"
#include "src/process/session.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/control_events.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/slow_path.hpp"

namespace arctrace::writer {

namespace {

struct KnownModule {
  uint64_t start;
  uint64_t end;
  Definition* definition;
  Definition* hooked;  // null: none
  uint32_t seen;       // number of the scan that last found it; 0: free entry
};

constexpr uint32_t kMaxModules = 4096;
constexpr uint32_t kFirstModules = 16;
constexpr uint32_t kPathMax = 1024;
constexpr uint32_t kBuildIdMax = 64;

// Private memory, inherited by fork children, changed only under the loader's lock.
ARCTRACE_LARGE_TABLE constinit KnownModule other_known[kMaxModules - kFirstModules]{};
constinit SplitTable<other_known, kFirstModules> known{};
uint32_t known_count;
uint32_t scan_number;

struct Scan {
  uint64_t ticks;
  bool is_first_object;
};

struct BuildId {
  const std::byte* bytes;
  uint32_t size;
};

// Finds the build-id in the process' own mapped notes, which are as trustworthy as the
// loader that mapped them.
BuildId find_build_id(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const std::byte*>(info.dlpi_addr + segment.p_vaddr);
    uint64_t left = segment.p_memsz;
    while (left >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      __builtin_memcpy(&note, at, sizeof note);
      const uint64_t name_size = (uint64_t{note.n_namesz} + 3) & ~uint64_t{3};
      const uint64_t body_size = (uint64_t{note.n_descsz} + 3) & ~uint64_t{3};
      const uint64_t size = sizeof note + name_size + body_size;
      if (size > left) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= kBuildIdMax) {
        return {at + sizeof note + name_size, note.n_descsz};
      }
      at += size;
      left -= size;
    }
  }
  return {nullptr, 0};
}

void module_range(const dl_phdr_info& info, uint64_t& start, uint64_t& end) {
  start = UINT64_MAX;
  end = 0;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t from = info.dlpi_addr + segment.p_vaddr;
    if (from < start) start = from;
    if (from + segment.p_memsz > end) end = from + segment.p_memsz;
  }
}

bool has_directory(const char* path) {
  while (*path != '\0' && *path != '/') ++path;
  return *path == '/';
}

// Copies the path of the module's file: the loader has an empty name for the program, and
// keeps a path as dlopen got it.
uint32_t module_path(const dl_phdr_info& info, bool is_program, char* to) {
  if (is_program) return read_executable(to, kPathMax);
  const auto n = static_cast<uint32_t>(text_length(info.dlpi_name, kPathMax));
  uint32_t used = 0;
  if (info.dlpi_name[0] != '/' && has_directory(info.dlpi_name)) {
    used = read_working_directory(to, kPathMax - n);
  }
  copy_bytes(to + used, info.dlpi_name, n);
  return used + n;
}

Definition* define_module(const dl_phdr_info& info, uint64_t start, uint64_t end,
                          uint32_t flags, uint64_t ticks) {
  char path[kPathMax + 1];
  const uint32_t length = module_path(info, (flags & ARCTRACE_MODULE_MAIN) != 0, path);
  path[length] = '\0';
  uint64_t device = 0;
  uint64_t inode = 0;
  struct stat status {};
  if (raw_syscall(SYS_newfstatat, AT_FDCWD, sys::pointer_argument(path),
                  sys::pointer_argument(&status), 0) == 0) {
    device = status.st_dev;
    inode = status.st_ino;
  }
  const BuildId id = find_build_id(info);
  const arctrace_module_body body{.process = 0,
                                  .flags = flags,
                                  .start = start,
                                  .end = end,
                                  .bias = info.dlpi_addr,
                                  .device = device,
                                  .inode = inode,
                                  .build_id_size = id.size,
                                  .path_size = length};
  const BodyPart parts[] = {{&body, sizeof body}, {id.bytes, id.size}, {path, length}};
  return add_definition(ARCTRACE_TYPE_MODULE, parts, 3,
                        offsetof(arctrace_module_body, path_size), ticks);
}

int visit(dl_phdr_info* info, size_t, void* argument) {
  auto& scan = *static_cast<Scan*>(argument);
  const bool is_program = scan.is_first_object;
  scan.is_first_object = false;
  uint64_t start;
  uint64_t end;
  module_range(*info, start, end);
  if (start >= end) return 0;
  for (uint32_t i = 0; i < known_count; ++i) {
    if (known[i].seen != 0 && known[i].start == start && known[i].end == end) {
      known[i].seen = scan_number;
      return 0;
    }
  }
  uint32_t free_entry = 0;
  while (free_entry < known_count && known[free_entry].seen != 0) ++free_entry;
  if (free_entry == kMaxModules) return 0;
  uint32_t flags = is_program ? ARCTRACE_MODULE_MAIN : 0;
  const unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
  if (vdso != 0 && vdso >= start && vdso < end) flags |= ARCTRACE_MODULE_VDSO;
  Definition* definition = define_module(*info, start, end, flags, scan.ticks);
  if (definition == nullptr) return 0;
  if (free_entry == known_count) ++known_count;
  known[free_entry] = {start, end, definition, nullptr, scan_number};
  return 0;
}

void define_gone(KnownModule& module, uint64_t ticks) {
  const arctrace_module_gone_body body{
      .process = 0, .reserved = 0, .start = module.start};
  const BodyPart parts[] = {{&body, sizeof body}};
  // There is no string to cut: the reserved word, which is 0, stands for an empty one.
  Definition* gone = add_definition(ARCTRACE_TYPE_MODULE_GONE, parts, 1,
                                    offsetof(arctrace_module_gone_body, reserved), ticks);
  if (gone == nullptr) return;
  retire_definition(*module.definition, ticks);
  if (module.hooked != nullptr) retire_definition(*module.hooked, ticks);
  module.seen = 0;
}

}  // namespace

void scan_modules(uint64_t ticks, bool first) {
  ++scan_number;
  Scan scan{first ? 0 : ticks, true};
  dl_iterate_phdr(visit, &scan);
  for (uint32_t i = 0; i < known_count; ++i) {
    if (known[i].seen != 0 && known[i].seen != scan_number) define_gone(known[i], ticks);
  }
}

void define_hooked(uint32_t kind, uint64_t function, uint64_t ticks) {
  for (uint32_t i = 0; i < known_count; ++i) {
    KnownModule& module = known[i];
    if (module.seen == 0 || function < module.start || function >= module.end) continue;
    if (module.hooked != nullptr) return;
    const arctrace_hooked_body body{
        .process = 0, .kind = kind, .reserved = 0, .function = function};
    const BodyPart parts[] = {{&body, sizeof body}};
    module.hooked = add_definition(ARCTRACE_TYPE_HOOKED, parts, 1,
                                   offsetof(arctrace_hooked_body, reserved), ticks);
    return;
  }
}

namespace {

constexpr uint32_t kUntracedPathMax = 1024;

// Calls use(scope, state, process, ticks) if the thread has a slot or gets one.
template <class Use>
void as_attached_thread(const Use& use) {
  if (!session.joined) return;
  const WriterCall writer_call;
  if (writer_call.refused()) return;
  const uint64_t ticks = session_ticks();
  ThreadState* state = attached_thread(writer_call, ticks);
  ProcessState* process = current_process(ticks);
  if (state == nullptr || process == nullptr) return;
  use(writer_call, *state, *process, ticks);
}

bool is_defined(ProcessState& process) {
  return IpcAtomics::load_acquire(process.defined) != 0;
}

// Records the path for the recorder, which by itself finds only the program file of a
// process that lives long enough.
void record_jit_dump(ThreadState& state, ProcessState& process, uint64_t ticks) {
  // The buffer is not on the stack, which may be a signal handler's small one. Only the
  // first thread that ends the process uses it.
  alignas(4096) ARCTRACE_LARGE_TABLE static char path[8192];
  static uint32_t claim;
  uint32_t unclaimed = 0;
  if (!may_call_kernel() ||
      !IpcAtomics::compare_exchange_acq_rel(claim, unclaimed, uint32_t{1})) {
    return;
  }
  const uint32_t n = find_jit_dump(process.pid, path, sizeof path);
  if (n == 0) return;
  const arctrace_jitdump_body body{.process = process.id, .path_size = n};
  const BodyPart parts[] = {{&body, sizeof body}, {path, n}};
  write_parts(state, process, ARCTRACE_TYPE_JITDUMP, parts, 2, ticks);
}

}  // namespace

void record_own_name(const char* name) {
  as_attached_thread(
      [=](Nesting nesting, ThreadState& state, ProcessState& process, uint64_t) {
        if (nesting.nested()) return;
        const size_t n = name == nullptr ? 0 : text_length(name, sizeof state.name - 1);
        copy_bytes(state.name, name, n);
        state.name[n] = '\0';
        state.definitions.has_thread = false;
        emit_definitions(state, process);
      });
}

void record_name_of(uint32_t tid, const char* name) {
  as_attached_thread(
      [=](Nesting nesting, ThreadState& state, ProcessState& process, uint64_t ticks) {
        if (nesting.nested() || !is_defined(process)) return;
        const uint32_t used = Recycle<IpcAtomics>::slots_used(session.view);
        for (uint32_t i = 0; i < used; ++i) {
          arctrace_writer_slot& slot = session.view.slot(i);
          if (IpcAtomics::load_relaxed(slot.tid) != tid ||
              IpcAtomics::load_relaxed(slot.process) != process.id ||
              !is_live(IpcAtomics::load_acquire(slot.lock))) {
            continue;
          }
          const ThreadFacts thread{IpcAtomics::load_relaxed(slot.writer), tid,
                                   IpcAtomics::load_relaxed(slot.start_ticks), name};
          write_thread(state, process, thread, ticks);
          return;
        }
      });
}

void record_thread_end() {
  as_attached_thread(
      [](Nesting, ThreadState& state, ProcessState& process, uint64_t ticks) {
        if (!state.definitions.has_thread || !is_defined(process)) return;
        const arctrace_thread_end_body body{.process = process.id,
                                            .phase = ARCTRACE_LIFE_THREAD_END,
                                            .writer = state.slot.writer,
                                            .reserved = 0};
        const BodyPart parts[] = {{&body, sizeof body}};
        write_parts(state, process, ARCTRACE_TYPE_PHASE, parts, 1, ticks);
      });
}

void record_untraced(const char* path, uint32_t why) {
  as_attached_thread([=](Nesting, ThreadState& state, ProcessState& process,
                         uint64_t ticks) {
    emit_definitions(state, process);
    const auto n = static_cast<uint32_t>(text_length(path, kUntracedPathMax));
    const arctrace_untraced_body body{.process = process.id, .why = why, .path_size = n};
    const BodyPart parts[] = {{&body, sizeof body}, {path, n}};
    write_parts(state, process, ARCTRACE_TYPE_UNTRACED, parts, 2, ticks);
  });
}

void record_process_end(uint32_t how, int32_t status) {
  const bool is_exec = how == ARCTRACE_END_EXEC || how == ARCTRACE_END_NONE;
  // A child that was forked only to execute a program has recorded nothing so far, and
  // does not record this either.
  if (is_exec && (!may_call_kernel() || sys::getpid() != known_pid())) return;
  as_attached_thread(
      [=](Nesting, ThreadState& state, ProcessState& process, uint64_t ticks) {
        emit_definitions(state, process);
        if (!is_defined(process)) return;  // readers don't know the process
        if (!is_exec) record_jit_dump(state, process, ticks);
        const arctrace_process_end_body body{
            .process = process.id, .how = how, .status = status};
        const BodyPart parts[] = {{&body, sizeof body}};
        write_parts(state, process, ARCTRACE_TYPE_PROCESS_END, parts, 1, ticks);
      });
}

void record_phase(uint32_t phase) {
  as_attached_thread(
      [=](Nesting, ThreadState& state, ProcessState& process, uint64_t ticks) {
        emit_definitions(state, process);
        if (!is_defined(process)) return;  // readers don't know the process
        const arctrace_phase_body body{.process = process.id, .phase = phase};
        const BodyPart parts[] = {{&body, sizeof body}};
        write_parts(state, process, ARCTRACE_TYPE_PHASE, parts, 1, ticks);
      });
}

ClockTimes times_now() { return {read_counter(), read_clock_ns(CLOCK_MONOTONIC)}; }

void record_start(TracerStart which, const ClockTimes& began) {
  as_attached_thread([&](Nesting, ThreadState& state, ProcessState& process,
                         uint64_t ticks) {
    emit_definitions(state, process);
    if (!is_defined(process)) return;  // readers don't know the process
    const bool by_counter = session.view.geometry().clock == kCounterClock;
    uint64_t began_ticks = by_counter ? began.by_counter : began.monotonic_ns;
    // The clock word, by which the thread's start is told, is behind the clock.
    const uint64_t latest = which == TracerStart::kFirst ? state.slot.start_ticks : ticks;
    if (has_bare_heads() && began_ticks > latest) began_ticks = latest;
    const arctrace_traced_body body{
        .process = process.id, .phase = ARCTRACE_LIFE_TRACED, .began_ticks = began_ticks};
    const BodyPart parts[] = {{&body, sizeof body}};
    write_parts(state, process, ARCTRACE_TYPE_PHASE, parts, 1, ticks);
  });
}

void record_helper(uint32_t pid) {
  as_attached_thread([=](Nesting, ThreadState& state, ProcessState& process,
                         uint64_t ticks) {
    emit_definitions(state, process);
    if (!is_defined(process)) return;  // readers don't know the process
    const arctrace_helper_body body{
        .process = process.id, .phase = ARCTRACE_LIFE_HELPER, .pid = pid, .reserved = 0};
    const BodyPart parts[] = {{&body, sizeof body}};
    write_parts(state, process, ARCTRACE_TYPE_PHASE, parts, 1, ticks);
  });
}

void note_exec(uint32_t pid, uint64_t ticks) {
  if (!session.joined) return;
  if (pid == 0) {
    const bool asks = may_call_kernel();
    pid = asks ? static_cast<uint32_t>(sys::getpid()) : known_pid();
  }
  const uint64_t now = session_ticks();
  if (ticks == 0 || ticks > now) ticks = now;
  if (pid == 0) return;
  note_control_event(execs(session.view), ticks, ExecEvent{pid, now - ticks}.pack());
}

}  // namespace arctrace::writer
