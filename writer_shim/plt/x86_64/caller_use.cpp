// Follows a function's code from its entry along all branches, with the distance from the
// stack pointer and from the frame pointer to the return address.
#include <cstddef>

#include "src/api/shim_interface.h"
#include "src/base/text.hpp"
#include "writer_shim/arch/code_changes.hpp"
#include "writer_shim/arch/sled_jumps.hpp"
#include "writer_shim/arch/x86_64/decoded_instruction.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/plt/caller_readers.hpp"
#include "writer_shim/unwind/frame_rule.hpp"

extern "C" void __cyg_profile_func_enter(void* function, void* call_site);
extern "C" void __cyg_profile_func_exit(void* function, void* call_site);
extern "C" void mcount();
extern "C" void __fentry__();

namespace arctrace::shim {
namespace {

constexpr int kRsp = 4;
constexpr int kRbp = 5;
constexpr unsigned kCalleeSaved =
    1U << 3 | 1U << kRbp | 1U << 12 | 1U << 13 | 1U << 14 | 1U << 15;
// If a function stores so many registers of its caller elsewhere than on its stack, it
// only does so to restore them after another return.
constexpr int kStoredRegisters = 3;
constexpr int32_t kUnknown = INT32_MIN;
constexpr int kStepsToHook = 8;    // from the instruction that reads its argument
constexpr int kStepsToEntry = 40;  // from a function's beginning

// Which functions count as hooks.
enum class Hooks : uint8_t { kOfFunctions, kAll };

bool is_indirect_jump(const DecodedInstruction& now) {
  return now.map == 1 && now.opcode == 0xff && (now.reg & 7) == 4;
}
bool is_jump(const DecodedInstruction& now) {
  return now.map == 1 && (now.opcode == 0xe9 || now.opcode == 0xeb);
}
bool is_end(const DecodedInstruction& now) {
  return is_jump(now) || is_indirect_jump(now) ||
         (now.map == 1 && (now.opcode == 0xc3 || now.opcode == 0xc2 ||
                           now.opcode == 0xcc || now.opcode == 0xf4)) ||
         (now.map == 2 && now.opcode == 0x0b);
}

// The value of the slot that the instruction names which ends at `end`.
uintptr_t slot_value(const DecodedInstruction& now, uintptr_t end) {
  return *reinterpret_cast<const uintptr_t*>(
      end + static_cast<uintptr_t>(intptr_t{now.displacement}));
}

// The name of the function to which a slot with this value will lead, if it is not bound
// yet: then it holds the address of an instruction of its PLT entry, which pushes the
// slot's index. Null: it is bound.
const char* unbound_name(uintptr_t value) {
  uintptr_t at = value;
  constexpr int kSteps = 2;  // a landing pad and the push
  for (int i = 0; i < kSteps && value != 0 && !is_stub(value); ++i) {
    const DecodedInstruction now =
        decode_instruction(reinterpret_cast<const unsigned char*>(at));
    if (now.map == 1 && now.opcode == 0x68) {
      return name_of_slot(at, static_cast<uint64_t>(now.immediate));
    }
    at += now.length;
  }
  return nullptr;
}

bool is_hook(uintptr_t target, Hooks which) {
  const auto is = [target](auto* function) {
    return target == reinterpret_cast<uintptr_t>(function);
  };
  // Slots that lead straight to libarctrace's hooks (lead_calls()) are among them.
  return is(__cyg_profile_func_enter) || is(__cyg_profile_func_exit) ||
         is(arctrace_shim_enter_hook) || is(arctrace_shim_exit_hook) ||
         (which == Hooks::kAll && (is(mcount) || is(__fentry__)));
}

bool is_hook(const char* name, Hooks which) {
  return starts_with(name, "__cyg_profile_func_") ||
         (which == Hooks::kAll &&
          (equal(name, "mcount") || equal(name, "_mcount") || equal(name, "__fentry__")));
}

// Whether the slot through which the instruction before `end` goes leads to a hook.
bool goes_to_hook(const DecodedInstruction& now, uintptr_t end, Hooks which) {
  if (!now.is_memory || now.base != DecodedInstruction::kRip) return false;
  const uintptr_t value = slot_value(now, end);
  const char* name = unbound_name(value);
  return name != nullptr ? is_hook(name, which) : is_hook(value, which);
}

// Whether a PLT entry leads to a hook.
bool jumps_to_hook(uintptr_t at, Hooks which) {
  constexpr int kSteps = 2;  // a landing pad and the jump
  for (int i = 0; i < kSteps; ++i) {
    const DecodedInstruction now =
        decode_instruction(reinterpret_cast<const unsigned char*>(at));
    if (now.length == 0) return false;
    at += now.length;
    if (is_indirect_jump(now)) return goes_to_hook(now, at, which);
  }
  return false;
}

// Whether the instruction is XRay's sled, a jump over NOPs. A hook of another kind may
// follow.
bool is_xray_sled(const DecodedInstruction& now) {
  constexpr int64_t kNops = 9;
  return now.map == 1 && now.opcode == 0xeb && now.immediate == kNops;
}

// Whether the first call among the next instructions is one of a hook.
bool leads_to_hook(uintptr_t at, int steps, Hooks which) {
  for (int i = 0; i < steps; ++i) {
    const DecodedInstruction now =
        decode_instruction(reinterpret_cast<const unsigned char*>(at));
    if (is_xray_sled(now)) {
      at += now.length + static_cast<uintptr_t>(now.immediate);
      continue;
    }
    if (now.length == 0 || is_end(now)) return false;
    at += now.length;
    if (now.map != 1) continue;
    if (now.opcode == 0xe8) {
      return jumps_to_hook(at + static_cast<uintptr_t>(now.immediate), which);
    }
    if (now.opcode == 0xff && (now.reg & 7) == 2) return goes_to_hook(now, at, which);
  }
  return false;
}

// The state at an instruction.
struct State {
  uintptr_t at;
  int32_t from_stack_pointer;  // to the return address; kUnknown: not known
  int32_t from_frame_pointer;
  unsigned saved;   // registers that are on the stack
  unsigned stored;  // registers of the caller that were stored elsewhere
  unsigned ends;    // registers that hold the frame's end: the caller's stack pointer
  bool is_callee;   // of a function that the examined one calls
  uintptr_t origin_begin;  // the code from which another function was reached; 0: none
  uintptr_t origin_at;
};

class CodeWalk {
 public:
  explicit CodeWalk(uintptr_t function) : function_(function) {
    add({function, 0, kUnknown, 0, 0, 0, false, 0, 0});
  }

