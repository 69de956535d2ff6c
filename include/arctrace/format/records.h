/* arctrace/format/records.h - records: their heads, their types, and the bodies of those
 * that programs write.
 *
 * word 0   31 30            16 15              0
 *         +--+----------------+-----------------+
 *         |P |      type      | length in bytes |   P: in progress
 *         +--+----------------+-----------------+
 *
 * The length counts word 0, is a multiple of 4, and is right from the first store on.
 * The head is followed by the body: the fixed part, which is a struct of this header, and
 * after it what the struct's comment says. There bytes(n) is n bytes and then zeros up to
 * the next multiple of 4. Fields are little-endian and aligned to 4 bytes, u64 too.
 */
#ifndef ARCTRACE_FORMAT_RECORDS_H
#define ARCTRACE_FORMAT_RECORDS_H

#include <arctrace/format/buffer.h>

/* The attributes of heads and bodies: no padding, and the alignment of a record. */
#define ARCTRACE_RECORD_PART __attribute__((packed, aligned(4)))
#define ARCTRACE_ASSERT_PART(type, size) \
  ARCTRACE_ASSERT_SIZE(type, size);      \
  ARCTRACE_STATIC_ASSERT(__alignof__(struct type) == 4, #type " is aligned to 4 bytes")

#define ARCTRACE_IN_PROGRESS 0x80000000u
#define ARCTRACE_TYPE_SHIFT 16u
#define ARCTRACE_TYPE_MASK 0x7FFFu
#define ARCTRACE_LENGTH_MASK 0xFFFFu
#define ARCTRACE_WORD0(type, length) \
  (((uint32_t)(type) << ARCTRACE_TYPE_SHIFT) | (uint32_t)(length))
#define ARCTRACE_RECORD_LENGTH_MAX 65532u
#define ARCTRACE_COMPACT_HEAD_SIZE 8u
#define ARCTRACE_FULL_HEAD_SIZE 16u
/* A bare head is word 0 alone: the record's time is the block's base_ticks, or that of
 * the last TIME record before it. */
#define ARCTRACE_BARE_HEAD_SIZE 4u

struct arctrace_compact_head {
  uint32_t word0;
  uint32_t tick_delta; /* from the block's base_ticks or the last TIME record before it */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_compact_head, ARCTRACE_COMPACT_HEAD_SIZE);

struct arctrace_full_head {
  uint32_t word0;
  uint32_t writer; /* an identity, or one of the following */
  uint64_t ticks;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_full_head, ticks, 8);
ARCTRACE_ASSERT_PART(arctrace_full_head, ARCTRACE_FULL_HEAD_SIZE);

#define ARCTRACE_WRITER_KERNEL 0x80000000u /* with the running thread's tid */
#define ARCTRACE_WRITER_COLLECTOR 0u       /* in RECORDS chunks of a file */

enum arctrace_record_type {
  ARCTRACE_TYPE_PAD = 1, /* anything; a discarded record */
  ARCTRACE_TYPE_TIME = 2,
  ARCTRACE_TYPE_STACK = 3,
  ARCTRACE_TYPE_LOST = 4,
  /* user records */
  ARCTRACE_TYPE_ENTER = 5,
  ARCTRACE_TYPE_EXIT = 6, /* no body: the innermost open frame ends */
  ARCTRACE_TYPE_EXIT_NAMED = 7,
  ARCTRACE_TYPE_UNWIND = 8,
  ARCTRACE_TYPE_VFORK_BEGIN = 9, /* no body: the vfork child's records follow */
  ARCTRACE_TYPE_VFORK_END = 10,
  ARCTRACE_TYPE_ARGUMENTS = 11,
  ARCTRACE_TYPE_RESULT = 12,
  ARCTRACE_TYPE_COROUTINE = 13,
  ARCTRACE_TYPE_EVENT = 16,
  ARCTRACE_TYPE_INSTANT = 17,
  ARCTRACE_TYPE_COUNTER = 18,
  ARCTRACE_TYPE_TEXT = 19,
  ARCTRACE_TYPE_MARK = 20, /* a text on the time line of the session */
  /* definitions: full form, in blocks of class DEFINITIONS */
  ARCTRACE_TYPE_PROCESS = 32,
  ARCTRACE_TYPE_THREAD = 33,
  ARCTRACE_TYPE_MODULE = 34,
  ARCTRACE_TYPE_MODULE_GONE = 35,
  ARCTRACE_TYPE_STRING = 36,
  ARCTRACE_TYPE_EVENT_LAYOUT = 37,
  ARCTRACE_TYPE_PROCESS_END = 38,
  ARCTRACE_TYPE_PID_NAMESPACE = 39,
  ARCTRACE_TYPE_JITDUMP = 40,
  ARCTRACE_TYPE_UNTRACED = 41,
  ARCTRACE_TYPE_PHASE = 42,
  ARCTRACE_TYPE_AGE = 43,
  ARCTRACE_TYPE_WAITING = 44,
  ARCTRACE_TYPE_PATCHES = 45,
  ARCTRACE_TYPE_INHERITED = 46,
  ARCTRACE_TYPE_HOOKED = 47,
  /* the collector's: full form, in RECORDS chunks */
  ARCTRACE_TYPE_SYSTEM = 48,
  ARCTRACE_TYPE_CLOCK_SYNC = 49,
  ARCTRACE_TYPE_WRITER_END = 50,
  ARCTRACE_TYPE_SESSION = 51,
  ARCTRACE_TYPE_CHILD_STATUS = 52,
  ARCTRACE_TYPE_TOTALS = 53,
  ARCTRACE_TYPE_CODE = 54,
  ARCTRACE_TYPE_CODE_FILE = 55,
  ARCTRACE_TYPE_ENABLED = 56,
  ARCTRACE_TYPE_EXEC = 57,
  ARCTRACE_TYPE_COUNTS = 58,
  ARCTRACE_TYPE_ALIVE = 59,
  ARCTRACE_TYPE_HOOK_COSTS = 60,
  ARCTRACE_TYPE_FILES = 61,
  ARCTRACE_TYPE_CLOCK_WORD = 62,
  /* the kernel writer's: full form, in blocks of class DATA */
  ARCTRACE_TYPE_SWITCH = 64,
  ARCTRACE_TYPE_WAKING = 65,
  ARCTRACE_TYPE_FORKED = 66,
  ARCTRACE_TYPE_EXECED = 67,
  ARCTRACE_TYPE_EXITED = 68,
  ARCTRACE_TYPE_SYSCALL = 69,
  ARCTRACE_TYPE_SYSCALL_END = 70,
  ARCTRACE_TYPE_PAGE_FAULT = 71,
  ARCTRACE_TYPE_SIGNAL = 72,
  ARCTRACE_TYPE_CONTENTION = 73,
  ARCTRACE_TYPE_CONTENTION_END = 74,
  ARCTRACE_TYPE_BLOCK_IO = 75,
  ARCTRACE_TYPE_BLOCK_IO_END = 76,
  ARCTRACE_TYPE_SWITCH_IN = 77,
  ARCTRACE_TYPE_NUMBERED = 78,
  ARCTRACE_TYPE_NAMED = 79,
  ARCTRACE_TYPE_INTERRUPT = 80
};

/* ---- A thread's stream, and user records --------------------------------------
 *
 * A frame key is a function's address, or with ARCTRACE_FRAME_NAME_BIT a name id (STRING)
 * in its low 32 bits. */

#define ARCTRACE_FRAME_NAME_BIT (1ull << 63)
/* Set together with ARCTRACE_FRAME_NAME_BIT: the name is a dynamic symbol, which was
 * called through a module's PLT. */
#define ARCTRACE_FRAME_LIBRARY_BIT (1ull << 62)

struct arctrace_time_body {
  uint64_t ticks; /* later deltas of the block count from it */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_time_body, 8);

/* The writer's open frames at this point, then u64 keys[count], outermost first. If count
 * is less than depth, only the innermost frames are listed. It begins every compact block
 * (after LOST), and in the shared scope comes before a thread's first record in a block.
 */
struct arctrace_stack_body {
  uint32_t depth, count;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_stack_body, 8);
#define ARCTRACE_STACK_WAITS 1u /* after the 0 of a STACK by the collector */

/* The thread continues on another of its stacks, whose open frames are given as in STACK.
 * A STACK of a coroutine has the coroutine's number after the keys. */
struct arctrace_coroutine_body {
  uint32_t coroutine;    /* 0: the thread's own stack */
  uint32_t depth, count; /* from here on as in STACK */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_coroutine_body, depth, 4);
ARCTRACE_ASSERT_PART(arctrace_coroutine_body, 12);

struct arctrace_lost_body {
  uint32_t cause; /* enum arctrace_loss_cause */
  uint32_t flags; /* ARCTRACE_LOST_* */
  uint64_t count, since_ticks;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_lost_body, since_ticks, 16);
ARCTRACE_ASSERT_PART(arctrace_lost_body, 24);

#define ARCTRACE_LOST_INHERITED 1u  /* lost by an earlier owner of the slot */
#define ARCTRACE_LOST_RESIDUAL 2u   /* counted by the collector: the writer is gone */
#define ARCTRACE_LOST_SESSION 4u    /* losses that no slot counted */
#define ARCTRACE_LOST_CPU 8u        /* lost by one CPU of the kernel writer ... */
#define ARCTRACE_LOST_CPU_SHIFT 16u /* ... whose number is in the bits from here on */

/* ENTER, and EXIT_NAMED, the exit of a frame whose entry the writer does not know. The
 * ENTER of a lock call has the locks after the key, as far as its length goes. */
struct arctrace_frame_body {
  uint64_t key;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_frame_body, 8);

struct arctrace_lock_word {
  uint64_t address; /* an argument of the call: the first one, then the second */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_lock_word, 8);

#define ARCTRACE_LOCK_WORDS_MAX 2u /* a condition, and its mutex */

struct arctrace_unwind_body {
  uint32_t count; /* innermost frames that ended without an exit */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_unwind_body, 4);

struct arctrace_vfork_end_body {
  uint32_t child_pid; /* the frames are as they were at VFORK_BEGIN */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_vfork_end_body, 4);

/* ARGUMENTS, which follows the ENTER of the innermost open frame, and RESULT, which comes
 * before its EXIT, each with the ticks of that record. Then count times: struct
 * arctrace_arg_head, bytes(size). */
struct arctrace_args_body {
  uint32_t count;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_args_body, 4);

struct arctrace_arg_head {
  uint8_t kind;     /* enum arctrace_value_kind */
  uint8_t argument; /* from 1; 0: the result */
  uint16_t size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_arg_head, 4);

/* The kind of an argument or result. A number has 1, 2, 4 or 8 bytes. */
enum arctrace_value_kind {
  ARCTRACE_VALUE_SIGNED = 1,
  ARCTRACE_VALUE_UNSIGNED = 2,
  ARCTRACE_VALUE_HEX = 3,
  ARCTRACE_VALUE_OCTAL = 4, /* a file's mode */
  ARCTRACE_VALUE_CHAR = 5,
  ARCTRACE_VALUE_POINTER = 6,
  ARCTRACE_VALUE_STRING = 7,      /* its bytes, without the zero */
  ARCTRACE_VALUE_STRING_CUT = 8,  /* the first of its bytes */
  ARCTRACE_VALUE_STRING_LOST = 9, /* u64: the address, which could not be read */
  ARCTRACE_VALUE_ERRNO = 10,      /* s32: errno after a call that failed, else 0 */
  /* numbers that have names */
  ARCTRACE_VALUE_DIRECTORY = 11, /* a descriptor, or AT_FDCWD */
  ARCTRACE_VALUE_OPEN_FLAGS = 12,
  ARCTRACE_VALUE_ACCESS = 13,     /* R_OK ... */
  ARCTRACE_VALUE_PROTECTION = 14, /* PROT_READ ... */
  ARCTRACE_VALUE_MAP_FLAGS = 15,
  ARCTRACE_VALUE_WHENCE = 16, /* SEEK_SET ... */
  ARCTRACE_VALUE_DOMAIN = 17, /* AF_UNIX ... */
  ARCTRACE_VALUE_SOCKET = 18, /* SOCK_STREAM ... */
  ARCTRACE_VALUE_SIGNAL = 19,
  ARCTRACE_VALUE_CLOCK = 20,

  /* IEEE 754, 4 or 8 bytes; arguments of this kind are counted apart */
  ARCTRACE_VALUE_FLOAT = 21,
  ARCTRACE_VALUE_BOOL = 22,
  /* Not an argument: the u32 id of a STRING with the names of the others, "a,b". A name
   * may be followed by the names of numbers: "a/0=red/5=green". */
  ARCTRACE_VALUE_NAMES = 23
};

struct arctrace_event_body {
  uint32_t event; /* id of the EVENT_LAYOUT that describes the payload, which follows */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_event_body, 4);

struct arctrace_instant_body {
  uint32_t name; /* id of a STRING */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_instant_body, 4);

struct arctrace_counter_body {
  uint32_t name; /* id of a STRING */
  int64_t value;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_counter_body, value, 4);
ARCTRACE_ASSERT_PART(arctrace_counter_body, 12);

/* TEXT and MARK; then bytes(text_size). */
struct arctrace_text_body {
  uint32_t text_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_text_body, 4);

/* ---- Definitions ------------------------------------------------------------------
 *
 * `process` is the process that the definition belongs to; ids are that process's own. */

/* Then bytes(executable_size), the program's path, and bytes(arguments_size), the command
 * line, in which a zero byte ends each argument. If the process was forked,
 * arctrace_process_fork follows; without it, neither of its fields is known. */
struct arctrace_process_body {
  uint32_t process, parent; /* parent 0: unknown */
  uint32_t pid, ppid, uid;
  uint32_t origin; /* enum arctrace_process_origin */
  uint64_t start_ticks;
  uint32_t executable_size, arguments_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_process_body, start_ticks, 24);
ARCTRACE_ASSERT_PART(arctrace_process_body, 40);

struct arctrace_process_fork {
  uint32_t forker;       /* writer identity of the thread that forked it; 0: not known */
  uint64_t forked_ticks; /* when that thread called fork; 0: not known */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_process_fork, forked_ticks, 4);
ARCTRACE_ASSERT_PART(arctrace_process_fork, 12);

/* Describes a forked process: the frames that were open in its forker when that called
 * fork, those that the forker had inherited included, as depth, count and keys of
 * arctrace_stack_body. */
struct arctrace_inherited_body {
  uint32_t process;
  uint32_t depth, count;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_inherited_body, 12);

enum arctrace_process_origin {
  ARCTRACE_ORIGIN_EXEC = 1, /* the start of a program, or not known */
  ARCTRACE_ORIGIN_FORK = 2
};

/* Then bytes(name_size). The record is written again when the name changes. */
struct arctrace_thread_body {
  uint32_t writer, process, tid, name_size;
  uint64_t start_ticks;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_thread_body, start_ticks, 16);
ARCTRACE_ASSERT_PART(arctrace_thread_body, 24);

/* Then bytes(build_id_size), bytes(path_size). File address = address - bias. */
struct arctrace_module_body {
  uint32_t process;
  uint32_t flags; /* ARCTRACE_MODULE_* */
  uint64_t start, end, bias, device, inode;
  uint32_t build_id_size, path_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_module_body, start, 8);
ARCTRACE_ASSERT_OFFSET(arctrace_module_body, build_id_size, 48);
ARCTRACE_ASSERT_PART(arctrace_module_body, 56);

#define ARCTRACE_MODULE_MAIN 1u /* the program itself */
#define ARCTRACE_MODULE_VDSO 2u

struct arctrace_module_gone_body {
  uint32_t process, reserved;
  uint64_t start;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_module_gone_body, 16);

/* Then bytes(text_size). */
struct arctrace_string_body {
  uint32_t process, id, text_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_string_body, 12);

/* Then bytes(name_size), and field_count times: struct arctrace_layout_field,
 * bytes(name_size). */
struct arctrace_event_layout_body {
  uint32_t process, id, level, field_count, name_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_event_layout_body, 20);

struct arctrace_layout_field {
  uint32_t type; /* enum arctrace_field_type */
  uint32_t name_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_layout_field, 8);

/* An event's payload is its fields in order, packed, each as wide as its type. */
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
  ARCTRACE_FIELD_BOOL = 11,  /* one byte, 0 or 1 */
  ARCTRACE_FIELD_X64 = 12,   /* u64, shown in hex: an address */
  ARCTRACE_FIELD_STRING = 13 /* u32 n, then n bytes */
};

