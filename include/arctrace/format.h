/* arctrace/format.h - the layout of the trace buffer and of the trace file.
 *
 * SPEC.md is the normative text; this header is the same in C11, with every
 * offset and size asserted. It needs nothing but <stdint.h> and <stddef.h>.
 *
 * Who acts
 *   creator    makes the buffer, fills it, pins it, writes the header, last its magic
 *   writers    threads of any number of processes, and BPF programs in the kernel
 *   collector  copies closed blocks to the trace file and frees them (optional)
 *   readers    validate and decode a live buffer, a left-over one, or a trace file
 * Nobody trusts what another one wrote: geometry is copied to private memory and
 * checked once; indices read from shared memory are bounded before use.
 *
 * The buffer: one mapping, all integers little-endian
 *
 *   0             +---------------------------+
 *                 | session header            |  constant once magic is there
 *   4096          +---------------------------+
 *                 | control page              |  counters and switches, a cache line each
 *   cpus_offset   +---------------------------+
 *                 | cpu slots [cpu_count]     |  the kernel writer's shared block per CPU
 *   slots_offset  +---------------------------+
 *                 | writer slots [slot_count] |  one per writing thread, robust-locked
 *   blocks_offset +---------------------------+
 *                 | blocks [block_count]      |  header, records, 0xffffffff to the end
 *   total_size    +---------------------------+
 *
 * A block's life (arctrace_block_header.state; each arrow is one compare-exchange
 * of the whole word, which holds the generation)
 *
 *   FREE -> OWNED        a writer takes it; it alone appends (exclusive block)
 *   OWNED -> SHARED      its taker opens it for all: reservation by fetch-add on next
 *   OWNED -> CLOSED      its owner, or whoever holds the dead owner's slot
 *   SHARED -> CLOSED     whoever found it full; for a dead process' definitions the
 * collector CLOSED -> DRAINING   the collector, when no live writer names the block
 *   DRAINING -> FREE     the collector, refilled with 0xff, generation + 1
 *   CLOSED -> RESETTING  overwrite mode: a writer that needs a block takes the oldest
 *   RESETTING -> OWNED   the same writer, refilled with 0xff, generation + 1
 *   RESETTING -> CLOSED  whoever finds that writer dead, generation + 1
 *   OWNED -> FREE        its taker, when another one was faster to open a shared block;
 *                        generation + 1
 *
 * While a block is not SHARED its `next` lies past its end, so that a reservation by
 * a writer that comes late fails; if the block is SHARED again, it sees another
 * generation than it looked for, and leaves what it reserved as padding.
 */
#ifndef ARCTRACE_FORMAT_H
#define ARCTRACE_FORMAT_H

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
#define ARCTRACE_VERSION_MINOR 3u /* a newer minor adds record types and fields */

#define ARCTRACE_SESSION_MAGIC 0x4543415254435241ull /* "ARCTRACE" */
#define ARCTRACE_FILE_MAGIC 0x454C494654435241ull    /* "ARCTFILE" */
#define ARCTRACE_BLOCK_MAGIC 0x4B4C4241u             /* "ABLK" */
#define ARCTRACE_CHUNK_MAGIC 0x4B4E4843u             /* "CHNK" */
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
#define ARCTRACE_RECORD_LENGTH_MAX 65532u
/* A writer keeps this many of its open frames, the outermost ones. */
#define ARCTRACE_OPEN_FRAMES_MAX 1024u
/* The largest buffer that can be the value of one BPF map. */
#define ARCTRACE_BPF_SIZE_MAX (512ull << 20)

enum arctrace_mode {
  ARCTRACE_MODE_DROP = 1,      /* full: count and go on */
  ARCTRACE_MODE_OVERWRITE = 2, /* full: take the oldest closed block */
  ARCTRACE_MODE_STOP = 3       /* keep the oldest; nothing is freed while recording */
};

enum arctrace_scope {
  ARCTRACE_SCOPE_THREAD = 1, /* each thread appends to its own exclusive block */
  ARCTRACE_SCOPE_SHARED = 2  /* all threads reserve in one chain of shared blocks */
};

