// Finds frames and their callers. Rules are looked up once for each return address and
// stored in a table of packed words, because hooks need them at every call.
#include "writer_shim/unwind/frame_finder.hpp"

#include "src/base/large_table.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/base/text.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/loader_calls.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/unwind/frame_rule.hpp"

namespace arctrace::shim {

namespace {

using Base = FrameRule::Base;
using FramePointer = FrameRule::FramePointer;

// The offset of the return address from the CFA at the beginning of a function.
constexpr auto kReturnAddressAtEntry = static_cast<uintptr_t>(-8);

// A FrameRule in one word, with offsets in units of 8 bytes.
//
//  63        48 47       32 31               8 7 6 5 4 3 2 1 0
// +------------+-----------+------------------+-----+---+-+---+
// | generation | fp offset |      offset      |  0  |fp |b|base|
// +------------+-----------+------------------+-----+---+-+---+
//
// b: the function begins its frame. The machine says where its return address is.
class PackedRule {
 public:
  explicit PackedRule(uint64_t word) : word_(word) {}
  PackedRule(const FrameRule& rule, bool begins_frame, uint64_t generation)
      : word_(generation << 48) {
    constexpr int32_t kUnit = 8;
    constexpr int32_t kOffsetMax = ((1 << 23) - 1) * kUnit;
    constexpr int32_t kPointerOffsetMax = INT16_MAX * kUnit;
    if (begins_frame) word_ |= kBeginsFrame;
    const int32_t offset = rule.offset;
    if (offset % kUnit != 0 || offset > kOffsetMax || offset < -kOffsetMax) return;
    word_ |= static_cast<uint64_t>(rule.base);
    word_ |= (static_cast<uint64_t>(offset / kUnit) & 0xffffff) << 8;
    FramePointer pointer = rule.frame_pointer;
    const int32_t pointer_offset = rule.frame_pointer_offset;
    if (pointer_offset % kUnit != 0 || pointer_offset > kPointerOffsetMax ||
        pointer_offset < -kPointerOffsetMax || !has_return_address(rule)) {
      pointer = FramePointer::kUnknown;
    }
    word_ |= static_cast<uint64_t>(pointer) << kPointerShift;
    word_ |= (static_cast<uint64_t>(pointer_offset / kUnit) & 0xffff) << 32;
  }

  uint64_t word() const { return word_; }
  uint64_t generation() const { return word_ >> 48; }
  bool begins_frame() const { return (word_ & kBeginsFrame) != 0; }
  Base base() const { return static_cast<Base>(word_ & 3); }
  FramePointer frame_pointer() const {
    return static_cast<FramePointer>(word_ >> kPointerShift & 3);
  }
  uintptr_t offset() const {
    return static_cast<uintptr_t>(static_cast<int64_t>(word_ << 32) >> 40) * 8;
  }
  uintptr_t frame_pointer_offset() const {
    return static_cast<uintptr_t>(static_cast<int64_t>(word_ << 16) >> 48) * 8;
  }
  uintptr_t return_address_offset() const {
    return machine::kReturnsBesideFramePointer ? frame_pointer_offset() + 8
                                               : kReturnAddressAtEntry;
  }

 private:
  static constexpr uint64_t kBeginsFrame = 4;
  static constexpr unsigned kPointerShift = 3;

  static bool has_return_address(const FrameRule& rule) {
    if (!machine::kReturnsBesideFramePointer) return rule.return_address_offset == -8;
    return rule.frame_pointer == FramePointer::kAtCfa &&
           rule.return_address_offset == rule.frame_pointer_offset + 8;
  }

