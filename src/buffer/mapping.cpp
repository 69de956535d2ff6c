// Maps buffers for huge pages, and guards mappings against files that are cut off
// (open_buffer.hpp).
#include <signal.h>
#include <sys/mman.h>

#include <atomic>

#include "src/base/large_table.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/buffer/open_buffer.hpp"

namespace arctrace {

namespace {

constexpr uint64_t kSmallPage = 4096;

bool is_error(long result) { return result < 0 && result > -4096; }

void unmap(uintptr_t from, uintptr_t to) {
  if (from < to) {
    raw_syscall(SYS_munmap, static_cast<long>(from), static_cast<long>(to - from));
  }
}

}  // namespace

std::byte* map_for_huge_pages(int fd, uint64_t size, long& error) {
  // The reserved address space contains a multiple of kHugePageSize with `size` bytes
  // after it.
  const uint64_t reserved_size = size + kHugePageSize;
  const long area = raw_syscall(SYS_mmap, 0, static_cast<long>(reserved_size), PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (is_error(area)) {
    error = area;
    return nullptr;
  }
  const auto low = static_cast<uintptr_t>(area);
  const uintptr_t high = low + (reserved_size + kSmallPage - 1) / kSmallPage * kSmallPage;
  const uintptr_t base = (low + kHugePageSize - 1) / kHugePageSize * kHugePageSize;
  const long mapped =
      raw_syscall(SYS_mmap, static_cast<long>(base), static_cast<long>(size),
                  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (is_error(mapped)) {
    unmap(low, high);
    error = mapped;
    return nullptr;
  }
  unmap(low, base);
  unmap(base + (size + kSmallPage - 1) / kSmallPage * kSmallPage, high);
  return reinterpret_cast<std::byte*>(base);
}

namespace {

constexpr size_t kMappingsMax = 16;

struct Guarded {
  std::atomic<std::byte*> base{nullptr};  // null: free
  size_t size = 0;
  void (*on_cut)() = nullptr;
  std::atomic<bool> is_cut{false};
};
ARCTRACE_LARGE_TABLE constinit Guarded guarded_mappings[kMappingsMax];
constinit struct sigaction action_before {};
constinit std::atomic<bool> is_installed;

Guarded* find_guarded(const std::byte* base) {
  for (Guarded& mapping : guarded_mappings) {
    if (mapping.base.load(std::memory_order_acquire) == base) return &mapping;
  }
  return nullptr;
}

bool replace_mapping(const std::byte* address) {
  for (Guarded& mapping : guarded_mappings) {
    std::byte* const base = mapping.base.load(std::memory_order_acquire);
    if (base == nullptr || address < base || address >= base + mapping.size) continue;
    raw_syscall(SYS_mmap, sys::pointer_argument(base), static_cast<long>(mapping.size),
                PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1);
    if (!mapping.is_cut.exchange(true) && mapping.on_cut != nullptr) mapping.on_cut();
    return true;
  }
  return false;
}

// Does what would have happened without this handler.
void hand_on(int signal, siginfo_t* info, void* context) {
  if ((action_before.sa_flags & SA_SIGINFO) != 0) {
    return action_before.sa_sigaction(signal, info, context);
  }
  if (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN) {
    return action_before.sa_handler(signal);
  }
  const bool is_fault = info->si_code > 0;
  if (action_before.sa_handler == SIG_IGN && !is_fault) return;
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
  // A faulting instruction faults again, and ends the process. A signal that was sent is
  // sent again, and arrives when this handler has returned.
  if (!is_fault) {
    raw_syscall(SYS_tgkill, sys::getpid(), sys::gettid(), signal);
  }
}

void handle_bus_error(int signal, siginfo_t* info, void* context) {
  if (info->si_code > 0 &&
      replace_mapping(static_cast<const std::byte*>(info->si_addr))) {
    return;
  }
  hand_on(signal, info, context);
}

bool install_handler() {
  if (is_installed.exchange(true)) return true;
  struct sigaction action {};
  action.sa_sigaction = handle_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  if (sigaction(SIGBUS, &action, &action_before) == 0) return true;
  is_installed.store(false);
  return false;
}

}  // namespace

bool guard_against_truncation(std::byte* base, size_t size, void (*on_cut)()) {
  if (!install_handler()) return false;
  static std::byte reserved;  // an address that no mapping begins at
  for (Guarded& mapping : guarded_mappings) {
    std::byte* none = nullptr;
    if (!mapping.base.compare_exchange_strong(none, &reserved)) continue;
    mapping.size = size;
    mapping.on_cut = on_cut;
    mapping.is_cut.store(false);
    mapping.base.store(base, std::memory_order_release);
    return true;
  }
  return false;
}

bool end_truncation_guard(const std::byte* base) {
  Guarded* const mapping = find_guarded(base);
  if (mapping == nullptr) return false;
  const bool is_cut = mapping->is_cut.load();
  mapping->base.store(nullptr, std::memory_order_release);
  return is_cut;
}

bool is_cut_off(const std::byte* base) {
  const Guarded* const mapping = find_guarded(base);
  return mapping != nullptr && mapping->is_cut.load();
}

}  // namespace arctrace
