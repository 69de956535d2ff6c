// Appends a record to the CPU's shared block (SPEC.md KRN-1). This is C and C++, over the
// operations of bpf/buffer.h or a test's own. Every offset is bounded anew, because other
// processes may write anything into the buffer.
#pragma once

#include <arctrace/format.h>

// The thread that a record is about.
struct thread {
  uint32_t tid;
  uint32_t tgid;
};

// A program that writes records on this CPU.
struct kernel_writer {
  uint8_t* base;                   // of the buffer
  struct arctrace_cpu_slot* slot;  // of this CPU
  uint32_t cpu;
  uint32_t level;    // of `active` in the slot
  uint32_t* active;  // the word that the program has claimed; null: none yet
  uint64_t ticks;    // of the records to come; 0: when each is begun
  struct arctrace_full_head* head;  // of the record that is in progress
  uint32_t word0;                   // of the same, once it is complete
};

// The value of an active[] word that is claimed by a program which has no block yet.
#define CLAIMED UINT32_MAX

// How many blocks a program checks for one record, to find a free one.
#define SEARCH_MAX 64

static __always_inline struct arctrace_control* control_of(uint8_t* base) {
  return (struct arctrace_control*)(base + ARCTRACE_CONTROL_OFFSET);
}
static __always_inline struct arctrace_cpu_slot* cpu_slot_of(uint8_t* base,
                                                             uint64_t cpu) {
  return (struct arctrace_cpu_slot*)(base + ARCTRACE_CPUS_OFFSET) + cpu;
}
static __always_inline struct arctrace_block_header* header_of(uint8_t* base,
                                                               uint32_t index) {
  return (struct arctrace_block_header*)(base + layout.blocks_offset +
                                         times(index, layout.block_size));
}

// Returns false if nothing is to be recorded now.
static __always_inline bool begin_writer(struct kernel_writer* writer) {
  writer->base = buffer_base();
  if (writer->base == 0) return false;
  if ((load_u32(&control_of(writer->base)->gate) & ARCTRACE_GATE_KERNEL) == 0) {
    return false;
  }
  writer->cpu = this_cpu();
  if (writer->cpu >= layout.cpu_count) return false;
  writer->slot = cpu_slot_of(writer->base, clamped(writer->cpu, layout.cpu_count));
  writer->level = 0;
  writer->active = 0;
  writer->ticks = 0;
  return true;
}

// Claims an active[] word, because programs of one CPU interrupt one another. A program
// that interrupts this one ends before it goes on, so the word does not change between
// the load and the store.
static __always_inline bool claim_level(struct kernel_writer* writer, uint32_t name) {
  UNROLLED
  for (uint32_t level = 0; level < ARCTRACE_ACTIVE_DEPTH; ++level) {
    uint32_t* word = &writer->slot->active[level];
    if (layout.preemptible) {
      if (!compare_exchange_u32(word, 0, name)) continue;
    } else {
      if (load_u32(word) != 0) continue;
      store_u32(word, name);
    }
    writer->level = level;
    writer->active = word;
    return true;
  }
  return false;
}

// G1: all later reservations fail; then SHARED -> CLOSED.
static __always_inline void close_block(uint8_t* base,
                                        struct arctrace_block_header* header,
                                        uint32_t generation) {
  fetch_add_u64(&header->next, layout.block_size);
  const uint64_t state = load_u64(&header->state);
  if ((state & 0xff) != ARCTRACE_PHASE_SHARED || state >> 32 != generation) return;
  const uint64_t closed = (state & ~0xffull) | ARCTRACE_PHASE_CLOSED;
  if (compare_exchange_u64(&header->state, state, closed) && layout.overwrites) {
    fetch_add_u64(&control_of(base)->freed, 1);
  }
}

// The block of hand-out number `handout`. Null never happens, which the verifier cannot
// know.
static __always_inline struct arctrace_block_header* handed_out(uint8_t* base,
                                                                uint64_t handout,
                                                                uint32_t* index) {
  uint32_t n = (uint32_t)(handout % layout.block_count);
  OPAQUE(n);
  if (n >= layout.block_count) return 0;
  *index = n;
  return header_of(base, n);
}

static __always_inline bool is_free(uint64_t state) {
  return (state & 0xff) == ARCTRACE_PHASE_FREE;
}

