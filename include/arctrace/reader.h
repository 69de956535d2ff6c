/* arctrace/reader.h - read traces from C.
 *
 * Link with -larctrace-reader (pkg-config arctrace-reader). arctrace/reader.hpp has the
 * same for C++. The command `arctrace` reads by the same code, so its numbers are these.
 *
 * A trace is opened (arctrace_reader_open), and read by cursors: of calls
 * (arctrace_reader_calls_open), of records (arctrace_reader_records_open), or as sums
 * (arctrace_reader_profile_make). Reading keeps batches of calls or records; its memory
 * is bounded by the blocks, definitions and distinct stacks of the trace, not by its
 * length.
 *
 * Errors. Functions that can fail return a negative enum arctrace_reader_status, and
 * arctrace_reader_error() has a line of text about it. No function ends the process, or
 * prints. A breach of the format inside a file that could be opened is a finding (struct
 * arctrace_reader_finding), not an error: sound parts are read.
 *
 * Growth. Structs that the library hands out begin with `size`, their number of bytes,
 * and a later version only adds members at their end. Structs that the caller fills in
 * begin with `size`, too, which the caller sets to sizeof; members that a later version
 * adds count as not set.
 *
 * Text is zero-terminated, never NULL, and consists of the bytes that programs wrote: it
 * need not be UTF-8 and may have control characters. A zero byte ends it.
 *
 * Times are ns since the session's start, by its clock; INT64_MIN and INT64_MAX stand for
 * times before and after all that is known. Durations are ns.
 *
 * Threads. A trace and all that is made of it may be used by one thread at a time, and
 * in one process: not in a child of fork. A cursor reads ahead in a thread of its own,
 * in which all signals are blocked, until it is closed. A trace has one cursor, or one
 * profile that is being made, at a time; open it twice to read it twice at once.
 * Different traces are independent of each other.
 */
#ifndef ARCTRACE_READER_H
#define ARCTRACE_READER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARCTRACE_READER_API __attribute__((visibility("default")))

/* Stands for a thread, process, function or path that does not exist or is not known. */
#define ARCTRACE_READER_NONE UINT32_MAX

enum arctrace_reader_status {
  ARCTRACE_READER_OK = 0,
  ARCTRACE_READER_NOT_FOUND = -1, /* no such file */
  ARCTRACE_READER_DENIED = -2,    /* no right to read it */
  ARCTRACE_READER_NO_TRACE = -3,  /* not a trace of this version, or not of one session */
  ARCTRACE_READER_INPUT = -4,     /* it cannot be read (any more) */
  ARCTRACE_READER_NO_MEMORY = -5, /* no memory, or no thread */
  ARCTRACE_READER_ARGUMENT = -6,  /* an argument that makes no sense */
  ARCTRACE_READER_BUSY = -7,      /* the trace has a cursor already */
  ARCTRACE_READER_INTERNAL = -8   /* an error of the library's */
};

/* One line about the last function of this header that failed in the calling thread; ""
 * if none did. Valid until the next one fails. */
ARCTRACE_READER_API const char* arctrace_reader_error(void);

/* The library's version, "0.1.0". */
ARCTRACE_READER_API const char* arctrace_reader_version(void);

/* ---- Traces --------------------------------------------------------------- */

typedef struct arctrace_reader_trace arctrace_reader_trace;

enum arctrace_reader_open_flag {
  /* Compares all bytes with the checksums of the file; each difference is a finding.
   * Costs another reading. */
  ARCTRACE_READER_CHECKSUMS = 1,
  /* Debug files that are not on this machine are fetched from the servers of
   * DEBUGINFOD_URLS. */
  ARCTRACE_READER_DOWNLOAD = 2
};

/* Opens a trace file, or a session's buffer (/dev/shm/arctrace...; what it contains now).
 * The `count` files of one recording (record --size-limit) are read as one, in whichever
 * order they are given. A file that was cut off, because its recorder was killed, is read
 * up to there: `finished` of its facts is 0; `arctrace recover --merge` writes a file
 * that has what remained in the buffer, too. A pipe, or "-" for standard input, is copied
 * into memory first.
 *
 * `flags`: enum arctrace_reader_open_flag. On success *trace is to be closed. Takes time
 * for each block, and reads all definitions. */
