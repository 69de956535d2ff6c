// The names of each kind. A function that is missing here breaks the programs that call
// it.
#include "src/shim_protocol/call_kinds.hpp"

#include <cstddef>

#include "src/base/text.hpp"

namespace arctrace::shim {
namespace {

// Functions that look up their caller by its return address, or return to it more than
// once or from another stack.
constexpr const char* kPassed[] = {
    "__clone", "backtrace", "__sigsetjmp",     "__vfork",
    "_setjmp", "clone",     "dl_iterate_phdr", "dlmopen",
    "dlopen",  "dlsym",     "dlvsym",          "getcontext",
    "setjmp",  "sigsetjmp", "unw_getcontext",  "_Unwind_Backtrace",
    "vfork"};

constexpr const char* kLast[] = {
    "_Exit",        "_Unwind_Resume",   "__assert_fail", "__chk_fail", "__cxa_rethrow",
    "__cxa_throw",  "__stack_chk_fail", "_exit",         "abort",      "exit",
    "pthread_exit", "quick_exit",       "thrd_exit"};

// Functions that switch between stacks, or make one: libc's and those of Boost.Context.
constexpr const char* kStackCalls[] = {"jump_fcontext", "make_fcontext", "makecontext",
                                       "ontop_fcontext", "swapcontext"};
constexpr const char* kLastSwitch = "setcontext";

constexpr const char* kFrameAddress = "_Unwind_GetCFA";

constexpr const char* kLongJumps[] = {"__longjmp_chk", "_longjmp", "longjmp",
                                      "siglongjmp"};

// Functions that compiled code calls under rules other than the ABI's, and the hooks of
// other tracers.
constexpr const char* kUntouched[] = {"__cxa_finalize",    "__fentry__", "__gmon_start__",
                                      "__libc_start_main", "__return__", "__tls_get_addr",
                                      "_mcount",           "mcount"};

template <size_t n>
bool contains(const char* const (&names)[n], const char* name) {
  for (const char* entry : names) {
    if (equal(entry, name)) return true;
  }
  return false;
}

}  // namespace

CallKind call_kind(const char* name) {
  if (contains(kPassed, name)) return CallKind::kPassed;
  if (contains(kLast, name)) return CallKind::kLast;
  if (contains(kLongJumps, name)) return CallKind::kLongJump;
  if (contains(kStackCalls, name)) return CallKind::kStacks;
  if (equal(name, kLastSwitch)) return CallKind::kLastSwitch;
  if (equal(name, kFrameAddress)) return CallKind::kFrameAddress;
  if (contains(kUntouched, name) || starts_with(name, "__cyg_profile_") ||
      starts_with(name, "_ITM_")) {
    return CallKind::kUntouched;
  }
  return CallKind::kUnexamined;
}

CallKind silent_call_kind(const char* name) {
  if (contains(kLongJumps, name)) return CallKind::kSilentJump;
  if (contains(kStackCalls, name) || equal(name, kLastSwitch)) {
    return CallKind::kSilentStacks;
  }
  if (equal(name, kFrameAddress)) return CallKind::kSilentFrameAddress;
  return equal(name, "__cxa_begin_catch") ? CallKind::kSilentCatch : CallKind::kUntouched;
}

}  // namespace arctrace::shim
