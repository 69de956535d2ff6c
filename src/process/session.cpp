// The session that the process joins, and the gate, which points to the gate of the
// session's buffer.
#include "src/process/session.hpp"

#include <arctrace/arctrace.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/open_buffer.hpp"
#include "src/os/kernel_use.hpp"
#include "src/process/gate.hpp"
#include "src/process/process_identity.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/live_filter.hpp"
#include "src/protocol/losses.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace::writer {

constinit Session session{};

namespace {

uint32_t join_claim;
uint32_t is_counted;  // as a program without space, which may try again

int map_buffer(const OpenedBuffer& buffer, BufferView& out) {
  if (!has_clock(buffer.geometry.clock)) return -EPROTO;
  // Ticks are those of the machine's clock, wherever they are taken.
  if (buffer.geometry.clock == ARCTRACE_CLOCK_MONOTONIC && !learn_time_namespace()) {
    return -EPROTO;
  }
  long error = 0;
  std::byte* base = map_for_huge_pages(buffer.fd, buffer.geometry.total_size, error);
  if (base == nullptr) return static_cast<int>(error);
  out = BufferView(base, buffer.geometry);
  return 0;
}

void count_without_memory(arctrace_control& control) {
  uint32_t uncounted = 0;
  if (!IpcAtomics::compare_exchange_acq_rel(is_counted, uncounted, uint32_t{1})) return;
  // Relaxed: no other data depends on this count, which is read when recording ends.
  IpcAtomics::fetch_add_relaxed(control.without_room, uint32_t{1});
}

// Counts this program in the control page, the only part of the buffer that it has
// address space for.
void count_without_memory(int fd) {
  constexpr uint64_t kPage = 4096;
  static_assert(sizeof(arctrace_control) <= kPage);
  const long page = raw_syscall(SYS_mmap, 0, long{kPage}, PROT_READ | PROT_WRITE,
                                MAP_SHARED, fd, long{ARCTRACE_CONTROL_OFFSET});
  if (page < 0 && page > -long{kPage}) return;
  count_without_memory(*reinterpret_cast<arctrace_control*>(page));
  raw_syscall(SYS_munmap, page, long{kPage});
}

// Finds the file to which the session's path leads. Returns 0 or a negative errno.
long find_session_file(struct stat& out) {
  return raw_syscall(SYS_newfstatat, AT_FDCWD, sys::pointer_argument(session.path),
                     sys::pointer_argument(&out), AT_SYMLINK_NOFOLLOW);
}

// Maps private zeros over the `size` bytes from `at`; memory is used when they are
// written.
void map_zeros(std::byte* at, uint64_t size) {
  raw_syscall(SYS_mmap, sys::pointer_argument(at), static_cast<long>(size),
              PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1);
}

// Joins the session of the buffer that open(buffer) opens; `path`: its path, or empty.
template <class Open>
int join_opened(const char* path, bool (*before_records)(), const Open& open) {
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
  OpenedBuffer buffer;
  int error = open(buffer);
  if (error != 0) return give_up(error);
  BufferView view;
  error = map_buffer(buffer, view);
  if (error == -ENOMEM) count_without_memory(buffer.fd);
  sys::close(buffer.fd);
  if (error != 0) return give_up(error);

  // A map's size cannot change. The handler is visible to the program, so it is there
  // only if it can be needed.
  if (buffer.is_shared && !buffer.is_map) {
    // When its file is cut off, the buffer is private zeros.
    guard_against_truncation(view.base(), view.geometry().total_size, end_session);
  }
  if (!make_process_state(session.view)) {
    count_without_memory(view.control());
    return give_up(-ENOMEM);
  }
  copy_bytes(session.path, path, length + 1);
  session.view = view;
  session.words_per_block =
      (view.geometry().block_size - ARCTRACE_BLOCK_HEADER_SIZE) / sizeof(uint32_t);
  const bool has_word = view.geometry().has_clock_word();
  session.clock = has_word ? Session::kClockWord : view.geometry().clock;
  session.delta_max = has_word ? 0 : UINT32_MAX;
  session.head_size = has_word ? ARCTRACE_BARE_HEAD_SIZE : ARCTRACE_COMPACT_HEAD_SIZE;
  session.ticks_per_second = buffer.header.ticks_per_second;
  session.is_map = buffer.is_map;
  session.released = false;
  struct stat file {};
  if (find_session_file(file) != 0) file = {};
  session.device = file.st_dev;
  session.inode = file.st_ino;
  session.creator = buffer.header.creator_pid;
  session.joined = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool is_filtered = before_records != nullptr && before_records();
  open_gate(view, session.clock, is_filtered);
  return 0;
}

}  // namespace