struct arctrace_process_end_body {
  uint32_t process;
  uint32_t how; /* enum arctrace_process_end */
  int32_t status;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_process_end_body, 12);

enum arctrace_process_end {
  ARCTRACE_END_NONE = 0, /* the exec that was announced failed; the process goes on */
  ARCTRACE_END_EXIT = 1, /* exit() or return from main; status unknown (-1) */
  ARCTRACE_END_EXIT_DIRECT = 2, /* _exit(status) */
  ARCTRACE_END_EXEC = 3         /* the process is about to execute another program */
};

/* A phase began at the head's ticks. */
struct arctrace_phase_body {
  uint32_t process;
  uint32_t phase; /* enum arctrace_phase_of_life */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_phase_body, 8);

enum arctrace_phase_of_life {
  ARCTRACE_LIFE_MAIN = 1,   /* main is called: the constructors have run */
  ARCTRACE_LIFE_EXIT = 2,   /* main has returned */
  ARCTRACE_LIFE_HELPER = 3, /* no phase: it has a child, `pid`, that is a tracer's own */
  ARCTRACE_LIFE_THREAD_END = 4, /* no phase: one of its threads ends, `writer` */
  ARCTRACE_LIFE_TRACED = 5      /* no phase: the tracer has started in a thread */
};

