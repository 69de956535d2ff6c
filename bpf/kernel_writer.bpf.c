// The kernel's records: what happens to the threads of the traced processes.
// clang-format off
#include "bpf/buffer.h"
#include "bpf/append.h"
#include "bpf/context.h"
// clang-format on

// The project's own license, and the GPL, which the kernel asks for: some of the helpers
// that these programs call are open to GPL programs only.
const char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define TGIDS (4u << 20)  // PID_MAX_LIMIT

// Traced processes, one bit for each tgid that there can be: what the recorder put in,
// and all that they fork.
#define TRACED_WORDS (TGIDS / 64)
uint64_t traced[TRACED_WORDS];

static __always_inline uint64_t* traced_word(uint32_t tgid) {
  return &traced[(tgid / 64) & (TRACED_WORDS - 1)];
}
static __always_inline uint64_t traced_bit(uint32_t tgid) { return 1ull << (tgid % 64); }
static __always_inline bool is_traced(uint32_t tgid) {
  return (*(volatile uint64_t*)traced_word(tgid) & traced_bit(tgid)) != 0;
}

struct running {
  uint32_t tid;
  uint32_t tgid;
};

// The thread that runs: a call, and calls are what a record costs.
static __always_inline struct running current(void) {
  const uint64_t both = bpf_get_current_pid_tgid();
  return (struct running){(uint32_t)both, (uint32_t)(both >> 32)};
}

// A record with two words behind its cpu and tgid.
static __always_inline int record_two(struct place* at, uint16_t type, struct running by,
                                      uint32_t first, uint32_t second) {
  uint8_t* record = begin_record(at, type, 32, by.tid);
  if (record == 0) return 0;
  put_u32(record, 20, by.tgid);
  put_u32(record, 24, first);
  put_u32(record, 28, second);
  end_record(at, record, type, 32);
  return 0;
}

// Of the running thread, if it is traced.
static __always_inline int record_own_two(uint16_t type, uint32_t first,
                                          uint32_t second) {
  const struct running by = current();
  struct place at;
  if (!is_traced(by.tgid) || !find_place(&at)) return 0;
  return record_two(&at, type, by, first, second);
}

// The same with a 64-bit word and one of 32.
static __always_inline int record_own_wide(uint16_t type, uint64_t wide, uint32_t first) {
  const struct running by = current();
  struct place at;
  if (!is_traced(by.tgid) || !find_place(&at)) return 0;
  uint8_t* record = begin_record(&at, type, 40, by.tid);
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
  const uint32_t prev_tgid = prev->tgid;
  const uint32_t next_tgid = next->tgid;
  struct place at;
  if (!is_traced(prev_tgid) && !is_traced(next_tgid)) return 0;
  if (!find_place(&at)) return 0;
  uint8_t* record = begin_record(&at, ARCTRACE_TYPE_SWITCH, 36, prev->pid);
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
  const uint32_t tgid = woken->tgid;
  struct place at;
  if (!is_traced(tgid) || !find_place(&at)) return 0;
  const struct task_struct* running = bpf_get_current_task_btf();
  uint8_t* record = begin_record(&at, ARCTRACE_TYPE_WAKING, 36, running->pid);
  if (record == 0) return 0;
  put_u32(record, 20, running->tgid);
  put_u32(record, 24, woken->pid);
  put_u32(record, 28, tgid);
  put_u32(record, 32, waking_context(running, ctx));
  end_record(&at, record, ARCTRACE_TYPE_WAKING, 36);
  return 0;
}

