/* arctrace/arctrace.h - write trace records from C and C++.
 *
 * Link with -larctrace (pkg-config arctrace). Under `arctrace record` a program joins the
 * session when it is loaded and writes into the recorder's buffer. Without a session a
 * call that would write a record returns after ten to thirty instructions.
 *
 * Unless its comment says otherwise, a function here
 *   - may be called from any thread and from signal handlers, before main and after it,
 *     and in fork and vfork children;
 *   - does not change errno, call malloc, take a lock, wait or raise a signal;
 *   - makes no system call, except in a thread's first record, which takes a writer slot,
 *     and when a block is full and the collector has to be woken;
 *   - loses a record that it can't write, and counts it (arctrace_lost).
 * Texts are zero-terminated and must not be NULL. Costs are x86-64 instructions, the
 * clock read included, of a record that fits into the thread's own block
 * (record --scope=thread); tests hold the library to them.
 */
#ifndef ARCTRACE_ARCTRACE_H
#define ARCTRACE_ARCTRACE_H

#include <arctrace/format.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARCTRACE_API __attribute__((visibility("default")))

/* For functions that enter or leave frames on behalf of their callers. Compiled with
 * -finstrument-functions, such a function would have a frame of its own, and its exit
 * would end the frame that it has just entered. */
#define ARCTRACE_UNTRACED __attribute__((no_instrument_function))

/* ---- Session ------------------------------------------------------------- */

/* Joins the session whose buffer is the file or pinned BPF map `session`. NULL stands for
 * the path in the environment variable ARCTRACE_SESSION; if that is set, the session is
 * joined already when the library is loaded. A process joins one session at most; fork
 * children stay in it. Returns 0 or a negative errno:
 *   -ENOENT        no such file, or NULL and no ARCTRACE_SESSION
 *   -EACCES        the buffer is neither the user's own nor shared with a group of the
 *                  process, or the path is a symbolic link
 *   -EPROTO        not a buffer of this version, or its clock does not exist here
 *   -EALREADY      the process has joined a session, even if it has detached since, or
 *                  another thread is joining one
 *   -ENAMETOOLONG  the path has 4096 bytes or more
 *   -ENOMEM        no memory
 * or the error of a system call. Afterwards the process can try again, except after
 * -EALREADY. Makes some 40 system calls and takes the dynamic loader's lock; so it must
 * not be called from a signal handler. */
ARCTRACE_API int arctrace_attach(const char* session);

/* Stops recording in this process, and in children that it forks from now on, for good.
 * The calling thread's block is closed; the blocks of other threads are closed when these
 * end or recording ends. The buffer stays mapped, so that calls in progress in other
 * threads finish. After it, all functions that write records do nothing,
 * arctrace_reserve() returns NULL, and payloads that were reserved before can still be
 * committed. Definitions and thread names still reach the buffer, arctrace_snapshot()
 * still works and arctrace_lost() still counts. Without a session it does nothing. */
ARCTRACE_API void arctrace_detach(void);

/* Closes the calling thread's block, so that the collector can copy it now and not only
 * when it is full or the thread has ended. A recording is complete without it. Does
 * nothing if the thread has no open block, in the shared scope, or in a signal handler
 * that has interrupted another function of this header. */
ARCTRACE_API void arctrace_flush(void);

/* The word with the classes of records that are recorded at present, enum
 * arctrace_gate_bit. Other processes change it. Never NULL; without a session and after
 * arctrace_detach() the word is 0. */
extern ARCTRACE_API const volatile uint32_t* arctrace_gate;

/* Nonzero if one of the classes in `gate_bits` (enum arctrace_gate_bit) is recorded at
 * present, be it only of some threads or events. The functions below check that
 * themselves; use it to save the work of preparing their arguments. Costs two loads and a
 * branch. */
ARCTRACE_UNTRACED static inline int arctrace_enabled(uint32_t gate_bits) {
  return __builtin_expect((*arctrace_gate & gate_bits) != 0, 0) != 0;
}

/* ---- Definitions ----------------------------------------------------------
 *
 * Names and events are defined once and then used by their ids, which are valid in this
 * process and its fork children. They can be defined without a session, before
 * arctrace_attach() or after arctrace_detach(). Each definition allocates private memory,
 * which is never freed, and now and then makes a system call for it. */

/* Defines a name for frames, instants and counters. Frames are filtered by it (arctrace
 * record -F, -N; ctl); if a filter is a regular expression, libc's regexec() is called
 * here. The first 1024 bytes of `name` are copied. Returns its id, or 0 if there is no
 * memory. Equal names are not merged: each call returns a new id. */
ARCTRACE_API uint32_t arctrace_define_name(const char* name);

/* A field of an event's payload. */
struct arctrace_field {
  const char* name; /* the first 1024 bytes are copied */
  uint32_t type;    /* enum arctrace_field_type */
};

/* Defines an event whose payload is the fields in order, packed. `level`: 0 most
 * important to 7 finest; a session can be told to record events up to a level only
 * (arctrace record --level, ctl --level). The first 1024 bytes of `name` are copied.
 * Returns the event's id, or 0 if there is no memory, more than 64 fields, a level above
 * 7 or an unknown type. Each call returns a new id. */
ARCTRACE_API uint32_t arctrace_define_event(const char* name, uint32_t level,
                                            const struct arctrace_field* fields,
                                            size_t field_count);

/* ---- Call stack ---------------------------------------------------------- */