enum arctrace_clock {
  ARCTRACE_CLOCK_TSC = 1,      /* x86-64 invariant time-stamp counter */
  ARCTRACE_CLOCK_CNTVCT = 2,   /* aarch64 virtual counter */
  ARCTRACE_CLOCK_MONOTONIC = 3 /* CLOCK_MONOTONIC, ticks are ns */
};

/* Bits of the header's features_optional. */
#define ARCTRACE_FEATURE_PERF 1ull /* the kernel's records were made of perf's events */

/* Bits of the control page's gate: what is recorded at present. 0: nothing. */
enum arctrace_gate_bit {
  ARCTRACE_GATE_FUNCTIONS = 1u << 0, /* ENTER, EXIT, UNWIND */
  ARCTRACE_GATE_EVENTS = 1u << 1,    /* EVENT */
  ARCTRACE_GATE_MARKS = 1u << 2,     /* INSTANT, COUNTER, TEXT, MARK */
  ARCTRACE_GATE_KERNEL = 1u << 3,    /* the kernel writer's records */
  ARCTRACE_GATE_ALL = 0xFu
};

/* Why a record was not written. */
enum arctrace_loss_cause {
  ARCTRACE_LOST_FULL = 0,    /* no block to be had */
  ARCTRACE_LOST_TOO_BIG = 1, /* longer than a record may be in this geometry */
  ARCTRACE_LOST_NESTED = 2,  /* signal handlers nested too deep in the writer */
  ARCTRACE_LOST_NO_SLOT = 3, /* the thread found no writer slot */
  ARCTRACE_LOST_KERNEL = 4,  /* the kernel writer found no block */
  ARCTRACE_LOST_CAUSES = 8   /* array size; 5-7 reserved, 0 */
};

/* ---- Session header: bytes 0-4095, constant once the magic is stored ------ */

