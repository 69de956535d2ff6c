// The kernel writer's programs: records of what happens to the threads of traced
// processes.
// clang-format off
#include "bpf/buffer.h"
#include "bpf/append.h"
#include "bpf/context.h"
// clang-format on

// The project's own license, and the GPL, which the kernel asks for: some of the helpers
// that these programs call are open to GPL programs only.
const char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct selection selection;

static __always_inline uint64_t* traced_word(uint32_t tgid) {
  return &selection.traced[(tgid / 64) & (TRACED_WORDS - 1)];
}
static __always_inline uint64_t traced_bit(uint32_t tgid) { return 1ull << (tgid % 64); }
static __always_inline bool is_traced(uint32_t tgid) {
  return (*(volatile uint64_t*)traced_word(tgid) & traced_bit(tgid)) != 0;
}
static __always_inline bool is_parent(uint32_t tgid) {
  UNROLLED
  for (uint32_t i = 0; i < PARENTS; ++i) {
    if (load_u32(&selection.parents[i]) == tgid) return true;
  }
  return false;
}

// The running thread. This is a helper call, and calls make up most of a record's cost.
static __always_inline struct thread current(void) {
  const uint64_t both = bpf_get_current_pid_tgid();
  return (struct thread){(uint32_t)both, (uint32_t)(both >> 32)};
}

// Begins a record about the running thread. Null: the thread is not traced, or the record
// is lost.
static __always_inline void* begin_own(struct kernel_writer* writer, uint16_t type,
                                       uint32_t body_size) {
  const struct thread running = current();
  if (!is_traced(running.tgid)) return 0;
  if (!begin_writer(writer)) return 0;
  return begin_record(writer, type, body_size, running);
}

// The threads whose names are recorded though their processes are not, with the first
// bytes of each name.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, uint32_t);
  __type(value, uint64_t);
} named SEC(".maps");

// Records the name of a thread that is not recorded, once. The idle thread of a CPU has
// none.
static __always_inline void record_name(struct kernel_writer* writer,
                                        struct thread thread,
                                        const struct task_struct* task) {
  if (thread.tid == 0) return;
  uint32_t name[4] = {};
  bpf_probe_read_kernel_str(name, sizeof name, task->comm);
  const uint64_t begin = name[0] | (uint64_t)name[1] << 32;
  const uint32_t tid = thread.tid;
  const uint64_t* known = bpf_map_lookup_elem(&named, &tid);
  if (known != 0 && *known == begin) return;
  struct arctrace_named_body* body =
      begin_record(writer, ARCTRACE_TYPE_NAMED, sizeof *body, thread);
  if (body == 0) return;
#pragma unroll
  for (uint32_t i = 0; i < sizeof name / sizeof *name; ++i) {
    PUT(((uint32_t*)body->name)[i], name[i]);
  }
  end_record(writer);
  bpf_map_update_elem(&named, &tid, &begin, BPF_ANY);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev,
             struct task_struct* next) {
  const struct thread leaving = {prev->pid, prev->tgid};
  const uint32_t next_tgid = next->tgid;
  struct kernel_writer writer;
  if (!is_traced(leaving.tgid) && !is_traced(next_tgid)) return 0;
  if (!begin_writer(&writer)) return 0;
  struct arctrace_switch_body* body =
      begin_record(&writer, ARCTRACE_TYPE_SWITCH, sizeof *body, leaving);
  if (body == 0) return 0;
  uint32_t state = preempt ? 0 : prev->__state;
  if (state != 0 && BPF_CORE_READ_BITFIELD(prev, in_iowait) != 0) {
    state |= ARCTRACE_SWITCH_IO;
  }
  PUT(body->prev_state, state);
  PUT(body->next_tid, next->pid);
  PUT(body->next_tgid, next_tgid);
  end_record(&writer);
  writer.active = 0;
  if (!is_traced(next_tgid)) {
    const struct thread coming = {next->pid, next_tgid};
    record_name(&writer, coming, next);
  } else if (!is_traced(leaving.tgid)) {
    record_name(&writer, leaving, prev);
  }
  return 0;
}

