// Finds calls through slots. Code computes the address of a page (adrp), loads from a
// slot in it and calls the result. The compiler may put other instructions in between,
// and use a page's address twice. Only if these can be followed from one to the other
// without a branch, a load is surely a call.
#include "writer_shim/arch/code_references.hpp"

#include "writer_shim/arch/aarch64/instructions.hpp"

namespace arctrace::shim {
namespace {

constexpr uintptr_t kWord = 4;
constexpr uintptr_t kPage = 4096;
constexpr uintptr_t kSlotsOfPage = kPage / 8;
constexpr int kWrapped = 32;  // instructions

bool is_load(uint32_t word) {
  return (word & 0xffc00000) == 0xf9400000;
}  // ldr x, [x, n]
bool is_near_load(uint32_t word) {
  return (word & 0xff000000) == 0x58000000;
}  // ldr x, n
bool is_page_address(uint32_t word) { return (word & 0x9f000000) == 0x90000000; }

uintptr_t offset_of_load(uint32_t word) { return uintptr_t{bits(word, 10, 12)} * 8; }

// The address that an adrp at `at` computes.
uintptr_t page_address(uintptr_t at, uint32_t word) {
  const int64_t pages = signed_bits(word, 5, 19) * 4 + bits(word, 29, 2);
  return (at & ~(kPage - 1)) + static_cast<uintptr_t>(pages) * kPage;
}

// Whether it is a branch, a call or a system call.
bool is_branch(uint32_t word) { return (word & 0x1c000000) == 0x14000000; }
bool is_hint(uint32_t word) { return (word & 0xfffff01f) == 0xd503201f; }  // nop, bti
// Whether the code after the instruction may run with the same registers: hints, cbz,
// tbz, b.cond.
bool goes_on(uint32_t word) {
  return is_hint(word) || (word & 0x7c000000) == 0x34000000 ||
         (word & 0xff000000) == 0x54000000;
}

bool computes_from_number(uint32_t word) { return (word & 0x1c000000) == 0x10000000; }
bool computes(uint32_t word) {
  const bool compares_if = (word & 0x1fe00000) == 0x1a400000;
  return computes_from_number(word) ||
         ((word & 0x0e000000) == 0x0a000000 && !compares_if);
}
// Whether the instruction is ldr, or str below, of one general register, of any size, at
// base and number.
bool loads(uint32_t word) { return (word & 0x3f400000) == 0x39400000; }
bool stores(uint32_t word) { return (word & 0x3f400000) == 0x39000000; }

// Whether the instruction may read or write the register. It is not exact: some
// instructions have numbers where most have registers, and those on pairs (atomic ones)
// may use the register after the one that they name.
bool may_name(uint32_t word, uint32_t number) {
  const auto is = [word](uint32_t mask, uint32_t value) {
    return (word & mask) == value;
  };
  if (register_0(word) == number) return true;
  // Addresses and moves have a number only.
  if (is(0x1f000000, 0x10000000) || is(0x1f800000, 0x12800000)) return false;
  if (register_5(word) == number) return true;
  // Other computations have two registers, except extr; so do accesses to memory.
  const bool is_extract = is(0x1f800000, 0x13800000);
  if (computes_from_number(word) && !is_extract) return false;
  if (is(0x3b000000, 0x39000000) || is(0x3b200c00, 0x38000000) ||
      is(0x3b200400, 0x38000400)) {
    return false;
  }
  if (register_10(word) == number) return true;
  if (is(0x3a000000, 0x28000000)) return false;  // of pairs
  const bool is_atomic = is(0x3f000000, 0x08000000) || is(0x3b200c00, 0x38200000);
  return register_16(word) == number || is_atomic;
}

struct Code {
  uintptr_t low;
  uintptr_t high;
  uint32_t at(uintptr_t address) const {
    return *reinterpret_cast<const uint32_t*>(address);
  }
};

constexpr uintptr_t kUnknown = 1;

// The page of which the load at `at` reads a slot; 0: it is none that adrp computed. On
// every path to a load from a slot its base is the slot's page, so that one path is
// enough.
uintptr_t loaded_page(const Code& code, uintptr_t at) {
  const uint32_t base = register_5(code.at(at));
  for (int i = 0; i < kWrapped && at > code.low; ++i) {
    at -= kWord;
    const uint32_t word = code.at(at);
    if (is_branch(word)) {
      if (!goes_on(word)) return kUnknown;
    } else if (register_0(word) == base) {
      if (is_page_address(word)) return page_address(at, word);
      if (computes(word) || loads(word)) return 0;
      if (!stores(word)) return kUnknown;
    } else if (may_name(word, base) && register_5(word) != base) {
      return kUnknown;  // the second one of a pair that is loaded
    }
  }
  return kUnknown;
}

// Whether the register that was loaded at `at` is called, or jumped to, and that is all.
bool is_only_called(const Code& code, uintptr_t at) {
  constexpr uint32_t kFirstKept = 18;  // a call keeps the registers from here on
  const uint32_t loaded = register_0(code.at(at));
  const uint32_t call = 0xd63f0000 | loaded << 5;
  const uint32_t jump = 0xd61f0000 | loaded << 5;
  for (int i = 0; i < kWrapped && code.high - at > 2 * kWord; ++i) {
    at += kWord;
    const uint32_t word = code.at(at);
    if (word == jump) return true;
    if (word == call) return loaded < kFirstKept;
    if (is_branch(word) ? !is_hint(word) : may_name(word, loaded)) return false;
  }
  return false;
}

class Reader {
 public:
  Reader(const Code& code, SlotUse* uses, size_t count)
      : code_(code), uses_(uses), count_(count) {
    for (size_t i = 0; i < count; ++i) offsets_[offset_of(uses[i])].has_slot = true;
  }