  uint64_t word_;
};

// A rule by the return address of a call, in a table that only grows. A rule of another
// generation than the present one has to be found again; two threads may do so at once.
struct KnownRule {
  uint64_t return_address;  // 0: free; set once
  uint64_t rule;
};

constexpr uint64_t kKnownRules = uint64_t{1} << 18;
constexpr uint64_t kProbes = 16;

ARCTRACE_LARGE_TABLE KnownRule known_rules[kKnownRules];
uint64_t generation = 1;  // 16 bits; never 0
void (*module_check)();   // null: none was set

uint64_t current_generation() { return IpcAtomics::load_relaxed(generation); }

// Neighbours in the code are neighbours in the table; modules are far apart.
uint64_t first_index(uintptr_t address) {
  return (address >> 4) + (address >> 24) * 0x9e37;
}

// Finds the rule for a return address that has no rule of this generation. `function`:
// see rule_for().
__attribute__((noinline)) PackedRule learn_rule(uintptr_t function,
                                                uintptr_t return_address) {
  uint64_t wanted = 0;
  FrameRule rule;
  keep_vectors_around([&] {
    if (module_check != nullptr) module_check();
    wanted = current_generation();
    // The call is before the return address: after a call of a function that does not
    // return, another function may begin.
    rule = find_frame_rule(return_address - 1);
  });
  const PackedRule packed(rule, function != 0 && rule.function == function, wanted);
  const uint64_t first = first_index(return_address);
  for (uint64_t i = 0; i < kProbes; ++i) {
    KnownRule& known = known_rules[(first + i) % kKnownRules];
    uint64_t address = IpcAtomics::load_relaxed(known.return_address);
    if (address == 0 && IpcAtomics::compare_exchange_acq_rel(
                            known.return_address, address, uint64_t{return_address})) {
      address = return_address;
    }
    if (address == return_address) {
      IpcAtomics::store_relaxed(known.rule, packed.word());
      break;
    }
  }
  return packed;
}

// The rule for a return address. `function`: the function for which the hook that returns
// there is called; 0: no hook.
PackedRule rule_for(uintptr_t function, uintptr_t return_address) {
  const uint64_t wanted = current_generation();
  const uint64_t first = first_index(return_address);
  for (uint64_t i = 0; i < kProbes; ++i) {
    KnownRule& known = known_rules[(first + i) % kKnownRules];
    const uint64_t address = IpcAtomics::load_relaxed(known.return_address);
    if (address == return_address) {
      const PackedRule rule(IpcAtomics::load_relaxed(known.rule));
      if (rule.generation() == wanted) return rule;
      break;
    }
    if (address == 0) break;
  }
  return learn_rule(function, return_address);
}

// A word of the stack; 0: it is not between `low` and `high`.
uintptr_t stack_word(uintptr_t address, uintptr_t low, uintptr_t high) {
  if (address < low || address >= high || high - address < sizeof(uintptr_t) ||
      address % sizeof(uintptr_t) != 0) {
    return 0;
  }
  return *reinterpret_cast<const uintptr_t*>(address);
}

// The CFA; 0: not known.
uintptr_t canonical_address(PackedRule rule, uintptr_t stack_pointer,
                            uintptr_t frame_pointer, uintptr_t stack_high) {
  switch (rule.base()) {
    case Base::kStackPointer:
      return stack_pointer + rule.offset();
    case Base::kFramePointer:
      return frame_pointer + rule.offset();
    case Base::kSaved:
      return stack_word(frame_pointer + rule.offset(), stack_pointer, stack_high);
    default:
      return 0;
  }
}

// The CFA for a hook that was called from code without unwind tables; 0: not known. If
// return addresses are on the stack, and the hook knows the one of its caller's frame, it
// is the first word above the stack pointer with that value.
__attribute__((noinline)) uintptr_t cfa_without_rule(uintptr_t stack_pointer,
                                                     uintptr_t call_site) {
  constexpr uintptr_t kWordsMax = 1 << 16;
  if (machine::kReturnsBesideFramePointer || call_site == 0) return 0;
  const auto* word = reinterpret_cast<const uintptr_t*>(stack_pointer);
  for (uintptr_t i = 0; i < kWordsMax; ++i, ++word) {
    if (*word == call_site) return reinterpret_cast<uintptr_t>(word + 1);
  }
  return 0;
}

}  // namespace

void locate_frame(uintptr_t function, arctrace_shim_call& call) {
  const PackedRule rule = rule_for(function, call.hook_site);
  call.flags = rule.begins_frame() ? ARCTRACE_SHIM_BEGINS_FRAME : 0;
  if (rule.base() == Base::kStackPointer) call.flags |= ARCTRACE_SHIM_CFA_BY_SP;
  if (rule.base() == Base::kFramePointer) call.flags |= ARCTRACE_SHIM_CFA_BY_FP;
  // No upper bound is needed: code with unwind tables keeps its frame pointer.
  call.cfa = canonical_address(rule, call.stack_pointer, call.frame_pointer, UINTPTR_MAX);
  if (__builtin_expect(call.cfa != 0, 1)) return;
  call.cfa = cfa_without_rule(call.stack_pointer, call.call_site);
  if (call.cfa == 0) {
    call.cfa = call.stack_pointer;
    call.flags |= ARCTRACE_SHIM_CFA_GUESSED;
  }
}

int find_caller(arctrace_shim_call* frame, uintptr_t stack_high, uintptr_t wanted) {
  // A function that is about to begin has nothing on the stack but its return address.
  const bool begins = (frame->flags & ARCTRACE_SHIM_LIBRARY_CALL) != 0;
  const PackedRule rule = begins ? PackedRule(0) : rule_for(0, frame->hook_site);
  const uintptr_t low = frame->stack_pointer;
  uintptr_t frame_pointer = frame->frame_pointer;
  switch (begins ? FramePointer::kSame : rule.frame_pointer()) {
    case FramePointer::kSame:
      break;
    case FramePointer::kAtCfa:
      frame_pointer =
          stack_word(frame->cfa + rule.frame_pointer_offset(), low, stack_high);
      break;
    case FramePointer::kAtItself:
      frame_pointer =
          stack_word(frame_pointer + rule.frame_pointer_offset(), low, stack_high);
      break;
    default:
      return 0;
  }
  const uintptr_t offset = begins ? kReturnAddressAtEntry : rule.return_address_offset();
  const uintptr_t return_address =
      machine::returned_to(stack_word(frame->cfa + offset, low, stack_high));
  if (return_address == 0) return 0;
  const PackedRule caller = rule_for(0, return_address);
  const uintptr_t cfa = canonical_address(caller, frame->cfa, frame_pointer, stack_high);
  if (cfa == 0 || (wanted != 0 && cfa != wanted)) return 0;
  frame->stack_pointer = frame->cfa;
  frame->frame_pointer = frame_pointer;
  frame->hook_site = return_address;
  frame->cfa = cfa;
  frame->call_site = machine::returned_to(
      stack_word(cfa + caller.return_address_offset(), low, stack_high));
  frame->flags = 0;
  return 1;
}

int find_interrupted(const machine::InterruptedCode& code, uintptr_t stack_high,
                     arctrace_shim_call* frame) {
  // Rules are known by return addresses, before which the call is.
  const uintptr_t site = code.program_counter + 1;
  const uintptr_t cfa = canonical_address(rule_for(0, site), code.stack_pointer,
                                          code.frame_pointer, stack_high);
  if (cfa <= code.stack_pointer) return 0;
  *frame = {cfa,
            code.stack_pointer,
            code.frame_pointer,
            site,
            stack_word(cfa - sizeof(uintptr_t), code.stack_pointer, stack_high),
            0};
  return 1;
}

void set_module_check(void (*check)()) { module_check = check; }

void forget_frame_rules() {
  // Modules change one at a time, under the loader's lock.
  const uint64_t next = (current_generation() + 1) & 0xffff;
  IpcAtomics::store_relaxed(generation, next == 0 ? 1 : next);
}

namespace {

uintptr_t libgcc_function;

uintptr_t frame_address(void* context) {
  using Function = uintptr_t (*)(void* context);
  const auto function =
      reinterpret_cast<Function>(IpcAtomics::load_relaxed(libgcc_function));
  return function(context) & ~(machine::kStackAlignment - 1);
}

}  // namespace

uintptr_t own_frame_address(uintptr_t target) {
  IpcAtomics::store_relaxed(libgcc_function, target);
  return reinterpret_cast<uintptr_t>(frame_address);
}

}  // namespace arctrace::shim

arctrace_unwind_words arctrace_unwinding;

namespace arctrace::shim {

void detect_libunwind(const char* path) {
  if constexpr (machine::kHasSecondFrame) {
    if (path == nullptr || !starts_with(file_name(path), "libunwind")) return;
    IpcAtomics::store_relaxed(arctrace_unwinding.second_frame,
                              reinterpret_cast<uintptr_t>(arctrace_second_frame));
  }
}

}  // namespace arctrace::shim