int join_session(const char* path, bool (*before_records)()) {
  return join_opened(path, before_records, [path](OpenedBuffer& buffer) {
    return open_buffer_untrusted(path, BufferAccess::kJoin, buffer);
  });
}

int join_handed_session(int fd, bool (*before_records)()) {
  return join_opened("", before_records, [fd](OpenedBuffer& buffer) {
    return open_handed_buffer_untrusted(fd, buffer);
  });
}

void use_coarse_clock() {
  // The clock word needs no counter either.
  if (session.clock == Session::kCoarseClock || has_bare_heads()) return;
  session.coarse_base_ns = read_clock_ns(CLOCK_MONOTONIC_COARSE);
  session.coarse_base_ticks = session_ticks();
  close_fast_path();
  session.clock = Session::kCoarseClock;
}

// The vDSO reads the coarse clock without the counter and without a system call.
uint64_t coarse_ticks() {
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t passed = read_clock_ns(CLOCK_MONOTONIC_COARSE) - session.coarse_base_ns;
  const uint64_t rate = session.ticks_per_second;
  return session.coarse_base_ticks + passed / kSecond * rate +
         passed % kSecond * rate / kSecond;
}

void leave_session() {
  if (!session.joined) return;
  count_lost_without_slot(session.view.control(), ARCTRACE_LOST_NESTED);
  end_session();
  map_zeros(session.view.base(), session.view.geometry().total_size);
}

arctrace_shim_session_state session_state() {
  arctrace_control& control = session.view.control();
  const uint32_t recorder = IpcAtomics::load_acquire(control.collector_lock);
  // The buffer of a session without a path is a recorder's own.
  if (session.path[0] == '\0') {
    return is_live(recorder) ? ARCTRACE_SHIM_GOES_ON : ARCTRACE_SHIM_REMOVED;
  }
  struct stat file {};
  const long error = find_session_file(file);
  if (error == -ENOENT || error == -ENOTDIR ||
      (error == 0 && (file.st_dev != session.device || file.st_ino != session.inode))) {
    // While it is collected, the file is only out of sight, in another root directory.
    return is_live(recorder) ? ARCTRACE_SHIM_GOES_ON : ARCTRACE_SHIM_REMOVED;
  }
  // After other errors, as those of a seccomp filter, nothing is known of the file. A
  // named session waits for its next collector, which is never its creator. Relaxed: no
  // other data depends on it, and a wrong one changes an environment at most.
  return (recorder & kOwnerDied) != 0 &&
                 IpcAtomics::load_relaxed(control.collector_pid) == session.creator
             ? ARCTRACE_SHIM_ABANDONED
             : ARCTRACE_SHIM_GOES_ON;
}

void end_session() {
  close_gate();
  session.joined = false;
}

namespace {

// Marks the slots of this process in the buffer as the kernel does when a thread dies:
// none of them writes any more. W1 release, matches W2, the acquires of the lock by
// which others find a dead owner: the records of this process are complete.
void give_up_slots(const BufferView& view) {
  const ProcessState* const process = process_state_of_session();
  if (process == nullptr || process->id == 0) return;
  for (uint32_t i = 0; i < Recycle<IpcAtomics>::slots_used(view); ++i) {
    arctrace_writer_slot& slot = view.slot(i);
    uint32_t lock = IpcAtomics::load_acquire(slot.lock);
    if (!is_live(lock) || IpcAtomics::load_relaxed(slot.process) != process->id) continue;
    IpcAtomics::compare_exchange_acq_rel(slot.lock, lock, kOwnerDied);
  }
}

}  // namespace