struct arctrace_session_header {
  uint64_t magic;      /* stored last, with release */
  uint32_t byte_order; /* ARCTRACE_BYTE_ORDER as the writer's CPU stores it */
  uint16_t version_major;
  uint16_t version_minor;
  uint64_t features_required; /* a reader that does not know a bit refuses */
  uint64_t features_optional; /* a reader may ignore these */
  uint32_t header_size;       /* 4096 */
  uint32_t slot_size;         /* 256 */
  uint32_t slot_count;
  uint32_t cpu_slot_size;     /* 128 */
  uint32_t cpu_count;         /* CPU slots: one per possible CPU, or 0 */
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
  uint32_t pinned;           /* 1: locked into memory */
  uint64_t ticks_per_second; /* estimate; clock syncs are exact */
  uint64_t start_ticks;      /* one clock sync: these three at one moment */
  uint64_t start_monotonic_ns;
  uint64_t start_realtime_ns;
  uint8_t session_id[16]; /* random */
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
ARCTRACE_ASSERT_SIZE(arctrace_session_header, 160);

/* ---- Control page: bytes 4096-8191, a cache line for each concern --------- */

struct arctrace_control {
  /* line 0: read by every writer for every record */
  uint32_t gate;         /* enum arctrace_gate_bit */
  uint32_t functions_on; /* how often functions were switched on */
  uint32_t reserved0[14];
  /* line 1 */
  uint64_t next; /* hand-out counter: candidate block = next % block_count */
  uint64_t reserved1[7];
  /* line 2 */
  uint64_t
      shared_current; /* generation << 32 | block + 1 of the open shared block, or 0 */
  uint64_t reserved2[7];
  /* line 3: both only grow; used blocks = taken - freed */
  uint64_t taken;
  uint64_t freed; /* in overwrite mode, where a closed block may be taken: closed */
  uint64_t reserved3[6];
  /* line 4: the high-water mark */
  uint32_t wake;              /* futex: 0 collector may sleep, 1 woken */
  uint32_t high_water_blocks; /* wake the collector at this many used blocks; 0 never */
  uint32_t snapshots_asked;   /* only grows: programs ask the flight recorder for one */
  uint32_t snapshot_after_ms; /* the last one that was asked for: so much later */
  uint32_t
      definitions_round; /* raised by a collector that begins: all definitions anew */
  uint32_t reserved4;
  uint64_t patterns_matched; /* one bit for each of the recorder's function patterns */
  uint32_t reserved9[8];
  /* line 5: identities, never given twice in a session; 0 is nobody */
  uint32_t process_next;
  uint32_t writer_next;
  uint32_t slot_next; /* slots with index >= this were never used */
  uint32_t reserved5[13];
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
ARCTRACE_ASSERT_OFFSET(arctrace_control, next, 64);
ARCTRACE_ASSERT_OFFSET(arctrace_control, shared_current, 128);
ARCTRACE_ASSERT_OFFSET(arctrace_control, taken, 192);
ARCTRACE_ASSERT_OFFSET(arctrace_control, wake, 256);
ARCTRACE_ASSERT_OFFSET(arctrace_control, patterns_matched, 280);
ARCTRACE_ASSERT_OFFSET(arctrace_control, process_next, 320);
ARCTRACE_ASSERT_OFFSET(arctrace_control, lost, 384);
ARCTRACE_ASSERT_OFFSET(arctrace_control, collector_lock, 448);
ARCTRACE_ASSERT_OFFSET(arctrace_control, collector_robust_next, 480);
ARCTRACE_ASSERT_SIZE(arctrace_control, 512);

/* The choice of functions, behind the control area: by `arctrace ctl`, for the programs
 * of the session. */
#define ARCTRACE_CHOICE_OFFSET 4608u /* = ARCTRACE_CONTROL_OFFSET + 512 */
#define ARCTRACE_CHOICE_TEXT_MAX 1024u

struct arctrace_choice {
  uint32_t round; /* rises with each choice, odd while it is being changed; 0: none yet */
  uint32_t size;  /* bytes of text that count; 0: as programs were started */
  uint32_t reserved[14];
  /* '+' or '-' and a glob of linker's names, ended by a zero byte, and so on */
  uint64_t text[ARCTRACE_CHOICE_TEXT_MAX / sizeof(uint64_t)];
};
ARCTRACE_ASSERT_OFFSET(arctrace_choice, text, 64);

/* ---- CPU slots: the kernel writer --------------------------------------- */

#define ARCTRACE_ACTIVE_DEPTH 4u

/* Owns blocks that a CPU is opening, or the recorder making free: no writer's slot. */
#define ARCTRACE_KERNEL_SLOT 0xFFFFu

/* Blocks are named by generation << 32 | index + 1, as in control.shared_current. */
struct arctrace_cpu_slot {
  uint64_t current;  /* this CPU's open shared block, or 0 */
  uint64_t searched; /* blocks looked at in vain since the collector set it to 0 */
  uint64_t reserved0[7];
  uint32_t active[ARCTRACE_ACTIVE_DEPTH]; /* block + 1 of a record being written, or 0 */
  uint64_t lost;                          /* records lost, only grows */
  uint64_t reported;                      /* of these, said in LOST records */
  uint64_t lost_since; /* CLOCK_MONOTONIC ns, not after the first that is not reported */
  uint64_t reserved1[2];
};
ARCTRACE_ASSERT_OFFSET(arctrace_cpu_slot, active, 72);
ARCTRACE_ASSERT_OFFSET(arctrace_cpu_slot, lost, 88);
ARCTRACE_ASSERT_SIZE(arctrace_cpu_slot, 128);

/* ---- Writer slots ---------------------------------------------------------
 *
 * lock is a robust futex word on the owning thread's robust list: 0 free, the
 * owner's tid, or with bit 30 (FUTEX_OWNER_DIED) set by the kernel when that
 * thread died. Its list node stands 32 bytes behind it, where glibc's
 * pthread_mutex_t has it (kernel: Documentation/locking/robust-futex-ABI).
 * The loss counters only grow, also across owners.
 */

#define ARCTRACE_HELD_COUNT 4u
#define ARCTRACE_SLOT_SIZE 256u
#define ARCTRACE_ROBUST_NODE_OFFSET 32

struct arctrace_writer_slot {
  /* line 0: liveness and identity */
  uint32_t lock;
  uint32_t telling_cause; /* of the LOST record that is being told */
  uint64_t telling;       /* its place, in bytes from the buffer's start; 0: none */
  uint64_t telling_until; /* reported[telling_cause], once it is committed */
  uint64_t robust_prev;   /* the owner's and its libc's; meaningless to all others */
  uint64_t robust_next;
  uint32_t writer;  /* identity, unique in the session */
  uint32_t process; /* identity, unique in the session */
  uint32_t pid;     /* as the process sees itself */
  uint32_t tid;
  uint64_t start_ticks;
  /* line 1: blocks this thread may still write, as block + 1; 0 none */
  uint32_t current;                       /* exclusive block taken or being taken */
  uint32_t active[ARCTRACE_ACTIVE_DEPTH]; /* shared write in progress, by nesting */
  uint32_t held[ARCTRACE_HELD_COUNT];     /* reserve() without commit() yet */
  uint32_t reserved1;
  /* user records reserved: each only the owner counts, they only grow, as lost[] does;
   * what is discarded is taken back */
  uint64_t written;        /* in exclusive blocks */
  uint64_t written_shared; /* in shared blocks */
  uint64_t written_before; /* both, by earlier owners */
  /* line 2 */
  uint64_t lost[ARCTRACE_LOST_CAUSES];
  /* line 3 */
  uint64_t reported[ARCTRACE_LOST_CAUSES]; /* of these, said in LOST records */
};
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, telling, 8);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, robust_next, ARCTRACE_ROBUST_NODE_OFFSET);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, writer, 40);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, start_ticks, 56);
ARCTRACE_ASSERT_OFFSET(arctrace_writer_slot, current, 64);
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
  ARCTRACE_FORM_FULL = 2     /* shared block: any writer, 16-byte record heads */
};

