/* arctrace/format/buffer.h - the trace buffer: session header, control page, slots,
 * blocks. format.h describes how they work together. */
#ifndef ARCTRACE_FORMAT_BUFFER_H
#define ARCTRACE_FORMAT_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define ARCTRACE_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#define ARCTRACE_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif
#define ARCTRACE_ASSERT_SIZE(type, size) \
  ARCTRACE_STATIC_ASSERT(sizeof(struct type) == (size), #type " has size " #size)
#define ARCTRACE_ASSERT_OFFSET(type, field, offset)                \
  ARCTRACE_STATIC_ASSERT(offsetof(struct type, field) == (offset), \
                         #type "." #field " is at " #offset)

/* ---- Constants ---------------------------------------------------------- */

#define ARCTRACE_VERSION_MAJOR 1u /* a reader refuses another major version */
#define ARCTRACE_VERSION_MINOR 0u /* a newer minor adds record types and fields */

#define ARCTRACE_SESSION_MAGIC 0x4543415254435241ull /* "ARCTRACE" */
#define ARCTRACE_BLOCK_MAGIC 0x4B4C4241u             /* "ABLK" */
#define ARCTRACE_BYTE_ORDER 0x01020304u
#define ARCTRACE_FILL 0xFFFFFFFFu

#define ARCTRACE_HEADER_SIZE 4096u
#define ARCTRACE_CONTROL_OFFSET 4096u
#define ARCTRACE_CPUS_OFFSET 8192u
#define ARCTRACE_BLOCK_HEADER_SIZE 128u
#define ARCTRACE_BLOCK_SIZE_MIN 384u
#define ARCTRACE_BLOCK_SIZE_MAX (16u << 20)
#define ARCTRACE_BLOCK_ALIGN 64u
#define ARCTRACE_SLOT_COUNT_MAX 65535u
#define ARCTRACE_CPU_COUNT_MAX 4096u
#define ARCTRACE_BLOCK_COUNT_MAX (1u << 24)
/* A writer remembers at most this many of its open frames, the outermost ones. */
#define ARCTRACE_OPEN_FRAMES_MAX 1024u
/* The largest buffer that can be the value of one BPF map. */
#define ARCTRACE_BPF_SIZE_MAX (512ull << 20)
/* A session gives no identity from this one on: bit 31 marks the kernel's writers, and
 * threads that ask at once may each get one more. */
#define ARCTRACE_IDENTITIES_END 0x7FFF0000u
/* Blocks whose index is a multiple of this may have a hint in busy_run. */
#define ARCTRACE_BUSY_RUN_STEP 64u

/* What happens to records when the buffer is full. */
enum arctrace_mode {
  ARCTRACE_MODE_DROP = 1,      /* new records are lost, and counted */
  ARCTRACE_MODE_OVERWRITE = 2, /* the oldest closed block is overwritten */
  ARCTRACE_MODE_STOP = 3       /* as DROP, and nothing is freed while recording */
};

/* Whether threads share blocks. */
enum arctrace_scope {
  ARCTRACE_SCOPE_THREAD = 1,  /* each thread appends to its own exclusive block */
  ARCTRACE_SCOPE_SHARED = 2,  /* all threads reserve in one chain of shared blocks */
  ARCTRACE_SCOPE_ADAPTIVE = 3 /* a thread has blocks of its own while it writes much */
};

/* The clock of all ticks in a session, except those of the kernel's records. */
enum arctrace_clock {
  ARCTRACE_CLOCK_TSC = 1,      /* x86-64 invariant time-stamp counter */
  ARCTRACE_CLOCK_CNTVCT = 2,   /* aarch64 virtual counter */
  ARCTRACE_CLOCK_MONOTONIC = 3 /* CLOCK_MONOTONIC, ticks are ns */
};

/* From where records of programs have their times. */
enum arctrace_stamps {
  ARCTRACE_STAMPS_EXACT = 0,  /* from the clock, which each record reads */
  ARCTRACE_STAMPS_COARSE = 1, /* from the clock word, which the recorder stores */
  ARCTRACE_STAMPS_ORDER = 2   /* the same, but so rarely that times say the order only */
};

/* Bits of the header's features_optional. */
#define ARCTRACE_FEATURE_PERF 1ull /* the kernel's records were made from perf events */

/* Bits of the header's features_required. */
#define ARCTRACE_FEATURE_CHECKSUMS 1ull  /* of a file only: its chunks have checksums */
#define ARCTRACE_FEATURE_CLOCK_WORD 2ull /* stamps other than ARCTRACE_STAMPS_EXACT */

/* Bits of the control page's gate: classes of records. 0: nothing is recorded. */
enum arctrace_gate_bit {
  ARCTRACE_GATE_FUNCTIONS = 1u << 0, /* ENTER, EXIT, UNWIND */
  ARCTRACE_GATE_EVENTS = 1u << 1,    /* EVENT */
  ARCTRACE_GATE_MARKS = 1u << 2,     /* INSTANT, COUNTER, TEXT, MARK */
  ARCTRACE_GATE_KERNEL = 1u << 3,    /* the kernel writer's records */
  ARCTRACE_GATE_ALL = 0xFu
};

/* What the kernel's programs record besides the scheduler's events. ENABLED records have
 * these bits ARCTRACE_KERNEL_EVENT_SHIFT higher, above those of the gate. */
enum arctrace_kernel_event {
  ARCTRACE_KERNEL_SYSCALLS = 1u << 0,   /* SYSCALL, SYSCALL_END */
  ARCTRACE_KERNEL_FAULTS = 1u << 1,     /* PAGE_FAULT */
  ARCTRACE_KERNEL_SIGNALS = 1u << 2,    /* SIGNAL */
  ARCTRACE_KERNEL_CONTENTION = 1u << 3, /* CONTENTION, CONTENTION_END */
  ARCTRACE_KERNEL_BLOCK_IO = 1u << 4,   /* BLOCK_IO, BLOCK_IO_END */
  ARCTRACE_KERNEL_INTERRUPTS = 1u << 5, /* INTERRUPT */
  ARCTRACE_KERNEL_EVENTS_ALL = 0x3Fu
};
#define ARCTRACE_KERNEL_EVENT_SHIFT 4

/* Why a record was not written. */
enum arctrace_loss_cause {
  ARCTRACE_LOST_FULL = 0,    /* no block was free */
  ARCTRACE_LOST_TOO_BIG = 1, /* longer than a record may be in this geometry */
  ARCTRACE_LOST_NESTED = 2,  /* too many nested handlers, reserved payloads, open calls */
  ARCTRACE_LOST_NO_SLOT = 3, /* the thread found no writer slot */
  ARCTRACE_LOST_KERNEL = 4,  /* the kernel writer found no block */
  ARCTRACE_LOST_FILE = 5,    /* written, but did not fit into the trace file */
  ARCTRACE_LOST_IDENTITY = 6,    /* the session has given all its identities */
  ARCTRACE_LOST_DEFINITIONS = 7, /* overwrite mode: definitions, not records */
  ARCTRACE_LOST_CAUSES = 8,      /* array size */
  /* Written, and removed with their file. No slot, LOST or TOTALS counts them: readers
   * know them by FILES records. */
  ARCTRACE_LOST_REMOVED = 8
};

/* ---- Session header: bytes 0-4095, constant once the magic is stored,
 * but for `pinned`, which each collector stores ------------------------------------ */

struct arctrace_session_header {
  uint64_t magic;      /* stored last, with release */
  uint32_t byte_order; /* ARCTRACE_BYTE_ORDER as the creator's CPU stores it */
  uint16_t version_major;
  uint16_t version_minor;
  uint64_t features_required; /* a reader that does not know a bit refuses */
  uint64_t features_optional; /* a reader may ignore these */
  uint32_t header_size;       /* 4096 */
  uint32_t slot_size;         /* 256 */
  uint32_t slot_count;
  uint32_t cpu_slot_size;     /* 128 */
  uint32_t cpu_count;         /* CPU slots: one for each possible CPU, or 0 */
  uint32_t block_header_size; /* 128 */
  uint32_t block_size;        /* bytes, header included, a multiple of 64 */
  uint32_t block_count;
  uint64_t slots_offset;
  uint64_t blocks_offset; /* a multiple of 4096 */
  uint64_t total_size;
  uint32_t mode;  /* enum arctrace_mode */
  uint32_t scope; /* enum arctrace_scope */
  uint32_t clock; /* enum arctrace_clock */
  uint32_t creator_pid;
  uint32_t creator_uid;
  uint32_t pinned;           /* 1: locked into memory; n > 1: its first n KiB are */
  uint64_t ticks_per_second; /* an estimate; CLOCK_SYNC records are exact */
  uint64_t start_ticks;      /* this and the next two: one time on three clocks */
  uint64_t start_monotonic_ns;
  uint64_t start_realtime_ns;
  uint8_t session_id[16]; /* random */
  uint64_t index_offset;  /* of a file: where its INDEX is; 0: none */
  uint32_t stamps;        /* enum arctrace_stamps */
  uint32_t resolution_ns; /* how often the clock word is to be stored; 0: there is none */
};
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, byte_order, 8);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, features_required, 16);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, header_size, 32);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, cpu_slot_size, 44);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, block_size, 56);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, slots_offset, 64);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, total_size, 80);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, mode, 88);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, ticks_per_second, 112);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, session_id, 144);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, index_offset, 160);
ARCTRACE_ASSERT_OFFSET(arctrace_session_header, stamps, 168);
ARCTRACE_ASSERT_SIZE(arctrace_session_header, 176);

