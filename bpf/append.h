// Appending a record to the CPU's shared block, within the value of one map. Every offset
// is bounded anew: other processes may write anything into the buffer.
#pragma once

#include "bpf/kernel_types.h"

// Set before the programs are loaded, so constants to the verifier.
const volatile __u64 blocks_offset;
const volatile __u32 block_size;
const volatile __u32 block_count;
const volatile __u32 cpu_count;
const volatile bool overwrites;   // closed blocks count as freed
const volatile bool preemptible;  // programs, by others of their CPU: PREEMPT_RT

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __uint(key_size, 4);
  __uint(value_size, 4096);  // the buffer's size, before it is loaded
} buffer SEC(".maps");

// A value that the compiler must not know anything of, so that what is checked is what is
// used.
#define OPAQUE(value) asm volatile("" : "+r"(value))

// A release store. x86 keeps stores in order, and the JIT translates one by one;
// elsewhere the exchange is BPF's only barrier.
static __always_inline void store_release(__u32* word, __u32 value) {
#if defined(__TARGET_ARCH_x86)
  asm volatile("" ::: "memory");
  *(volatile __u32*)word = value;
#else
  __sync_lock_test_and_set(word, value);
#endif
}

struct place {
  __u8* base;                      // of the buffer
  struct arctrace_cpu_slot* slot;  // of this CPU
  __u32* active;                   // its word that we claimed
  __u32 cpu;
};

// Where this CPU writes; false: nothing is to be recorded now.
static __always_inline bool find_place(struct place* at) {
  const __u32 zero = 0;
  at->base = bpf_map_lookup_elem(&buffer, &zero);
  if (at->base == 0) return false;
  const struct arctrace_control* control = (void*)(at->base + ARCTRACE_CONTROL_OFFSET);
  if ((*(volatile __u32*)&control->gate & ARCTRACE_GATE_KERNEL) == 0) return false;
  at->cpu = bpf_get_smp_processor_id();
  if (at->cpu >= cpu_count) return false;
  at->slot = (struct arctrace_cpu_slot*)(at->base + ARCTRACE_CPUS_OFFSET) + at->cpu;
  at->active = 0;
  return true;
}

static __always_inline struct arctrace_block_header* header_of(__u8* base, __u32 index) {
  return (struct arctrace_block_header*)(base + blocks_offset +
                                         (__u64)index * block_size);
}

// Takes an active[] word: programs of one CPU interrupt each other. Whoever interrupts us
// is done before we go on, so between our look and our store the word is as it was.
static __always_inline bool claim_level(struct place* at, __u32 name) {
#pragma unroll
  for (__u32 level = 0; level < ARCTRACE_ACTIVE_DEPTH; ++level) {
    __u32* word = &at->slot->active[level];
    if (preemptible) {
      if (__sync_val_compare_and_swap(word, 0, name) != 0) continue;
    } else {
      if (*(volatile __u32*)word != 0) continue;
      *(volatile __u32*)word = name;
    }
    at->active = word;
    return true;
  }
  return false;
}

// G1: all later reservations fail; then SHARED -> CLOSED.
static __always_inline void close_block(struct place* at,
                                        struct arctrace_block_header* header,
                                        __u64 name) {
  __sync_fetch_and_add(&header->next, block_size);
  const __u64 state = header->state;
  if ((state & 0xff) != ARCTRACE_PHASE_SHARED || state >> 32 != name >> 32) return;
  const __u64 closed = (state & ~0xffull) | ARCTRACE_PHASE_CLOSED;
  if (__sync_val_compare_and_swap(&header->state, state, closed) == state && overwrites) {
    struct arctrace_control* control = (void*)(at->base + ARCTRACE_CONTROL_OFFSET);
    __sync_fetch_and_add(&control->freed, 1);
  }
}

// The next of the blocks that were handed over. False: there is none.
static __always_inline bool next_block(struct place* at) {
#pragma unroll
  for (__u32 i = 0; i < ARCTRACE_CPU_SPARES; ++i) {
    if (at->slot->spares[i] == 0) continue;
    // E1.
    const __u64 spare = __sync_lock_test_and_set(&at->slot->spares[i], 0);
    if (spare != 0) {
      at->slot->current = spare;
      return true;
    }
  }
  return false;
}

static __always_inline void count_loss(struct arctrace_cpu_slot* slot) {
  if (*(volatile __u64*)&slot->lost == *(volatile __u64*)&slot->reported) {
    *(volatile __u64*)&slot->lost_since = bpf_ktime_get_ns();
  }
  __sync_fetch_and_add(&slot->lost, 1);
}

// Reserves `length` bytes and stores the record's head, in progress. Null: it is lost,
// and counted. REQUIRES: find_place().
static __always_inline __u8* begin_record(struct place* at, __u16 type, __u32 length,
                                          __u32 tid) {
#pragma clang loop unroll(disable)
  for (int tries = 0; tries < 3; ++tries) {
    const __u64 name = *(volatile __u64*)&at->slot->current;
    __u32 index = (__u32)name - 1;  // of no name too large
    OPAQUE(index);
    if (index < block_count) {
      struct arctrace_block_header* header = header_of(at->base, index);
      if (at->active != 0) {
        *(volatile __u32*)at->active = index + 1;
      } else if (!claim_level(at, index + 1)) {
        break;
      }
      // B2 before it, by the full barrier of the addition.
      __u64 offset = __sync_fetch_and_add(&header->next, length);
      OPAQUE(offset);
      if (offset >= ARCTRACE_BLOCK_HEADER_SIZE && offset <= block_size - length) {
        offset &= ~3ull;
        __u8* record = (__u8*)header + offset;
        if (header->state >> 32 == name >> 32) {
          *(volatile __u32*)record = ARCTRACE_WORD0(type, length) | ARCTRACE_IN_PROGRESS;
          *(volatile __u32*)(record + 4) = ARCTRACE_WRITER_KERNEL | tid;
          *(volatile __u64*)(record + 8) = bpf_ktime_get_ns();
          *(volatile __u32*)(record + 16) = at->cpu;
          return record;
        }
        // The block is in another life.
        store_release((__u32*)record, ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, length));
      } else {
        close_block(at, header, name);
      }
    }
    // Whoever interrupted us may have changed it.
    if (*(volatile __u64*)&at->slot->current == name && !next_block(at)) break;
  }
  if (at->active != 0) store_release(at->active, 0);
  count_loss(at->slot);
  return 0;
}

// I1, F1: the record is complete, and this CPU done with its block.
static __always_inline void end_record(struct place* at, __u8* record, __u16 type,
                                       __u32 length) {
  store_release((__u32*)record, ARCTRACE_WORD0(type, length));
  store_release(at->active, 0);
}

static __always_inline void put_u32(__u8* record, __u32 offset, __u32 value) {
  *(volatile __u32*)(record + offset) = value;
}
static __always_inline void put_u64(__u8* record, __u32 offset, __u64 value) {
  *(volatile __u64*)(record + offset) = value;
}