// What the child calls itself, if it is not in the first PID namespace.
static __always_inline void record_number(struct place* at, struct running by,
                                          const struct task_struct* child) {
  // Read by a call, it is a number to the verifier, which would not add to a pointer.
  const struct pid* pid = BPF_CORE_READ(child, thread_pid);
  const uint64_t level = pid == 0 ? 0 : BPF_CORE_READ(pid, level);
  if (level == 0) return;
  const void* number = (const char*)pid + bpf_core_field_offset(struct pid, numbers) +
                       level * bpf_core_type_size(struct upid);
  uint32_t tid = 0;
  uint32_t inode = 0;
  struct pid_namespace* space = 0;
  bpf_probe_read_kernel(&tid, sizeof tid,
                        number + bpf_core_field_offset(struct upid, nr));
  bpf_probe_read_kernel(&space, sizeof space,
                        number + bpf_core_field_offset(struct upid, ns));
  bpf_probe_read_kernel(&inode, sizeof inode, &space->ns.inum);
  uint8_t* record = begin_record(at, ARCTRACE_TYPE_NUMBERED, 40, by.tid);
  if (record == 0) return;
  put_u32(record, 20, by.tgid);
  put_u32(record, 24, child->pid);
  put_u32(record, 28, tid);
  put_u32(record, 32, inode);
  put_u32(record, 36, 0);
  end_record(at, record, ARCTRACE_TYPE_NUMBERED, 40);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  const struct running by = {parent->pid, parent->tgid};
  if (!is_traced(by.tgid)) return 0;
  const uint32_t child_tgid = child->tgid;
  if (child_tgid != by.tgid) {
    __sync_fetch_and_or(traced_word(child_tgid), traced_bit(child_tgid));
  }
  struct place at;
  if (!find_place(&at)) return 0;
  record_two(&at, ARCTRACE_TYPE_FORKED, by, child->pid, child_tgid);
  at.active = 0;
  record_number(&at, by, child);
  return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task) {
  const uint32_t tgid = task->tgid;
  struct place at;
  if (!is_traced(tgid) || !find_place(&at)) return 0;
  uint8_t* record = begin_record(&at, ARCTRACE_TYPE_EXECED, 40, task->pid);
  if (record == 0) return 0;
  put_u32(record, 20, tgid);
  char name[16] = {};
  bpf_probe_read_kernel_str(name, sizeof name, task->comm);
#pragma unroll
  for (int i = 0; i < 4; ++i) put_u32(record, 24 + 4 * i, ((uint32_t*)name)[i]);
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
  const uint32_t tgid = task->tgid;
  if ((uint32_t)task->pid == tgid && is_traced(tgid)) {
    __sync_fetch_and_and(traced_word(tgid), ~traced_bit(tgid));
  }
  return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_syscall, void* registers, long number) {
  return record_own_two(ARCTRACE_TYPE_SYSCALL, (uint32_t)number, 0);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_syscall_end, void* registers, long result) {
  return record_own_two(ARCTRACE_TYPE_SYSCALL_END, (uint32_t)result,
                        (uint32_t)((uint64_t)result >> 32));
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault, unsigned long address, void* registers, unsigned long error) {
  return record_own_wide(ARCTRACE_TYPE_PAGE_FAULT, address, (uint32_t)error);
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(on_signal, int signal) {
  return record_own_two(ARCTRACE_TYPE_SIGNAL, (uint32_t)signal, 0);
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention, void* lock, unsigned int flags) {
  return record_own_wide(ARCTRACE_TYPE_CONTENTION, (uint64_t)lock, flags);
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void* lock, int result) {
  return record_own_wide(ARCTRACE_TYPE_CONTENTION_END, (uint64_t)lock, (uint32_t)result);
}

// Requests that traced threads made of block devices, by their address.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, uint64_t);
  __type(value, struct running);
} requests SEC(".maps");

static __always_inline void record_request(uint16_t type, struct running by,
                                           struct request* request, uint32_t bytes,
                                           uint32_t error) {
  struct place at;
  if (!find_place(&at)) return;
  uint8_t* record = begin_record(&at, type, 48, by.tid);
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
  const uint64_t key = (uint64_t)request;
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
  const uint64_t key = (uint64_t)request;
  const struct running* by = bpf_map_lookup_elem(&requests, &key);
  if (by == 0) return 0;
  const struct running asked = *by;
  // It may come in parts.
  if (bytes >= request->__data_len) bpf_map_delete_elem(&requests, &key);
  record_request(ARCTRACE_TYPE_BLOCK_IO_END, asked, request, bytes, (uint32_t)error);
  return 0;
}