  // The function's own code comes first, then that of the functions to which it jumps.
  bool finds_use() {
    if (follow_all()) return true;
    instructions_max_ += kInstructionsMax;
    for (uint32_t i = 0; i < other_count_; ++i) {
      function_ = others_[i].at;
      add(others_[i]);
      if (follow_all()) return true;
    }
    return false;
  }

 private:
  static constexpr uint32_t kBlocksMax = 24;
  static constexpr uint32_t kOthersMax = 8;
  static constexpr uint32_t kInstructionsMax = 256;
  static constexpr uintptr_t kDistanceMax = 4096;  // of code that is the function's own
  static constexpr uint32_t kHeadSize = 8;  // instructions of a function that only jumps

  bool follow_all() {
    while (count_ > 0) {
      if (follow(waiting_[--count_])) return true;
    }
    return false;
  }

  // Adds another function, to be examined later. Its own calls and jumps are not
  // followed.
  void add_other(State state, uintptr_t begin, uintptr_t end) {
    if (other_count_ == kOthersMax || instructions_max_ != kInstructionsMax) return;
    state.origin_begin = begin;
    state.origin_at = end - 1;
    others_[other_count_++] = state;
  }

  void add(const State& state) {
    for (uint32_t i = 0; i < seen_count_; ++i) {
      if (seen_[i] == state.at) return;
    }
    // Functions that are hooked are examined by themselves, not by way of our own code.
    if (seen_count_ == kBlocksMax || has_jump(state.at)) return;
    seen_[seen_count_++] = state.at;
    waiting_[count_++] = state;
  }

  // Follows the code up to its next jump or return. True: a use was found.
  bool follow(State state) {
    const uintptr_t begin = state.at;
    for (; instructions_ < instructions_max_; ++instructions_) {
      const DecodedInstruction now =
          decode_instruction(reinterpret_cast<const unsigned char*>(state.at));
      if (now.length == 0) return false;
      if (is_use(now, state)) {
        return is_one_function(begin, state.at) &&
               (state.origin_at == 0 ||
                is_one_function(state.origin_begin, state.origin_at)) &&
               !leads_to_hook(state.at + now.length, kStepsToHook, Hooks::kOfFunctions);
      }
      const uintptr_t next = state.at + now.length;
      if (is_end(now)) return leave(now, state, begin, next);
      if (is_branch(now)) add(moved(state, next + static_cast<uintptr_t>(now.immediate)));
      if (is_call(now)) add_callee(now, state, begin, next);
      state.at = next;
      apply(now, state);
    }
    return false;
  }