ARCTRACE_READER_API int arctrace_reader_open(const char* const* paths, size_t count,
                                             uint32_t flags,
                                             arctrace_reader_trace** trace);

/* Frees the trace and all that it handed out. REQUIRES: its cursors and profiles are
 * closed. NULL: nothing happens. */
ARCTRACE_READER_API void arctrace_reader_close(arctrace_reader_trace* trace);

/* Facts about the whole trace. The members from `records` on are sums, which are 0 until
 * arctrace_reader_scan(), a profile, or a cursor has read all of the trace; `is_summed`
 * says so. records + lost + torn + unfinished + overwritten is what programs attempted to
 * write. */
struct arctrace_reader_facts {
  uint32_t size;
  uint16_t version_major, version_minor; /* of the format */
  uint32_t mode, scope, clock; /* enum arctrace_mode, _scope, _clock of format.h */
  uint8_t is_buffer;           /* a session's buffer, not a trace file */
  uint8_t finished;            /* 0: cut off, or a buffer */
  uint8_t has_kernel;          /* the kernel's records say when threads had a CPU */
  uint8_t is_summed;
  uint8_t session_id[16];
  const char* path;   /* of the first file */
  const char* host;   /* "": not known */
  const char* kernel; /* its version; "": not known */
  uint64_t size_bytes;
  uint64_t ticks_per_second;
  int64_t start_realtime_ns; /* since 1970, when the session started */
  int64_t child_status;      /* wait status of the recorded command; -1: not known */
  uint64_t records;
  uint64_t lost;
  const uint64_t* lost_by_cause; /* their sum is `lost` */
  size_t lost_causes;            /* how many; arctrace_reader_lost_cause() names them */
  uint64_t overwritten;          /* replaced by newer ones, in overwrite mode */
  uint64_t torn;                 /* not completed by writers that died */
  uint64_t unfinished;           /* not completed yet */
  uint64_t invalid;              /* broke a rule */
  uint64_t findings;             /* all, also those that are not stored */
  int64_t first_ns, last_ns;     /* of `records` and of the kernel's */
  int64_t duration_ns;           /* last_ns - first_ns */
  uint64_t elsewhere;            /* in files of the recording that are not read */
  /* For a recording that was split into files (record --size-limit). Not sums. */
  uint32_t first_file,
      last_file;          /* the numbers of those that are read, from 1; 0: none */
  uint64_t removed_files; /* how many of the oldest the recorder has removed */
  uint8_t goes_on;        /* another file follows the last one */
  uint8_t reserved[7];
  /* A sum: events, instants and counters that the recording's filter left out by their
   * names, levels or fields. */
  uint64_t filtered_out;
};

/* The facts are valid until the trace is closed; its sums change when it was read. */
ARCTRACE_READER_API const struct arctrace_reader_facts* arctrace_reader_get_facts(
    const arctrace_reader_trace* trace);

/* Why records of lost_by_cause[cause] were lost: "full". "" if there is no such cause. */
ARCTRACE_READER_API const char* arctrace_reader_lost_cause(size_t cause);

/* Reads the whole trace for its sums and findings. */
ARCTRACE_READER_API int arctrace_reader_scan(arctrace_reader_trace* trace);

/* A breach of a rule of SPEC.md. */
struct arctrace_reader_finding {
  uint32_t size;
  uint32_t offset;     /* in bytes, in that chunk */
  uint64_t chunk;      /* its number in the file, or of the block in a buffer */
  const char* rule;    /* as SPEC.md cites it */
  const char* message; /* one line */
};

/* The finding that is `number` in the order in which they were found, from 0. NULL: there
 * are not so many, or it is beyond the 1000 that are stored. Findings about records come
 * when these are read. */
