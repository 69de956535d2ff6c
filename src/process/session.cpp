#include "src/process/session.hpp"

#include <arctrace/arctrace.h>
#include <errno.h>
#include <sys/mman.h>

#include <atomic>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/huge_page_mapping.hpp"
#include "src/buffer/pinned_map.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/process_facts.hpp"
#include "src/protocol/losses.hpp"

namespace arctrace {

constinit Session session{};

namespace {

constexpr uint32_t kClosedGate = 0;

ProcessState* process_state;  // in a page that fork wipes
uint32_t join_claim;
// Survives fork: a child's parent is whoever this address space was before.
uint32_t last_process_id;
uint32_t last_pid;  // its number

// Our own user's, or deliberately shared with a group of ours, and nobody else.
bool is_meant_for_us(const struct stat& file) {
  const uint32_t user = sys::geteuid();
  if (file.st_uid == user || user == 0) return true;
  if ((file.st_mode & S_IRWXO) != 0 || (file.st_mode & (S_IRGRP | S_IWGRP)) == 0) {
    return false;
  }
  if (raw_syscall(SYS_getegid) == file.st_gid) return true;
  constexpr long kGroupsMax = 256;
  gid_t groups[kGroupsMax];
  const long count =
      raw_syscall(SYS_getgroups, kGroupsMax, sys::pointer_argument(groups));
  for (long i = 0; i < count; ++i) {
    if (groups[i] == file.st_gid) return true;
  }
  return false;
}

// A buffer's memory, opened: a file, or a BPF map that is pinned.
struct Memory {
  int fd;
  uint64_t size;
  bool is_map;
};

int open_file(int fd, Memory& out) {
  struct stat status {};
  if (const long error = sys::stat_fd(fd, &status); error < 0) {
    return static_cast<int>(error);
  }
  if (!S_ISREG(status.st_mode) || !is_meant_for_us(status)) return -EACCES;
  out = {fd, static_cast<uint64_t>(status.st_size), false};
  return 0;
}

// open() says EIO of a pinned map.
int open_map(const char* path, Memory& out) {
  struct stat status {};
  if (const long error =
          raw_syscall(SYS_newfstatat, AT_FDCWD, sys::pointer_argument(path),
                      sys::pointer_argument(&status), AT_SYMLINK_NOFOLLOW);
      error < 0) {
    return static_cast<int>(error);
  }
  if (!S_ISREG(status.st_mode) || !is_meant_for_us(status)) return -EACCES;
  const int fd = open_pinned_map(path, out.size);
  if (fd < 0) return fd;
  out.fd = fd;
  out.is_map = true;
  return 0;
}

int open_memory(const char* path, Memory& out) {
  const long fd = sys::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd == -EIO) return open_map(path, out);
  if (fd < 0) return static_cast<int>(fd == -ELOOP ? -EACCES : fd);
  const int error = open_file(static_cast<int>(fd), out);
  if (error != 0) sys::close(static_cast<int>(fd));
  return error;
}

// A map can't be read but by mapping it; of a file that is cut off meanwhile, a mapping
// would kill us.
int copy_header(const Memory& memory, arctrace_session_header& out) {
  if (!memory.is_map) {
    const long got = sys::pread(memory.fd, &out, sizeof out, 0);
    return got == static_cast<long>(sizeof out) ? 0 : -EPROTO;
  }
  if (memory.size < ARCTRACE_HEADER_SIZE) return -EPROTO;
  void* page = sys::map(ARCTRACE_HEADER_SIZE, PROT_READ, MAP_SHARED, memory.fd);
  if (page == nullptr) return -EPROTO;
  copy_bytes(&out, page, sizeof out);
  raw_syscall(SYS_munmap, sys::pointer_argument(page), ARCTRACE_HEADER_SIZE);
  return 0;
}

int map_buffer(const Memory& memory, BufferView& out) {
  arctrace_session_header header{};
  if (const int error = copy_header(memory, header); error != 0) return error;
  Geometry geometry;
  if (read_geometry_untrusted(header, ARCTRACE_SESSION_MAGIC, memory.size, geometry) !=
          GeometryError::kNone ||
      !has_clock(geometry.clock)) {
    return -EPROTO;
  }
  long error = 0;
  std::byte* base = map_for_huge_pages(memory.fd, geometry.total_size, error);
  if (base == nullptr) return static_cast<int>(error);
  out = BufferView(base, geometry);
  return 0;
}

}  // namespace

