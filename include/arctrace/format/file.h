/* arctrace/format/file.h - the trace file, and the collector's own records in it.
 *
 * A trace file is the session header's 4096 bytes with magic ARCTRACE_FILE_MAGIC, and
 * then chunks:
 *
 *   BLOCK    the image of a block: its header and records, without the 0xff after them
 *   RECORDS  the collector's own records, full form, one after another
 *   WRITERS  which writers the shared blocks before it are of; after the last record
 *   INDEX    what the chunks before it are; after WRITERS
 *   SYMBOLS  names of functions whose addresses are in the file; after all others
 *
 * A file that does not end with a SESSION record "finished" was cut off. It is valid up
 * to its last whole chunk.
 */
#ifndef ARCTRACE_FORMAT_FILE_H
#define ARCTRACE_FORMAT_FILE_H

#include <arctrace/format/records.h>

#define ARCTRACE_FILE_MAGIC 0x454C494654435241ull /* "ARCTFILE" */
#define ARCTRACE_CHUNK_MAGIC 0x4B4E4843u          /* "CHNK" */

enum arctrace_chunk_kind {
  ARCTRACE_CHUNK_BLOCK = 1,
  ARCTRACE_CHUNK_RECORDS = 2,
  ARCTRACE_CHUNK_SYMBOLS = 3,
  ARCTRACE_CHUNK_INDEX = 4,
  ARCTRACE_CHUNK_WRITERS = 5
};

/* arctrace_chunk_header.flags: the reason if records of the block are in progress. */
#define ARCTRACE_CHUNK_OWNER_DIED 1u /* a writer of the block died */
#define ARCTRACE_CHUNK_LIVE_COPY 2u  /* copied while its writers were alive */

struct arctrace_chunk_header {
  uint32_t magic;
  uint16_t kind;     /* enum arctrace_chunk_kind */
  uint16_t flags;    /* ARCTRACE_CHUNK_* */
  uint32_t size;     /* payload bytes after this header, a multiple of 4 */
  uint32_t index;    /* BLOCK: the block's index in the buffer */
  uint32_t sequence; /* counts chunks from 0 */
  uint32_t checksum; /* CRC-32C of this header, with 0 here, and the payload; or 0 if the
                        file has no checksums (ARCTRACE_FEATURE_CHECKSUMS) */
  uint64_t ticks;    /* when the chunk was written */
};
ARCTRACE_ASSERT_OFFSET(arctrace_chunk_header, size, 8);
ARCTRACE_ASSERT_OFFSET(arctrace_chunk_header, sequence, 16);
ARCTRACE_ASSERT_OFFSET(arctrace_chunk_header, checksum, 20);
ARCTRACE_ASSERT_SIZE(arctrace_chunk_header, 32);

/* ---- Symbols --------------------------------------------------------------------- */

/* The payload of SYMBOLS begins with this. Modules follow, up to its end. */
struct arctrace_symbols {
  uint32_t flags; /* ARCTRACE_SYMBOLS_* */
  uint32_t reserved;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_symbols, 8);

#define ARCTRACE_SYMBOLS_PARTIAL 1u /* not all addresses of the file were looked up */
#define ARCTRACE_SYMBOLS_LINES 2u   /* the lines were looked up, too */

/* Then bytes(build_id_size), bytes(path_size), the functions and the exports. */
struct arctrace_symbols_module {
  uint32_t functions, exports; /* how many follow */
  uint32_t build_id_size, path_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_symbols_module, 16);

/* Then bytes(name_size), the linker's name, and bytes(file_size), the source file. */
struct arctrace_symbols_function {
  uint64_t address, start; /* of the file: run-time address - bias */
  uint32_t line;           /* in the source file; 0: not known */
  uint32_t name_size, file_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_symbols_function, line, 16);
ARCTRACE_ASSERT_PART(arctrace_symbols_function, 28);

/* Then bytes(name_size): a library function that the module offers to others. */
struct arctrace_symbols_export {
  uint32_t name_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_symbols_export, 4);

/* ---- Index ------------------------------------------------------------------------- */

/* The payload of INDEX has one of these for each chunk before it, in their order, so that
 * the first one describes the chunk at ARCTRACE_HEADER_SIZE. arctrace_session_header says
 * where the INDEX is. */
struct arctrace_index_entry {
  uint32_t size;        /* of the payload */
  uint16_t kind, flags; /* as in the chunk's header, and so are the next two */
  uint64_t ticks;       /* none of its records is later */
  uint32_t index;       /* from here on 0, except of BLOCK */
  uint16_t facts;       /* ARCTRACE_FACT_*, of an exclusive block */
  uint8_t form;         /* from here on as in the block's header */
  uint8_t block_class;
  uint32_t writer, process, pid, tid;
  uint64_t serial, handout, base_ticks;
};
ARCTRACE_ASSERT_OFFSET(arctrace_index_entry, facts, 20);
ARCTRACE_ASSERT_OFFSET(arctrace_index_entry, writer, 24);
ARCTRACE_ASSERT_OFFSET(arctrace_index_entry, serial, 40);
ARCTRACE_ASSERT_SIZE(arctrace_index_entry, 64);

