// The parts of the kernel's types that the programs use. libbpf adjusts the offsets of
// their fields by the BTF of the running kernel.
#pragma once

// clang-format off
#include <linux/bpf.h>
#include <stdbool.h>
#include <arctrace/format.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
// clang-format on

#define RELOCATED __attribute__((preserve_access_index))

#if defined(__TARGET_ARCH_arm64)
struct thread_info {
  __u64 preempt_count;  // the count itself in its lower half
} RELOCATED;
#endif

struct ns_common {
  unsigned int inum;
} RELOCATED;

struct pid_namespace {
  struct ns_common ns;
} RELOCATED;

struct upid {
  int nr;
  struct pid_namespace* ns;
} RELOCATED;

struct pid {
  unsigned int level;      // of the namespace that it was made in; 0: the first
  struct upid numbers[1];  // its number in each namespace down to that one
} RELOCATED;

struct atomic_count {
  int counter;
} RELOCATED;

struct signal_struct {
  struct atomic_count live;  // the process' threads that have not begun to end
  int group_exit_code;       // of a process that ends as a whole
  unsigned int flags;
} RELOCATED;
#define SIGNAL_GROUP_EXIT 4u

struct task_struct {
#if defined(__TARGET_ARCH_arm64)
  struct thread_info thread_info;
#endif
  void* stack;
  unsigned int flags;
  int pid;   // the thread
  int tgid;  // the process
  unsigned int __state;
  unsigned int in_iowait : 1;
  int exit_code;
  struct pid* thread_pid;
  struct signal_struct* signal;
  char comm[16];
} RELOCATED;

struct sigaction {
  void (*sa_handler)(int);  // null: SIG_DFL
} RELOCATED;

struct k_sigaction {
  struct sigaction sa;
} RELOCATED;

struct irqaction {
  const char* name;
} RELOCATED;

struct block_device {
  __u32 bd_dev;
} RELOCATED;

struct gendisk {
  struct block_device* part0;
} RELOCATED;

struct request_queue {
  struct gendisk* disk;
} RELOCATED;

struct request {
  struct request_queue* q;
  __u32 cmd_flags;
  __u32 __data_len;
  __u64 __sector;
} RELOCATED;