/* The body of ARCTRACE_LIFE_HELPER. */
struct arctrace_helper_body {
  uint32_t process;
  uint32_t phase;
  uint32_t pid; /* of the child, as the process sees it */
  uint32_t reserved;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_helper_body, 16);

/* The body of ARCTRACE_LIFE_THREAD_END, which the thread itself writes when its routine
 * has returned or it has ended itself. If it runs destructors that write records after
 * that, it writes another one. */
struct arctrace_thread_end_body {
  uint32_t process;
  uint32_t phase;
  uint32_t writer;
  uint32_t reserved;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_thread_end_body, 16);

/* The body of ARCTRACE_LIFE_TRACED: what the thread that writes it did from `began_ticks`
 * until the head's ticks was the tracer's start: of the first thread among the
 * constructors, of another one before its routine. */
struct arctrace_traced_body {
  uint32_t process;
  uint32_t phase;
  uint64_t began_ticks;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_traced_body, 16);

/* By the kernel's count, which is coarse, the process was no older than age_ns when it
 * took its identity (arctrace_process_body.start_ticks). */
struct arctrace_age_body {
  uint32_t process;
  uint32_t reserved;
  uint64_t age_ns;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_age_body, 16);

/* The open calls of a thread that wait to be recorded until they have lasted ticks_min,
 * outermost first: count * arctrace_waiting_call, then space for as many as there may be.
 * The thread changes the record as long as it lives. */
