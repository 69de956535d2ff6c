#include "tests/support/single_step.hpp"

#include <doctest/doctest.h>
#include <ucontext.h>

#include <csignal>

namespace arctrace::testing {

#if defined(__x86_64__)
namespace {

constexpr greg_t kTrapFlag = 0x100;

uint64_t steps;
const std::function<bool(uint64_t)>* step_handler;

void on_trap(int /*signal*/, siginfo_t* /*info*/, void* context) {
  if ((*step_handler)(steps++)) return;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
}

// The flags are loaded from the stack, below the red zone.
__attribute__((noinline)) void set_trap_flag() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n"
      "lea 128(%%rsp), %%rsp\n" ::
          : "memory", "cc");
}
__attribute__((noinline)) void clear_trap_flag() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n"
      "lea 128(%%rsp), %%rsp\n" ::
          : "memory", "cc");
}

}  // namespace

bool can_single_step() { return true; }

uint64_t single_step(const std::function<void()>& code,
                     const std::function<bool(uint64_t)>& at_step) {
  steps = 0;
  step_handler = &at_step;
  struct sigaction action {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before {};
  REQUIRE(sigaction(SIGTRAP, &action, &before) == 0);
  set_trap_flag();
  code();
  clear_trap_flag();
  sigaction(SIGTRAP, &before, nullptr);
  return steps;
}

#else

bool can_single_step() { return false; }

uint64_t single_step(const std::function<void()>& code,
                     const std::function<bool(uint64_t)>& /*at_step*/) {
  code();
  return 0;
}

#endif

}  // namespace arctrace::testing
