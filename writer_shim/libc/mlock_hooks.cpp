// Hooks mlockall. mlockall(MCL_CURRENT) fails if all mapped memory exceeds the limit on
// locked memory, and arctrace maps more than usual limits. If it fails, the program's own
// mappings are measured by the kernel's rule, and locked one by one if they are within
// the limit. A process that can't join the session has our libraries' memory all the
// same.
#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "src/base/raw_syscall.hpp"
#include "writer_shim/base/mappings.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/plt/library_hooks.hpp"

namespace arctrace::shim {
namespace {

constinit RealFunction<int(int)> real_mlockall("mlockall");

// The memory that is mapped for arctrace, in any order.
class OwnMemory {
 public:
  OwnMemory() {
    count_ = arctrace_shim_own_memory(ranges_, kRangesMax - kModules);
    dl_iterate_phdr(add_module, this);
  }

  // Calls visit(low, high) for each part of [low, high) that is not arctrace's.
  template <class Visit>
  void for_each_other_part(uintptr_t low, uintptr_t high, const Visit& visit) const {
    while (low < high) {
      uintptr_t end = high;
      uintptr_t next = high;
      for (uint32_t i = 0; i < count_; ++i) {
        const arctrace_shim_memory& own = ranges_[i];
        if (own.high <= low || own.low >= end) continue;
        end = own.low > low ? own.low : low;
        next = own.high;
      }
      if (end > low) visit(low, end);
      low = next;
    }
  }

 private:
  static constexpr uint32_t kRangesMax = 64;
  static constexpr uint32_t kModules = 2;

  static int add_module(dl_phdr_info* info, size_t, void* memory) {
    auto& own = *static_cast<OwnMemory*>(memory);
    ModuleImage image;
    if (!read_module(*info, image) || !is_own_module(image) || own.count_ == kRangesMax) {
      return 0;
    }
    constexpr uintptr_t kPage = 4096;
    own.ranges_[own.count_++] = {image.range.low & ~(kPage - 1),
                                 (image.range.high + kPage - 1) & ~(kPage - 1)};
    return 0;
  }

  arctrace_shim_memory ranges_[kRangesMax];
  uint32_t count_;
};

// Does the same as mlockall(flags), except for our memory. False: it would fail, too.
bool lock_others(int flags) {
  const OwnMemory own;
  rlimit64 limit{};
  uintptr_t size = 0;
  const bool is_known = for_each_mapping([&](uintptr_t low, uintptr_t high) {
    own.for_each_other_part(low, high,
                            [&](uintptr_t from, uintptr_t to) { size += to - from; });
  });
  if (!is_known ||
      raw_syscall(SYS_prlimit64, 0, RLIMIT_MEMLOCK, 0, sys::pointer_argument(&limit)) !=
          0 ||
      size > limit.rlim_cur) {
    return false;
  }
  const int when = (flags & MCL_ONFAULT) != 0 ? MLOCK_ONFAULT : 0;
  for_each_mapping([&](uintptr_t low, uintptr_t high) {
    own.for_each_other_part(low, high, [&](uintptr_t from, uintptr_t to) {
      raw_syscall(SYS_mlock2, static_cast<long>(from), static_cast<long>(to - from),
                  when);
    });
  });
  const int later = flags & ~MCL_CURRENT;
  return (flags & MCL_FUTURE) == 0 || raw_syscall(SYS_mlockall, later) == 0;
}

}  // namespace

void find_mlockall() { real_mlockall.get(); }

}  // namespace arctrace::shim

using namespace arctrace::shim;

ARCTRACE_HOOK int mlockall(int flags) noexcept {
  const int before = errno;
  const int result = real_mlockall.get()(flags);
  if (result == 0 || (flags & MCL_CURRENT) == 0 || (errno != ENOMEM && errno != EAGAIN) ||
      !lock_others(flags)) {
    return result;
  }
  errno = before;
  return 0;
}