  // After a call that does not return, another function may begin.
  static bool is_one_function(uintptr_t begin, uintptr_t at) {
    return find_frame_rule(begin).function == find_frame_rule(at).function;
  }

  static State moved(State state, uintptr_t to) {
    state.at = to;
    return state;
  }

  static bool is_branch(const DecodedInstruction& now) {
    return (now.map == 1 && now.opcode >= 0x70 && now.opcode < 0x80) ||
           (now.map == 2 && now.opcode >= 0x80 && now.opcode < 0x90);
  }

  // A call of the next instruction only pushes its address.
  static bool is_call(const DecodedInstruction& now) {
    return now.map == 1 && now.opcode == 0xe8 && now.immediate != 0;
  }

  // A function that is called may look beyond its caller's frame.
  void add_callee(const DecodedInstruction& now, const State& state, uintptr_t begin,
                  uintptr_t next) {
    if (state.from_stack_pointer == kUnknown) return;
    constexpr int32_t kWord = 8;
    const uintptr_t target = next + static_cast<uintptr_t>(now.immediate);
    add_other({target, state.from_stack_pointer + kWord, kUnknown, 0, 0, 0, true, 0, 0},
              begin, next);
  }

  // Goes on at the target of a jump. If a function jumps to another one with its stack as
  // it was at its beginning, that one has the same return address. True: that one is
  // known to use its caller.
  bool leave(const DecodedInstruction& now, const State& state, uintptr_t begin,
             uintptr_t next) {
    if (is_jump(now)) {
      const uintptr_t target = next + static_cast<uintptr_t>(now.immediate);
      // This is our own code, for a function behind a call that does not return: it does
      // not use its caller.
      if (is_jump_memory(target) || is_patch_code(target)) return false;
      if (target - function_ < kDistanceMax || instructions_ <= kHeadSize) {
        add(moved(state, target));
      } else if (state.from_stack_pointer == 0) {
        add_other(moved(state, target), begin, next);
      }
      return false;
    }
    if (!is_indirect_jump(now) || !now.is_memory || state.from_stack_pointer != 0 ||
        state.is_callee || now.base != DecodedInstruction::kRip) {
      return false;
    }
    const JumpTarget target = target_of_slot(slot_value(now, next));
    if (target.is_entry_only) return true;
    if (target.function == 0) return false;
    function_ = target.function;
    add(moved(state, target.function));
    return false;
  }

  static JumpTarget target_of_slot(uintptr_t value) {
    if (value == 0) return {0, false};
    const char* name = unbound_name(value);
    return name != nullptr ? unbound_target(name) : jump_target(value);
  }

  // Whether the memory operand is the return address.
  static bool is_return_slot(const DecodedInstruction& now, const State& state) {
    if (!now.is_memory || now.has_index) return false;
    return (now.base == kRsp && now.displacement == state.from_stack_pointer) ||
           (now.base == kRbp && now.displacement == state.from_frame_pointer);
  }

  static bool is_pop(const DecodedInstruction& now) {
    return now.map == 1 && now.opcode >= 0x58 && now.opcode < 0x60;
  }

  static bool is_use(const DecodedInstruction& now, State& state) {
    if (is_pop(now) && state.from_stack_pointer == 0) return true;
    const bool is_address = now.map == 1 && now.opcode == 0x8d;
    const bool is_filler = now.map == 2 && now.opcode >= 0x18 && now.opcode < 0x20;
    if (!is_address && !is_filler && is_return_slot(now, state)) return true;
    const bool is_store = now.map == 1 && now.opcode == 0x89 && now.is_memory;
    // A callee may store registers of its own caller, which is not the examined
    // function's caller.
    if (!is_store || !now.is_wide || state.is_callee) return false;
    const unsigned stored = 1U << now.reg;
    const bool is_on_stack =
        now.base == kRsp || (now.base == kRbp && state.from_frame_pointer != kUnknown);
    if ((state.ends & stored) != 0 && !is_on_stack) return true;
    if ((kCalleeSaved & stored) == 0) return false;
    if (is_on_stack) {
      state.saved |= stored;
    } else if ((state.saved & stored) == 0) {
      state.stored |= stored;
    }
    return __builtin_popcount(state.stored) >= kStoredRegisters;
  }

  static void move_stack_pointer(State& state, int64_t down) {
    if (state.from_stack_pointer != kUnknown) {
      state.from_stack_pointer += static_cast<int32_t>(down);
    }
  }

