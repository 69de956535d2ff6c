// The entry points of events and marks, each with its fast path inlined. They have a file
// of their own, so that the code that the compiler makes of them depends on nothing else,
// as in hot_path.cpp.
#include <arctrace/arctrace.h>

#include "src/base/memory.hpp"
#include "src/process/gate.hpp"
#include "src/process/session.hpp"
#include "src/writer/in_place_records.hpp"
#include "src/writer/record.hpp"
#include "src/writer/record_filter.hpp"
#include "src/writer/shared_records.hpp"

using namespace arctrace;
using namespace arctrace::writer;  // the C functions below are the namespace's face

namespace {

// The slow and the _in_chain forms are out of line, as in hot_path.cpp.

// Events with a large payload have functions of their own: the instruction that copies it
// takes registers of which the others would have to save some.
enum class Payload : uint8_t { kSmall, kLarge };

template <Payload kPayload>
__attribute__((always_inline)) inline void fill_event(std::byte* body, uint32_t event,
                                                      const void* payload,
                                                      uint32_t size) {
  constexpr uint32_t kEventSize = sizeof(arctrace_event_body);
  std::byte* to = body + kEventSize;
  const uint32_t padded = padded_size(size);
  if (padded != size) word_at(to + padded - sizeof(uint32_t)) = 0;
  part_at<arctrace_event_body>(body).event = event;
  if constexpr (kPayload == Payload::kSmall) {
    copy_few_bytes(to, payload, size);
  } else {
    copy_bytes(to, payload, size);
  }
}

constexpr auto kAnyState = [](const ThreadState&) ARCTRACE_INLINED { return true; };

// False: nothing was done.
template <Payload kPayload, class Block>
__attribute__((always_inline)) inline bool write_event_fast(const Block& block,
                                                            uint32_t event,
                                                            const void* payload,
                                                            size_t size) {
  const auto length = static_cast<uint32_t>(size);
  return block.record(
      AtStackPointer{}, ARCTRACE_TYPE_EVENT,
      static_cast<uint32_t>(sizeof(arctrace_event_body)) + padded_size(length), kAnyState,
      [&](Nesting, ThreadState&, const Reservation& record) ARCTRACE_INLINED {
        fill_event<kPayload>(record.body, event, payload, length);
        commit(record);
      });
}

__attribute__((noinline)) void write_event_slow(uint32_t event, const void* payload,
                                                size_t size, uintptr_t here) {
  if (!event_is_recorded(event, payload, size)) return;
  const WriterCall writer_call(here);
  if (writer_call.refuses_record()) return;
  const uint64_t ticks = session_ticks();
  if (__builtin_expect(size > ARCTRACE_PAYLOAD_MAX, 0)) {
    reserve_impossible(writer_call, ticks);
    return;
  }
  const auto length = static_cast<uint32_t>(size);
  const uint32_t body_size =
      static_cast<uint32_t>(sizeof(arctrace_event_body)) + padded_size(length);
  write_record(writer_call, ARCTRACE_TYPE_EVENT, body_size, ticks, [&](std::byte* body) {
    fill_event<Payload::kLarge>(body, event, payload, length);
  });
}

template <Payload kPayload, class Stamp>
__attribute__((noinline, flatten)) void write_event_in_chain(uint32_t event,
                                                             const void* payload,
                                                             size_t size,
                                                             ThreadState& state) {
  const KnownSharedBlock<Stamp> block{state};
  if (__builtin_expect(write_event_fast<kPayload>(block, event, payload, size), 1))
    return;
  write_event_slow(event, payload, size, frame_end());
}

// False: nothing was done. REQUIRES: what the Stamp does.
template <Payload kPayload, class Stamp>
__attribute__((always_inline)) inline bool write_event_by(uint32_t event,
                                                          const void* payload,
                                                          size_t size) {
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    write_event_in_chain<kPayload, Stamp>(event, payload, size, state);
    return true;
  });
  return write_event_fast<kPayload>(block, event, payload, size);
}

// REQUIRES: size <= ARCTRACE_PAYLOAD_MAX.
template <Payload kPayload>
__attribute__((always_inline)) inline void write_event(uint32_t event,
                                                       const void* payload, size_t size) {
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_EVENTS>() &&
                           write_event_by<kPayload, CounterStamp>(event, payload, size),
                       1)) {
    return;
  }
  if (word_path_is_open<ARCTRACE_GATE_EVENTS>() &&
      write_event_by<kPayload, WordStamp>(event, payload, size)) {
    return;
  }
  if (gate_is_open(ARCTRACE_GATE_EVENTS)) {
    write_event_slow(event, payload, size, frame_end());
  }
}

// Of any size.
__attribute__((noinline, flatten)) void write_sized_event(uint32_t event,
                                                          const void* payload,
                                                          size_t size) {
  if (__builtin_expect(size < kLargeCopy, 1)) {
    write_event<Payload::kSmall>(event, payload, size);
  } else if (size <= ARCTRACE_PAYLOAD_MAX) {
    write_event<Payload::kLarge>(event, payload, size);
  } else {
    write_event_slow(event, payload, size, frame_end());
  }
}

// False: nothing was done. Otherwise `payload` is where the program fills the event in.
template <class Block>
__attribute__((always_inline)) inline bool reserve_event_fast(const Block& block,
                                                              uint32_t event,
                                                              uint32_t size,
                                                              std::byte*& payload) {
  constexpr uint32_t kEventSize = sizeof(arctrace_event_body);
  const uint32_t padded = padded_size(size);
  return block.record(
      AtStackPointer{}, ARCTRACE_TYPE_EVENT, kEventSize + padded,
      [](const ThreadState& state)
          ARCTRACE_INLINED { return first_place_is_free(state); },
      [&](Nesting, ThreadState& state, const Reservation& record) ARCTRACE_INLINED {
        std::byte* const to = record.body + kEventSize;
        if (padded != size) word_at(to + padded - sizeof(uint32_t)) = 0;
        part_at<arctrace_event_body>(record.body).event = event;
        reserve_first(state, record, to);
        payload = to;
      });
}