enum arctrace_block_class {
  ARCTRACE_CLASS_DATA = 1,
  ARCTRACE_CLASS_DEFINITIONS = 2 /* kept by overwrite mode while the process lives */
};

struct arctrace_block_header {
  /* line 0: contended */
  uint64_t state;
  uint64_t next; /* offset of the next reservation; >= block_size: none to be had */
  uint64_t reserved0[6];
  /* line 1: who and when; all 0xff in a free block; magic is stored last */
  uint32_t magic;
  uint16_t form;        /* enum arctrace_block_form */
  uint16_t block_class; /* enum arctrace_block_class */
  uint32_t writer;      /* the exclusive block's writer; of a shared one, who opened it */
  uint32_t process;
  uint32_t pid;
  uint32_t tid;
  uint64_t serial;     /* counts the writer's exclusive blocks from 0 */
  uint64_t handout;    /* value of control.next that gave this block: unique, ordered */
  uint64_t base_ticks; /* what the first record's tick delta counts from */
  uint64_t retired;    /* definitions whose process was seen gone, in overwrite mode:
                          control.next then; else 0 */
  uint64_t reserved1;
};
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, next, 8);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, magic, 64);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, writer, 72);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, serial, 88);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, base_ticks, 104);
ARCTRACE_ASSERT_OFFSET(arctrace_block_header, retired, 112);
ARCTRACE_ASSERT_SIZE(arctrace_block_header, ARCTRACE_BLOCK_HEADER_SIZE);

/* ---- Records --------------------------------------------------------------
 *
 * word 0   31 30            16 15              0
 *         +--+----------------+-----------------+
 *         |P |      type      | length in bytes |   P: in progress
 *         +--+----------------+-----------------+
 *
 * The length counts word 0, is a multiple of 4 and right from the first store on.
 * compact head: word 0, tick delta (32 bits, from the block's base_ticks or the
 *               last TIME record before it)
 * full head:    word 0, writer, ticks low, ticks high
 * A full head's writer with bit 31 set is the kernel's, its low bits the tid.
 */

#define ARCTRACE_IN_PROGRESS 0x80000000u
#define ARCTRACE_TYPE_SHIFT 16u
#define ARCTRACE_TYPE_MASK 0x7FFFu
#define ARCTRACE_LENGTH_MASK 0xFFFFu
#define ARCTRACE_WORD0(type, length) \
  (((uint32_t)(type) << ARCTRACE_TYPE_SHIFT) | (uint32_t)(length))
#define ARCTRACE_COMPACT_HEAD_SIZE 8u
#define ARCTRACE_FULL_HEAD_SIZE 16u
#define ARCTRACE_WRITER_KERNEL 0x80000000u
#define ARCTRACE_WRITER_COLLECTOR 0u /* in RECORDS chunks of a file */

