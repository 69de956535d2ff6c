// Which library functions are wrapped, entry-only, or skipped: by whole names, and two
// families of hooks by the beginning of their names.
#include "src/shim_protocol/call_kinds.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

namespace arctrace::shim {

TEST_CASE("call kinds: by the function's whole name") {
  for (const char* name : {"setjmp", "__sigsetjmp", "vfork", "__vfork", "dlopen", "dlsym",
                           "getcontext", "backtrace", "clone"}) {
    CAPTURE(name);
    CHECK(call_kind(name) == CallKind::kEntryOnly);
  }
  for (const char* name : {"exit", "_exit", "_Exit", "abort", "__cxa_throw",
                           "_Unwind_Resume", "pthread_exit", "__stack_chk_fail"}) {
    CAPTURE(name);
    CHECK(call_kind(name) == CallKind::kLast);
  }
  for (const char* name : {"makecontext", "swapcontext", "make_fcontext", "jump_fcontext",
                           "ontop_fcontext"}) {
    CAPTURE(name);
    CHECK(call_kind(name) == CallKind::kStacks);
  }
  CHECK(call_kind("setcontext") == CallKind::kLastSwitch);
  for (const char* name : {"longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"}) {
    CAPTURE(name);
    CHECK(call_kind(name) == CallKind::kLongJump);
    CHECK(frames_only_call_kind(name) == CallKind::kFramesOnlyJump);
  }
  CHECK(frames_only_call_kind("__cxa_begin_catch") == CallKind::kFramesOnlyCatch);
  CHECK(frames_only_call_kind("__cxa_throw") == CallKind::kSkipped);
  CHECK(call_kind("_Unwind_GetCFA") == CallKind::kFrameAddress);
  CHECK(frames_only_call_kind("_Unwind_GetCFA") == CallKind::kFramesOnlyFrameAddress);
  for (const char* name : {"__fentry__", "mcount", "_mcount", "__tls_get_addr",
                           "__libc_start_main", "__cxa_finalize", "__gmon_start__"}) {
    CAPTURE(name);
    CHECK(call_kind(name) == CallKind::kSkipped);
  }
  // A part of a name, and a longer name that begins with it, do not count.
  for (const char* name : {"", "malloc", "set", "setjmp_", "_longjmp_", "exit_group",
                           "__exit", "EXIT", "mcount_", "dlopen.part.0", "dlclose"}) {
    CAPTURE(name);
    CHECK(call_kind(name) == CallKind::kUnexamined);
  }
}

TEST_CASE("call kinds: other tracers' hooks and those of transactions are untouched") {
  CHECK(call_kind("__cyg_profile_func_enter") == CallKind::kSkipped);
  CHECK(call_kind("__cyg_profile_func_exit") == CallKind::kSkipped);
  CHECK(call_kind("_ITM_registerTMCloneTable") == CallKind::kSkipped);
  CHECK(call_kind("__cyg_profile") == CallKind::kUnexamined);
  CHECK(call_kind("my__cyg_profile_func_enter") == CallKind::kUnexamined);
  CHECK(call_kind("_ITM") == CallKind::kUnexamined);
}

}  // namespace arctrace::shim
