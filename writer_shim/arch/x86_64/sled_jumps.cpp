// Writes the jumps of sleds on x86-64. The gated jump loads the gate's address from
// memory near it, so that it needs no register that has an argument.
#include "writer_shim/arch/sled_jumps.hpp"

#include <sys/mman.h>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/code_changes.hpp"
#include "writer_shim/arch/x86_64/instructions.hpp"
#include "writer_shim/base/mappings.hpp"

namespace arctrace::shim {

// Replaces "return, filler" by a jump of five bytes, in two stores.

namespace {

constexpr size_t kPatchBlock = 16;  // functions are aligned to it, filled up with NOPs

struct Code {
  unsigned char bytes[kPatchBlock];
};

// Turns "return, filler" at `from` into a jump to `target`. False: other code is there,
// or the target is too far away.
bool make_jump(Code& code, uintptr_t from, uintptr_t target) {
  unsigned char* const end = code.bytes + sizeof code.bytes;
  unsigned char* at = code.bytes;
  if (from % kPatchBlock != 0) return false;
  if (__builtin_memcmp(at, kEndbr64, sizeof kEndbr64) == 0) at += sizeof kEndbr64;
  if (*at != kReturn) return false;
  for (const unsigned char* filler = at + 1; filler < at + kJumpSize;) {
    const size_t length = filler_length(filler, end);
    if (length == 0) return false;
    filler += length;
  }
  const uintptr_t jump_end = from + static_cast<uintptr_t>(at - code.bytes) + kJumpSize;
  const auto distance = static_cast<int64_t>(target - jump_end);
  if (distance != static_cast<int32_t>(distance)) return false;
  const auto short_distance = static_cast<int32_t>(distance);
  *at = kJump;
  __builtin_memcpy(at + 1, &short_distance, sizeof short_distance);
  return true;
}

}  // namespace

bool make_function_jump(uintptr_t from, uintptr_t target) {
  Code code;
  copy_bytes(&code, reinterpret_cast<const void*>(from), sizeof code);
  // The page stays executable, because it holds other functions too.
  if (!make_jump(code, from, target) ||
      !protect(from, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC)) {
    return false;
  }
  // The bytes after the return, which no thread runs, are stored first, then those with
  // the jump's first byte, each in one store.
  uint64_t halves[2];
  __builtin_memcpy(halves, code.bytes, sizeof halves);
  auto* words = reinterpret_cast<uint64_t*>(from);
  IpcAtomics::store_release(words[1], halves[1]);
  IpcAtomics::store_release(words[0], halves[0]);
  protect(from, sizeof code, PROT_READ | PROT_EXEC);
  return true;
}

namespace {

// The ends of instructions whose last four bytes are the distance of their target from
// there.
constexpr size_t kGateLoaded = 7, kGoesOn = 17, kCallLoaded = 24, kJumpsOn = 31;
constexpr char kGatedJump[] =
    "\x4c\x8b\x1d\0\0\0\0"   // mov gate(%rip), %r11
    "\x41\xf6\x03\x01"       // testb $ARCTRACE_GATE_FUNCTIONS, (%r11)
    "\x0f\x84\0\0\0\0"       // je function
    "\x4c\x8b\x1d\0\0\0\0"   // mov call(%rip), %r11
    "\x3e\xff\x25\0\0\0\0";  // notrack jmp *stub(%rip)
static_assert(ARCTRACE_GATE_FUNCTIONS == 1);

// This code comes before that where a call of a hook has become a jump by its first byte
// alone: if a uprobe has written the file's byte back, it is a call again, whose return
// address is dropped here.
constexpr size_t kReturnLoaded = 7;
constexpr char kDropsReturn[] =
    "\x4c\x8d\x1d\0\0\0\0"  // lea function(%rip), %r11
    "\x4c\x39\x1c\x24"      // cmp %r11, (%rsp)
    "\x75\x04"              // jne over it
    "\x48\x83\xc4\x08";     // add $8, %rsp
constexpr size_t kDropsReturnSize = sizeof kDropsReturn - 1;
static_assert(kDropsReturnSize + kJumpsOn <= sizeof GatedJump::code);

// Makes `to` the target of the instruction that ends at `end`, and whose bytes end at
// `bytes_end` now. False: it is too far away.
bool put_distance(unsigned char* bytes_end, const unsigned char* end, uintptr_t to) {
  const auto wanted = static_cast<int64_t>(to - reinterpret_cast<uintptr_t>(end));
  const auto distance = static_cast<int32_t>(wanted);
  if (distance != wanted) return false;
  __builtin_memcpy(bytes_end - sizeof distance, &distance, sizeof distance);
  return true;
}

bool set_distance(unsigned char* end, uintptr_t to) { return put_distance(end, end, to); }

// The address whose distance from `end` is in the four bytes before `end`.
uintptr_t distant(const unsigned char* end) {
  int32_t distance;
  __builtin_memcpy(&distance, end - sizeof distance, sizeof distance);
  return reinterpret_cast<uintptr_t>(end) + static_cast<uintptr_t>(intptr_t{distance});
}

// The required values of the four bytes after a sled's first, so that its bytes are right
// with the file's first byte, and from the end of the file's first instruction on.
struct LandingMark {
  uint32_t bytes;  // the lower three; the highest is free
  uint32_t mask;   // of the bits that count
  bool fills_rest;
};

// Finds the required values. False: the sled needs no landing, because the function
// begins with another instruction; or none is possible, because its first instruction is
// unusual.
bool find_mark(const Sled& sled, LandingMark& mark) {
  if (reinterpret_cast<uintptr_t>(sled.begin) != sled.function) return false;
  const unsigned char first = sled.begin[0];
  if (first == kShortJump) {  // to the sled's end
    mark = {0x400000u | sled.begin[1], 0xff, false};
    return true;
  }
  const auto* end = reinterpret_cast<const unsigned char*>(sled.end);
  if (first == kNop) {  // nopl distance(%rax)
    mark = {0x401f0f, 0xffffff, false};
    return true;
  }
  if (filler_length(sled.begin, end) < kJumpSize) return false;
  if (first == kOperandPrefix) {  // nopw distance(%rax)
    mark = {0x401f0f, 0xffffff, true};
    return true;
  }
  if (first != 0x0f) return false;
  mark = {0x40441f, 0xffff, true};  // nopl distance(%rax,%rax,2)
  return true;
}

}  // namespace

void make_return_jump(ReturnJump& jump, uintptr_t hook) {
  __builtin_memcpy(jump.code, kJumpThrough, sizeof kJumpThrough);
  jump.hook = hook;
  set_distance(jump.code + sizeof kJumpThrough + sizeof(int32_t),
               reinterpret_cast<uintptr_t>(&jump.hook));
}

bool lead_to_return_jump(unsigned char* exit, const ReturnJump& jump) {
  // nopw 0(%rax,%rax,1), up to the jump to another function
  constexpr unsigned char kLongNop[] = {0x66, 0x0f, 0x1f, 0x44, 0, 0};
  unsigned char bytes[kJumpSize + sizeof kLongNop];
  bytes[0] = kCall;
  if (!put_distance(bytes + kJumpSize, exit + kJumpSize,
                    reinterpret_cast<uintptr_t>(&jump.code))) {
    return false;
  }
  if (exit[0] != kReturn) {
    __builtin_memcpy(bytes + kJumpSize, kLongNop, sizeof kLongNop);
    return change_code(exit, bytes, sizeof bytes);
  }
  bytes[kJumpSize] = kReturn;
  return change_code(exit, bytes, kJumpSize + 1);
}

bool make_jump(GatedJump& jump, uintptr_t gate, const Sled& sled) {
  unsigned char* code = jump.code;
  const bool was_call = *sled.begin == kCall;
  if (was_call) {
    __builtin_memcpy(code, kDropsReturn, kDropsReturnSize);
    if (!set_distance(code + kReturnLoaded, sled.end)) return false;
    code += kDropsReturnSize;
  }
  __builtin_memcpy(code, kGatedJump, kJumpsOn);
  jump.address = reinterpret_cast<uintptr_t>(jump.code);
  set_distance(code + kCallLoaded, reinterpret_cast<uintptr_t>(&jump.call));
  set_distance(code + kJumpsOn, reinterpret_cast<uintptr_t>(&jump.stub));
  return set_distance(code + kGateLoaded, gate) && set_distance(code + kGoesOn, sled.end);
}

uintptr_t continue_address(const GatedJump& /*jump*/, const Sled& sled) {
  return sled.end;
}

void finish_code(uintptr_t /*address*/, size_t /*size*/) {}

bool find_landing_distance(const Sled& sled, size_t i, intptr_t& distance) {
  LandingMark mark;
  if (!find_mark(sled, mark)) return false;
  // The landings are far away from the heap, which grows above the program.
  constexpr uint32_t kHighestBelow = 0xff, kLowestBelow = 0xa0, kLowestAbove = 0x40;
  constexpr size_t kBelow = kHighestBelow - kLowestBelow;
  if (i > kBelow + 0x20) return false;
  const uint32_t top = i < kBelow ? kHighestBelow - static_cast<uint32_t>(i)
                                  : kLowestAbove + static_cast<uint32_t>(i - kBelow);
  const auto jump_distance = static_cast<int32_t>(top << 24 | mark.bytes);
  distance = intptr_t{jump_distance} + static_cast<intptr_t>(kJumpSize);
  return true;
}

bool lead_to_jump(const Sled& sled, const GatedJump& jump, intptr_t landing_distance) {
  const auto target = reinterpret_cast<uintptr_t>(&jump);
  unsigned char bytes[sizeof kCallThrough + sizeof(int32_t)];
  if (__builtin_memcmp(sled.begin, kCallThrough, sizeof kCallThrough) == 0) {
    unsigned char* const end = sled.begin + sizeof bytes;
    __builtin_memcpy(bytes, kJumpThrough, sizeof kJumpThrough);
    return put_distance(bytes + sizeof bytes, end,
                        reinterpret_cast<uintptr_t>(&jump.address)) &&
           change_code(sled.begin, bytes, sizeof bytes);
  }
  bytes[0] = kJump;
  unsigned char* const jump_end = sled.begin + kJumpSize;
  LandingMark mark;
  const auto jump_distance =
      static_cast<uint32_t>(landing_distance - static_cast<intptr_t>(kJumpSize));
  if (landing_distance == 0 || !find_mark(sled, mark) ||
      (jump_distance & mark.mask) != (mark.bytes & mark.mask)) {
    return put_distance(bytes + kJumpSize, jump_end, target) &&
           change_code(sled.begin, bytes, kJumpSize);
  }
  unsigned char* const landing = sled.begin + landing_distance;
  if (!set_distance(landing + kJumpSize, target)) return false;
  landing[0] = kJump;
  if (mark.fills_rest) {
    constexpr unsigned char kNops[] = {kNop, kNop, kNop, kNop};
    for (unsigned char* at = jump_end; at < reinterpret_cast<unsigned char*>(sled.end);) {
      const size_t left = sled.end - reinterpret_cast<uintptr_t>(at);
      const size_t size = left < sizeof kNops ? left : sizeof kNops;
      if (!change_code(at, kNops, size)) return false;
      at += size;
    }
  }
  __builtin_memcpy(bytes + 1, &jump_distance, sizeof jump_distance);
  return change_code(sled.begin, bytes, kJumpSize);
}

bool outlasts_probes(const Sled& sled) {
  return *sled.begin == kCall;  // and the code that it calls drops its return address
}

uintptr_t stub_of_jump(uintptr_t function) {
  const auto* at = end_of_preamble(reinterpret_cast<const unsigned char*>(function));
  if (*at == kNop) ++at;
  uintptr_t target = 0;
  if (__builtin_memcmp(at, kJumpThrough, sizeof kJumpThrough) == 0) {
    // The slot is within a GatedJump, if this is a jump of ours.
    const uintptr_t slot = distant(at + sizeof kJumpThrough + sizeof(int32_t));
    target = slot - offsetof(GatedJump, address);
  } else if (*at == kJump) {
    target = distant(at + kJumpSize);
    if (is_patch_code(target)) return target;
    if (!is_jump_memory(target)) return 0;
    const auto* landing = reinterpret_cast<const unsigned char*>(target);
    if (*landing == kJump) target = distant(landing + kJumpSize);
  } else {
    return 0;
  }
  const auto* jump = reinterpret_cast<const GatedJump*>(target);
  constexpr size_t kBeforeGate = kGateLoaded - sizeof(int32_t);
  constexpr size_t kTestSize = 4;
  if (target % alignof(GatedJump) != 0 || !is_jump_memory(target)) return 0;
  const unsigned char* code = jump->code;
  if (__builtin_memcmp(code, kDropsReturn, kReturnLoaded - sizeof(int32_t)) == 0) {
    code += kDropsReturnSize;
  }
  const bool is_one =
      __builtin_memcmp(code, kGatedJump, kBeforeGate) == 0 &&
      __builtin_memcmp(code + kGateLoaded, kGatedJump + kGateLoaded, kTestSize) == 0 &&
      (jump->stub == reinterpret_cast<uintptr_t>(arctrace_call_begun) ||
       jump->stub == reinterpret_cast<uintptr_t>(arctrace_exit_hooked_entry));
  return is_one ? jump->stub : 0;
}

}  // namespace arctrace::shim