int join_session(const char* path) {
  const size_t length = text_length(path, sizeof session.path);
  if (length == sizeof session.path) return -ENAMETOOLONG;
  uint32_t unclaimed = 0;
  if (!IpcAtomics::compare_exchange_acq_rel(join_claim, unclaimed, uint32_t{1})) {
    return -EALREADY;
  }
  const auto give_up = [](long error) {
    IpcAtomics::store_release(join_claim, uint32_t{0});
    return static_cast<int>(error);
  };
  Memory memory{};
  if (const int error = open_memory(path, memory); error != 0) return give_up(error);
  BufferView view;
  const int error = map_buffer(memory, view);
  sys::close(memory.fd);
  if (error != 0) return give_up(error);

  void* page = sys::map(4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (page == nullptr || sys::advise(page, 4096, MADV_WIPEONFORK) != 0) {
    return give_up(-ENOMEM);
  }
  process_state = static_cast<ProcessState*>(page);
  copy_bytes(session.path, path, length + 1);
  session.view = view;
  session.clock = view.geometry().clock;
  session.is_map = memory.is_map;
  session.goes_straight = session.clock == kCounterClock ? 1 : 0;
  session.joined = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  arctrace_gate = &view.control().gate;
  return 0;
}

void use_coarse_clock() {
  if (session.clock == Session::kCoarseClock) return;
  const auto& header =
      *reinterpret_cast<const arctrace_session_header*>(session.view.base());
  session.coarse_ticks_per_second = header.ticks_per_second;
  session.coarse_base_ns = read_clock_ns(CLOCK_MONOTONIC_COARSE);
  session.coarse_base_ticks = session_ticks();
  IpcAtomics::store_relaxed(session.goes_straight, uint32_t{0});
  session.clock = Session::kCoarseClock;
}

// The vdso reads the coarse clock without the counter and without a system call.
uint64_t coarse_ticks() {
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t passed = read_clock_ns(CLOCK_MONOTONIC_COARSE) - session.coarse_base_ns;
  const uint64_t rate = session.coarse_ticks_per_second;
  return session.coarse_base_ticks + passed / kSecond * rate +
         passed % kSecond * rate / kSecond;
}

ProcessState* current_process(uint64_t ticks) {
  ProcessState* state = process_state;
  if (state == nullptr) return nullptr;
  if (IpcAtomics::load_acquire(state->phase) == ProcessState::kReady) return state;
  if (state->pid == 0 && !may_call_kernel()) return nullptr;
  uint32_t none = ProcessState::kNone;
  if (!IpcAtomics::compare_exchange_acq_rel(state->phase, none,
                                            uint32_t{ProcessState::kMaking})) {
    return none == ProcessState::kReady ? state : nullptr;
  }
  state->id =
      IpcAtomics::fetch_add_relaxed(session.view.control().process_next, uint32_t{1});
  if (may_call_kernel()) state->pid = sys::getpid();
  last_pid = state->pid;
  state->parent_id = last_process_id;
  state->origin = last_process_id == 0 ? ARCTRACE_ORIGIN_EXEC : ARCTRACE_ORIGIN_FORK;
  state->start_ticks = ticks;
  last_process_id = state->id;
  IpcAtomics::store_release(state->phase, uint32_t{ProcessState::kReady});
  return state;
}

void begin_forked_process(uint32_t pid) {
  if (process_state == nullptr) return;
  if (!may_call_kernel()) set_parent(last_pid);
  process_state->pid = pid;
}

uint32_t known_pid() {
  ProcessState* state = process_state;
  if (state == nullptr ||
      IpcAtomics::load_acquire(state->phase) != ProcessState::kReady) {
    return 0;
  }
  return state->pid;
}

bool is_new_process() {
  return process_state != nullptr && last_process_id != 0 &&
         IpcAtomics::load_relaxed(process_state->phase) == ProcessState::kNone;
}

void leave_session() {
  if (!session.joined) return;
  count_lost_without_slot(session.view.control(), ARCTRACE_LOST_NESTED);
  arctrace_gate = &kClosedGate;
  session.joined = false;
  raw_syscall(SYS_mmap, sys::pointer_argument(session.view.base()),
              static_cast<long>(session.view.geometry().total_size),
              PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1);
}

}  // namespace arctrace

// A program that never joins reads a word of ours that stays 0.
const volatile uint32_t* arctrace_gate = &arctrace::kClosedGate;
