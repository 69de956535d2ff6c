// A PLT entry is eight bytes, "jmp *d(%rip); xchg %ax,%ax": redirecting it changes the
// displacement, in one aligned store.
#include "writer_shim/arch/plt_cells.hpp"

#include <sys/mman.h>

#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/base/page_protection.hpp"

namespace arctrace::shim {
namespace {

constexpr size_t kPageSize = 4096;
constexpr uintptr_t kStep = uintptr_t{1} << 16;
constexpr uintptr_t kTries = 4096;
constexpr uintptr_t kJumpLength = 6;  // ff 25 and the displacement

}  // namespace

// Below the module, because the heap, which brk makes grow, begins after the program.
bool PltCells::map_near(const ModuleImage& image) {
  const uintptr_t base = image.range.low & ~(kStep - 1);
  for (uintptr_t i = 1; i <= kTries && base > (i + 1) * kStep; ++i) {
    const uintptr_t wanted = base - i * kStep;
    const long result = raw_syscall(
        SYS_mmap, static_cast<long>(wanted), kPageSize, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (result == static_cast<long>(wanted)) {
      cells_ = reinterpret_cast<uint64_t*>(wanted);
      return true;
    }
    // A kernel that does not know the flag chooses another address.
    if (result > 0) raw_syscall(SYS_munmap, result, kPageSize);
  }
  return false;
}

bool PltCells::redirect(const ModuleImage& image, uint64_t* jump, uint64_t target) {
  if (cells_ == nullptr && !map_near(image)) return false;
  if (used_ == kPageSize / sizeof(uint64_t)) return false;
  uint64_t* cell = &cells_[used_];
  const auto address = reinterpret_cast<uintptr_t>(jump);
  const auto distance =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(cell) - (address + kJumpLength));
  const auto displacement = static_cast<int32_t>(distance);
  if (distance != displacement ||
      !protect(address, sizeof *jump, PROT_READ | PROT_WRITE | PROT_EXEC)) {
    return false;
  }
  ++used_;
  IpcAtomics::store_release(*cell, target);
  uint64_t code = *jump;
  __builtin_memcpy(reinterpret_cast<unsigned char*>(&code) + 2, &displacement,
                   sizeof displacement);
  // The entry is one aligned word: a thread that runs it sees the old or the new one.
  IpcAtomics::store_release(*jump, code);
  protect(address, sizeof *jump, PROT_READ | PROT_EXEC);
  return true;
}

void PltCells::release() {
  if (cells_ != nullptr) {
    raw_syscall(SYS_munmap, static_cast<long>(reinterpret_cast<uintptr_t>(cells_)),
                kPageSize);
  }
  *this = {};
}

}  // namespace arctrace::shim
