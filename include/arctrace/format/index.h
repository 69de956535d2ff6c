/* arctrace/format/index.h - the index of a trace file.
 *
 * A chunk of kind INDEX, the last one of its file, lists the chunks before it: one
 * arctrace_index_entry for each, in their order, and then the arctrace_index_end, which
 * is found at the end of the file. Readers need no index, and believe none that does not
 * fit.
 */
#ifndef ARCTRACE_FORMAT_INDEX_H
#define ARCTRACE_FORMAT_INDEX_H

#include <arctrace/format/file.h>

#define ARCTRACE_CHUNK_INDEX 3          /* arctrace_chunk_header.kind */
#define ARCTRACE_INDEX_MAGIC 0x5845444E49435241ull /* "ARCINDEX" */
#define ARCTRACE_INDEX_ENTRIES_MAX (1u << 20)

/* One chunk. What follows `index` is of a block only, from its header; else 0. */
struct arctrace_index_entry {
  uint64_t offset; /* of the chunk's header in the file */
  uint32_t size;   /* of its payload */
  uint16_t kind;
  uint16_t flags; /* ARCTRACE_CHUNK_* */
  uint64_t ticks; /* when it was written: none of its records is later */
  uint32_t index;
  uint16_t facts; /* ARCTRACE_FACT_*, of an exclusive block */
  uint8_t form, block_class;
  uint32_t writer, process, pid, tid;
  uint64_t serial, handout, base_ticks;
};
ARCTRACE_ASSERT_OFFSET(arctrace_index_entry, facts, 28);
ARCTRACE_ASSERT_OFFSET(arctrace_index_entry, serial, 48);
ARCTRACE_ASSERT_SIZE(arctrace_index_entry, 72);

struct arctrace_index_end {
  uint64_t offset; /* of the index' chunk header in the file */
  uint32_t count;  /* entries */
  uint32_t entry_size;
  uint64_t reserved;
  uint64_t magic; /* ARCTRACE_INDEX_MAGIC */
};
ARCTRACE_ASSERT_SIZE(arctrace_index_end, 32);

#endif /* ARCTRACE_FORMAT_INDEX_H */