struct arctrace_waiting_body {
  uint32_t process;
  uint32_t writer;
  uint64_t ticks_min;
  uint64_t
      written; /* user records that the thread had written when the first of them began */
  uint32_t count;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_waiting_body, 28);

struct arctrace_waiting_call {
  uint64_t key;
  uint64_t ticks; /* of its entry */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_waiting_call, 16);

#define ARCTRACE_WAITING_CALLS_MAX 12u

/* Functions of the module that is loaded at this function's address, the function among
 * them, are hooked in this way from the head's ticks on. */
struct arctrace_hooked_body {
  uint32_t process;
  uint32_t kind; /* enum arctrace_hook_kind */
  uint32_t reserved;
  uint64_t function;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_hooked_body, function, 12);
ARCTRACE_ASSERT_PART(arctrace_hooked_body, 20);

/* The PID namespace of the process's pid, ppid and tids. Without this record, it is the
 * first PID namespace. */
struct arctrace_pid_namespace_body {
  uint32_t process, inode;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_pid_namespace_body, 8);

/* Then bytes(path_size), the path of a jitdump file that was mapped at the process's end.
 */
struct arctrace_jitdump_body {
  uint32_t process, path_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_jitdump_body, 8);

/* Then bytes(path_size), the path of a program that the process is about to execute and
 * that can't be traced. */