/* ---- Control page: bytes 4096-8191, a cache line for each concern --------- */

struct arctrace_control {
  /* line 0: read by every writer for every record */
  uint32_t gate;         /* enum arctrace_gate_bit */
  uint32_t functions_on; /* how often functions were switched on */
  uint32_t unfiltered;   /* the gate without the classes that a filter is about */
  uint32_t reserved0;
  uint64_t time; /* the clock word: the time that records have, in ticks; 0: none */
  uint32_t reserved10[10];
  /* line 1 */
  uint64_t next; /* hand-out counter: candidate block = next % block_count */
  uint64_t reserved1[7];
  /* line 2: the session's open shared block, generation << 32 | index + 1, or 0 */
  uint64_t shared_current;
  uint64_t reserved2[7];
  /* line 3: both only grow; used blocks = taken - freed */
  uint64_t taken;
  uint64_t freed; /* in overwrite mode, counts closed blocks, which may be taken */
  uint64_t definition_blocks; /* of class definitions, in overwrite mode */
  uint64_t reclaim_next;      /* where the next scan for unneeded definitions begins */
  uint64_t reserved3[4];
  /* line 4: requests to the collector, and its wake-up */
  uint32_t wake;              /* futex: 0 the collector may sleep, 1 woken */
  uint32_t high_water_blocks; /* wake the collector at this many used blocks; 0 never */
  uint32_t snapshots_asked;   /* only grows: snapshots asked of the flight recorder */
  uint32_t snapshot_after_ms; /* delay of the last snapshot asked for, in ms */
  uint32_t definitions_round; /* raised by a new collector: define everything again */
  uint32_t reserved4;
  uint64_t patterns_matched; /* one bit for each of the recorder's function patterns */
  uint32_t without_room;     /* programs that had no memory to map the buffer */
  /* the kernel writer's, whose programs the collector has loaded */
  uint32_t kernel_wanted;   /* enum arctrace_kernel_event: what it is to record */
  uint32_t kernel_recorded; /* the same: what it records now */
  uint32_t kernel_loader;   /* pid of the process that has loaded the programs; 0: none */
  uint32_t
      kernel_parent; /* asked for: the pid of a process whose children are recorded */
  uint32_t reserved9[3];
  /* line 5: identities, never given twice in a session; 0: none */
  uint32_t process_next;
  uint32_t writer_next;
  uint32_t slot_next; /* slots with index >= this were never used */
  uint32_t reserved5;
  uint64_t filtered_out; /* of threads without a slot, and what slots have handed over */
  uint32_t reserved6[10];
  /* line 6: records that no slot could count */
  uint64_t lost[ARCTRACE_LOST_CAUSES];
  /* line 7: the collector's robust lock, as in a writer slot */
  uint32_t collector_lock;
  uint32_t reserved7[5];
  uint64_t collector_robust_prev;
  uint64_t collector_robust_next;
  uint32_t collector_pid;
  uint32_t reserved8[5];
};
ARCTRACE_ASSERT_OFFSET(arctrace_control, time, 16);
ARCTRACE_ASSERT_OFFSET(arctrace_control, next, 64);
ARCTRACE_ASSERT_OFFSET(arctrace_control, shared_current, 128);
ARCTRACE_ASSERT_OFFSET(arctrace_control, taken, 192);
ARCTRACE_ASSERT_OFFSET(arctrace_control, wake, 256);
ARCTRACE_ASSERT_OFFSET(arctrace_control, patterns_matched, 280);
ARCTRACE_ASSERT_OFFSET(arctrace_control, without_room, 288);
ARCTRACE_ASSERT_OFFSET(arctrace_control, kernel_wanted, 292);
ARCTRACE_ASSERT_OFFSET(arctrace_control, kernel_parent, 304);
ARCTRACE_ASSERT_OFFSET(arctrace_control, process_next, 320);
ARCTRACE_ASSERT_OFFSET(arctrace_control, filtered_out, 336);
ARCTRACE_ASSERT_OFFSET(arctrace_control, lost, 384);
ARCTRACE_ASSERT_OFFSET(arctrace_control, collector_lock, 448);
ARCTRACE_ASSERT_OFFSET(arctrace_control, collector_robust_next, 480);
ARCTRACE_ASSERT_SIZE(arctrace_control, 512);

