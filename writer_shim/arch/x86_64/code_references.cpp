// Finds uses of slots. Instructions have no fixed length here, so every byte may be a
// ModRM byte before a displacement from the instruction pointer. Eight are tested at
// once.
#include "writer_shim/arch/code_references.hpp"

#include <sys/mman.h>

#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/base/mappings.hpp"

namespace arctrace::shim {

namespace {

constexpr unsigned char kOpcode = 0xff;
constexpr unsigned char kCallByDistance = 0x15;  // the ModRM byte of call *d(%rip)
constexpr unsigned char kJumpByDistance = 0x25;  // and of jmp *d(%rip)
constexpr uintptr_t kDisplacement = 4;

// Whether it is the linker's PLT entry: "jmp *d(%rip); xchg %ax,%ax", 8 aligned bytes.
bool is_plt_entry(const unsigned char* displacement) {
  return (reinterpret_cast<uintptr_t>(displacement) - 2) % 8 == 0 &&
         displacement[4] == 0x66 && displacement[5] == 0x90;
}

// The pattern of a ModRM byte of an operand that is addressed from the instruction
// pointer.
constexpr uint64_t kEachByte = 0x0101010101010101;
constexpr uint64_t kModRmMask = 0xc7;
constexpr uint64_t kModRm = 0x05;

// Sets the high bit of each of the eight bytes that may be such a byte; now and then of
// another.
uint64_t find_mod_rm(const unsigned char* bytes) {
  uint64_t word;
  __builtin_memcpy(&word, bytes, sizeof word);
  const uint64_t difference = (word & kModRmMask * kEachByte) ^ kModRm * kEachByte;
  return (difference - kEachByte) & ~difference & 0x80 * kEachByte;
}

struct Slots {
  SlotUse* uses;
  size_t count;
  uintptr_t first;
  uintptr_t last;
};

// Notes the use by what may be a displacement at `at`.
void see_displacement(const Slots& slots, uintptr_t at) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(at);
  int32_t displacement;
  __builtin_memcpy(&displacement, bytes, kDisplacement);
  const uintptr_t target =
      at + kDisplacement + static_cast<uintptr_t>(int64_t{displacement});
  // An immediate operand of up to 4 bytes may follow in the instruction.
  if (target + 4 - slots.first > slots.last - slots.first + 4) return;
  if (SlotUse* use = find_use(slots.uses, slots.count, target); use != nullptr) {
    const bool is_call = bytes[-2] == kOpcode && bytes[-1] == kCallByDistance;
    const bool is_jump = bytes[-2] == kOpcode && bytes[-1] == kJumpByDistance;
    if (is_jump && use->jump == nullptr && is_plt_entry(bytes)) {
      use->jump = reinterpret_cast<uint64_t*>(at - 2);
    } else if (is_call || is_jump) {
      use->is_called = true;
    } else {
      use->is_read = true;
    }
  }
  for (uintptr_t immediate = 1; immediate <= 4; ++immediate) {
    SlotUse* use = find_use(slots.uses, slots.count, target + immediate);
    if (use != nullptr) use->is_read = true;
  }
}

}  // namespace

void find_slot_uses(const ModuleImage& image, SlotUse* uses, size_t count) {
  constexpr uintptr_t kAtOnce = 8;
  if (count == 0 || image.code.high - image.code.low < 4 * kAtOnce) return;
  const Slots slots = {uses, count, reinterpret_cast<uintptr_t>(uses[0].slot),
                       reinterpret_cast<uintptr_t>(uses[count - 1].slot)};
  // The last bytes are not read, because no whole instruction of this kind fits there.
  const uintptr_t end = image.code.high - 3 * kAtOnce;
  for (uintptr_t at = image.code.low + 1; at < end; at += kAtOnce) {
    uint64_t found = find_mod_rm(reinterpret_cast<const unsigned char*>(at));
    for (; found != 0; found &= found - 1) {
      const auto byte = static_cast<uintptr_t>(__builtin_ctzll(found)) / 8;
      see_displacement(slots, at + byte + 1);
    }
  }
}

// A PLT entry is eight bytes, "jmp *d(%rip); xchg %ax,%ax": redirecting it changes the
// displacement, in one aligned store.

namespace {

constexpr size_t kPageSize = 4096;
constexpr uintptr_t kStep = uintptr_t{1} << 16;
constexpr uintptr_t kTries = 4096;
constexpr uintptr_t kJumpLength = 6;  // ff 25 and the displacement

}  // namespace

// The memory is below the module, because the heap, which brk makes grow, begins after
// the program.
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
