// A trace with records of every kind in it, and ways to damage it.
#pragma once

#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {

// A file with records of every kind.
inline FileBuilder rich_file() {
  FileBuilder file(1024);
  file.records(
      full_record(ARCTRACE_TYPE_SYSTEM, 0, 1, system_body("host", "6.1", "cmd"))
          .append(full_record(ARCTRACE_TYPE_CLOCK_SYNC, 0, 2, clock_sync_body(2, 2, 2))));
  BlockBuilder defined = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  ProcessFacts child{2, 1, 101, 100, 0, ARCTRACE_ORIGIN_FORK, 10, "/bin/child", "child"};
  defined.add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}));
  defined.add_full(ARCTRACE_TYPE_PROCESS, 2, 10, process_body(child));
  defined.add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "main"));
  defined.add_full(ARCTRACE_TYPE_THREAD, 2, 10, thread_body(2, 2, 101, "child"));
  defined.add_full(ARCTRACE_TYPE_MODULE, 1, 0,
                   module_body(1, 0x1000, 0x2000, 0, "/bin/a", "id"));
  defined.add_full(ARCTRACE_TYPE_MODULE_GONE, 1, 90, module_gone_body(1, 0x1000));
  defined.add_full(ARCTRACE_TYPE_STRING, 1, 0, string_body(1, 1, "name"));
  defined.add_full(ARCTRACE_TYPE_EVENT_LAYOUT, 1, 0,
                   layout_body(1, 1, "event", {{ARCTRACE_FIELD_STRING, "s"}}));
  file.block(defined, 0, 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 10)
                 .add(ARCTRACE_TYPE_LOST, 10, lost_body(0, 5, 1))
                 .stack(10, {0x1000, 0x1100})
                 .enter(11, 0x1200)
                 .add(ARCTRACE_TYPE_EVENT, 12, event_body(1, text_body("text")))
                 .time(1ull << 33)
                 .exit((1ull << 33) + 1)
                 .add(ARCTRACE_TYPE_UNWIND, (1ull << 33) + 2, Bytes().u32(2))
                 .hole(3)
                 .add(ARCTRACE_TYPE_TEXT, (1ull << 33) + 3, text_body("more"), true),
             ARCTRACE_CHUNK_OWNER_DIED, 1);
  file.block(
      BlockBuilder::shared(2, 10)
          .add_full(ARCTRACE_TYPE_STACK, 2, 20, stack_body({}))
          .add_full(ARCTRACE_TYPE_ENTER, 2, 20, key_body(ARCTRACE_FRAME_NAME_BIT | 1))
          .add_full(ARCTRACE_TYPE_COUNTER, 1, 15, counter_body(1, -1))
          .hole(2)
          .add_full(ARCTRACE_TYPE_MARK, 2, 30, text_body("mark")),
      ARCTRACE_CHUNK_LIVE_COPY, 2);
  file.records(full_record(ARCTRACE_TYPE_WRITER_END, 0, 1ull << 34, pair_body(1, 1))
                   .append(full_record(ARCTRACE_TYPE_CLOCK_SYNC, 0, 1ull << 34,
                                       clock_sync_body(1ull << 34, 1ull << 34, 3))));
  file.finish(1ull << 34);
  return file;
}

inline BufferBuilder rich_buffer() {
  BufferBuilder buffer(1024, 8, 4);
  for (uint32_t i = 0; i < 2; ++i) {
    buffer.slots[i].lock = i == 0 ? 100 : 0x40000000;
    buffer.slots[i].writer = i + 1;
    buffer.slots[i].lost[0] = 9;
  }
  buffer.block(0,
               BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS)
                   .add_full(ARCTRACE_TYPE_PROCESS, 1, 0, process_body({}))
                   .add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(1, 1, 100, "m")),
               ARCTRACE_PHASE_SHARED);
  buffer.block(1,
               BlockBuilder::exclusive(1, 0, 1, 10).stack(10, {}).enter(11, 1).exit(12),
               ARCTRACE_PHASE_OWNED);
  buffer.block(2,
               BlockBuilder::shared(2, 10)
                   .add_full(ARCTRACE_TYPE_ENTER, 2, 20, key_body(1), true)
                   .add_full(ARCTRACE_TYPE_EXIT, 2, 21),
               ARCTRACE_PHASE_CLOSED);
  return buffer;
}

// Overwrites bytes, mostly with numbers that have a meaning somewhere.
inline void damage(std::vector<std::byte>& bytes, std::mt19937_64& random) {
  static constexpr uint32_t kNumbers[] = {
      0,          1,          4,          8,          16,         0xFFFFFFFF,
      0xFFFF,     0x7FFFFFFF, 0x80000000, 0xFFFC,     0x10000,    128,
      0x00020010, 0x00050010, 0x00040020, 0x00030010, 0x00300028, 0x4B4E4843};
  const uint64_t times = random() % 8 + 1;
  for (uint64_t i = 0; i < times; ++i) {
    const size_t at = random() % bytes.size();
    if (random() % 3 == 0) {
      bytes[at] ^= std::byte(1u << random() % 8);
    } else if (const size_t word = at & ~size_t{3}; word + 4 <= bytes.size()) {
      const uint32_t value = random() % 4 == 0 ? static_cast<uint32_t>(random())
                                               : kNumbers[random() % std::size(kNumbers)];
      std::memcpy(bytes.data() + word, &value, sizeof value);
    }
  }
  if (random() % 10 == 0) bytes.resize(random() % bytes.size());
}

// Returns a damaged copy; in most of them the first `spared` bytes are whole, so that
// there is something to read.
inline std::vector<std::byte> damaged(const std::vector<std::byte>& whole, size_t spared,
                                      std::mt19937_64& random) {
  std::vector<std::byte> bytes = whole;
  if (random() % 8 == 0) {
    damage(bytes, random);
    return bytes;
  }
  std::vector<std::byte> rest(bytes.begin() + static_cast<ptrdiff_t>(spared),
                              bytes.end());
  damage(rest, random);
  bytes.resize(spared);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

}  // namespace arctrace::testing