struct arctrace_untraced_body {
  uint32_t process;
  uint32_t why; /* enum arctrace_untraced */
  uint32_t path_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_untraced_body, 12);

enum arctrace_untraced {
  ARCTRACE_UNTRACED_STATIC = 1, /* it has no loader, which would load the shim */
  ARCTRACE_UNTRACED_SETUID = 2, /* it gets other rights, so the loader ignores the shim */
  ARCTRACE_UNTRACED_SETGID = 3, /* the same */
  ARCTRACE_UNTRACED_CAPABILITIES = 4, /* the same */
  ARCTRACE_UNTRACED_ARCHITECTURE = 5, /* its loader is for another machine */
  ARCTRACE_UNTRACED_REACH = 6,    /* its user or root directory can't open the buffer */
  ARCTRACE_UNTRACED_MUSL = 7,     /* its libc is musl, in which the shim does nothing */
  ARCTRACE_UNTRACED_CONFINED = 8, /* its seccomp filter keeps it from joining */
  ARCTRACE_UNTRACED_LIBC = 9 /* its glibc is too early for the shim, which does nothing */
};

/* `count` functions of the process' program were patched with a jump at their entry, or
 * skipped, for one reason. Then listed * (u64 function), the addresses of some of them.
 * Records with the same verdict add up. */