template <class Stamp>
__attribute__((noinline, flatten)) void* reserve_in_chain(uint32_t event, size_t size,
                                                          ThreadState& state) {
  std::byte* payload = nullptr;
  if (__builtin_expect(reserve_event_fast(KnownSharedBlock<Stamp>{state}, event,
                                          static_cast<uint32_t>(size), payload),
                       1)) {
    return payload;
  }
  return reserve_in_place(event, size, frame_end());
}

// False: nothing was done. REQUIRES: what the Stamp does.
template <class Stamp>
__attribute__((always_inline)) inline bool reserve_event_by(uint32_t event, size_t size,
                                                            std::byte*& payload) {
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    payload = static_cast<std::byte*>(reserve_in_chain<Stamp>(event, size, state));
    return true;
  });
  return reserve_event_fast(block, event, static_cast<uint32_t>(size), payload);
}

// Records of class MARKS that have only fixed fields. These go from one function to the
// next in registers; a packed body would be put together in memory, and read from there
// before the parts have arrived.
struct InstantMark {
  using Body = arctrace_instant_body;
  static constexpr uint16_t kType = ARCTRACE_TYPE_INSTANT;

  __attribute__((always_inline)) void store(Body& to) const { to.name = name; }

  uint32_t name;
};
struct CounterMark {
  using Body = arctrace_counter_body;
  static constexpr uint16_t kType = ARCTRACE_TYPE_COUNTER;

  __attribute__((always_inline)) void store(Body& to) const {
    to.name = name;
    to.value = value;
  }

  uint32_t name;
  int64_t value;
};

// False: nothing was done.
template <class Block, class Mark>
__attribute__((always_inline)) inline bool write_mark_fast(const Block& block,
                                                           Mark mark) {
  using Body = typename Mark::Body;
  return block.record(AtStackPointer{}, Mark::kType, sizeof(Body), kAnyState,
                      [&](Nesting, ThreadState&, const Reservation& record)
                          ARCTRACE_INLINED {
                            mark.store(part_at<Body>(record.body));
                            commit(record);
                          });
}

template <class Mark>
__attribute__((noinline)) void write_mark_slow(Mark mark, uintptr_t here) {
  if (!instant_is_recorded(mark.name)) return;
  const WriterCall writer_call(here);
  if (writer_call.refuses_record()) return;
  using Body = typename Mark::Body;
  write_record(writer_call, Mark::kType, sizeof(Body), session_ticks(),
               [&](std::byte* body) { mark.store(part_at<Body>(body)); });
}

template <class Stamp, class Mark>
__attribute__((noinline, flatten)) void write_mark_in_chain(Mark mark,
                                                            ThreadState& state) {
  if (__builtin_expect(write_mark_fast(KnownSharedBlock<Stamp>{state}, mark), 1)) return;
  write_mark_slow(mark, frame_end());
}

// False: nothing was done. REQUIRES: what the Stamp does.
template <class Stamp, class Mark>
__attribute__((always_inline)) inline bool write_mark_by(Mark mark) {
  const auto block = own_block<Stamp>([&](ThreadState& state) ARCTRACE_INLINED {
    write_mark_in_chain<Stamp>(mark, state);
    return true;
  });
  return write_mark_fast(block, mark);
}

template <class Mark>
__attribute__((always_inline)) inline void write_mark(Mark mark) {
  if (__builtin_expect(
          fast_path_is_open<ARCTRACE_GATE_MARKS>() && write_mark_by<CounterStamp>(mark),
          1)) {
    return;
  }
  if (word_path_is_open<ARCTRACE_GATE_MARKS>() && write_mark_by<WordStamp>(mark)) return;
  if (gate_is_open(ARCTRACE_GATE_MARKS)) write_mark_slow(mark, frame_end());
}

}  // namespace

// Most events have one number: with this size known, the function saves no registers.
__attribute__((flatten)) void arctrace_write(uint32_t event, const void* payload,
                                             size_t size) {
  constexpr size_t kUsualSize = sizeof(uint64_t);
  if (size != kUsualSize) return write_sized_event(event, payload, size);
  write_event<Payload::kSmall>(event, payload, kUsualSize);
}

__attribute__((flatten)) void* arctrace_reserve(uint32_t event, size_t size) {
  std::byte* payload = nullptr;
  if (__builtin_expect(size <= ARCTRACE_PAYLOAD_MAX &&
                           fast_path_is_open<ARCTRACE_GATE_EVENTS>() &&
                           reserve_event_by<CounterStamp>(event, size, payload),
                       1)) {
    return payload;
  }
  if (size <= ARCTRACE_PAYLOAD_MAX && word_path_is_open<ARCTRACE_GATE_EVENTS>() &&
      reserve_event_by<WordStamp>(event, size, payload)) {
    return payload;
  }
  return reserve_in_place(event, size, frame_end());
}

__attribute__((flatten)) void arctrace_commit(void* payload) {
  if (__builtin_expect(!commit_first(payload), 0)) end_in_place(payload, true);
}

__attribute__((flatten)) void arctrace_instant(uint32_t name_id) {
  write_mark(InstantMark{name_id});
}

__attribute__((flatten)) void arctrace_counter(uint32_t name_id, int64_t value) {
  write_mark(CounterMark{name_id, value});
}
