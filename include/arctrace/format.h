/* arctrace/format.h - the layout of the trace buffer and of the trace file.
 *
 * It defines in C11 and C++11 what SPEC.md, the normative text, describes in words; every
 * offset and size is asserted. It needs nothing but <stdint.h> and <stddef.h>. Its parts:
 *
 *   format/buffer.h          session header, control page, slots, blocks
 *   format/records.h         record heads and types, bodies of programs' records
 *   format/kernel_records.h  bodies of the kernel writer's records
 *   format/file.h            chunks of a trace file, bodies of the collector's records
 *
 * Actors
 *   creator    makes the buffer, fills it, pins it, and writes the header, its magic last
 *   writers    threads of any number of processes, and BPF programs in the kernel
 *   collector  copies closed blocks to the trace file and frees them (optional)
 *   readers    validate and decode a live buffer, an abandoned one, or a trace file
 * No actor trusts the bytes that another one wrote: geometry is copied to private memory
 * and checked once; indices read from shared memory are bounded before use.
 *
 * The buffer is one mapping; all integers are little-endian:
 *
 *   0             +---------------------------+
 *                 | session header            |  constant once its magic is stored
 *   4096          +---------------------------+
 *                 | control page              |  counters and switches, a cache line each
 *   cpus_offset   +---------------------------+
 *                 | CPU slots [cpu_count]     |  the kernel writer's shared block per CPU
 *   slots_offset  +---------------------------+
 *                 | writer slots [slot_count] |  one per writing thread, robust-locked
 *   blocks_offset +---------------------------+
 *                 | blocks [block_count]      |  header, records, 0xffffffff to the end
 *   total_size    +---------------------------+
 *
 * The states of a block (arctrace_block_header.state; each arrow is one compare-exchange
 * of the whole word, which includes the block's generation):
 *
 *   FREE -> OWNED        a writer takes it; that writer alone appends (exclusive block)
 *   OWNED -> SHARED      its owner opens it to all writers, which fetch-add on next
 *   OWNED -> CLOSED      its owner, or the thread that took over the dead owner's slot
 *   SHARED -> CLOSED     a writer that found it full; the collector, if it has
 *                        definitions of a dead process
 *   CLOSED -> DRAINING   the collector, when no live writer names the block
 *   DRAINING -> FREE     the collector, after refilling it with 0xff; generation + 1
 *   CLOSED -> RESETTING  overwrite mode: a writer that needs a block takes the oldest
 *   RESETTING -> OWNED   the same writer, after refilling it with 0xff; generation + 1
 *   RESETTING -> CLOSED  any thread that finds that writer dead; generation + 1
 *   OWNED -> FREE        its owner, if another writer was faster to open a shared block;
 *                        generation + 1
 *
 * While a block is not SHARED its `next` is past its end, so that a late reservation
 * fails. If the block has become SHARED again by then, the late writer sees another
 * generation than it expects, and commits its reservation as padding.
 */
#ifndef ARCTRACE_FORMAT_H
#define ARCTRACE_FORMAT_H

#include <arctrace/format/buffer.h>
#include <arctrace/format/file.h>
#include <arctrace/format/kernel_records.h>
#include <arctrace/format/records.h>

#endif /* ARCTRACE_FORMAT_H */