/* The key of a frame that is named by a name id. The key of a function's frame is the
 * function's address. */
ARCTRACE_UNTRACED static inline uint64_t arctrace_name_key(uint32_t name_id) {
  return ARCTRACE_FRAME_NAME_BIT | name_id;
}

/* Records that the calling thread enters a frame, and that it leaves one. Class
 * FUNCTIONS; at most 95 instructions for both. Every enter should be followed by an exit
 * with the same key on the same thread. Calls that do not match are repaired:
 *   - An exit of a frame that is not the innermost open one also leaves all frames inside
 *     it; those are recorded as unwound.
 *   - An exit whose key no open frame has leaves none. It is recorded by its key. If no
 *     frame is open, readers take it for a frame that was entered before recording began;
 *     otherwise they only count it. In a session in which functions were switched off and
 *     on again, it is recorded only if no frame is open.
 *   - A frame without an exit stays open until a frame around it is left. */
ARCTRACE_API void arctrace_enter(uint64_t frame_key);
ARCTRACE_API void arctrace_exit(uint64_t frame_key);

/* Does the same as arctrace_enter(), for hooks. `location` is an address in the stack
 * frame of the entered function, such as its CFA, or 0 if it is not known. Open frames at
 * a lower address of the same stack must have been abandoned by longjmp or an exception,
 * and are first recorded as unwound. */
ARCTRACE_API void arctrace_enter_at(uint64_t frame_key, uintptr_t location);

/* ---- Events -------------------------------------------------------------- */

/* Records an event with a payload of `size` bytes, which is copied and must be laid out
 * as the event's definition says. Class EVENTS; at most 46 instructions for 8 bytes. A
 * payload larger than ARCTRACE_PAYLOAD_MAX, or than a block can hold, is lost as TOO_BIG.
 */
ARCTRACE_API void arctrace_write(uint32_t event, const void* payload, size_t size);
#define ARCTRACE_PAYLOAD_MAX (ARCTRACE_RECORD_LENGTH_MAX - ARCTRACE_FULL_HEAD_SIZE - 4u)

/* Reserves an event's payload of `size` bytes in the buffer itself, to be filled in
 * place. Returns its address, 4-byte aligned, or NULL if the event is not recorded or the
 * record is lost. A thread can have ARCTRACE_HELD_COUNT payloads reserved at a time, all
 * but one of them by signal handlers that have interrupted other functions of this
 * header; more are lost as NESTED. The record is in progress until the thread that
 * reserved it calls arctrace_commit(), which publishes it, or arctrace_discard(), which
 * turns it into padding. A payload that is neither committed nor discarded keeps its
 * block from being freed until the thread ends; readers then see an unfinished record. At
 * most 68 instructions for both calls.
 *
 * arctrace_commit() and arctrace_discard() ignore NULL, a payload that was committed or
 * discarded already, and one of another thread; a fork child's calls with its parent's
 * payloads are ignored, too. */
ARCTRACE_API void* arctrace_reserve(uint32_t event, size_t size);
ARCTRACE_API void arctrace_commit(void* payload);
ARCTRACE_API void arctrace_discard(void* payload);

/* Records a point in time with a name, and the value of a counter with a name, both by
 * the name's id. Class MARKS; at most 24 and 26 instructions. */
ARCTRACE_API void arctrace_instant(uint32_t name_id);
ARCTRACE_API void arctrace_counter(uint32_t name_id, int64_t value);

/* Records a line of text, formatted as by printf and cut to 1023 bytes. Class MARKS. Uses
 * 1 KiB of stack and libc's vsnprintf: in signal handlers keep to formats for which that
 * needs neither the locale nor memory (%d %u %x %s %c %p). If vsnprintf fails, nothing is
 * recorded or counted. */
ARCTRACE_API void arctrace_text(const char* format, ...)
    __attribute__((format(printf, 1, 2)));

/* Records a mark on the time line of the whole session, cut to 1024 bytes. Class MARKS.
 */
ARCTRACE_API void arctrace_mark(const char* text);

/* Names the calling thread in reports, cut to 63 bytes. NULL or "" stands for the name
 * that the kernel has (pthread_setname_np). Independent of the gate; needs a session.
 * Ignored in a signal handler that has interrupted another function of this header. */
ARCTRACE_API void arctrace_thread_name(const char* name);

/* ---- Flight recorder ----------------------------------------------------- */

/* Asks the flight recorder (arctrace record --mode=overwrite, or attach) for a snapshot
 * of the buffer in `after_ms` milliseconds; recording goes on. Returns at once. Requests
 * that come before the snapshot is taken are served by the same one. Returns 0, or a
 * negative errno: -ENOENT if there is no session, -ESRCH if the session is not in
 * overwrite mode or no recorder runs. Makes at most one system call. */
ARCTRACE_API int arctrace_snapshot(uint32_t after_ms);

/* ---- Loss ---------------------------------------------------------------- */

/* Returns how many records the calling thread has lost since its first record, and stores
 * the counts by cause (enum arctrace_loss_cause) into `lost` unless it is NULL. NO_SLOT
 * is always the count of the whole session. A thread without a writer slot gets the
 * session's losses that no slot has counted, for all causes. All 0 without a session. */
ARCTRACE_API uint64_t arctrace_lost(uint64_t lost[ARCTRACE_LOST_CAUSES]);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ARCTRACE_ARCTRACE_H */