ARCTRACE_READER_API const struct arctrace_reader_finding* arctrace_reader_get_finding(
    const arctrace_reader_trace* trace, size_t number);

struct arctrace_reader_process {
  uint32_t size;
  uint32_t pid, ppid; /* as the process itself sees them */
  uint32_t uid;       /*                                 */
  uint32_t parent;    /* a process' number, or ARCTRACE_READER_NONE */
  uint32_t origin;    /* enum arctrace_process_origin of format.h */
  uint32_t end_how;   /* enum arctrace_process_end; 0: no end was recorded */
  int32_t end_status; /* exit status or signal; -1: not known */
  int64_t start_ns, end_ns;
  const char* program; /* path; "": not known */
  const char* const* arguments;
  size_t argument_count;
};

/* Process `number`, from 0; NULL: there are not so many. */
ARCTRACE_READER_API const struct arctrace_reader_process* arctrace_reader_get_process(
    const arctrace_reader_trace* trace, size_t number);

struct arctrace_reader_thread {
  uint32_t size;
  uint32_t tid;
  uint32_t process;  /* a process' number, or ARCTRACE_READER_NONE */
  uint32_t pid;      /* 0: not known */
  uint8_t of_kernel; /* only the kernel's records name it; or it is no thread, but stands
                        for the interrupts of the CPU `tid` */
  uint8_t reserved[7];
  int64_t start_ns, end_ns; /* end_ns: when the recorder saw that it was gone */
  const char* name;         /* its last one, else its program's */
};

/* Thread `number`, from 0; NULL: there are not so many. Calls and records have these
 * numbers. */
ARCTRACE_READER_API const struct arctrace_reader_thread* arctrace_reader_get_thread(
    const arctrace_reader_trace* trace, size_t number);

/* ---- What is read ---------------------------------------------------------- */

/* The limits of calls and profiles. Set all members by ARCTRACE_READER_FILTER. */
struct arctrace_reader_filter {
  size_t size;
  /* Only time in [from_ns, until_ns) counts. Calls that overlap it are shown, cut. */
  int64_t from_ns, until_ns;
  /* Ended calls that were shorter are counted as time of their callers. */
  uint64_t min_duration_ns;
  uint32_t max_depth; /* of calls within one another */
  uint32_t reserved;
  /* Patterns of functions, as in `report -F` and `-N`: shown are functions that match
   * one of `only` and what they call, except those that match one of `except` and what
   * they call. */
  const char* const* only;
  size_t only_count;
  const char* const* except;
  size_t except_count;
};
#define ARCTRACE_READER_FILTER                                                           \
  {                                                                                      \
    sizeof(struct arctrace_reader_filter), INT64_MIN, INT64_MAX, 0, UINT32_MAX, 0, 0, 0, \
        0, 0                                                                             \
  }

struct arctrace_reader_function {
  uint32_t size;
  uint32_t reserved;
  const char* name; /* demangled; "module+0x12", "0x1234" or "name#3" if there is none */
  const char* module; /* path; "" if it is in none */
};

/* ---- Calls ----------------------------------------------------------------- */

typedef struct arctrace_reader_calls arctrace_reader_calls;

/* Bits for what is unusual about a call. */
enum arctrace_reader_call_flag {
  ARCTRACE_READER_UNWOUND = 1,    /* abandoned by longjmp or an exception */
  ARCTRACE_READER_EXIT_LOST = 2,  /* gone, no exit was recorded */
  ARCTRACE_READER_ENTRY_LOST = 4, /* no entry was recorded: starts where it was seen */
  ARCTRACE_READER_ENTERED_BEFORE = 8, /* began before tracing did */
  ARCTRACE_READER_INHERITED = 16,     /* on the stack that fork copied */
  ARCTRACE_READER_NOT_ENDED = 32,     /* still open when the trace ended */
  ARCTRACE_READER_RESUMED = 64,       /* of a vfork parent, after its child */
  ARCTRACE_READER_BEGAN_BEFORE = 128, /* started before the filter's range */
  ARCTRACE_READER_ENDED_AFTER = 256,  /* stopped after it */
  ARCTRACE_READER_GUESSED = 512, /* inherited, if its parent forked where it seems to */
  /* open before and after a time without records: it may be several calls */
  ARCTRACE_READER_ACROSS_GAP = 1024,
  /* Frames with one of these are shown but are no calls: each is the rest of a call that
   * another frame stands for. Skip them when you count calls. */
  ARCTRACE_READER_COUNTED_ELSEWHERE = ARCTRACE_READER_INHERITED | ARCTRACE_READER_RESUMED
};

