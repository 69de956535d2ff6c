/* arctrace/format/kernel_records.h - the bodies of the kernel writer's records.
 *
 * The head's writer is the running thread (of SWITCH: the one that leaves the CPU), its
 * ticks are CLOCK_MONOTONIC ns. Every body begins with the CPU and that thread's tgid;
 * thread and process ids are those of the first PID namespace.
 */
#ifndef ARCTRACE_FORMAT_KERNEL_RECORDS_H
#define ARCTRACE_FORMAT_KERNEL_RECORDS_H

#include <arctrace/format/records.h>

/* The beginning of every body. */
struct arctrace_kernel_body {
  uint32_t cpu, tgid;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_kernel_body, 8);
#define ARCTRACE_ASSERT_KERNEL_BODY(type, size)         \
  ARCTRACE_ASSERT_OFFSET(type, cpu, 0);                 \
  ARCTRACE_ASSERT_OFFSET(type, tgid, sizeof(uint32_t)); \
  ARCTRACE_ASSERT_PART(type, size)

/* The head's thread lost the CPU to another one. next_tid and next_tgid are
 * ARCTRACE_SWITCH_UNKNOWN if they are not known. */
struct arctrace_switch_body {
  uint32_t cpu, tgid;
  uint32_t prev_state; /* 0: it could run on; SWITCH_UNKNOWN: not known, but not 0; else
                          the kernel's TASK_* bits, and SWITCH_IO */
  uint32_t next_tid, next_tgid;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_switch_body, 20);
#define ARCTRACE_SWITCH_UNKNOWN 0xFFFFFFFFu
#define ARCTRACE_SWITCH_IO 0x80000000u /* it waits for a disk */

/* The head's thread got the CPU; which thread had it is not known. */
struct arctrace_switch_in_body {
  uint32_t cpu, tgid;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_switch_in_body, 8);

struct arctrace_waking_body {
  uint32_t cpu, tgid, woken_tid, woken_tgid;
  uint32_t context; /* 0: the running thread woke the other one; or ARCTRACE_WAKING_* */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_waking_body, 20);
#define ARCTRACE_WAKING_INTERRUPT 1u /* an interrupt of the running thread woke it */
#define ARCTRACE_WAKING_UNKNOWN 2u   /* this kernel does not tell it */
#define ARCTRACE_WAKING_SOFTIRQ 4u   /* perhaps on the running thread's behalf */
#define ARCTRACE_WAKING_RAISED 8u    /* the running thread raised the soft interrupt */
#define ARCTRACE_WAKING_TIMER 16u    /* a timer expired */
/* 1 + the kernel's number of the soft interrupt; 0: none, or not known. */
#define ARCTRACE_WAKING_VECTOR(context) (((context) >> 8) & 0xFFu)
enum arctrace_softirq {
  ARCTRACE_SOFTIRQ_TIMER = 1,
  ARCTRACE_SOFTIRQ_NET_SEND = 2,
  ARCTRACE_SOFTIRQ_NET_RECEIVE = 3,
  ARCTRACE_SOFTIRQ_BLOCK = 4,
  ARCTRACE_SOFTIRQ_HRTIMER = 8
};

struct arctrace_forked_body {
  uint32_t cpu, tgid, child_tid, child_tgid;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_forked_body, 16);

/* Follows FORKED, if the child is not in the first PID namespace: its number there. */
struct arctrace_numbered_body {
  uint32_t cpu, tgid, child_tid, own_tid;
  uint32_t pid_namespace; /* inode */
  uint32_t reserved;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_numbered_body, 24);

struct arctrace_execed_body {
  uint32_t cpu, tgid;
  char program[16]; /* the thread's new name, with zeros after it */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_execed_body, 24);

/* The name of a thread of a process that is not traced, when it first wakes a traced one.
 */
struct arctrace_named_body {
  uint32_t cpu, tgid;
  char name[16]; /* with zeros after it */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_named_body, 24);