/* What stands behind the head. u32/u64 are unaligned but for 4 bytes; bytes(n) is
 * n bytes, then zeros up to the next multiple of 4. A frame key is a function's
 * address, or with ARCTRACE_FRAME_NAME_BIT a name id (STRING) in the low 32 bits. */
enum arctrace_record_type {
  ARCTRACE_TYPE_PAD = 1,  /* anything; a discarded record */
  ARCTRACE_TYPE_TIME = 2, /* u64 ticks; compact blocks: later deltas count from it */

  /* The writer's open frames here, outermost first: u32 depth, u32 count, u64 key[count].
   * count < depth: only the innermost `count` are told. First in every compact block
   * (behind LOST), and before a thread's first data record in a block of the shared
   * scope. */
  ARCTRACE_TYPE_STACK = 3,
  ARCTRACE_TYPE_LOST = 4, /* u32 cause, u32 flags, u64 count, u64 since_ticks */

  ARCTRACE_TYPE_ENTER = 5,      /* u64 frame key */
  ARCTRACE_TYPE_EXIT = 6,       /* of the innermost open frame */
  ARCTRACE_TYPE_EXIT_NAMED = 7, /* u64 frame key whose entry the writer does not know */
  ARCTRACE_TYPE_UNWIND =
      8, /* u32 count: the innermost frames were left without an exit */
  ARCTRACE_TYPE_VFORK_BEGIN =
      9, /* what follows is the vfork child's, on its parent's stack */
  ARCTRACE_TYPE_VFORK_END = 10, /* u32 child pid: frames as at VFORK_BEGIN */

  /* Of the innermost open frame, with the ticks of its ENTER, behind that, and of its
   * EXIT, before that: u32 count, then each value: u8 kind (enum arctrace_value_kind), u8
   * argument (from 1, of a result 0), u16 n, bytes(n). */
  ARCTRACE_TYPE_ARGUMENTS = 11,
  ARCTRACE_TYPE_RESULT = 12,

  ARCTRACE_TYPE_EVENT = 16,   /* u32 event id, payload laid out as EVENT_LAYOUT says */
  ARCTRACE_TYPE_INSTANT = 17, /* u32 name id */
  ARCTRACE_TYPE_COUNTER = 18, /* u32 name id, s64 value */
  ARCTRACE_TYPE_TEXT = 19,    /* u32 n, bytes(n) */
  ARCTRACE_TYPE_MARK = 20,    /* u32 n, bytes(n): a mark for all to see */

  /* Definitions: full form, in blocks of class DEFINITIONS. Ids are the process's own. */
  ARCTRACE_TYPE_PROCESS = 32, /* u32 process, parent_process (0 unknown), pid, ppid, uid,
                                 origin, u64 start_ticks, u32 n, m: bytes(n) executable,
                                 bytes(m) command line, its arguments each ended by 0 */
  ARCTRACE_TYPE_THREAD = 33,  /* u32 writer, process, tid, n, u64 start_ticks: bytes(n)
                                 name;  again when the name changes */
  ARCTRACE_TYPE_MODULE = 34,  /* u32 process, flags, u64 start, end, bias, dev, inode,
                                 u32 n, m: bytes(n) build-id, bytes(m) path.
                                 file address = address - bias */
  ARCTRACE_TYPE_MODULE_GONE = 35,   /* u32 process, reserved, u64 start */
  ARCTRACE_TYPE_STRING = 36,        /* u32 process, id, n: bytes(n) */
  ARCTRACE_TYPE_EVENT_LAYOUT = 37,  /* u32 process, id, level, field_count, n: bytes(n)
                                       name, then each field: u32 type, n: bytes(n) name */
  ARCTRACE_TYPE_PROCESS_END = 38,   /* u32 process, how, s32 status */
  ARCTRACE_TYPE_PID_NAMESPACE = 39, /* u32 process, inode: its ids are of this PID
                                       namespace; not said: of the first */
  ARCTRACE_TYPE_JITDUMP = 40,  /* u32 process, n: bytes(n) path of a jitdump file that
                                  it had mapped at its end */
  ARCTRACE_TYPE_UNTRACED = 41, /* u32 process, why (enum arctrace_untraced), n: bytes(n)
                                  path of a program that it is about to execute, and that
                                  can't be traced */

