// Sleds are NOPs of any length, or XRay's short jump over NOPs; the gated jump loads the
// gate's address from memory near it, so that it needs no register that holds an
// argument.
#include "writer_shim/arch/sleds.hpp"

#include "src/api/shim_interface.h"
#include "writer_shim/arch/x86_64/instructions.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/unwind/frame_rule_search.hpp"

namespace arctrace::shim {
namespace {

// The ends of instructions whose last four bytes are the distance of their target from
// there.
constexpr size_t kGateLoaded = 7, kGoesOn = 17;
constexpr char kGatedJump[sizeof GatedJump::code + 1] =
    "\x4c\x8b\x1d\0\0\0\0"     // mov gate(%rip), %r11
    "\x41\xf6\x03\x01"         // testb $ARCTRACE_GATE_FUNCTIONS, (%r11)
    "\x0f\x84\0\0\0\0"         // je function
    "\xff\x25\x01\0\0\0\xcc";  // jmp *stub(%rip)
static_assert(ARCTRACE_GATE_FUNCTIONS == 1);

// Makes `to` the target of the instruction that ends at `end`. False: it is too far away.
bool set_distance(unsigned char* end, uintptr_t to) {
  const auto wanted = static_cast<int64_t>(to - reinterpret_cast<uintptr_t>(end));
  const auto distance = static_cast<int32_t>(wanted);
  if (distance != wanted) return false;
  __builtin_memcpy(end - sizeof distance, &distance, sizeof distance);
  return true;
}

// The end of what may come before a function's sled: in functions with
// -fsanitize=function a short jump over the data of their type, and a landing pad.
const unsigned char* end_of_preamble(const unsigned char* at) {
  constexpr unsigned char kTypeSize = 6;
  if (at[0] == kShortJump && at[1] == kTypeSize) at += 2 + kTypeSize;
  if (__builtin_memcmp(at, kEndbr64, sizeof kEndbr64) == 0) at += sizeof kEndbr64;
  return at;
}

// Where the function begins that has a sled at `at`, if no unwind tables say so.
uintptr_t beginning_without_tables(uintptr_t at) {
  const bool has_pad =
      __builtin_memcmp(reinterpret_cast<const unsigned char*>(at) - sizeof kEndbr64,
                       kEndbr64, sizeof kEndbr64) == 0;
  return has_pad ? at - sizeof kEndbr64 : at;
}

}  // namespace

Sled find_sled(uintptr_t at, const AddressRange& code) {
  if (!code.contains(at)) return {};
  const auto* bytes = reinterpret_cast<const unsigned char*>(at);
  const auto* limit = reinterpret_cast<const unsigned char*>(code.high);
  uintptr_t function = 0;
  const unsigned char* begin = nullptr;
  const unsigned char* end = bytes;
  while (end < limit) {
    const auto address = reinterpret_cast<uintptr_t>(end);
    if (begin == nullptr) {
      function = find_frame_rule(address).function;
      if (function == 0) function = beginning_without_tables(address);
      if (function == address ||
          end_of_preamble(reinterpret_cast<const unsigned char*>(function)) == end) {
        begin = end;
      }
    }
    if (begin == end && limit - end > 16 && end_of_preamble(end) != end) {
      end = end_of_preamble(end);
      begin = end;
      continue;
    }
    const size_t length = filler_length(end, limit);
    if (length == 0 || *end == kBreakpoint) break;
    end += length;
  }
  if (begin == nullptr || end - begin < static_cast<long>(kJumpSize)) return {};
  return {function, const_cast<unsigned char*>(begin), reinterpret_cast<uintptr_t>(end)};
}

Sled find_xray_sled(uintptr_t at, uintptr_t function, const AddressRange& code) {
  constexpr size_t kShortJumpSize = 2;
  constexpr size_t kFiller = 9;  // NOPs that the jump skips; which, depends on -march
  constexpr size_t kSize = kShortJumpSize + kFiller;
  if (!code.contains(at) || code.high - at < kSize) return {};
  // A sled elsewhere comes after a hook of another kind.
  if (at != function && (at - function != sizeof kEndbr64 || !code.contains(function) ||
                         __builtin_memcmp(reinterpret_cast<const void*>(function),
                                          kEndbr64, sizeof kEndbr64) != 0)) {
    return {};
  }
  auto* const begin = reinterpret_cast<unsigned char*>(at);
  if (begin[0] != kShortJump || begin[1] != kFiller) return {};
  // Where XRay's own patching was undone, the rest of a call follows the short jump.
  const unsigned char* const end = begin + kSize;
  for (const unsigned char* filler = begin + kShortJumpSize; filler < end;) {
    const size_t length = filler_length(filler, end);
    if (length == 0 || *filler == kBreakpoint) return {};
    filler += length;
  }
  return {function, begin, at + kSize};
}

bool make_jump(GatedJump& jump, uintptr_t gate, const Sled& sled) {
  __builtin_memcpy(jump.code, kGatedJump, sizeof jump.code);
  return set_distance(jump.code + kGateLoaded, gate) &&
         set_distance(jump.code + kGoesOn, sled.end);
}

uintptr_t continue_address(const GatedJump& /*jump*/, const Sled& sled) {
  return sled.end;
}

void finish_code(uintptr_t /*address*/, size_t /*size*/) {}

bool lead_to_jump(const Sled& sled, const GatedJump& jump) {
  if (!set_distance(sled.begin + kJumpSize, reinterpret_cast<uintptr_t>(&jump))) {
    return false;
  }
  sled.begin[0] = kJump;
  return true;
}

bool has_jump(uintptr_t function) {
  const auto* at = end_of_preamble(reinterpret_cast<const unsigned char*>(function));
  if (*at != kJump) return false;
  int32_t distance;
  __builtin_memcpy(&distance, at + 1, sizeof distance);
  const uintptr_t target = reinterpret_cast<uintptr_t>(at + kJumpSize) +
                           static_cast<uintptr_t>(intptr_t{distance});
  const auto* jump = reinterpret_cast<const GatedJump*>(target);
  constexpr size_t kBeforeGate = kGateLoaded - sizeof(int32_t);
  constexpr size_t kTestSize = 4;
  return target % alignof(GatedJump) == 0 &&
         __builtin_memcmp(jump->code, kGatedJump, kBeforeGate) == 0 &&
         __builtin_memcmp(jump->code + kGateLoaded, kGatedJump + kGateLoaded,
                          kTestSize) == 0 &&
         is_stub(jump->stub);
}

}  // namespace arctrace::shim
