// The table has the coroutine stacks in the order of their addresses. Two of them either
// lie within one another, or have nothing in common. So a binary search finds the last
// stack that begins below an address, and the innermost stack that has the address is
// that one, or one of those around it.
#include "src/stack/coroutine_stacks.hpp"

#include <atomic>

#include "src/base/large_table.hpp"

namespace arctrace::writer {

uint32_t coroutine_stacks_version;

namespace {

constexpr uint32_t kStacks = 4096;
constexpr uint16_t kNone = UINT16_MAX;

struct Entry {
  uintptr_t low, high;
  uint32_t number;  // 0: free
  uint16_t outer;   // entry of the innermost stack around it; free: the next free one
  uint8_t is_entered;
  PendingCalls* calls;  // of the thread whose current stack it is
};

ARCTRACE_LARGE_TABLE Entry entries[kStacks];
ARCTRACE_LARGE_TABLE uint16_t
    order[kStacks];  // of the entries in use, from the lowest on; outer ones first
uint32_t order_count;
uint32_t entries_used;        // entries from here on were never used
uint16_t free_entry = kNone;  // the first of those that are free again
uint32_t entries_replaced;    // the next one to be replaced when all are in use
uint32_t last_coroutine;      // the last number that was given

template <class Word>
Word load(Word& word) {
  return IpcAtomics::load_relaxed(word);
}
template <class Word>
void store(Word& word, Word value) {
  IpcAtomics::store_relaxed(word, value);
}

// The thread that changes the table, by the address of its `mark`; 0: none does.
uintptr_t changer;
thread_local constinit char mark = 0;

uintptr_t this_thread() { return reinterpret_cast<uintptr_t>(&mark); }

// Changes the table, unless another thread, or a call that this one has interrupted, is
// changing it.
class Change {
 public:
  Change() : is_held_(take()) {
    if (is_held_) begin();
  }
  ~Change() {
    if (is_held_) end();
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  bool is_held() const { return is_held_; }

  // Ends a change that its thread will not end. It may have stopped anywhere, so nothing
  // is known of the table any more: the table becomes empty.
  static void abandon();

 private:
  // Acquire, matches the release of the last change's end.
  static bool take() {
    uintptr_t nobody = 0;
    return IpcAtomics::compare_exchange_acq_rel(changer, nobody, this_thread());
  }
  static void begin() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    store(coroutine_stacks_version, coroutine_stacks_version + 1);
    // The fence comes before the stores of the change: find_coroutine_stack() has an
    // acquire fence.
    std::atomic_thread_fence(std::memory_order_release);
  }
  static void end() {
    const uint32_t next = coroutine_stacks_version + 1;
    IpcAtomics::store_release(coroutine_stacks_version, next == 0 ? 2 : next);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    IpcAtomics::store_release(changer, uintptr_t{0});
  }