// FREE -> OWNED -> SHARED, with `length` bytes reserved as the block's first record.
// False: another writer has the block. REQUIRES: the program has claimed the active[]
// word `name`.
static __always_inline bool open_block(uint8_t* base,
                                       struct arctrace_block_header* header,
                                       uint32_t index, uint64_t handout, uint64_t free,
                                       uint32_t* name, uint32_t length) {
  // B1, by the full barrier of the exchange; A1.
  store_u32(name, index + 1);
  const uint64_t owned =
      (free & ~0xffffffffull) | ARCTRACE_KERNEL_SLOT << 16 | ARCTRACE_PHASE_OWNED;
  if (!compare_exchange_u64(&header->state, free, owned)) return false;
  fetch_add_u64(&control_of(base)->taken, 1);
  header->form = ARCTRACE_FORM_FULL;
  header->block_class = ARCTRACE_CLASS_DATA;
  header->writer = ARCTRACE_WRITER_KERNEL;
  header->process = 0;
  header->pid = 0;
  header->tid = 0;
  header->serial = 0;
  header->handout = handout;
  header->base_ticks = 0;  // not used in form full
  header->retired = 0;
  header->checked = 0;
  header->living = 0;
  store_release_u32(&header->magic, ARCTRACE_BLOCK_MAGIC);  // C1
  const uint64_t shared = (owned & ~0xffull) | ARCTRACE_PHASE_SHARED;
  if (!compare_exchange_u64(&header->state, owned, shared)) return false;
  // U1
  store_release_u64(&header->next, ARCTRACE_BLOCK_HEADER_SIZE + (uint64_t)length);
  return true;
}

// The distance from the next block in turn to a free one; UINT64_MAX: none was found.
// Blocks that were checked are counted in `searched`, and are not handed out: in
// overwrite mode the next in turn is the oldest, and must stay so if no block is found.
static __always_inline uint64_t find_free(uint8_t* base, struct arctrace_cpu_slot* slot) {
  const uint64_t next = load_u64(&control_of(base)->next);
  const uint64_t before = load_u64(&slot->searched);
  uint32_t probed = 0;
  NOT_UNROLLED
  for (; probed < SEARCH_MAX && before + probed < layout.block_count; ++probed) {
    uint32_t index = 0;
    const struct arctrace_block_header* header =
        handed_out(base, next + before + probed, &index);
    if (header == 0) return UINT64_MAX;
    if (is_free(load_u64(&header->state))) {
      store_u64(&slot->searched, 0);
      return before + probed;
    }
  }
  if (probed != 0) store_u64(&slot->searched, before + probed);
  return UINT64_MAX;
}

// open_next_block() returns one of these if it does not return index + 1.
#define NO_BLOCK 0u
#define TAKEN_MEANWHILE UINT32_MAX

// Finds a free block, opens it with `length` bytes reserved, and makes it the CPU's
// `current` instead of `before`. REQUIRES: the program has claimed active[level] of the
// CPU.
VERIFIED_ALONE uint32_t open_next_block(uint32_t cpu, uint32_t level, uint64_t before,
                                        uint32_t length) {
  uint8_t* base = buffer_base();
  if (base == 0 || cpu >= layout.cpu_count) return NO_BLOCK;
  struct arctrace_cpu_slot* slot = cpu_slot_of(base, cpu);
  // WRT-10: the rest is for definitions.
  const uint64_t freed = load_u64(&control_of(base)->freed);
  const uint64_t used = load_u64(&control_of(base)->taken) - freed;
  // Below 0: somebody died between taking a block and counting it.
  if ((int64_t)used >= 0 && used >= layout.data_blocks) return NO_BLOCK;
  const uint64_t distance = find_free(base, slot);
  if (distance == UINT64_MAX) return NO_BLOCK;
  const uint64_t handout =
      fetch_add_u64(&control_of(base)->next, distance + 1) + distance;
  uint32_t index = 0;
  struct arctrace_block_header* header = handed_out(base, handout, &index);
  if (header == 0) return NO_BLOCK;
  OPAQUE(level);
  uint32_t* name = &slot->active[level & (ARCTRACE_ACTIVE_DEPTH - 1)];
  const uint64_t state = load_u64(&header->state);
  if (!is_free(state) || !open_block(base, header, index, handout, state, name, length)) {
    return TAKEN_MEANWHILE;
  }
  const uint32_t generation = (uint32_t)(state >> 32);
  // E2. A program that interrupted this one may have opened another block; then this
  // block serves for one record.
  if (!compare_exchange_u64(&slot->current, before,
                            (uint64_t)generation << 32 | (index + 1))) {
    close_block(base, header, generation);
  }
  return index + 1;
}

