// The kernel's records: what happens to the threads of the traced processes.
#include "bpf/append.h"

const char LICENSE[] SEC("license") = "GPL";

// Traced processes, by tgid: what the recorder put in, and all that they fork.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 65536);
  __type(key, __u32);
  __type(value, __u8);
} traced SEC(".maps");

static __always_inline bool is_traced(__u32 tgid) {
  return tgid != 0 && bpf_map_lookup_elem(&traced, &tgid) != 0;
}

// Whether anything is to be recorded now.
static __always_inline bool is_open(void) {
  const __u32 zero = 0;
  const __u8* base = bpf_map_lookup_elem(&buffer, &zero);
  if (base == 0) return false;
  const struct arctrace_control* control = (const void*)(base + ARCTRACE_CONTROL_OFFSET);
  return (control->gate & ARCTRACE_GATE_KERNEL) != 0;
}

static __always_inline __u32 current_tid(void) {
  return (__u32)bpf_get_current_pid_tgid();
}
static __always_inline __u32 current_tgid(void) {
  return (__u32)(bpf_get_current_pid_tgid() >> 32);
}

// A record of the running thread with two words behind its cpu and tgid.
static __always_inline int record_two(__u16 type, __u32 tid, __u32 tgid, __u32 first,
                                      __u32 second) {
  struct place at = {};
  __u8* record = begin_record(&at, type, 32, tid);
  if (record == 0) return 0;
  put_u32(record, 20, tgid);
  put_u32(record, 24, first);
  put_u32(record, 28, second);
  end_record(&at, record, type, 32);
  return 0;
}

// The same with a 64-bit word and two of 32.
static __always_inline int record_wide(__u16 type, __u64 wide, __u32 first) {
  struct place at = {};
  __u8* record = begin_record(&at, type, 40, current_tid());
  if (record == 0) return 0;
  put_u32(record, 20, current_tgid());
  put_u64(record, 24, wide);
  put_u32(record, 32, first);
  put_u32(record, 36, 0);
  end_record(&at, record, type, 40);
  return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev,
             struct task_struct* next) {
  const __u32 prev_tgid = prev->tgid;
  const __u32 next_tgid = next->tgid;
  if (!is_traced(prev_tgid) && !is_traced(next_tgid)) return 0;
  if (!is_open()) return 0;
  struct place at = {};
  __u8* record = begin_record(&at, ARCTRACE_TYPE_SWITCH, 36, prev->pid);
  if (record == 0) return 0;
  put_u32(record, 20, prev_tgid);
  put_u32(record, 24, preempt ? 0 : prev->__state);
  put_u32(record, 28, next->pid);
  put_u32(record, 32, next_tgid);
  end_record(&at, record, ARCTRACE_TYPE_SWITCH, 36);
  return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct* woken) {
  const __u32 tgid = woken->tgid;
  if (!is_traced(tgid) || !is_open()) return 0;
  return record_two(ARCTRACE_TYPE_WAKING, current_tid(), current_tgid(), woken->pid,
                    tgid);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  const __u32 tgid = parent->tgid;
  if (!is_traced(tgid)) return 0;
  const __u32 child_tgid = child->tgid;
  const __u8 yes = 1;
  if (child_tgid != tgid) bpf_map_update_elem(&traced, &child_tgid, &yes, BPF_ANY);
  if (!is_open()) return 0;
  return record_two(ARCTRACE_TYPE_FORKED, parent->pid, tgid, child->pid, child_tgid);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task) {
  const __u32 tgid = task->tgid;
  if (!is_traced(tgid) || !is_open()) return 0;
  struct place at = {};
  __u8* record = begin_record(&at, ARCTRACE_TYPE_EXECED, 40, task->pid);
  if (record == 0) return 0;
  put_u32(record, 20, tgid);
  char name[16] = {};
  bpf_probe_read_kernel_str(name, sizeof name, task->comm);
#pragma unroll
  for (int i = 0; i < 4; ++i) put_u32(record, 24 + 4 * i, ((__u32*)name)[i]);
  end_record(&at, record, ARCTRACE_TYPE_EXECED, 40);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct* task) {
  const __u32 tgid = task->tgid;
  if (!is_traced(tgid) || !is_open()) return 0;
  return record_two(ARCTRACE_TYPE_EXITED, task->pid, tgid, 0, 0);
}

// A process' first thread is freed last.
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct* task) {
  const __u32 tgid = task->tgid;
  if ((__u32)task->pid == tgid) bpf_map_delete_elem(&traced, &tgid);
  return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_syscall, void* registers, long number) {
  if (!is_traced(current_tgid()) || !is_open()) return 0;
  return record_two(ARCTRACE_TYPE_SYSCALL, current_tid(), current_tgid(), (__u32)number,
                    0);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_syscall_end, void* registers, long result) {
  if (!is_traced(current_tgid()) || !is_open()) return 0;
  return record_two(ARCTRACE_TYPE_SYSCALL_END, current_tid(), current_tgid(),
                    (__u32)result, (__u32)((__u64)result >> 32));
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault, unsigned long address, void* registers, unsigned long error) {
  if (!is_traced(current_tgid()) || !is_open()) return 0;
  return record_wide(ARCTRACE_TYPE_PAGE_FAULT, address, (__u32)error);
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(on_signal, int signal) {
  if (!is_traced(current_tgid()) || !is_open()) return 0;
  return record_two(ARCTRACE_TYPE_SIGNAL, current_tid(), current_tgid(), (__u32)signal,
                    0);
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention, void* lock, unsigned int flags) {
  if (!is_traced(current_tgid()) || !is_open()) return 0;
  return record_wide(ARCTRACE_TYPE_CONTENTION, (__u64)lock, flags);
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void* lock, int result) {
  if (!is_traced(current_tgid()) || !is_open()) return 0;
  return record_wide(ARCTRACE_TYPE_CONTENTION_END, (__u64)lock, (__u32)result);
}