// The interrupts that this CPU serves. Soft interrupts do not nest.
struct cpu_interrupts {
  uint32_t vector;     // 1 + the soft interrupt that is served; 0: none
  uint32_t is_raised;  // 1: the running thread raised it, and no interrupt did
  // 1: a timer expires. It is no count, because an end may have been missed when the
  // programs were attached. If a timer interrupts the timer of a soft interrupt and ends,
  // the vector still tells of the latter.
  uint32_t in_timer;
  uint32_t by_thread;  // the soft interrupts that a thread has raised, one bit for each
  uint32_t by_interrupt;  // the soft interrupts that an interrupt has raised
  uint32_t raiser;        // the thread that raised some last
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct cpu_interrupts);
} interrupts SEC(".maps");

static __always_inline struct cpu_interrupts* interrupts_here(void) {
  const uint32_t first = 0;
  return bpf_map_lookup_elem(&interrupts, &first);
}

static __always_inline uint32_t vector_bit(uint32_t vector) {
  return 1u << (vector & 31);
}

SEC("tp_btf/softirq_raise")
int BPF_PROG(on_softirq_raise, unsigned int vector) {
  struct cpu_interrupts* here = interrupts_here();
  if (here == 0) return 0;
  const struct task_struct* running = bpf_get_current_task_btf();
  const uint32_t bit = vector_bit(vector);
  // What a soft interrupt raises counts as raised by whatever raised that soft interrupt.
  const bool by_thread = here->vector != 0 && here->in_timer == 0
                             ? here->is_raised != 0
                             : here->in_timer == 0 && waking_context(running, ctx) == 0;
  if (by_thread) {
    if ((here->by_thread & bit) != 0 && here->raiser != (uint32_t)running->pid) {
      here->by_interrupt |= bit;  // raised by another thread before, too
    }
    here->by_thread |= bit;
    here->raiser = running->pid;
  } else {
    here->by_interrupt |= bit;
  }
  return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq, unsigned int vector) {
  struct cpu_interrupts* here = interrupts_here();
  if (here == 0) return 0;
  const struct task_struct* running = bpf_get_current_task_btf();
  const uint32_t bit = vector_bit(vector);
  here->vector = vector + 1;
  here->is_raised = (here->by_thread & bit) != 0 && (here->by_interrupt & bit) == 0 &&
                    here->raiser == (uint32_t)running->pid;
  here->by_thread &= ~bit;
  here->by_interrupt &= ~bit;
  return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_end, unsigned int vector) {
  struct cpu_interrupts* here = interrupts_here();
  if (here != 0) here->vector = 0;
  return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_timer) {
  struct cpu_interrupts* here = interrupts_here();
  if (here != 0) here->in_timer = 1;
  return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(on_timer_end) {
  struct cpu_interrupts* here = interrupts_here();
  if (here != 0) here->in_timer = 0;
  return 0;
}

// The value of WAKING.context. Where soft interrupts have threads of their own
// (PREEMPT_RT), the words above mean nothing.
static __always_inline uint32_t context_of(const struct task_struct* running,
                                           const void* on_stack) {
  const uint32_t context = waking_context(running, on_stack);
  const struct cpu_interrupts* here = layout.preemptible ? 0 : interrupts_here();
  if (here == 0) return context;
  if (here->in_timer != 0) {
    return ARCTRACE_WAKING_INTERRUPT | ARCTRACE_WAKING_TIMER | here->vector << 8;
  }
  if (here->vector == 0) return context;
  // A hard interrupt may have come upon the soft one.
  const uint32_t soft = ARCTRACE_WAKING_SOFTIRQ | here->vector << 8;
  return here->is_raised != 0 ? soft | ARCTRACE_WAKING_RAISED
                              : soft | ARCTRACE_WAKING_INTERRUPT;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct* woken) {
  const uint32_t tgid = woken->tgid;
  struct kernel_writer writer;
  if (!is_traced(tgid) || !begin_writer(&writer)) return 0;
  const struct task_struct* running = bpf_get_current_task_btf();
  const struct thread waker = {running->pid, running->tgid};
  struct arctrace_waking_body* body =
      begin_record(&writer, ARCTRACE_TYPE_WAKING, sizeof *body, waker);
  if (body == 0) return 0;
  PUT(body->woken_tid, woken->pid);
  PUT(body->woken_tgid, tgid);
  PUT(body->context, context_of(running, ctx));
  end_record(&writer);
  if (is_traced(waker.tgid)) return 0;
  writer.active = 0;
  record_name(&writer, waker, running);
  return 0;
}

// Records the child's own number, if it is not in the first PID namespace.
static __always_inline void record_number(struct kernel_writer* writer,
                                          struct thread parent,
                                          const struct task_struct* child) {
  // A pointer that a helper has read is a plain number to the verifier, which would not
  // add to a pointer.
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
  struct arctrace_numbered_body* body =
      begin_record(writer, ARCTRACE_TYPE_NUMBERED, sizeof *body, parent);
  if (body == 0) return;
  PUT(body->child_tid, child->pid);
  PUT(body->own_tid, tid);
  PUT(body->pid_namespace, inode);
  PUT(body->reserved, 0);
  end_record(writer);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  const struct thread forking = {parent->pid, parent->tgid};
  const uint32_t child_tgid = child->tgid;
  // Threads that a parent makes for itself are not recorded.
  if (!is_traced(forking.tgid) &&
      (child_tgid == forking.tgid || !is_parent(forking.tgid))) {
    return 0;
  }
  if (child_tgid != forking.tgid) {
    __sync_fetch_and_or(traced_word(child_tgid), traced_bit(child_tgid));
  }
  struct kernel_writer writer;
  if (!begin_writer(&writer)) return 0;
  struct arctrace_forked_body* body =
      begin_record(&writer, ARCTRACE_TYPE_FORKED, sizeof *body, forking);
  if (body != 0) {
    PUT(body->child_tid, child->pid);
    PUT(body->child_tgid, child_tgid);
    end_record(&writer);
  }
  writer.active = 0;
  record_number(&writer, forking, child);
  return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task) {
  const struct thread thread = {task->pid, task->tgid};
  struct kernel_writer writer;
  if (!is_traced(thread.tgid) || !begin_writer(&writer)) return 0;
  struct arctrace_execed_body* body =
      begin_record(&writer, ARCTRACE_TYPE_EXECED, sizeof *body, thread);
  if (body == 0) return 0;
  uint32_t name[sizeof body->program / sizeof(uint32_t)] = {};
  bpf_probe_read_kernel_str(name, sizeof name, task->comm);
#pragma unroll
  for (uint32_t i = 0; i < sizeof name / sizeof *name; ++i) {
    PUT(((uint32_t*)body->program)[i], name[i]);
  }
  end_record(&writer);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct* task) {
  const struct thread thread = {task->pid, task->tgid};
  struct kernel_writer writer;
  if (!is_traced(thread.tgid) || !begin_writer(&writer)) return 0;
  struct arctrace_exited_body* body =
      begin_record(&writer, ARCTRACE_TYPE_EXITED, sizeof *body, thread);
  if (body == 0) return 0;
  const struct signal_struct* process = task->signal;
  const bool is_whole = (process->flags & SIGNAL_GROUP_EXIT) != 0;
  PUT(body->status, is_whole ? process->group_exit_code : task->exit_code);
  const bool is_last = process->live.counter == 0 && thread.tid == thread.tgid;
  PUT(body->status_of,
      is_whole || is_last ? ARCTRACE_STATUS_OF_PROCESS : ARCTRACE_STATUS_OF_THREAD);
  end_record(&writer);
  return 0;
}

// A process's first thread is freed last.
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct* task) {
  const uint32_t tgid = task->tgid;
  if ((uint32_t)task->pid != tgid) return 0;
  if (is_traced(tgid)) {
    __sync_fetch_and_and(traced_word(tgid), ~traced_bit(tgid));
  }
  UNROLLED
  for (uint32_t i = 0; i < PARENTS; ++i) {
    if (load_u32(&selection.parents[i]) == tgid) store_u32(&selection.parents[i], 0);
  }
  return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_syscall, void* registers, long number) {
  struct kernel_writer writer;
  struct arctrace_syscall_body* body =
      begin_own(&writer, ARCTRACE_TYPE_SYSCALL, sizeof *body);
  if (body == 0) return 0;
  PUT(body->number, number);
  PUT(body->reserved, 0);
  end_record(&writer);
  return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_syscall_end, void* registers, long result) {
  struct kernel_writer writer;
  struct arctrace_syscall_end_body* body =
      begin_own(&writer, ARCTRACE_TYPE_SYSCALL_END, sizeof *body);
  if (body == 0) return 0;
  PUT(body->result, result);
  end_record(&writer);
  return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault, unsigned long address, void* registers, unsigned long error) {
  struct kernel_writer writer;
  struct arctrace_page_fault_body* body =
      begin_own(&writer, ARCTRACE_TYPE_PAGE_FAULT, sizeof *body);
  if (body == 0) return 0;
  PUT(body->address, address);
  PUT(body->error, error);
  PUT(body->reserved, 0);
  end_record(&writer);
  return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(on_signal, int signal, void* info, struct k_sigaction* action) {
  struct kernel_writer writer;
  struct arctrace_signal_place* place;
  struct arctrace_signal_body* body =
      begin_own(&writer, ARCTRACE_TYPE_SIGNAL, sizeof *body + sizeof *place);
  if (body == 0) return 0;
  PUT(body->signal, signal);
  PUT(body->action,
      action->sa.sa_handler == 0 ? ARCTRACE_SIGNAL_DEFAULT : ARCTRACE_SIGNAL_HANDLED);
  place = (void*)(body + 1);
  PUT(place->instruction, user_instruction(bpf_get_current_task_btf()));
  end_record(&writer);
  return 0;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention, void* lock, unsigned int flags) {
  struct kernel_writer writer;
  struct arctrace_contention_body* body =
      begin_own(&writer, ARCTRACE_TYPE_CONTENTION, sizeof *body);
  if (body == 0) return 0;
  PUT(body->lock, lock);
  PUT(body->flags, flags);
  PUT(body->reserved, 0);
  end_record(&writer);
  return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void* lock, int result) {
  struct kernel_writer writer;
  struct arctrace_contention_end_body* body =
      begin_own(&writer, ARCTRACE_TYPE_CONTENTION_END, sizeof *body);
  if (body == 0) return 0;
  PUT(body->lock, lock);
  PUT(body->result, result);
  PUT(body->reserved, 0);
  end_record(&writer);
  return 0;
}

// ---- Interrupts (SPEC.md KRN-8) -------------------------------------------------------

// When this CPU began to serve interrupts that came upon recorded threads, by their
// level; 0: it serves none. A hard interrupt may come upon a soft one, and none upon a
// hard one.
enum { SOFT_LEVEL, HARD_LEVEL, INTERRUPT_LEVELS };
struct served_interrupts {
  uint64_t since[INTERRUPT_LEVELS];
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct served_interrupts);
} served SEC(".maps");

