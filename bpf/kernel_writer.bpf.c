// The kernel's records: what happens to the threads of the traced processes.
#include "bpf/append.h"
#include "bpf/context.h"

const char LICENSE[] SEC("license") = "GPL";

#define TGIDS (4u << 20)  // PID_MAX_LIMIT

// Traced processes, one bit for each tgid that there can be: what the recorder put in,
// and all that they fork.
#define TRACED_WORDS (TGIDS / 64)
__u64 traced[TRACED_WORDS];

static __always_inline __u64* traced_word(__u32 tgid) {
  return &traced[(tgid / 64) & (TRACED_WORDS - 1)];
}
static __always_inline __u64 traced_bit(__u32 tgid) { return 1ull << (tgid % 64); }
static __always_inline bool is_traced(__u32 tgid) {
  return (*(volatile __u64*)traced_word(tgid) & traced_bit(tgid)) != 0;
}

struct running {
  __u32 tid;
  __u32 tgid;
};

// The thread that runs: a call, and calls are what a record costs.
static __always_inline struct running current(void) {
  const __u64 both = bpf_get_current_pid_tgid();
  return (struct running){(__u32)both, (__u32)(both >> 32)};
}

// A record with two words behind its cpu and tgid.
static __always_inline int record_two(struct place* at, __u16 type, struct running by,
                                      __u32 first, __u32 second) {
  __u8* record = begin_record(at, type, 32, by.tid);
  if (record == 0) return 0;
  put_u32(record, 20, by.tgid);
  put_u32(record, 24, first);
  put_u32(record, 28, second);
  end_record(at, record, type, 32);
  return 0;
}

// Of the running thread, if it is traced.
static __always_inline int record_own_two(__u16 type, __u32 first, __u32 second) {
  const struct running by = current();
  struct place at;
  if (!is_traced(by.tgid) || !find_place(&at)) return 0;
  return record_two(&at, type, by, first, second);
}

// The same with a 64-bit word and one of 32.
static __always_inline int record_own_wide(__u16 type, __u64 wide, __u32 first) {
  const struct running by = current();
  struct place at;
  if (!is_traced(by.tgid) || !find_place(&at)) return 0;
  __u8* record = begin_record(&at, type, 40, by.tid);
  if (record == 0) return 0;
  put_u32(record, 20, by.tgid);
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
  struct place at;
  if (!is_traced(prev_tgid) && !is_traced(next_tgid)) return 0;
  if (!find_place(&at)) return 0;
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
  struct place at;
  if (!is_traced(tgid) || !find_place(&at)) return 0;
  const struct task_struct* running = bpf_get_current_task_btf();
  __u8* record = begin_record(&at, ARCTRACE_TYPE_WAKING, 36, running->pid);
  if (record == 0) return 0;
  put_u32(record, 20, running->tgid);
  put_u32(record, 24, woken->pid);
  put_u32(record, 28, tgid);
  put_u32(record, 32, waking_context(running, ctx));
  end_record(&at, record, ARCTRACE_TYPE_WAKING, 36);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  const struct running by = {parent->pid, parent->tgid};
  if (!is_traced(by.tgid)) return 0;
  const __u32 child_tgid = child->tgid;
  if (child_tgid != by.tgid) {
    __sync_fetch_and_or(traced_word(child_tgid), traced_bit(child_tgid));
  }
  struct place at;
  if (!find_place(&at)) return 0;
  return record_two(&at, ARCTRACE_TYPE_FORKED, by, child->pid, child_tgid);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task) {
  const __u32 tgid = task->tgid;
  struct place at;
  if (!is_traced(tgid) || !find_place(&at)) return 0;
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
  const struct running by = {task->pid, task->tgid};
  struct place at;
  if (!is_traced(by.tgid) || !find_place(&at)) return 0;
  return record_two(&at, ARCTRACE_TYPE_EXITED, by, 0, 0);
}

// A process' first thread is freed last.
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct* task) {
  const __u32 tgid = task->tgid;
  if ((__u32)task->pid == tgid && is_traced(tgid)) {
    __sync_fetch_and_and(traced_word(tgid), ~traced_bit(tgid));
  }
  return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_syscall, void* registers, long number) {
  return record_own_two(ARCTRACE_TYPE_SYSCALL, (__u32)number, 0);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_syscall_end, void* registers, long result) {
  return record_own_two(ARCTRACE_TYPE_SYSCALL_END, (__u32)result,
                        (__u32)((__u64)result >> 32));
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault, unsigned long address, void* registers, unsigned long error) {
  return record_own_wide(ARCTRACE_TYPE_PAGE_FAULT, address, (__u32)error);
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(on_signal, int signal) {
  return record_own_two(ARCTRACE_TYPE_SIGNAL, (__u32)signal, 0);
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention, void* lock, unsigned int flags) {
  return record_own_wide(ARCTRACE_TYPE_CONTENTION, (__u64)lock, flags);
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void* lock, int result) {
  return record_own_wide(ARCTRACE_TYPE_CONTENTION_END, (__u64)lock, (__u32)result);
}

// Requests that traced threads made of block devices, by their address.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, __u64);
  __type(value, struct running);
} requests SEC(".maps");

static __always_inline void record_request(__u16 type, struct running by,
                                           struct request* request, __u32 bytes,
                                           __u32 error) {
  struct place at;
  if (!find_place(&at)) return;
  __u8* record = begin_record(&at, type, 48, by.tid);
  if (record == 0) return;
  struct gendisk* disk = request->q->disk;
  put_u32(record, 20, by.tgid);
  put_u64(record, 24, request->__sector);
  put_u32(record, 32, disk == 0 ? 0 : disk->part0->bd_dev);
  put_u32(record, 36, bytes);
  put_u32(record, 40, request->cmd_flags & 0xff);  // REQ_OP_MASK
  put_u32(record, 44, error);
  end_record(&at, record, type, 48);
}

static __always_inline int begin_request(struct request* request) {
  const struct running by = current();
  if (!is_traced(by.tgid)) return 0;
  const __u64 key = (__u64)request;
  bpf_map_update_elem(&requests, &key, &by, BPF_ANY);
  record_request(ARCTRACE_TYPE_BLOCK_IO, by, request, request->__data_len, 0);
  return 0;
}

// In the thread that asks; older kernels only tell when the device is asked, perhaps by
// a thread of their own.
SEC("tp_btf/block_io_start")
int BPF_PROG(on_block_io, struct request* request) { return begin_request(request); }
SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_block_issue, struct request* request) { return begin_request(request); }

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_block_io_end, struct request* request, int error, unsigned int bytes) {
  const __u64 key = (__u64)request;
  const struct running* by = bpf_map_lookup_elem(&requests, &key);
  if (by == 0) return 0;
  const struct running asked = *by;
  // It may come in parts.
  if (bytes >= request->__data_len) bpf_map_delete_elem(&requests, &key);
  record_request(ARCTRACE_TYPE_BLOCK_IO_END, asked, request, bytes, (__u32)error);
  return 0;
}