#define ARCTRACE_INDEX_ENTRIES_MAX (1u << 20)

/* The payload of WRITERS has one of these for each block of class data and form full,
 * except the kernel's, in the order of the file; each is followed by its writers. */
struct arctrace_block_writers {
  uint32_t chunk; /* the sequence of the block's chunk */
  uint32_t count;
  uint64_t last_ticks; /* of the committed records */
};
ARCTRACE_ASSERT_SIZE(arctrace_block_writers, 16);

/* Describes the block's committed records of one writer. Entries are sorted by writer. */
struct arctrace_block_writer {
  uint32_t writer;
  uint32_t facts;       /* ARCTRACE_FACT_NEEDED, _FRAMES, _WHOLE_STACK, _TELLS */
  uint64_t first_ticks; /* of the first one */
};
ARCTRACE_ASSERT_SIZE(arctrace_block_writer, 16);

#define ARCTRACE_WRITERS_BYTES_MAX (64u << 20)       /* of all chunks of a file */
#define ARCTRACE_WRITERS_CHUNK_BYTES_MAX (16u << 20) /* of one */

/* Facts about the committed records of an exclusive block that its header lacks, and that
 * readers of a range have to know. */
#define ARCTRACE_FACT_KNOWN 1u /* the other bits are valid */
#define ARCTRACE_FACT_NEEDED                              \
  2u /* what no later STACK tells: COROUTINE, EXIT_NAMED, \
        VFORK_BEGIN, VFORK_END, or a STACK with coroutine */
#define ARCTRACE_FACT_PARTIAL_STACK 4u /* a STACK that does not list all frames */
#define ARCTRACE_FACT_FRAMES 8u        /* a STACK of at least one frame */
/* For a writer of a shared block, for which _FRAMES is about the first record. */
#define ARCTRACE_FACT_WHOLE_STACK                                                        \
  16u                           /* the first record, but for LOST, is a STACK that lists \
                                   all frames */
#define ARCTRACE_FACT_TELLS 32u /* a record other than STACK and LOST */

/* ---- The collector's records ---------------------------------------------------- */

/* Then bytes(host_size), bytes(kernel_size), the kernel's release, and
 * bytes(arguments_size), the recorder's command line as in PROCESS. */
struct arctrace_system_body {
  uint32_t byte_order, page_size, cpus;
  uint32_t host_size, kernel_size, arguments_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_system_body, 24);

struct arctrace_clock_sync_body {
  uint64_t ticks, monotonic_ns, realtime_ns; /* one time on three clocks */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_clock_sync_body, 24);

/* A writer ended; the head's ticks are the time at which the collector saw its end. */
struct arctrace_writer_end_body {
  uint32_t writer;
  uint32_t how; /* enum arctrace_writer_end */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_writer_end_body, 8);

enum arctrace_writer_end { ARCTRACE_WRITER_DIED = 1 };

/* Precedes WRITER_END; the head's ticks are the time at which the collector last saw that
 * all dead writers of the session had their WRITER_END, so this one was alive. */
struct arctrace_alive_body {
  uint32_t writer;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_alive_body, 4);

struct arctrace_session_body {
  uint32_t what; /* enum arctrace_session_event */
  uint32_t detail;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_session_body, 8);

enum arctrace_session_event {
  ARCTRACE_SESSION_STARTED = 1,   /* detail: ARCTRACE_SESSION_RESUMED or 0 */
  ARCTRACE_SESSION_FINISHED = 2,  /* last record of a whole file */
  ARCTRACE_SESSION_DISK_FULL = 3, /* detail: errno */
  /* the copying of the buffer into this file; detail 0 */
  ARCTRACE_SESSION_DUMP_BEGIN = 4,
  ARCTRACE_SESSION_DUMP_END = 5
};
#define ARCTRACE_SESSION_RESUMED 1u   /* the session had collectors before */
#define ARCTRACE_SESSION_ELSEWHERE 2u /* so that definitions may be in another file */

struct arctrace_child_status_body {
  uint32_t child_pid;
  int32_t status; /* of the recorded command, as from wait() */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_child_status_body, 8);

/* Counts of user records so far: of the head's writer, with lost[] all 0, or of the whole
 * session. */
struct arctrace_totals_body {
  uint64_t written, lost[ARCTRACE_LOST_CAUSES];
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_totals_body, 72);

/* Follows a writer's totals, and says whose they are, as its slot has it. So writers
 * whose definitions never found space have a process too. */
struct arctrace_totals_owner {
  uint32_t process, pid, tid, reserved;
  uint64_t start_ticks;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_totals_owner, 24);

/* Follows the session's totals: events, instants and counters that the record filter left
 * out by their names, levels or fields. */
struct arctrace_totals_filtered {
  uint64_t filtered_out;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_totals_filtered, 8);

/* How many identities the session has given, also to processes and threads that have no
 * definitions. */
struct arctrace_counts_body {
  uint32_t processes, threads;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_counts_body, 8);

