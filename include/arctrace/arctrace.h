/* arctrace/arctrace.h - write trace records from C and C++.
 *
 * Link with -larctrace (pkg-config arctrace). Under `arctrace record` the program
 * writes into the recorder's buffer; without a session every call is a cheap no-op.
 *
 * Every function here may be called from any thread and from signal handlers, before
 * main and after it, in fork and vfork children. None of them changes errno, allocates
 * with malloc, takes a lock or raises a signal. A record that can't be written is
 * counted (arctrace_lost), never waited for.
 */
#ifndef ARCTRACE_ARCTRACE_H
#define ARCTRACE_ARCTRACE_H

#include <arctrace/format.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARCTRACE_API __attribute__((visibility("default")))

/* For functions that enter or leave frames on behalf of their callers: as a function of
 * its own, compiled with -finstrument-functions, it would take with it when it returns
 * what it entered. */
#define ARCTRACE_UNTRACED __attribute__((no_instrument_function))

/* ---- Session ------------------------------------------------------------- */

/* Joins the session whose buffer is the file `session`; NULL: the one named by the
 * environment variable ARCTRACE_SESSION (done at load already, if it is set).
 * 0, or a negative errno: -ENOENT no session named or no such file, -EACCES not ours
 * to write, -EPROTO not a buffer of this version, -EALREADY joined before. */
ARCTRACE_API int arctrace_attach(const char* session);

/* Leaves the session: the calling thread's block is closed, and nothing more is recorded
 * from this process. The mapping stays. */
ARCTRACE_API void arctrace_detach(void);

/* Closes the calling thread's block, so that the collector can take it now rather than
 * when it is full or the thread gone. Not needed for completeness. */
ARCTRACE_API void arctrace_flush(void);

/* The word that says what is recorded at present (enum arctrace_gate_bit). */
extern ARCTRACE_API const volatile uint32_t* arctrace_gate;

/* Nonzero if records of one of the classes in `gate_bits` are wanted now. */
ARCTRACE_UNTRACED static inline int arctrace_enabled(uint32_t gate_bits) {
  return __builtin_expect((*arctrace_gate & gate_bits) != 0, 0) != 0;
}

/* ---- Definitions: once each; ids hold in this process and its fork children -- */

/* Gives `name` (copied, at most 1024 bytes are kept) an id for this process. 0: no
 * memory. Not deduplicated: keep the id. */
ARCTRACE_API uint32_t arctrace_define_name(const char* name);

struct arctrace_field {
  const char* name;
  uint32_t type; /* enum arctrace_field_type */
};

/* Defines an event whose payload is the fields in order, packed. level: 0 most
 * important, 7 finest. Returns its id, 0 if there is no memory, more than 64 fields, or
 * a type that does not exist. */
ARCTRACE_API uint32_t arctrace_define_event(const char* name, uint32_t level,
                                            const struct arctrace_field* fields,
                                            size_t field_count);

/* ---- Call stack ---------------------------------------------------------- */

/* A frame key is a function's address or arctrace_name_key(id). */
ARCTRACE_UNTRACED static inline uint64_t arctrace_name_key(uint32_t name_id) {
  return ARCTRACE_FRAME_NAME_BIT | name_id;
}

ARCTRACE_API void arctrace_enter(uint64_t frame_key);
ARCTRACE_API void arctrace_exit(uint64_t frame_key);

/* The same for hooks: `location` is an address in the frame that was entered. Frames
 * further down the same stack are known to be gone, by longjmp or an exception, and
 * are recorded as unwound. 0: not known. */
ARCTRACE_API void arctrace_enter_at(uint64_t frame_key, uintptr_t location);

/* ---- Events -------------------------------------------------------------- */

/* One event of `size` payload bytes (at most ARCTRACE_PAYLOAD_MAX). */
ARCTRACE_API void arctrace_write(uint32_t event, const void* payload, size_t size);
#define ARCTRACE_PAYLOAD_MAX (ARCTRACE_RECORD_LENGTH_MAX - ARCTRACE_FULL_HEAD_SIZE - 4u)

/* The payload's place in the buffer itself, 4-byte aligned, or NULL if there is none
 * (counted as lost). The record is in progress until it is committed or discarded, by
 * the same thread; at most ARCTRACE_HELD_COUNT at a time. */
ARCTRACE_API void* arctrace_reserve(uint32_t event, size_t size);
ARCTRACE_API void arctrace_commit(void* payload);
ARCTRACE_API void arctrace_discard(void* payload);

ARCTRACE_API void arctrace_instant(uint32_t name_id);
ARCTRACE_API void arctrace_counter(uint32_t name_id, int64_t value);

/* A formatted line, cut at 1024 bytes. Uses libc's vsnprintf: in signal handlers keep to
 * formats that it handles without locale and memory (%d %u %x %s %c %p). */
ARCTRACE_API void arctrace_text(const char* format, ...)
    __attribute__((format(printf, 1, 2)));

/* A mark on the time line of the whole session, cut at 1024 bytes. */
ARCTRACE_API void arctrace_mark(const char* text);

/* Names the calling thread in reports, cut at 64 bytes; NULL: as pthread_getname_np. */
ARCTRACE_API void arctrace_thread_name(const char* name);

/* ---- Flight recorder ----------------------------------------------------- */

/* Asks the flight recorder (arctrace record --mode=overwrite, or attach) for a snapshot
 * of what the buffer holds, `after_ms` milliseconds from now; recording goes on. Asks
 * that come before it is taken are answered by the same one. 0, or a negative errno:
 * -ENOENT no session, -ESRCH nobody there who takes one. */
ARCTRACE_API int arctrace_snapshot(uint32_t after_ms);

/* ---- Loss ---------------------------------------------------------------- */

/* What the calling thread lost since it joined, by cause; returns the sum. `lost` may
 * be NULL. NO_SLOT counts are the whole session's. */
ARCTRACE_API uint64_t arctrace_lost(uint64_t lost[ARCTRACE_LOST_CAUSES]);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ARCTRACE_ARCTRACE_H */