  /* The collector's, full form, in RECORDS chunks. */
  ARCTRACE_TYPE_SYSTEM = 48, /* u32 byte_order, page_size, cpus_online, n, m, k: bytes(n)
                                host, bytes(m) kernel release, bytes(k) recorder command
                                line, its arguments each ended by 0 */
  ARCTRACE_TYPE_CLOCK_SYNC = 49, /* u64 ticks, monotonic_ns, realtime_ns */
  ARCTRACE_TYPE_WRITER_END = 50, /* u32 writer, how: head ticks = seen dead */
  ARCTRACE_TYPE_SESSION = 51,    /* u32 what (enum arctrace_session_event), u32 detail */
  ARCTRACE_TYPE_CHILD_STATUS = 52, /* u32 pid, s32 wait status of the recorded command */
  ARCTRACE_TYPE_TOTALS = 53,       /* u64 written, lost[8]: user records up to now, of the
                                      head's writer, whose lost[] are 0, or of the session */
  ARCTRACE_TYPE_CODE = 54,      /* u32 process, n, u64 start, size, since: bytes(n) name
                                   of code that it generated; since: CLOCK_MONOTONIC ns
                                   from which on, 0: the process' start */
  ARCTRACE_TYPE_CODE_FILE = 55, /* u32 process, kind, u64 names, left_out, u32 flags, n:
                                   bytes(n) path of the file that told those names */

  /* 64-127: the kernel writer's. The head's writer is the running thread (of SWITCH: the
   * previous one), its ticks are CLOCK_MONOTONIC ns. Every body begins with u32 cpu, u32
   * tgid of that thread; ids are those of the kernel's own namespace. */
  ARCTRACE_TYPE_SWITCH = 64,  /* u32 cpu, tgid, prev_state (0: it could run on), next_tid,
                                 next_tgid */
  ARCTRACE_TYPE_WAKING = 65,  /* u32 cpu, tgid, woken_tid, woken_tgid, context */
  ARCTRACE_TYPE_FORKED = 66,  /* u32 cpu, tgid, child_tid, child_tgid */
  ARCTRACE_TYPE_EXECED = 67,  /* u32 cpu, tgid, char name[16] */
  ARCTRACE_TYPE_EXITED = 68,  /* u32 cpu, tgid, reserved, reserved */
  ARCTRACE_TYPE_SYSCALL = 69, /* u32 cpu, tgid, number, reserved */
  ARCTRACE_TYPE_SYSCALL_END = 70, /* u32 cpu, tgid, s64 result */
  ARCTRACE_TYPE_PAGE_FAULT =
      71,                    /* u32 cpu, tgid, u64 address, u32 error code, reserved */
  ARCTRACE_TYPE_SIGNAL = 72, /* u32 cpu, tgid, signal, reserved: delivered */
  ARCTRACE_TYPE_CONTENTION = 73, /* u32 cpu, tgid, u64 lock, u32 flags, reserved: waits */
  ARCTRACE_TYPE_CONTENTION_END = 74, /* u32 cpu, tgid, u64 lock, s32 result, reserved */
  /* The head's thread is the one that asked, also at the end, wherever that comes. */
  ARCTRACE_TYPE_BLOCK_IO = 75, /* u32 cpu, tgid, u64 sector, u32 dev, bytes, operation,
                                  reserved */
  ARCTRACE_TYPE_BLOCK_IO_END = 76, /* u32 cpu, tgid, u64 sector, u32 dev, bytes,
                                      operation, s32 error */
  ARCTRACE_TYPE_SWITCH_IN = 77,    /* u32 cpu, tgid: who left the CPU is not known */
  /* Behind FORKED, if the child is not in the first PID namespace. */
  ARCTRACE_TYPE_NUMBERED = 78 /* u32 cpu, tgid, child_tid, its own tid, inode of its PID
                                 namespace, reserved */
};

/* SWITCH.prev_state, next_tid, next_tgid: not known. Such a prev_state is not 0. */
#define ARCTRACE_SWITCH_UNKNOWN 0xFFFFFFFFu

