// Tells whether a program runs on behalf of the running thread or has interrupted it.
#pragma once

#include "bpf/kernel_types.h"

#if defined(__TARGET_ARCH_x86)
#define THREAD_STACK_SIZE 16384
#define IS_KERNEL_THREAD 0x00200000  // PF_KTHREAD

struct pt_regs___kernel {
  unsigned long ip;
  unsigned long orig_ax;  // the system call's number; -1: no system call
} RELOCATED;

// Reads at any address without a helper call, since Linux 6.2 (layout.casts).
extern void* bpf_rdonly_cast(const void* address, __u32 type) __ksym __weak;

// The offset at which a thread's stack has its registers of user mode; 0 until a call has
// found it. It is the same for all stacks, but depends on the kernel's configuration.
uint32_t registers_at SEC(".data.context");

// Compares by an instruction, because the verifier lets addresses be compared but not
// subtracted.
static __always_inline bool is_below(const void* address, uint64_t limit) {
  uint64_t below;
  asm volatile("%0 = 1; if %1 < %2 goto +1; %0 = 0"
               : "=&r"(below)
               : "r"(address), "r"(limit));
  return below != 0;
}

// The orig_ax of a thread that has been in user mode.
static __always_inline long user_number(const struct task_struct* running) {
  const uint64_t stack = (uint64_t)running->stack;
  const uint64_t at = *(volatile uint32_t*)&registers_at;
  const struct pt_regs___kernel* user;
  if (layout.casts && at != 0) {
    user = bpf_rdonly_cast((const void*)(stack + at),
                           bpf_core_type_id_kernel(struct pt_regs___kernel));
    return (long)user->orig_ax;
  }
  user = (const void*)bpf_task_pt_regs((void*)running);
  // <asm/thread_info.h>, TOP_OF_KERNEL_STACK_PADDING: 16 with CONFIG_X86_FRED.
  const uint32_t end = THREAD_STACK_SIZE - bpf_core_type_size(struct pt_regs___kernel);
  UNROLLED
  for (uint32_t padding = 0; padding <= 16; padding += 16) {
    const uint64_t expected = stack + end - padding;
    if (!is_below(user, expected) && is_below(user, expected + 1)) {
      *(volatile uint32_t*)&registers_at = end - padding;
    }
  }
  return (long)user->orig_ax;
}
#endif

// The address of the next instruction in user mode of a thread that has been there.
static __always_inline uint64_t user_instruction(const struct task_struct* running) {
#if defined(__TARGET_ARCH_x86)
  const struct pt_regs___kernel* user = (const void*)bpf_task_pt_regs((void*)running);
  return user->ip;
#else
  return 0;
#endif
}

// The value of WAKING.context. `on_stack`: any object on the stack of the program's
// caller.
static __always_inline uint32_t waking_context(const struct task_struct* running,
                                               const void* on_stack) {
#if defined(__TARGET_ARCH_x86)
  // The count of interrupts is out of reach if the kernel does not give the addresses of
  // its variables. An interrupt of kernel mode has a stack of its own; one of user mode
  // has the thread's stack, like a system call.
  const uint64_t stack = (uint64_t)running->stack;
  const uint32_t interrupt = ARCTRACE_WAKING_INTERRUPT | ARCTRACE_WAKING_SOFTIRQ;
  if (is_below(on_stack, stack) || !is_below(on_stack, stack + THREAD_STACK_SIZE)) {
    return interrupt;
  }
  if ((running->flags & IS_KERNEL_THREAD) != 0) return 0;
  return user_number(running) == -1 ? interrupt : 0;
#elif defined(__TARGET_ARCH_arm64)
  // <linux/preempt.h>: soft interrupts being served; hard ones and NMIs.
  const uint32_t count = (uint32_t)running->thread_info.preempt_count;
  return ((count & 0xff0000) != 0 ? ARCTRACE_WAKING_INTERRUPT : 0) |
         ((count & 0x100) != 0 ? ARCTRACE_WAKING_SOFTIRQ : 0);
#else
  return ARCTRACE_WAKING_UNKNOWN;
#endif
}
