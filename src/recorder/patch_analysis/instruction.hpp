// One x86-64 instruction, as far as moving it and finding jumps needs. Only this file's
// source uses the decoder library, Zydis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace arctrace::recorder {

struct Instruction {
  enum class Flow : uint8_t {
    kNext,
    kJump,         // direct, always taken
    kBranch,       // direct, conditional
    kShortBranch,  // loop, jrcxz: conditional, with no form of 32 bits
    kCall,         // direct or indirect
    kIndirectJump,
    kReturn,
    kTrap,         // ud2, hlt, int3: execution does not go on after it
    kTransaction,  // xbegin
  };

  uint8_t length = 0;
  Flow flow = Flow::kNext;
  bool is_rip_relative = false;
  uint8_t field = 0;  // offset of the displacement, if it is relative to rip
  // The address to which a direct jump, branch or call leads, or that a rip-relative
  // operand has.
  uint64_t target = 0;
  bool has_target = false;
  bool is_endbr = false;
  bool is_lea = false;
  bool is_movable = true;  // false: an operand is relative to eip
  bool is_direct_call = false;
  bool loads_table_offset = false;  // movslq (base,index,4): an entry of a jump table
  bool jumps_by_register = false;
  bool pops = false;
  // The instruction enters the kernel, or is a string instruction that is repeated.
  bool may_last = false;
  // A memory operand of the stack pointer or the frame pointer alone.
  enum class Base : uint8_t { kOther, kStackPointer, kFramePointer };
  Base base = Base::kOther;
  int32_t displacement = 0;
  uint32_t immediate = 0;           // of 32 bits; else 0
  uint32_t plain_displacement = 0;  // of 32 bits, without a base; else 0
};

// Decodes the instruction at `address`, with which `bytes` begin. False: there is none,
// or its end is missing. Costs some 50 ns.
bool decode_untrusted(std::span<const std::byte> bytes, uint64_t address,
                      Instruction& out);

// Whether the instruction `bytes` writes no memory, and no registers but the arithmetic
// flags and general ones that pass no arguments and are not the stack pointer. Costs some
// 150 ns.
bool changes_own_registers_untrusted(std::span<const std::byte> bytes);

}  // namespace arctrace::recorder