struct arctrace_reader_call {
  uint32_t size;
  uint32_t flags;    /* enum arctrace_reader_call_flag */
  uint32_t thread;   /* arctrace_reader_get_thread() */
  uint32_t function; /* arctrace_reader_calls_function() */
  uint32_t path;  /* arctrace_reader_calls_path(): the functions around it and itself */
  uint32_t depth; /* shown calls on its stack up to this one: 1 is the outermost */
  uint32_t coroutine; /* on whose stack it is; 0: the thread's own */
  uint32_t
      count; /* frames that it stands for: more than 1 if only their number is known */
  int64_t start_ns;     /* cut at the filter's range */
  int64_t end_ns;       /* the same; of a call that did not end, the thread's end */
  uint64_t duration_ns; /* end_ns - start_ns, without time of other coroutines */
  uint64_t self_ns;     /* of it, in the function itself */
  uint64_t off_cpu_ns;  /* of duration_ns, not on a CPU; 0 without the kernel's records */
  const char* args;     /* "(3, \"name\")"; "": none were recorded */
  const char* retval;   /* "-1 ENOENT"; "": none was recorded */
  uint64_t not_known_ns; /* of duration_ns, on a CPU or not: the kernel's records that
                            would tell are missing. The rest was on a CPU */
};

enum arctrace_reader_calls_flag {
  /* args and retval of calls are made; without it they are "". */
  ARCTRACE_READER_VALUES = 1
};

/* Begins to read the calls of the trace. `filter` may be NULL: all. `flags`: enum
 * arctrace_reader_calls_flag. On success *calls is to be closed. */
ARCTRACE_READER_API int arctrace_reader_calls_open(
    arctrace_reader_trace* trace, const struct arctrace_reader_filter* filter,
    uint32_t flags, arctrace_reader_calls** calls);

/* Sets *call to the next call, or to NULL after the last one. Calls that ended come in
 * the order of their ends; then those that did not, in the order of their starts, the
 * outer before the inner. *call and its texts are valid until the next function that
 * takes `calls`. */
ARCTRACE_READER_API int arctrace_reader_calls_next(
    arctrace_reader_calls* calls, const struct arctrace_reader_call** call);

/* Where to put columns of calls: arrays of `capacity` elements, NULL where a column is
 * not wanted. */
struct arctrace_reader_columns {
  size_t size;
  size_t capacity;
  int64_t* start_ns;
  int64_t* end_ns;
  uint64_t* duration_ns;
  uint64_t* self_ns;
  uint64_t* off_cpu_ns;
  uint32_t* function;
  uint32_t* thread;
  uint32_t* depth;
  uint32_t* path;
  uint32_t* flags;
  uint32_t* coroutine;
  uint64_t* not_known_ns;
};

/* Puts the next calls, as many as there are up to `capacity`, into columns, and sets
 * *count to their number: 0 after the last one. Goes on where the last function that took
 * `calls` stopped. */
ARCTRACE_READER_API int arctrace_reader_calls_columns(
    arctrace_reader_calls* calls, const struct arctrace_reader_columns* columns,
    size_t* count);

/* How many functions, and paths, the calls have that were handed out; numbers are below
 * that, and keep their meaning until `calls` is closed. */
ARCTRACE_READER_API size_t
arctrace_reader_calls_functions(const arctrace_reader_calls* calls);
ARCTRACE_READER_API size_t
arctrace_reader_calls_paths(const arctrace_reader_calls* calls);

