// The record filter (SPEC.md FLT-2): which threads' records and which events are written.
// The writer, the recorder and the reader all match its text here.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/base/glob.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/protocol/field_condition.hpp"
#include "src/protocol/live_filter.hpp"

namespace arctrace {

// The marks with which entries of the text begin.
inline constexpr std::string_view kFilterEvent = "event:";
inline constexpr std::string_view kFilterNotEvent = "not:";
inline constexpr std::string_view kFilterLevel = "level:";
inline constexpr std::string_view kFilterInstant = "mark:";  // or a counter
inline constexpr std::string_view kFilterNotInstant = "notmark:";
inline constexpr std::string_view kFilterWhere = "where:";
inline constexpr std::string_view kFilterPid = "pid:";
inline constexpr std::string_view kFilterTid = "tid:";

static_assert(ARCTRACE_RECORD_FILTER_OFFSET >=
              ARCTRACE_EXECS_OFFSET + sizeof(arctrace_moments) +
                  ARCTRACE_EXECS_KEPT * sizeof(arctrace_moment));
static_assert(ARCTRACE_RECORD_FILTER_OFFSET + sizeof(arctrace_record_filter) <=
              ARCTRACE_CPUS_OFFSET);

inline arctrace_record_filter& record_filter_area(const BufferView& view) {
  return *reinterpret_cast<arctrace_record_filter*>(view.base() +
                                                    ARCTRACE_RECORD_FILTER_OFFSET);
}

using RecordFilterCopy = FilterCopy<arctrace_record_filter>;

inline void copy_record_filter_untrusted(const BufferView& view, RecordFilterCopy& copy) {
  copy.size =
      copy_filter_untrusted(record_filter_area(view), copy.words, copy.generation);
}

// Removes `mark` from the entry's beginning, if it is there. Compares byte by byte,
// because the writer does not call libc's memcmp().
inline bool take_mark(std::string_view& entry, std::string_view mark) {
  if (entry.size() < mark.size()) return false;
  for (size_t i = 0; i < mark.size(); ++i) {
    if (entry[i] != mark[i]) return false;
  }
  entry.remove_prefix(mark.size());
  return true;
}

inline uint32_t filter_number(std::string_view digits) {
  uint32_t number = 0;
  for (const char digit : digits) {
    number = number * 10 + static_cast<uint32_t>(digit - '0');
  }
  return number;
}

// The entries of a record filter's text that are about threads.
struct ThreadFilter {
  bool by_pid = false;   // it names processes
  bool by_tid = false;   // it names threads
  bool has_pid = false;  // ... among them this one
  bool has_tid = false;

  ThreadFilter(std::string_view text, uint32_t pid, uint32_t tid) {
    for_each_filter_entry(text, [&](std::string_view entry) {
      if (take_mark(entry, kFilterPid)) {
        by_pid = true;
        has_pid |= filter_number(entry) == pid;
      } else if (take_mark(entry, kFilterTid)) {
        by_tid = true;
        has_tid |= filter_number(entry) == tid;
      }
    });
  }
  bool admits() const { return (!by_pid && !by_tid) || has_pid || has_tid; }
};

// Whether an entry that begins with `only` matches the name, or no entry begins so; and
// no entry that begins with `except` matches it.
inline bool admits_name(std::string_view text, std::string_view name,
                        std::string_view only, std::string_view except) {
  bool only_named = false, is_named = false, is_excluded = false;
  for_each_filter_entry(text, [&](std::string_view entry) {
    if (take_mark(entry, only)) {
      only_named = true;
      is_named |= glob_matches(entry, name);
    } else if (take_mark(entry, except)) {
      is_excluded |= glob_matches(entry, name);
    }
  });
  return !is_excluded && (is_named || !only_named);
}

// Whether the filter admits an event of this name and level.
inline bool admits_event(std::string_view text, std::string_view name, uint32_t level) {
  bool is_too_fine = false;
  for_each_filter_entry(text, [&](std::string_view entry) {
    if (take_mark(entry, kFilterLevel)) is_too_fine |= level > filter_number(entry);
  });
  return !is_too_fine && admits_name(text, name, kFilterEvent, kFilterNotEvent);
}

// Whether the filter admits an instant or a counter of this name.
inline bool admits_instant(std::string_view text, std::string_view name) {
  return admits_name(text, name, kFilterInstant, kFilterNotInstant);
}

// A `where:` entry without its mark: a condition, and behind it, if its operand is a
// number that is no integer, " #" and the hexadecimal digits of its bits, 16 of the f64
// and 8 of the f32.
struct WhereEntry {
  FieldCondition condition;
  OperandNumber number;
  bool has_real = false;