/* The live filter: which functions the programs of the session record. It lies after
 * arctrace_control; `arctrace ctl` writes it. */
#define ARCTRACE_LIVE_FILTER_OFFSET 4608u /* = ARCTRACE_CONTROL_OFFSET + 512 */
#define ARCTRACE_LIVE_FILTER_TEXT_MAX 1024u

struct arctrace_live_filter {
  uint32_t round; /* generation: rises with each change, odd during one; 0: none so far */
  uint32_t size;  /* bytes of text in use; 0: programs use the filter they began with */
  uint32_t reserved[14];
  /* '+' or '-', then a glob of linker's names, then a zero byte; and so on */
  uint64_t text[ARCTRACE_LIVE_FILTER_TEXT_MAX / sizeof(uint64_t)];
};
ARCTRACE_ASSERT_OFFSET(arctrace_live_filter, text, 64);

/* The time of a control event, noted by the process that causes it, because the recorder
 * does not see it in time. The last ones of each kind remain. They lie after the live
 * filter. */
struct arctrace_moment {
  uint64_t ticks;
  uint32_t value;
  uint32_t round; /* the event's number, from 1, stored last; 0 while it is being made */
};
ARCTRACE_ASSERT_SIZE(arctrace_moment, 16);

/* The entries, struct arctrace_moment, lie after this; event n is in entry n - 1, modulo
 * their number. */