/* What has been written into the files of a split recording so far. From it a reader
 * knows how much was in files that it does not have, whoever removed them. All counts are
 * of one collector's files. */
struct arctrace_files_body {
  uint32_t what;        /* enum arctrace_files_event */
  uint32_t number;      /* of this file, from 1 */
  uint64_t begin_ticks; /* when the collector began: whose counts these are */
  uint64_t records;     /* user records */
  uint64_t kernel;      /* the kernel's records */
  uint64_t lost[ARCTRACE_LOST_CAUSES]; /* what LOST records count */
  /* The oldest files, which the collector has removed. */
  uint32_t removed_files;
  uint32_t flags; /* ARCTRACE_FILES_RESUMED */
  uint64_t removed_records, removed_kernel;
  uint64_t removed_ticks; /* when the oldest remaining file begins; 0: none removed */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_files_body, removed_files, 96);
ARCTRACE_ASSERT_PART(arctrace_files_body, 128);

enum arctrace_files_event {
  ARCTRACE_FILES_BEGIN = 1,  /* the file begins: all is in the files before it */
  ARCTRACE_FILES_END = 2,    /* it ends, and another one follows */
  ARCTRACE_FILES_REMOVED = 3 /* files were removed meanwhile, because the disk was full */
};
#define ARCTRACE_FILES_RESUMED 1u /* the session had collectors before, with files */

/* Code that the process generated; then bytes(name_size). */
struct arctrace_code_body {
  uint32_t process, name_size;
  uint64_t start, size;
  uint64_t since_monotonic_ns; /* 0: since the process's start */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_code_body, since_monotonic_ns, 24);
ARCTRACE_ASSERT_PART(arctrace_code_body, 32);

/* Then bytes(path_size), of the file that named the process's code. */
struct arctrace_code_file_body {
  uint32_t process;
  uint32_t kind;     /* enum arctrace_code_file_kind */
  uint64_t names;    /* CODE records from it */
  uint64_t left_out; /* its entries without one: malformed, or no space for them */
  uint32_t flags;    /* ARCTRACE_CODE_FILE_CUT */
  uint32_t path_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_OFFSET(arctrace_code_file_body, flags, 24);
ARCTRACE_ASSERT_PART(arctrace_code_file_body, 32);

enum arctrace_code_file_kind {
  ARCTRACE_CODE_PERF_MAP = 1, /* /tmp/perf-PID.map: lines of address, size and name */
  ARCTRACE_CODE_JITDUMP = 2   /* jit-PID.dump, with times */
};
#define ARCTRACE_CODE_FILE_CUT 1u /* not read to its end: too large */

/* What is recorded from the head's ticks on; then bytes(filter_size), the live filter and
 * after it the record filter. "?" stands for a filter that had changed again. */
struct arctrace_enabled_body {
  uint32_t gate; /* enum arctrace_gate_bit */
  uint32_t filter_size;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_enabled_body, 8);

/* A process executes a program, at the head's ticks or up to `within_ticks` later. */
struct arctrace_exec_body {
  uint32_t pid; /* as the process itself sees it */
  uint32_t reserved;
  uint64_t within_ticks;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_exec_body, 16);

/* How the clock word moved while it was recorded. */
struct arctrace_clock_word_body {
  uint64_t stores;
  uint64_t mean_age_ns; /* by how much the time of a record is too early on average */
  uint64_t longest_ns;  /* the longest time between two stores */
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_clock_word_body, 24);

/* What recording costs on the recorded machine, as its recorder measured it; then count *
 * arctrace_hook_cost, at most one of each kind. */
struct arctrace_hook_costs_body {
  uint32_t count;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_hook_costs_body, 4);

/* Picoseconds, the least of several measurements. A call's time includes inside_ps of the
 * time that recording it takes, and its caller's time includes outside_ps. */
struct arctrace_hook_cost {
  uint32_t kind; /* enum arctrace_hook_kind */
  uint32_t inside_ps, outside_ps;
} ARCTRACE_RECORD_PART;
ARCTRACE_ASSERT_PART(arctrace_hook_cost, 12);

enum arctrace_hook_kind {
  ARCTRACE_HOOK_LIBRARY_CALL = 1,
  ARCTRACE_HOOK_FUNCTION = 2,  /* with a compiled-in hook of no other kind */
  ARCTRACE_HOOK_PATCHED = 3,   /* of a program without such hooks */
  ARCTRACE_HOOK_API = 4,       /* with a name that the program gave it */
  ARCTRACE_HOOK_ARGUMENTS = 5, /* what an ARGUMENTS, or a RESULT, adds to a call */
  ARCTRACE_HOOK_XRAY = 6,      /* of XRay, at its exits too */
  ARCTRACE_HOOK_RETURN = 7,    /* of __fentry__, at its exits of __return__ */
  /* No call: of a process with a buffer of the kernel's, for each MiB of the buffer, to
   * map it (inside_ps), and to take it down after the end (outside_ps) */
  ARCTRACE_HOOK_PROCESS = 8,
  ARCTRACE_HOOK_KINDS = 9
};

#endif /* ARCTRACE_FORMAT_FILE_H */