bool release_session() {
  if (!may_call_kernel()) return false;
  const BufferView& view = session.view;
  std::byte* const base = view.base();
  if (base != nullptr && !session.released) {
    // If the process dies meanwhile, the kernel reads its locks: so they are replaced by
    // copies all at once.
    constexpr uint64_t kPage = 4096;
    const Geometry& geometry = view.geometry();
    const uint64_t size = (geometry.blocks_offset + kPage - 1) & ~(kPage - 1);
    void* const copy = sys::map(size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (copy == nullptr) return false;
    const BufferView copied(static_cast<std::byte*>(copy), geometry);
    for (uint32_t i = 0; i < Recycle<IpcAtomics>::slots_used(view); ++i) {
      if (IpcAtomics::load_acquire(view.slot(i).lock) == 0) continue;
      copy_bytes(&copied.slot(i), &view.slot(i), sizeof(arctrace_writer_slot));
    }
    give_up_slots(view);
    end_truncation_guard(base);
    raw_syscall(SYS_mremap, sys::pointer_argument(copy), static_cast<long>(size),
                static_cast<long>(size), MREMAP_MAYMOVE | MREMAP_FIXED,
                sys::pointer_argument(base));
    map_zeros(base + size, geometry.total_size - size);
    session.released = true;
  }
  IpcAtomics::store_release(join_claim, uint32_t{0});
  return true;
}

namespace {

constexpr FastGate kClosed{};
constexpr const uint32_t* kClosedGate = &kClosed.gate;

void set_gate(const volatile FastGate*& gate, const volatile FastGate& to) {
  __atomic_store_n(&gate, &to, __ATOMIC_RELAXED);
}

uint32_t is_slow;  // nonzero: close_fast_path() was called since the gate was opened

}  // namespace

const volatile FastGate* fast_gate = &kClosed;
const volatile FastGate* filtered_gate = &kClosed;
const volatile FastGate* word_gate = &kClosed;
const volatile uint32_t* live_filter_number = kClosedGate;
const volatile uint32_t* record_filter_number = kClosedGate;

// Another thread may be in filter_fast_path(). Each of the two functions has a fence
// after its first stores: either that one then sees `is_slow`, or its stores to the gates
// come before those here.
void close_fast_path() {
  IpcAtomics::store_relaxed(is_slow, uint32_t{1});
  std::atomic_thread_fence(std::memory_order_seq_cst);
  set_gate(fast_gate, kClosed);
  set_gate(filtered_gate, kClosed);
  set_gate(word_gate, kClosed);
}

void filter_fast_path() {
  const volatile FastGate*& unfiltered = has_bare_heads() ? word_gate : fast_gate;
  const volatile FastGate& open = *__atomic_load_n(&unfiltered, __ATOMIC_RELAXED);
  if (&open == &kClosed) return;
  set_gate(filtered_gate, open);
  set_gate(unfiltered, kClosed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (IpcAtomics::load_relaxed(is_slow) != 0) set_gate(filtered_gate, kClosed);
}

void close_gate() {
  close_fast_path();
  arctrace_gate = kClosedGate;
}

void open_gate(const BufferView& view, uint32_t clock, bool is_filtered) {
  IpcAtomics::store_relaxed(is_slow, uint32_t{0});
  live_filter_number = &live_filter_area(view).round;
  record_filter_number = &record_filter_area(view).round;
  const bool has_word = clock == Session::kClockWord;
  if (has_word || clock == kCounterClock) {
    set_gate(is_filtered ? filtered_gate
             : has_word  ? word_gate
                         : fast_gate,
             FastGate::of(view));
  }
  arctrace_gate = &view.control().gate;
}

}  // namespace arctrace::writer

// In a program that never joins, the gate is this word, which stays 0.
const volatile uint32_t* arctrace_gate = arctrace::writer::kClosedGate;