struct arctrace_moments {
  uint32_t count; /* ever noted */
  uint32_t reserved[15];
};
ARCTRACE_ASSERT_SIZE(arctrace_moments, 64);

/* Changes of the gate or of a filter. The value is the gate after the change in bits 0 to
 * 7, and the low bits of the generations of the live filter (8 to 19) and of the record
 * filter (20 to 31). Records of classes that the gate lacks are missing from then on. */
#define ARCTRACE_GATE_CHANGES_OFFSET 5696u
#define ARCTRACE_GATE_CHANGES_KEPT 32u

/* Processes that are about to execute a program; the value is the pid, as the process
 * itself sees it. */
#define ARCTRACE_EXECS_OFFSET 6272u
#define ARCTRACE_EXECS_KEPT 96u

/* The record filter: which threads' records and which events the programs of the session
 * write. `arctrace ctl` and the recorder write it. It lies after the execs. */
#define ARCTRACE_RECORD_FILTER_OFFSET 7872u
#define ARCTRACE_RECORD_FILTER_TEXT_MAX 312u

struct arctrace_record_filter {
  uint32_t round; /* as in arctrace_live_filter */
  uint32_t size;  /* bytes of text in use; 0: nothing is filtered out */
  /* "event:GLOB", "level:N" and others, each with a zero byte after it */
  uint64_t text[ARCTRACE_RECORD_FILTER_TEXT_MAX / sizeof(uint64_t)];
};
ARCTRACE_ASSERT_OFFSET(arctrace_record_filter, text, 8);
ARCTRACE_ASSERT_SIZE(arctrace_record_filter, 320);