static __always_inline uint64_t ticks_of(const struct kernel_writer* writer) {
  return writer->ticks != 0 ? writer->ticks : monotonic_ns();
}

static __always_inline void count_loss(const struct kernel_writer* writer) {
  struct arctrace_cpu_slot* slot = writer->slot;
  if (load_u64(&slot->lost) == load_u64(&slot->reported)) {
    store_u64(&slot->lost_since, ticks_of(writer));
  }
  fetch_add_u64(&slot->lost, 1);
}

// Stores the head of a record, in progress, and the fields that every body begins with.
// Returns the body.
static __always_inline void* begin_at(struct kernel_writer* writer, uint8_t* record,
                                      uint16_t type, uint32_t length,
                                      struct thread thread) {
  struct arctrace_full_head* head = (struct arctrace_full_head*)record;
  struct arctrace_kernel_body* body = (struct arctrace_kernel_body*)(head + 1);
  writer->head = head;
  writer->word0 = ARCTRACE_WORD0(type, length);
  store_u32((uint32_t*)record, writer->word0 | ARCTRACE_IN_PROGRESS);
  PUT(head->writer, ARCTRACE_WRITER_KERNEL | thread.tid);
  PUT(head->ticks, ticks_of(writer));
  PUT(body->cpu, writer->cpu);
  PUT(body->tgid, thread.tgid);
  return body;
}

// Begins a record with a body of `body_size` bytes, whose cpu and tgid are stored. The
// other fields are the caller's to PUT, reserved ones too. Null: the record is lost, and
// counted. REQUIRES: begin_writer().
static __always_inline void* begin_record(struct kernel_writer* writer, uint16_t type,
                                          uint32_t body_size, struct thread thread) {
  const uint32_t length = ARCTRACE_FULL_HEAD_SIZE + body_size;
  NOT_UNROLLED
  for (int tries = 0; tries < 3; ++tries) {
    const uint64_t name = load_u64(&writer->slot->current);  // E1
    uint32_t index = (uint32_t)name - 1;  // too large if there is no name
    OPAQUE(index);
    if (index < layout.block_count) {
      struct arctrace_block_header* header = header_of(writer->base, index);
      if (writer->active != 0) {
        store_u32(writer->active, index + 1);
      } else if (!claim_level(writer, index + 1)) {
        break;
      }
      // B2 before it, by the full barrier of the addition.
      uint64_t offset = fetch_add_u64(&header->next, length);
      OPAQUE(offset);
      if (offset >= ARCTRACE_BLOCK_HEADER_SIZE && offset <= layout.block_size - length) {
        offset &= ~3ull;
        uint8_t* record = (uint8_t*)header + offset;
        if (load_u64(&header->state) >> 32 == name >> 32) {
          return begin_at(writer, record, type, length, thread);
        }
        // The block belongs to a later generation.
        store_release_u32((uint32_t*)record, ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, length));
      } else {
        close_block(writer->base, header, (uint32_t)(name >> 32));
      }
    } else if (writer->active == 0 && !claim_level(writer, CLAIMED)) {
      break;
    }
    // A program that interrupted this one may have changed the CPU's current block.
    if (load_u64(&writer->slot->current) != name) continue;
    uint32_t opened = open_next_block(writer->cpu, writer->level, name, length);
    if (opened == NO_BLOCK) break;
    --opened;
    OPAQUE(opened);
    if (opened >= layout.block_count) continue;
    return begin_at(
        writer, (uint8_t*)header_of(writer->base, opened) + ARCTRACE_BLOCK_HEADER_SIZE,
        type, length, thread);
  }
  if (writer->active != 0) store_release_u32(writer->active, 0);
  count_loss(writer);
  return 0;
}

// I1, F1: the record is complete, and this CPU done with its block.
static __always_inline void end_record(struct kernel_writer* writer) {
  store_release_u32((uint32_t*)writer->head, writer->word0);
  store_release_u32(writer->active, 0);
}