struct arctrace_patches_body {
  uint32_t process;
  uint32_t verdict; /* enum arctrace_patch_verdict */
  uint32_t count, listed;
  uint32_t reserved;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_patches_body, 20);

enum arctrace_patch_verdict {
  ARCTRACE_PATCH_DONE = 0,
  /* The analysis of the program's file has found these. */
  ARCTRACE_PATCH_SLOT_STUB = 1,     /* it only jumps to another module's function */
  ARCTRACE_PATCH_PART = 2,          /* the compiler split it off another function */
  ARCTRACE_PATCH_NO_FRAME_INFO = 3, /* no call frame information at its entry */
  ARCTRACE_PATCH_OTHER_FRAME = 4,   /* its return address is elsewhere at its entry */
  ARCTRACE_PATCH_TOO_SHORT = 5,     /* for a jump */
  ARCTRACE_PATCH_NOT_CODE = 6,      /* bytes in it are no instruction */
  ARCTRACE_PATCH_CALL = 7,          /* a call among the bytes of the jump */
  ARCTRACE_PATCH_ENDS_EARLY = 8,    /* it may end before as many bytes */
  ARCTRACE_PATCH_NOT_MOVABLE = 9,   /* an instruction that cannot be moved */
  ARCTRACE_PATCH_LOOPS_TO_ENTRY = 10,
  ARCTRACE_PATCH_ENTERED_INSIDE = 11,  /* a jump leads between the bytes */
  ARCTRACE_PATCH_POINTED_INSIDE = 12,  /* a pointer does */
  ARCTRACE_PATCH_UNKNOWN_TARGETS = 13, /* a jump table that was not found may */
  /* The recording has found these. */
  ARCTRACE_PATCH_SMALL = 14,         /* smaller than wanted, and not named */
  ARCTRACE_PATCH_UNMOVED_RULES = 15, /* its unwind rules cannot be moved */
  ARCTRACE_PATCH_CHANGED = 16,       /* its instructions are not those of the file */
  ARCTRACE_PATCH_NO_STUB = 17,       /* too many functions */
  ARCTRACE_PATCH_THROTTLED =
      18, /* patched, and switched off: its calls filled the buffer */
  ARCTRACE_PATCH_SPECIAL = 19, /* of a library: hooked otherwise, or skipped in libc */
  /* a thread stood in its first bytes when its process was joined */
  ARCTRACE_PATCH_IN_USE = 20,
  ARCTRACE_PATCH_OVERWRITTEN = 21, /* something has written over its compiled-in hook */
  /* No function was patched, for one of these reasons; count is 0. */
  ARCTRACE_PATCH_NO_ROOM = 32,    /* no addresses are free within a jump's reach */
  ARCTRACE_PATCH_RUNTIME = 33,    /* its runtime looks up return addresses */
  ARCTRACE_PATCH_UNREADABLE = 34, /* the file could not be analysed */
  ARCTRACE_PATCH_THREADS = 35,    /* there were other threads already */
  ARCTRACE_PATCH_CONFINED = 36,   /* under a seccomp filter */
  ARCTRACE_PATCH_HOOKS = 37,      /* its functions have compiled-in hooks */
  ARCTRACE_PATCH_NO_COMMAND = 38, /* the arctrace command could not be run */
  ARCTRACE_PATCH_NOT_WRITTEN = 39 /* its code could not be changed */
};

#endif /* ARCTRACE_FORMAT_RECORDS_H */