  explicit WhereEntry(std::string_view entry) {
    constexpr size_t kDigits = 24, kSuffix = kDigits + 2;
    RealBits real;
    if (entry.size() > kSuffix) {
      const std::string_view suffix(entry.data() + entry.size() - kSuffix, kSuffix);
      real.is_known = suffix[0] == ' ' && suffix[1] == '#' &&
                      read_hex({suffix.data() + 2, 16}, real.f64);
      uint64_t f32 = 0;
      real.is_known = real.is_known && read_hex({suffix.data() + 18, 8}, f32);
      real.f32 = static_cast<uint32_t>(f32);
      has_real = real.is_known;
      if (has_real) entry.remove_suffix(kSuffix);
    }
    condition = split_condition(entry);
    number = number_of(condition, real);
  }

 private:
  static bool read_hex(std::string_view digits, uint64_t& number) {
    number = 0;
    for (const char digit : digits) {
      const bool is_letter = digit >= 'a' && digit <= 'f';
      if (!is_letter && (digit < '0' || digit > '9')) return false;
      number =
          number << 4 | static_cast<uint64_t>(is_letter ? digit - 'a' + 10 : digit - '0');
    }
    return true;
  }
};

// Whether the text has conditions on fields of events.
inline bool has_conditions(std::string_view text) {
  bool has_any = false;
  for_each_filter_entry(
      text, [&](std::string_view entry) { has_any |= take_mark(entry, kFilterWhere); });
  return has_any;
}

// Whether an event meets all conditions of the filter. for_each_field(use) calls
// use(type, name) for each of its fields, in order, as long as that returns true.
template <class ForEachField>
bool admits_payload(std::string_view text, std::span<const std::byte> payload,
                    const ForEachField& for_each_field) {
  bool is_met = true;
  for_each_filter_entry(text, [&](std::string_view entry) {
    if (!is_met || !take_mark(entry, kFilterWhere)) return;
    const WhereEntry asked(entry);
    is_met = false;
    std::span<const std::byte> rest = payload, value;
    for_each_field([&](uint32_t type, std::string_view name) {
      if (!take_field(type, rest, value)) return false;
      if (!is_same_text(name, asked.condition.field)) return true;
      is_met = meets_condition(type, value, asked.condition, asked.number);
      return false;
    });
  });
  return is_met;
}

// The classes of records (enum arctrace_gate_bit) of which the filter may exclude some.
inline uint32_t filtered_classes(std::string_view text) {
  constexpr uint32_t kOfThreads =
      ARCTRACE_GATE_FUNCTIONS | ARCTRACE_GATE_EVENTS | ARCTRACE_GATE_MARKS;
  uint32_t classes = 0;
  for_each_filter_entry(text, [&](std::string_view entry) {
    if (take_mark(entry, kFilterEvent) || take_mark(entry, kFilterNotEvent) ||
        take_mark(entry, kFilterLevel) || take_mark(entry, kFilterWhere)) {
      classes |= ARCTRACE_GATE_EVENTS;
    } else if (take_mark(entry, kFilterInstant) || take_mark(entry, kFilterNotInstant)) {
      classes |= ARCTRACE_GATE_MARKS;
    } else {
      classes |= kOfThreads;  // or of a kind that is not known
    }
  });
  return classes;
}

// Stores control.unfiltered as the gate and both filters have it. To be called after each
// change of one of them: if several processes do so at once, the last one stores the
// present value.
inline void update_unfiltered(const BufferView& view) {
  arctrace_control& control = view.control();
  // The bound is for the case that a process never stops changing them.
  for (int tries = 0; tries < 1000; ++tries) {
    RecordFilterCopy filter;
    copy_record_filter_untrusted(view, filter);
    const uint32_t gate = IpcAtomics::load_acquire(control.gate);
    arctrace_live_filter& live = live_filter_area(view);
    const uint32_t live_generation = IpcAtomics::load_acquire(live.round);  // Q2
    const bool has_live = IpcAtomics::load_relaxed(live.size) != 0;
    uint32_t classes =
        filter.size < 0 ? uint32_t{ARCTRACE_GATE_ALL} : filtered_classes(filter.text());
    if (has_live) classes |= ARCTRACE_GATE_FUNCTIONS;
    // R1 release, matches R2 (was_off_meanwhile).
    IpcAtomics::store_release(control.unfiltered, gate & ~classes);
    // The fence is for another process that changes one of them and then stores this word
    // too.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (IpcAtomics::load_relaxed(control.gate) == gate &&
        IpcAtomics::load_relaxed(live.round) == live_generation &&
        IpcAtomics::load_relaxed(record_filter_area(view).round) == filter.generation) {
      return;
    }
  }
}

}  // namespace arctrace