/* WAKING.context: 0 if the running thread itself woke the other one. INTERRUPT: what woke
 * it interrupted the thread. SOFTIRQ: perhaps on the thread's own behalf. */
#define ARCTRACE_WAKING_INTERRUPT 1u
#define ARCTRACE_WAKING_UNKNOWN 2u /* this kernel doesn't tell */
#define ARCTRACE_WAKING_SOFTIRQ 4u

#define ARCTRACE_FRAME_NAME_BIT (1ull << 63)
/* With it: the name is a dynamic symbol's, called through the linkage of a module. */
#define ARCTRACE_FRAME_LIBRARY_BIT (1ull << 62)

/* LOST.flags */
#define ARCTRACE_LOST_INHERITED 1u /* lost by an earlier owner of the slot */
#define ARCTRACE_LOST_RESIDUAL \
  2u /* said by the collector: the writer could not any more */
#define ARCTRACE_LOST_SESSION \
  4u /* said by the collector of losses that no slot counted */
#define ARCTRACE_LOST_CPU \
  8u /* of the CPU whose number is in the bits from ARCTRACE_LOST_CPU_SHIFT on */
#define ARCTRACE_LOST_CPU_SHIFT 16u

enum arctrace_process_origin {
  ARCTRACE_ORIGIN_EXEC = 1, /* a program's start, as far as is known */
  ARCTRACE_ORIGIN_FORK = 2
};

enum arctrace_process_end {
  ARCTRACE_END_NONE = 0,        /* the exec that was said before failed: it goes on */
  ARCTRACE_END_EXIT = 1,        /* exit() or return from main; status unknown (-1) */
  ARCTRACE_END_EXIT_DIRECT = 2, /* _exit(status) */
  ARCTRACE_END_EXEC = 3         /* is about to become another program */
};

enum arctrace_untraced {
  ARCTRACE_UNTRACED_STATIC = 1, /* has no loader, which would load us */
  ARCTRACE_UNTRACED_SETUID = 2, /* these get other rights: the loader loads nothing */
  ARCTRACE_UNTRACED_SETGID = 3,
  ARCTRACE_UNTRACED_CAPABILITIES = 4,
  ARCTRACE_UNTRACED_ARCHITECTURE = 5, /* has a loader for another machine */
  ARCTRACE_UNTRACED_REACH = 6,        /* may not open the buffer: user, root directory */
  ARCTRACE_UNTRACED_MUSL = 7,         /* has a libc in which we do nothing */
  ARCTRACE_UNTRACED_CONFINED = 8 /* behind a seccomp filter that keeps it from joining */
};

enum arctrace_writer_end { ARCTRACE_WRITER_DIED = 1, ARCTRACE_WRITER_DETACHED = 2 };

enum arctrace_session_event {
  ARCTRACE_SESSION_STARTED = 1,  /* detail: 1 if the session had collectors before */
  ARCTRACE_SESSION_FINISHED = 2, /* last record of a whole file */
  ARCTRACE_SESSION_DISK_FULL = 3 /* detail: errno */
};

#define ARCTRACE_SESSION_RESUMED 1u /* STARTED's detail */

/* MODULE.flags */
#define ARCTRACE_MODULE_MAIN 1u /* the program itself */
#define ARCTRACE_MODULE_VDSO 2u

/* CODE_FILE */
enum arctrace_code_file_kind {
  ARCTRACE_CODE_PERF_MAP = 1, /* /tmp/perf-PID.map: lines of address, size and name */
  ARCTRACE_CODE_JITDUMP = 2   /* jit-PID.dump, with times */
};
#define ARCTRACE_CODE_FILE_CUT 1u /* not read to its end: too large */

/* EVENT_LAYOUT field types; the payload is the fields in order, packed, each field
 * as wide as its type. STRING: u32 n, bytes(n). */
