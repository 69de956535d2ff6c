// Whether a program runs on behalf of the thread that runs, or has interrupted it.
#pragma once

#include "bpf/kernel_types.h"

#if defined(__TARGET_ARCH_x86)
#define THREAD_STACK_SIZE 16384
#define IS_KERNEL_THREAD 0x00200000  // PF_KTHREAD

struct pt_regs___kernel {
  unsigned long orig_ax;  // the system call's number, -1 of what else left user mode
} RELOCATED;

// Addresses may be compared but not subtracted.
static __always_inline bool is_below(const void* address, uint64_t limit) {
  uint64_t below;
  asm volatile("%0 = 1; if %1 < %2 goto +1; %0 = 0"
               : "=&r"(below)
               : "r"(address), "r"(limit));
  return below != 0;
}
#endif

// WAKING.context. `on_stack`: anything of the program's caller.
static __always_inline uint32_t waking_context(const struct task_struct* running,
                                               const void* on_stack) {
#if defined(__TARGET_ARCH_x86)
  // The count of interrupts is out of reach where the kernel doesn't tell its variables'
  // addresses. An interrupt of the kernel has a stack of its own; of user mode, it has
  // the thread's, like a system call.
  const uint64_t stack = (uint64_t)running->stack;
  const uint32_t interrupt = ARCTRACE_WAKING_INTERRUPT | ARCTRACE_WAKING_SOFTIRQ;
  if (is_below(on_stack, stack) || !is_below(on_stack, stack + THREAD_STACK_SIZE)) {
    return interrupt;
  }
  if ((running->flags & IS_KERNEL_THREAD) != 0) return 0;
  const struct pt_regs___kernel* user = (const void*)bpf_task_pt_regs((void*)running);
  return (long)user->orig_ax == -1 ? interrupt : 0;
#elif defined(__TARGET_ARCH_arm64)
  // <linux/preempt.h>: soft interrupts being served; hard ones and NMIs.
  const uint32_t count = (uint32_t)running->thread_info.preempt_count;
  return ((count & 0xff0000) != 0 ? ARCTRACE_WAKING_INTERRUPT : 0) |
         ((count & 0x100) != 0 ? ARCTRACE_WAKING_SOFTIRQ : 0);
#else
  return ARCTRACE_WAKING_UNKNOWN;
#endif
}