/* ---- CPU slots: the kernel writer --------------------------------------- */

#define ARCTRACE_ACTIVE_DEPTH 4u

/* The owner slot in the state of blocks that a CPU is opening or that the recorder is
 * freeing. */
#define ARCTRACE_KERNEL_SLOT 0xFFFFu

/* Blocks are named by generation << 32 | index + 1, as in control.shared_current. */
struct arctrace_cpu_slot {
  uint64_t current;  /* this CPU's open shared block, or 0 */
  uint64_t searched; /* blocks checked in vain since the collector set it to 0 */
  uint64_t reserved0[7];
  uint32_t active[ARCTRACE_ACTIVE_DEPTH]; /* block + 1 of a record being written, or 0 */
  uint64_t lost;                          /* records lost, only grows */
  uint64_t reported;                      /* of these, counted in LOST records */
  uint64_t lost_since; /* CLOCK_MONOTONIC ns, not after the first uncounted loss */
  uint64_t reserved1[2];
};
ARCTRACE_ASSERT_OFFSET(arctrace_cpu_slot, active, 72);
ARCTRACE_ASSERT_OFFSET(arctrace_cpu_slot, lost, 88);
ARCTRACE_ASSERT_SIZE(arctrace_cpu_slot, 128);

/* ---- Writer slots ---------------------------------------------------------
 *
 * lock is a robust futex word on the owning thread's robust list: 0 free, the
 * owner's tid, or with bit 30 (FUTEX_OWNER_DIED) set by the kernel when that
 * thread died. Its list node is 32 bytes after it, where glibc's
 * pthread_mutex_t has it (kernel: Documentation/locking/robust-futex-ABI).
 * The loss counters only grow, also across owners.
 */

#define ARCTRACE_HELD_COUNT 4u
#define ARCTRACE_SLOT_SIZE 256u
#define ARCTRACE_ROBUST_NODE_OFFSET 32