  static void apply_ends(const DecodedInstruction& now, State& state) {
    const bool is_store = now.map == 1 && now.opcode == 0x89 && now.is_memory;
    if (!is_store && now.reg >= 0) state.ends &= ~(1U << now.reg);
    if (now.rm >= 0) state.ends &= ~(1U << now.rm);
    if (now.map != 1 || state.from_stack_pointer == kUnknown) return;
    constexpr int32_t kWord = 8;
    if (now.opcode == 0x8d && now.base == kRsp && !now.has_index && now.is_wide &&
        now.displacement == state.from_stack_pointer + kWord) {
      state.ends |= 1U << now.reg;
    }
  }

  static void apply(const DecodedInstruction& now, State& state) {
    apply_ends(now, state);
    if (now.map != 1) return;
    constexpr int kWord = 8;
    if (now.opcode >= 0x50 && now.opcode < 0x58) {
      state.saved |= 1U << now.rm;
      move_stack_pointer(state, kWord);
    } else if (is_pop(now)) {
      move_stack_pointer(state, -kWord);
      if (now.rm == kRbp) state.from_frame_pointer = kUnknown;
      if (now.rm == kRsp) state.from_stack_pointer = kUnknown;
    } else if (now.opcode == 0x68 || now.opcode == 0x6a ||
               (now.opcode == 0xff && (now.reg & 7) == 6) ||
               // This is a call of the next instruction.
               (now.opcode == 0xe8 && now.immediate == 0)) {
      move_stack_pointer(state, kWord);
    } else if (now.opcode == 0x8f) {
      move_stack_pointer(state, -kWord);
    } else if (now.opcode == 0xc9) {
      state.from_stack_pointer = state.from_frame_pointer == kUnknown
                                     ? kUnknown
                                     : state.from_frame_pointer - kWord;
      state.from_frame_pointer = kUnknown;
    } else if (now.opcode == 0x81 || now.opcode == 0x83) {
      apply_arithmetic(now, state);
    } else if (now.opcode == 0x8d) {
      apply_address(now, state);
    } else if (now.opcode == 0x89 || now.opcode == 0x8b) {
      const bool is_to_rm = now.opcode == 0x89;
      const int to = is_to_rm ? now.rm : now.reg;
      const int from = is_to_rm ? now.reg : now.rm;
      apply_move(to, from, state);
    }
  }

  static void apply_arithmetic(const DecodedInstruction& now, State& state) {
    if (now.rm == kRbp) state.from_frame_pointer = kUnknown;
    if (now.rm != kRsp) return;
    const int operation = now.reg & 7;
    constexpr int kAdd = 0;
    constexpr int kSubtract = 5;
    if (operation == kAdd) {
      move_stack_pointer(state, -now.immediate);
    } else if (operation == kSubtract) {
      move_stack_pointer(state, now.immediate);
    } else {
      state.from_stack_pointer = kUnknown;
    }
  }

  static void apply_address(const DecodedInstruction& now, State& state) {
    if (now.reg != kRsp && now.reg != kRbp) return;
    int32_t from = kUnknown;
    if (now.base == kRsp && !now.has_index) from = state.from_stack_pointer;
    if (now.base == kRbp && !now.has_index) from = state.from_frame_pointer;
    if (from != kUnknown) from -= now.displacement;
    (now.reg == kRsp ? state.from_stack_pointer : state.from_frame_pointer) = from;
  }

  static void apply_move(int to, int from, State& state) {
    if (to != kRsp && to != kRbp) return;
    int32_t distance = kUnknown;
    if (from == kRsp) distance = state.from_stack_pointer;
    if (from == kRbp) distance = state.from_frame_pointer;
    (to == kRsp ? state.from_stack_pointer : state.from_frame_pointer) = distance;
  }

  uintptr_t function_;
  uint32_t instructions_ = 0;
  uint32_t instructions_max_ = kInstructionsMax;
  uint32_t other_count_ = 0;
  uint32_t count_ = 0;
  uint32_t seen_count_ = 0;
  State waiting_[kBlocksMax];
  uintptr_t seen_[kBlocksMax];
  State others_[kOthersMax];
};

}  // namespace

bool uses_its_caller(uintptr_t function) { return CodeWalk(function).finds_use(); }

bool calls_compiled_in_hook(uintptr_t function) {
  return leads_to_hook(function, kStepsToEntry, Hooks::kAll);
}

}  // namespace arctrace::shim