  void read() {
    for (uintptr_t at = code_.low; at < code_.high; at += kWord) {
      const uint32_t word = code_.at(at);
      if (is_load(word)) {
        see_load(at, offset_of_load(word));
      } else if (is_near_load(word)) {
        see_use(at, at + static_cast<uintptr_t>(signed_bits(word, 5, 19) * 4));
      }
    }
  }

 private:
  // The facts about all slots at one offset of their pages.
  struct Offset {
    bool has_slot;  // there is one
    bool is_read;
  };

  // The offset, counted in slots.
  static uintptr_t offset_of(const SlotUse& use) {
    return reinterpret_cast<uintptr_t>(use.slot) / 8 % kSlotsOfPage;
  }

  void see_load(uintptr_t at, uintptr_t offset) {
    Offset& slots = offsets_[offset / 8 % kSlotsOfPage];
    if (!slots.has_slot || slots.is_read) return;
    if (const uintptr_t page = loaded_page(code_, at); page != kUnknown) {
      if (page != 0) see_use(at, page + offset);
      return;
    }
    slots.is_read = true;
    for (size_t i = 0; i < count_; ++i) {
      if (offset_of(uses_[i]) == offset / 8 % kSlotsOfPage) uses_[i].is_read = true;
    }
  }

  // Notes the use by the load at `at` of the slot at `target`.
  void see_use(uintptr_t at, uintptr_t target) {
    SlotUse* use = find_use(uses_, count_, target);
    if (use == nullptr) return;
    if (is_only_called(code_, at)) {
      use->is_called = true;
    } else {
      use->is_read = true;
    }
  }

  Code code_;
  SlotUse* uses_;
  size_t count_;
  Offset offsets_[kSlotsOfPage]{};
};

}  // namespace

void find_slot_uses(const ModuleImage& image, SlotUse* uses, size_t count) {
  const Code code = {(image.code.low + kWord - 1) & ~(kWord - 1),
                     image.code.high & ~(kWord - 1)};
  if (count == 0 || code.low >= code.high) return;
  Reader(code, uses, count).read();
}

}  // namespace arctrace::shim