struct arctrace_writer_slot {
  /* line 0: liveness and identity */
  uint32_t lock;
  uint32_t reporting_cause; /* of the LOST record that is about to be committed */
  uint64_t reporting;       /* its offset, in bytes from the buffer's start; 0: none */
  uint64_t reporting_until; /* reported[reporting_cause], once it is committed */
  uint64_t robust_prev;     /* the owner's and its libc's; meaningless to all others */
  uint64_t robust_next;
  uint32_t writer;  /* identity, unique in the session */
  uint32_t process; /* identity, unique in the session */
  uint32_t pid;     /* as the process sees itself */
  uint32_t tid;
  uint64_t start_ticks;
  /* line 1: blocks this thread may still write, as block + 1; 0 none */
  uint32_t current;                       /* exclusive block taken or being taken */
  uint32_t active[ARCTRACE_ACTIVE_DEPTH]; /* shared write in progress, by nesting */
  uint32_t held[ARCTRACE_HELD_COUNT];     /* reserved in place, not committed yet */
  /* Events, instants and counters that the record filter left out by their names, levels
   * or fields, less what the thread has handed over to control.filtered_out. */
  uint32_t filtered_out;
  /* User records reserved. Only the owner counts them; like lost[] they only grow, but a
   * discarded record is subtracted again. */
  uint64_t written;        /* in exclusive blocks */
  uint64_t written_shared; /* in shared blocks */
  uint64_t written_before; /* both, by earlier owners */
  /* line 2 */
  uint64_t lost[ARCTRACE_LOST_CAUSES];
  /* line 3 */
  uint64_t reported[ARCTRACE_LOST_CAUSES]; /* of these, counted in LOST records */
};
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, reporting, 8);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, robust_next, ARCTRACE_ROBUST_NODE_OFFSET);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, writer, 40);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, start_ticks, 56);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, current, 64);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, filtered_out, 100);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, written, 104);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, lost, 128);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, reported, 192);
ARCTRACE_ASSERT_SIZE(arctrace_writer_slot, ARCTRACE_SLOT_SIZE);

/* ---- Blocks ---------------------------------------------------------------
 *
 * state   63            32 31          16 15       8 7        0
 *         +---------------+--------------+----------+----------+
 *         |  generation   |  owner slot  |    0     |  phase   |
 *         +---------------+--------------+----------+----------+
 */

enum arctrace_phase {
  ARCTRACE_PHASE_FREE = 1,
  ARCTRACE_PHASE_OWNED = 2,
  ARCTRACE_PHASE_SHARED = 3,
  ARCTRACE_PHASE_CLOSED = 4,
  ARCTRACE_PHASE_DRAINING = 5,
  ARCTRACE_PHASE_RESETTING = 6
};

enum arctrace_block_form {
  ARCTRACE_FORM_COMPACT = 1, /* exclusive block: one writer, 8-byte record heads */
  ARCTRACE_FORM_FULL = 2,    /* shared block: any writer, 16-byte record heads */
  ARCTRACE_FORM_BARE = 3     /* exclusive block: as COMPACT, with 4-byte record heads */
};

enum arctrace_block_class {
  ARCTRACE_CLASS_DATA = 1,
  ARCTRACE_CLASS_DEFINITIONS = 2 /* not overwritten while the process lives */
};

struct arctrace_block_header {
  /* line 0: contended */
  uint64_t state;
  uint64_t next;     /* offset of the next reservation; >= block_size: none possible */
  uint32_t busy_run; /* a hint: blocks from this one on that were not free; 0: none */
  uint32_t reserved0[11];
  /* line 1: origin; all 0xff in a free block; magic is stored last */
  uint32_t magic;
  uint16_t form;        /* enum arctrace_block_form */
  uint16_t block_class; /* enum arctrace_block_class */
  uint32_t writer;      /* identity of the owner; in a shared block, of the opener */
  uint32_t process;
  uint32_t pid;
  uint32_t tid;
  uint64_t serial;     /* counts the writer's exclusive blocks from 0 */
  uint64_t handout;    /* value of control.next that gave this block: unique, ordered */
  uint64_t base_ticks; /* what the first record's tick delta counts from */
  uint64_t retired;    /* definitions in overwrite mode: control.next when their process
                          was seen gone, or began to write them again; else 0 */
  uint32_t checked;    /* blocks, from the first on, seen since then not to need these, in
                          24 bits; above, the low bits of the generation */
  uint32_t living;     /* a hint: slot + 1 of a living thread of their process, or 0 */
};
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, next, 8);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, busy_run, 16);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, magic, 64);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, writer, 72);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, serial, 88);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, base_ticks, 104);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, retired, 112);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, checked, 120);
ARCTRACE_ASSERT_SIZE(arctrace_block_header, ARCTRACE_BLOCK_HEADER_SIZE);

#endif /* ARCTRACE_FORMAT_BUFFER_H */