enum arctrace_field_type {
  ARCTRACE_FIELD_U8 = 1,
  ARCTRACE_FIELD_U16 = 2,
  ARCTRACE_FIELD_U32 = 3,
  ARCTRACE_FIELD_U64 = 4,
  ARCTRACE_FIELD_I8 = 5,
  ARCTRACE_FIELD_I16 = 6,
  ARCTRACE_FIELD_I32 = 7,
  ARCTRACE_FIELD_I64 = 8,
  ARCTRACE_FIELD_F32 = 9,
  ARCTRACE_FIELD_F64 = 10,
  ARCTRACE_FIELD_BOOL = 11, /* one byte, 0 or 1 */
  ARCTRACE_FIELD_X64 = 12,  /* u64, shown in hex: an address */
  ARCTRACE_FIELD_STRING = 13
};

/* How a value of a call is meant. A number has 1, 2, 4 or 8 bytes. */
enum arctrace_value_kind {
  ARCTRACE_VALUE_SIGNED = 1,
  ARCTRACE_VALUE_UNSIGNED = 2,
  ARCTRACE_VALUE_HEX = 3,
  ARCTRACE_VALUE_OCTAL = 4, /* a file's mode */
  ARCTRACE_VALUE_CHAR = 5,
  ARCTRACE_VALUE_POINTER = 6,
  ARCTRACE_VALUE_STRING = 7,      /* its bytes, without the zero */
  ARCTRACE_VALUE_STRING_CUT = 8,  /* the first of its bytes */
  ARCTRACE_VALUE_STRING_LOST = 9, /* u64 address where none could be read */
  ARCTRACE_VALUE_ERRNO = 10,      /* s32: 0, or behind a result why it failed */
  /* numbers that have names */
  ARCTRACE_VALUE_FOLDER = 11, /* a descriptor, or AT_FDCWD */
  ARCTRACE_VALUE_OPEN_FLAGS = 12,
  ARCTRACE_VALUE_ACCESS = 13,     /* R_OK ... */
  ARCTRACE_VALUE_PROTECTION = 14, /* PROT_READ ... */
  ARCTRACE_VALUE_MAP_FLAGS = 15,
  ARCTRACE_VALUE_WHENCE = 16, /* SEEK_SET ... */
  ARCTRACE_VALUE_DOMAIN = 17, /* AF_UNIX ... */
  ARCTRACE_VALUE_SOCKET = 18, /* SOCK_STREAM ... */
  ARCTRACE_VALUE_SIGNAL = 19,
  ARCTRACE_VALUE_CLOCK = 20,
  /* since version 1.2 */
  ARCTRACE_VALUE_FLOAT = 21, /* IEEE 754, 4 or 8 bytes; arguments counted by themselves */
  ARCTRACE_VALUE_BOOL = 22,
  ARCTRACE_VALUE_NAMES =
      23 /* u32 name id: the arguments' names, "a,b"; itself none. Since version
            1.3 behind a name what numbers mean: "a/0=red/5=green" */
};

/* ---- Trace file -------------------------------------------------------------
 *
 * The session header's 4096 bytes with magic ARCTRACE_FILE_MAGIC, then chunks:
 *
 *   BLOCK    a block's image: its header, its records, without the 0xff behind them
 *   RECORDS  the collector's own records, full form, one after another
 *
 * A file without a SESSION_FINISHED record was cut off; it is good up to there.
 */

enum arctrace_chunk_kind { ARCTRACE_CHUNK_BLOCK = 1, ARCTRACE_CHUNK_RECORDS = 2 };

/* chunk flags: why records of the block may be in progress for good */
#define ARCTRACE_CHUNK_OWNER_DIED 1u /* a writer of the block died */
#define ARCTRACE_CHUNK_LIVE_COPY 2u  /* copied while its writers were alive */

struct arctrace_chunk_header {
  uint32_t magic;
  uint16_t kind;
  uint16_t flags;
  uint32_t size;     /* payload bytes behind this header, a multiple of 4 */
  uint32_t index;    /* BLOCK: the block's index in the buffer */
  uint64_t sequence; /* counts chunks from 0 */
  uint64_t ticks;    /* when it was written */
};
ARCTRACE_ASSERT_OFFSET(arctrace_chunk_header, size, 8);
ARCTRACE_ASSERT_OFFSET(arctrace_chunk_header, sequence, 16);
ARCTRACE_ASSERT_SIZE(arctrace_chunk_header, 32);

#endif /* ARCTRACE_FORMAT_H */
