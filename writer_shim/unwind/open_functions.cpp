// Unwinds a thread for the functions that it has open (frame_finder.hpp).
#include <gnu/libc-version.h>
#include <sys/auxv.h>

#include <cstddef>

#include "writer_shim/arch/loader_calls.hpp"
#include "writer_shim/arch/machine.hpp"
#include "writer_shim/base/mappings.hpp"
#include "writer_shim/elf/loaded_objects.hpp"
#include "writer_shim/unwind/frame_finder.hpp"
#include "writer_shim/unwind/frame_rule.hpp"

namespace arctrace::shim {
namespace {

// Deeper stacks are cut: if a recursion is so deep, the outer part shows nothing new.
constexpr uint32_t kFramesMax = 512;

uint64_t key_of_unknown;  // of the frame that stands for all functions further out
AddressRange libc;
uintptr_t entry_point;  // of the program
OpenFunctionFlags* filter_flags_of;

bool contains(const arctrace_shim_memory& memory, uintptr_t address) {
  return address >= memory.low && address < memory.high;
}

// Finds the thread's own stack, whose bounds only libc knows: it has the thread's data,
// to which the thread pointer leads, at the stack's upper end. Memory that does not reach
// from the stack pointer to there is a coroutine's.
void find_own_stack(uintptr_t stack_pointer, arctrace_shim_memory& own) {
  if (sys::gettid() == sys::getpid()) {
    const arctrace_shim_memory main = main_thread_stack();
    if (contains(main, stack_pointer)) own = main;
    return;
  }
  const auto data = reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
  for_each_mapping([&](uintptr_t low, uintptr_t high) {
    const arctrace_shim_memory mapping{low, high};
    if (contains(mapping, data) && contains(mapping, stack_pointer) &&
        stack_pointer < data) {
      own = {low, data};
    }
  });
}

// Whether the code begins like a function. A part of a function that the compiler has put
// elsewhere is entered by jumps: at its beginning it has more on the stack than its
// return address.
bool begins_like_function(uintptr_t function) {
  constexpr int32_t kReturnAddressBytes = 8;
  const FrameRule rule = find_frame_rule(function);
  return rule.function == function && rule.base == FrameRule::Base::kStackPointer &&
         rule.offset == kReturnAddressBytes;
}

// The facts about the function that runs in the frame `call`, by the rule of its code.
arctrace_shim_open_frame describe(const arctrace_shim_call& call, const FrameRule& rule) {
  arctrace_shim_open_frame frame{rule.function, rule.function_end, call.cfa,
                                 call.call_site, ARCTRACE_SHIM_WAS_OPEN};
  constexpr uintptr_t kCallBytes = 5;
  const FrameRule caller =
      call.call_site == 0 ? FrameRule{} : find_frame_rule(call.call_site - 1);
  const bool is_readable =
      caller.function != 0 && call.call_site - kCallBytes >= caller.function;
  const uintptr_t called = is_readable ? machine::called_by_name(call.call_site) : 0;
  const bool is_function = begins_like_function(rule.function);
  if (called != 0 && called != rule.function && !is_function &&
      begins_like_function(called)) {
    frame.key = called;
  }
  // A part of the same function can't be distinguished from another function.
  if (frame.key == called || !is_function) frame.flags |= ARCTRACE_SHIM_CALLED_BY_NAME;
  const bool is_whole = frame.key == rule.function;
  frame.flags |=
      filter_flags_of(frame.key, is_whole ? rule.function_end - rule.function : 0);
  return frame;
}

class Unwinding {
 public:
  Unwinding(const arctrace_shim_call& call, arctrace_shim_memory& own,
            const arctrace_shim_memory& signal, arctrace_shim_see_frame* see,
            void* context)
      : call_(call), own_(own), signal_(signal), see_(see), context_(context) {}

  // Visits the frames. Returns how many count.
  uint32_t run(bool begins) {
    bool is_whole = false;
    if (!begins && call_.cfa != 0)
      is_whole = report(find_frame_rule(call_.hook_site - 1));
    while (!is_whole && seen_ < kFramesMax && step()) {
      is_whole = report(find_frame_rule(call_.hook_site - 1));
    }
    if (is_whole) return counted_;
    const arctrace_shim_open_frame unknown{key_of_unknown, 0, 0, 0,
                                           ARCTRACE_SHIM_WAS_OPEN};
    if (key_of_unknown == 0) return seen_;
    see_(context_, &unknown);
    return seen_ + 1;
  }

 private:
  // The end of the stack of a frame with the CFA `cfa`; 0: the stack is not known.
  uintptr_t stack_high(uintptr_t cfa) const {
    if (contains(signal_, cfa - 1)) return signal_.high;
    return contains(own_, cfa - 1) ? own_.high : 0;
  }

  bool step() {
    const uintptr_t high = stack_high(call_.cfa);
    if (high == 0) return false;
    const uintptr_t callee = call_.cfa;
    if (find_caller(&call_, high, 0) != 0) return call_.cfa > callee;
    // A handler returns to code of libc.
    machine::InterruptedCode code{};
    if (call_.call_site == 0 || find_frame_rule(call_.call_site).function == 0 ||
        !machine::read_interrupted(call_.call_site, callee, high, code)) {
      return false;
    }
    if (own_.high == 0) find_own_stack(code.stack_pointer, own_);
    return find_interrupted(code, stack_high(code.stack_pointer), &call_) != 0;
  }

  // Visits a frame. Returns whether it is the outermost one: its return address is
  // nowhere.
  bool report(const FrameRule& rule) {
    if (rule.function == 0) return false;
    const arctrace_shim_open_frame frame = describe(call_, rule);
    see_(context_, &frame);
    ++seen_;
    if (!libc.contains(rule.function) && rule.function != entry_point) counted_ = seen_;
    return rule.base != FrameRule::Base::kUnknown && rule.return_address_offset == 0;
  }

  arctrace_shim_call call_;
  arctrace_shim_memory& own_;
  const arctrace_shim_memory& signal_;
  arctrace_shim_see_frame* see_;
  void* context_;
  uint32_t seen_ = 0;
  uint32_t counted_ = 0;
};

uint32_t unwind(const arctrace_shim_call* call, int begins, arctrace_shim_memory* own,
                const arctrace_shim_memory* signal, arctrace_shim_see_frame* see,
                void* context) {
  uint32_t count = 0;
  keep_vectors_around([&] {
    // A handler on a stack of its own can't tell where the thread's other stack is.
    if (own->high == 0 && !contains(*signal, call->stack_pointer)) {
      find_own_stack(call->stack_pointer, *own);
    }
    count = Unwinding(*call, *own, *signal, see, context).run(begins != 0);
  });
  return count;
}

}  // namespace

void find_open_functions(OpenFunctionFlags* flags_of) {
  filter_flags_of = flags_of;
  if (key_of_unknown == 0) {
    const uint32_t name = arctrace_shim_define_name("[frames that could not be unwound]");
    if (name != 0) key_of_unknown = arctrace_name_key(name);
  }
  libc = find_loaded_object(reinterpret_cast<uintptr_t>(&gnu_get_libc_version)).range;
  entry_point = getauxval(AT_ENTRY);
  arctrace_shim_set_open_frames(unwind);
}

}  // namespace arctrace::shim