static __always_inline struct served_interrupts* served_here(void) {
  const uint32_t first = 0;
  return bpf_map_lookup_elem(&served, &first);
}

static __always_inline int begin_interrupt(uint32_t level) {
  struct served_interrupts* here = served_here();
  if (here != 0) here->since[level] = is_traced(current().tgid) ? monotonic_ns() : 0;
  return 0;
}

// Begins the record of the interrupt that ends, with `name_bytes` bytes for a name. Null:
// the interrupt came upon no recorded thread, or its record is lost.
static __always_inline struct arctrace_interrupt_body* end_interrupt(
    struct kernel_writer* writer, uint32_t level, uint32_t kind, uint32_t number,
    uint32_t name_bytes) {
  struct served_interrupts* here = served_here();
  if (here == 0) return 0;
  const uint64_t since = here->since[level];
  if (since == 0) return 0;
  here->since[level] = 0;
  if (!begin_writer(writer)) return 0;
  const uint64_t duration = monotonic_ns() - since;
  writer->ticks = since;
  struct arctrace_interrupt_body* body =
      begin_record(writer, ARCTRACE_TYPE_INTERRUPT, sizeof *body + name_bytes, current());
  if (body == 0) return 0;
  PUT(body->kind, kind);
  PUT(body->number, number);
  PUT(body->duration_ns, duration);
  PUT(body->name_size, 0);
  return body;
}