/* The function with this number. NULL: the calls that were handed out have no such
 * function. Valid until `calls` is closed. */
ARCTRACE_READER_API const struct arctrace_reader_function* arctrace_reader_calls_function(
    const arctrace_reader_calls* calls, uint32_t function);

/* The path around `path`, ARCTRACE_READER_NONE if there is none, and the function at its
 * end. Paths are the same in all threads. ARCTRACE_READER_ARGUMENT: no such path. */
ARCTRACE_READER_API int arctrace_reader_calls_path(const arctrace_reader_calls* calls,
                                                   uint32_t path, uint32_t* parent,
                                                   uint32_t* function);

/* Ends the reading, wherever it is. NULL: nothing happens. */
ARCTRACE_READER_API void arctrace_reader_calls_close(arctrace_reader_calls* calls);

/* ---- Records --------------------------------------------------------------- */

typedef struct arctrace_reader_records arctrace_reader_records;

struct arctrace_reader_record {
  uint32_t size;
  uint32_t
      thread; /* arctrace_reader_get_thread(), or ARCTRACE_READER_NONE: the recorder's */
  uint32_t type;   /* enum arctrace_record_type of format.h */
  uint32_t offset; /* in bytes, in that chunk */
  int64_t time_ns;
  uint64_t ticks;   /* by the trace's clock */
  uint64_t chunk;   /* its number in the file, or of the block in a buffer */
  const void* body; /* as in the file, body_size bytes; any alignment */
  size_t body_size;
  const char* type_name; /* "ENTER" */
  const char* text; /* the content as a line of `dump`; "" unless TEXT is asked for */
  const char* json; /* the fields as an object of JSON; "" unless FIELDS is */
};

enum arctrace_reader_records_flag {
  ARCTRACE_READER_TEXT = 1,
  ARCTRACE_READER_FIELDS = 2
};

/* Begins to read the records with times in [from_ns, until_ns), in order of time; of one
 * thread, in the order in which it wrote them. `flags`: enum
 * arctrace_reader_records_flag; either makes each record some ten times as dear. On
 * success *records is to be closed. */
ARCTRACE_READER_API int arctrace_reader_records_open(arctrace_reader_trace* trace,
                                                     int64_t from_ns, int64_t until_ns,
                                                     uint32_t flags,
                                                     arctrace_reader_records** records);

/* Sets *record to the next record, or to NULL after the last one. It is valid until the
 * next function that takes `records`. */
ARCTRACE_READER_API int arctrace_reader_records_next(
    arctrace_reader_records* records, const struct arctrace_reader_record** record);

/* Ends the reading, wherever it is. NULL: nothing happens. */
ARCTRACE_READER_API void arctrace_reader_records_close(arctrace_reader_records* records);

/* ---- Sums: functions and call trees ------------------------------------------ */

typedef struct arctrace_reader_profile arctrace_reader_profile;

enum arctrace_reader_grouping {
  ARCTRACE_READER_BY_THREAD = 0,
  ARCTRACE_READER_BY_PROCESS = 1,
  ARCTRACE_READER_ALL = 2 /* one group */
};

/* Reads the trace and sums its calls up, as `arctrace report` does. `filter` may be NULL:
 * all. `grouping`: enum arctrace_reader_grouping. On success *profile is to be freed. */
ARCTRACE_READER_API int arctrace_reader_profile_make(
    arctrace_reader_trace* trace, const struct arctrace_reader_filter* filter,
    uint32_t grouping, arctrace_reader_profile** profile);

struct arctrace_reader_group {
  uint32_t size;
  uint32_t number;       /* of the thread or process; 0 for all */
  uint32_t pid, tid;     /* 0: not known, or none */
  uint64_t threads;      /* that are merged in it */
  uint64_t total_ns;     /* of all its threads, from begin to end */
  uint64_t self_ns;      /* of it, in no function */
  size_t function_count; /* arctrace_reader_profile_function() */
  size_t node_count;     /* arctrace_reader_profile_node() */
  const char* name;
};