enum arctrace_status_of {
  ARCTRACE_STATUS_UNKNOWN = 0,
  ARCTRACE_STATUS_OF_THREAD = 1,  /* its process may go on */
  ARCTRACE_STATUS_OF_PROCESS = 2, /* which ends */
};

/* The head's thread begins to end, with a status as wait() reports it. */
struct arctrace_exited_body {
  uint32_t cpu, tgid;
  int32_t status;
  uint32_t status_of; /* enum arctrace_status_of */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_exited_body, 16);

struct arctrace_syscall_body {
  uint32_t cpu, tgid, number, reserved;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_syscall_body, 16);

struct arctrace_syscall_end_body {
  uint32_t cpu, tgid;
  int64_t result;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_syscall_end_body, 16);

struct arctrace_page_fault_body {
  uint32_t cpu, tgid;
  uint64_t address;
  uint32_t error, reserved; /* error: the processor's code */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_page_fault_body, 24);

/* What the process does about a signal. */
enum arctrace_signal_action {
  ARCTRACE_SIGNAL_UNKNOWN = 0,
  ARCTRACE_SIGNAL_DEFAULT = 1, /* as the kernel does by default; most end the process */
  ARCTRACE_SIGNAL_HANDLED = 2, /* calls a handler, or ignores it */
};

/* A signal is delivered. Followed by arctrace_signal_place. */
struct arctrace_signal_body {
  uint32_t cpu, tgid, signal, action;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_signal_body, 16);

struct arctrace_signal_place {
  uint64_t instruction; /* the thread's next one in user mode; 0: not known */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_signal_place, 8);

/* A wait for a lock of the kernel begins. */
struct arctrace_contention_body {
  uint32_t cpu, tgid;
  uint64_t lock;
  uint32_t flags, reserved;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_contention_body, 24);

struct arctrace_contention_end_body {
  uint32_t cpu, tgid;
  uint64_t lock;
  int32_t result;
  uint32_t reserved;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_contention_end_body, 24);

/* A request to a block device. The head's thread is the one that made the request, also
 * in the record of the request's end. */
struct arctrace_block_io_body {
  uint32_t cpu, tgid;
  uint64_t sector;
  uint32_t device, bytes, operation, reserved; /* the kernel's dev_t, REQ_OP */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_block_io_body, 32);

struct arctrace_block_io_end_body {
  uint32_t cpu, tgid;
  uint64_t sector;
  uint32_t device, bytes, operation; /* bytes: how many of the request's are done */
  int32_t error;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_block_io_end_body, 32);

/* An interrupt came upon the head's thread at the head's ticks, and its CPU served it for
 * duration_ns, including whatever interrupted the interrupt. */
struct arctrace_interrupt_body {
  uint32_t cpu, tgid;
  uint32_t kind, number; /* enum arctrace_interrupt_kind, which says what number is */
  uint64_t duration_ns;
  uint32_t name_size; /* then bytes(name_size) name: of a device's handler; else 0 */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_KERNEL_BODY(arctrace_interrupt_body, 28);

enum arctrace_interrupt_kind {
  ARCTRACE_INTERRUPT_DEVICE = 1, /* number: the kernel's, as in /proc/interrupts */
  ARCTRACE_INTERRUPT_SOFT = 2,   /* number: enum arctrace_softirq, and other ones */
  ARCTRACE_INTERRUPT_CPU = 3     /* number: enum arctrace_cpu_interrupt */
};

/* Interrupts that the processor itself causes, and no device. */
enum arctrace_cpu_interrupt {
  ARCTRACE_CPU_TIMER = 1,
  ARCTRACE_CPU_RESCHEDULE = 2, /* another CPU has woken a thread for this one */
  ARCTRACE_CPU_CALL = 3,       /* another CPU wants a function called here */
  ARCTRACE_CPU_WORK = 4        /* what the kernel had put off (irq_work) */
};

/* The kernel writer stores at most this many bytes of the name. */
#define ARCTRACE_INTERRUPT_NAME_MAX 32u

#endif /* ARCTRACE_FORMAT_KERNEL_RECORDS_H */