// Records an interrupt that has no name.
static __always_inline int record_interrupt(uint32_t level, uint32_t kind,
                                            uint32_t number) {
  struct kernel_writer writer;
  if (end_interrupt(&writer, level, kind, number, 0) != 0) end_record(&writer);
  return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(begin_irq) { return begin_interrupt(HARD_LEVEL); }

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(end_irq, int number, struct irqaction* action) {
  uint32_t name[ARCTRACE_INTERRUPT_NAME_MAX / sizeof(uint32_t)] = {};
  struct kernel_writer writer;
  struct arctrace_interrupt_body* body =
      end_interrupt(&writer, HARD_LEVEL, ARCTRACE_INTERRUPT_DEVICE, number, sizeof name);
  if (body == 0) return 0;
  const long size = bpf_probe_read_kernel_str(name, sizeof name, action->name);
  PUT(body->name_size, size > 0 ? size - 1 : 0);
  uint32_t* words = (void*)(body + 1);
#pragma unroll
  for (uint32_t i = 0; i < sizeof name / sizeof *name; ++i) PUT(words[i], name[i]);
  end_record(&writer);
  return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(begin_softirq) { return begin_interrupt(SOFT_LEVEL); }

SEC("tp_btf/softirq_exit")
int BPF_PROG(end_softirq, unsigned int vector) {
  return record_interrupt(SOFT_LEVEL, ARCTRACE_INTERRUPT_SOFT, vector);
}

// Hooks interrupts of the processor's own, which have their own tracepoints on x86-64.
#define CPU_INTERRUPT(tracepoint, number)                                  \
  SEC("tp_btf/" #tracepoint "_entry")                                      \
  int BPF_PROG(begin_##tracepoint) { return begin_interrupt(HARD_LEVEL); } \
  SEC("tp_btf/" #tracepoint "_exit")                                       \
  int BPF_PROG(end_##tracepoint) {                                         \
    return record_interrupt(HARD_LEVEL, ARCTRACE_INTERRUPT_CPU, number);   \
  }
CPU_INTERRUPT(local_timer, ARCTRACE_CPU_TIMER)
CPU_INTERRUPT(reschedule, ARCTRACE_CPU_RESCHEDULE)
CPU_INTERRUPT(call_function, ARCTRACE_CPU_CALL)
CPU_INTERRUPT(call_function_single, ARCTRACE_CPU_CALL)
CPU_INTERRUPT(irq_work, ARCTRACE_CPU_WORK)

// ---- Block devices --------------------------------------------------------------------

// Requests to block devices that traced threads made, by the request's address.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, uint64_t);
  __type(value, struct thread);
} requests SEC(".maps");

static __always_inline uint32_t device_of(const struct request* request) {
  const struct gendisk* disk = request->q->disk;
  return disk == 0 ? 0 : disk->part0->bd_dev;
}

static __always_inline uint32_t operation_of(const struct request* request) {
  return request->cmd_flags & 0xff;  // REQ_OP_MASK
}

static __always_inline int begin_request(struct request* request) {
  const struct thread running = current();
  if (!is_traced(running.tgid)) return 0;
  const uint64_t key = (uint64_t)request;
  bpf_map_update_elem(&requests, &key, &running, BPF_ANY);
  struct kernel_writer writer;
  if (!begin_writer(&writer)) return 0;
  struct arctrace_block_io_body* body =
      begin_record(&writer, ARCTRACE_TYPE_BLOCK_IO, sizeof *body, running);
  if (body == 0) return 0;
  PUT(body->sector, request->__sector);
  PUT(body->device, device_of(request));
  PUT(body->bytes, request->__data_len);
  PUT(body->operation, operation_of(request));
  PUT(body->reserved, 0);
  end_record(&writer);
  return 0;
}

// Runs in the thread that asks. Older kernels have only block_rq_issue, which comes when
// the device is asked, perhaps by a thread of the kernel's.
SEC("tp_btf/block_io_start")
int BPF_PROG(on_block_io, struct request* request) { return begin_request(request); }
SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_block_issue, struct request* request) { return begin_request(request); }

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_block_io_end, struct request* request, int error, unsigned int bytes) {
  const uint64_t key = (uint64_t)request;
  const struct thread* known = bpf_map_lookup_elem(&requests, &key);
  if (known == 0) return 0;
  const struct thread asking = *known;
  // The completion may come in parts.
  if (bytes >= request->__data_len) bpf_map_delete_elem(&requests, &key);
  struct kernel_writer writer;
  if (!begin_writer(&writer)) return 0;
  struct arctrace_block_io_end_body* body =
      begin_record(&writer, ARCTRACE_TYPE_BLOCK_IO_END, sizeof *body, asking);
  if (body == 0) return 0;
  PUT(body->sector, request->__sector);
  PUT(body->device, device_of(request));
  PUT(body->bytes, bytes);
  PUT(body->operation, operation_of(request));
  PUT(body->error, error);
  end_record(&writer);
  return 0;
}