/* Group `number`, from 0; NULL: there are not so many. Valid, as all of a profile, until
 * it is freed. */
ARCTRACE_READER_API const struct arctrace_reader_group* arctrace_reader_profile_group(
    const arctrace_reader_profile* profile, size_t number);

/* Stands for a duration that is not known, because too few calls ended. */
#define ARCTRACE_READER_UNKNOWN UINT64_MAX

/* The calls of a function in a group. */
struct arctrace_reader_function_sums {
  uint32_t size;
  uint32_t recursion; /* how many of its calls were open in one another at most */
  const char* name;
  const char* module;
  uint64_t calls;
  uint64_t self_ns;  /* in the function itself */
  uint64_t total_ns; /* and in all it called; recursion counts once */
  /* Of calls whose begin and end were seen; quantiles within 1.6 %. */
  uint64_t avg_ns, min_ns, max_ns, p50_ns, p90_ns, p99_ns, p999_ns;
  uint64_t cpu_ns, off_cpu_ns; /* parts of total_ns; 0 without the kernel's records */
  uint64_t not_known_ns;       /* the third part: records of the kernel's are missing */
  /* Calls that were left out on purpose, because the function was switched off or by a
   * filter: all from until_ns on (INT64_MAX: none), and an unknown number in
   * [partly_from_ns, partly_to_ns), INT64_MIN being the beginning and INT64_MAX the end
   * (partly_from_ns INT64_MAX: none). Their time counts for the callers. left_out_by says
   * what left them out; empty: all calls were recorded that were not lost. */
  int64_t until_ns, partly_from_ns, partly_to_ns;
  const char* left_out_by;
};

/* Row `row`, from 0, of a group: functions by falling total_ns. NULL: there are not so
 * many. */
ARCTRACE_READER_API const struct arctrace_reader_function_sums*
arctrace_reader_profile_function(const arctrace_reader_profile* profile, size_t group,
                                 size_t row);

/* A node of a group's call tree: the calls of a function on one path. */
struct arctrace_reader_node {
  uint32_t size;
  uint32_t level;  /* 0: the root, which is no function */
  uint32_t parent; /* a node's number, or ARCTRACE_READER_NONE */
  uint32_t reserved;
  const char* name;
  const char* module;
  uint64_t calls, self_ns, total_ns;
};

/* Node `node`, from 0, of a group: parents before children, these by falling total_ns.
 * NULL: there are not so many. */
ARCTRACE_READER_API const struct arctrace_reader_node* arctrace_reader_profile_node(
    const arctrace_reader_profile* profile, size_t group, size_t node);

/* What is missing from the sums, and from the trace's calls. */
struct arctrace_reader_missing {
  uint32_t size;
  uint32_t on_purpose; /* 1: a filter left calls out, or functions were switched off; 0:
                          records are missing */
  uint32_t pid, tid;   /* whose; 0: of several threads, or not known */
  uint32_t cpu;        /* of which CPU the kernel's records; or ARCTRACE_READER_NONE */
  uint32_t reserved;
  const char* reason; /* "lost: full", "before it was joined", "ctl -N mem_*" */
  /* INT64_MIN: from the beginning on, or not known; INT64_MAX: to the end. */
  int64_t from_ns, to_ns;
  uint64_t records; /* how many, or ARCTRACE_READER_UNKNOWN */
};

/* Number `number`, from 0; NULL: there are not so many. First come the times of which
 * records are missing, then what left out calls on purpose, whether the functions have
 * others (see left_out_by) or none. Of each kind there are 10,000 at most; one more after
 * these says by its reason how many were omitted. */
ARCTRACE_READER_API const struct arctrace_reader_missing* arctrace_reader_profile_missing(
    const arctrace_reader_profile* profile, size_t number);

/* Frees the profile. NULL: nothing happens. */
ARCTRACE_READER_API void arctrace_reader_profile_free(arctrace_reader_profile* profile);

#ifdef __cplusplus
}
#endif

#endif