  const bool is_held_;
};

void Change::abandon() {
  if (coroutine_stacks_version % 2 == 0) begin();
  store(order_count, uint32_t{0});
  entries_used = 0;
  free_entry = kNone;
  end();
}

// How many stacks begin at `address` or below. A reader that runs during a change gets
// any number up to kStacks.
uint32_t count_up_to(uintptr_t address) {
  uint32_t low = 0;
  uint32_t high = load(order_count);
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (load(entries[load(order[middle])].low) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool contains(Entry& entry, uintptr_t address) {
  return load(entry.low) <= address && address < load(entry.high);
}

// Whether the entry has all of [low, high) and more.
bool is_around(const Entry& entry, uintptr_t low, uintptr_t high) {
  return entry.low <= low && high <= entry.high &&
         (entry.low != low || entry.high != high);
}

// The innermost stack that has `address`. REQUIRES: the caller has taken the table.
uint16_t innermost_at(uintptr_t address) {
  const uint32_t count = count_up_to(address);
  uint16_t found = count == 0 ? kNone : order[count - 1];
  while (found != kNone && !contains(entries[found], address))
    found = entries[found].outer;
  return found;
}

// The next functions change the table, which the caller has taken.

uint32_t new_number() {
  store(last_coroutine, last_coroutine + 1);
  return last_coroutine;
}

void remove_at(uint32_t position) {
  const uint16_t removed = order[position];
  Entry& entry = entries[removed];
  for (uint32_t i = position; i + 1 < order_count; ++i) store(order[i], order[i + 1]);
  store(order_count, order_count - 1);
  for (uint32_t i = position; i < order_count; ++i) {
    Entry& inner = entries[order[i]];
    if (inner.low >= entry.high) break;
    if (inner.outer == removed) store(inner.outer, entry.outer);
  }
  store(entry.number, uint32_t{0});
  store(entry.outer, free_entry);
  free_entry = removed;
}

void remove(uint16_t removed) {
  uint32_t position = count_up_to(entries[removed].low);
  while (position > 0 && order[position - 1] != removed) --position;
  if (position > 0) remove_at(position - 1);
}

// Removes the stacks that overlap [low, high), except those around it.
void remove_overlapping(uintptr_t low, uintptr_t high) {
  uint16_t outer = innermost_at(low);
  while (outer != kNone) {
    const uint16_t next = entries[outer].outer;
    if (entries[outer].low < low && !is_around(entries[outer], low, high)) remove(outer);
    outer = next;
  }
  uint32_t position = low == 0 ? 0 : count_up_to(low - 1);
  while (position < order_count && entries[order[position]].low < high) {
    if (is_around(entries[order[position]], low, high)) {
      ++position;
    } else {
      remove_at(position);
    }
  }
}

// The entry of exactly this stack, if there are no other stacks within it; null: there is
// none.
Entry* same_stack(uintptr_t low, uintptr_t high) {
  const uint32_t count = count_up_to(low);
  if (count == 0) return nullptr;
  Entry& entry = entries[order[count - 1]];
  const bool has_inner = count < order_count && entries[order[count]].low < high;
  return entry.low == low && entry.high == high && !has_inner ? &entry : nullptr;
}

uint16_t take_entry() {
  if (free_entry == kNone && entries_used < kStacks) {
    return static_cast<uint16_t>(entries_used++);
  }
  if (free_entry == kNone) remove(static_cast<uint16_t>(entries_replaced++ % kStacks));
  const uint16_t taken = free_entry;
  free_entry = entries[taken].outer;
  return taken;
}

// Adds a stack. REQUIRES: no stack overlaps it, except those around it.
Entry& add(uintptr_t low, uintptr_t high) {
  const uint16_t taken = take_entry();
  const uint16_t outer = innermost_at(low);
  const uint32_t position = count_up_to(low);
  for (uint32_t i = order_count; i > position; --i) store(order[i], order[i - 1]);
  Entry& entry = entries[taken];
  store(entry.low, low);
  store(entry.high, high);
  store(entry.outer, outer);
  store(order[position], taken);
  store(order_count, order_count + 1);
  return entry;
}

}  // namespace

void note_coroutine_stack(uintptr_t low, uintptr_t high) {
  if (low >= high) return;
  const Change change;
  if (!change.is_held()) return;
  Entry* entry = same_stack(low, high);
  if (entry == nullptr) {
    remove_overlapping(low, high);
    entry = &add(low, high);
  }
  store(entry->is_entered, uint8_t{0});
  entry->calls = nullptr;
  store(entry->number, new_number());
}

CoroutineStack find_coroutine_stack(uintptr_t address) {
  const uintptr_t inside = address - 1;
  CoroutineStack found{CoroutineStack::Found::kNo, 0, 0, false, 0, 0, 0, UINTPTR_MAX, 0};
  found.version = IpcAtomics::load_acquire(coroutine_stacks_version);
  const uint32_t count = count_up_to(inside);
  if (count < load(order_count)) found.to = load(entries[load(order[count])].low);
  uint16_t at = count == 0 ? kNone : load(order[count - 1]);
  // The steps are counted because a reader may run during a change.
  for (uint32_t steps = 0; at != kNone && steps < kStacks; ++steps) {
    Entry& entry = entries[at];
    const uintptr_t high = load(entry.high);
    if (!contains(entry, inside)) {
      found.from = high;
      at = load(entry.outer);
      continue;
    }
    found.found = CoroutineStack::Found::kYes;
    found.number = load(entry.number);
    found.entry = at;
    found.is_entered = load(entry.is_entered) != 0;
    found.low = load(entry.low);
    found.high = high;
    if (found.from == 0) found.from = found.low;
    if (high < found.to) found.to = high;
    break;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  if (found.version % 2 != 0 || load(coroutine_stacks_version) != found.version) {
    found.found = CoroutineStack::Found::kBusy;
  }
  return found;
}

void forget_coroutine_stacks(uintptr_t low, uintptr_t high) {
  const uint32_t first = low == 0 ? 0 : count_up_to(low - 1);
  if (first >= load(order_count) || load(entries[load(order[first])].low) >= high) return;
  const Change change;
  if (!change.is_held()) return;
  uint32_t position = low == 0 ? 0 : count_up_to(low - 1);
  while (position < order_count && entries[order[position]].low < high) {
    if (entries[order[position]].high <= high) {
      remove_at(position);
    } else {
      ++position;
    }
  }
}

void forget_coroutine_stack(const CoroutineStack& stack) {
  const Change change;
  if (!change.is_held() || entries[stack.entry].number != stack.number) return;
  remove(static_cast<uint16_t>(stack.entry));
}

uint32_t last_coroutine_stack() { return load(last_coroutine); }

void end_change_of_parent() {
  // A change of this thread goes on when its handler, which forked, returns.
  const uintptr_t thread = load(changer);
  if (thread != 0 && thread != this_thread()) Change::abandon();
}

void abandon_stack_change() {
  if (load(changer) == this_thread()) Change::abandon();
}

EnteredStack enter_coroutine_stack(const CoroutineStack& stack, PendingCalls* calls) {
  const Change change;
  Entry& entry = entries[stack.entry];
  if (!change.is_held() || entry.number != stack.number) return {0, nullptr};
  if (entry.is_entered != 0) store(entry.number, new_number());
  store(entry.is_entered, uint8_t{1});
  PendingCalls* before = entry.calls;
  entry.calls = calls;
  return {entry.number, before};
}

}  // namespace arctrace::writer
