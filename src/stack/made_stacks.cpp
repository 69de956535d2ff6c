#include "src/stack/made_stacks.hpp"

#include <atomic>

namespace arctrace {

uint32_t made_stacks;

namespace {

constexpr uint32_t kStacks = 4096;

// Free if its number is 0.
struct Entry {
  uintptr_t low, high;
  uint32_t number;
  uint32_t is_entered;
};

Entry entries[kStacks];
uint32_t entries_used;      // entries from here on were never used
uint32_t entries_replaced;  // the next one to be replaced when all are in use
uint32_t last_coroutine;    // ever given
uint32_t table_version;     // odd while the table is being changed

// Changes the table, unless another thread, or a call that this one has interrupted, is
// at it.
class Change {
 public:
  Change() {
    uint32_t seen = IpcAtomics::load_relaxed(table_version);
    is_held_ = seen % 2 == 0 &&
               IpcAtomics::compare_exchange_acq_rel(table_version, seen, seen + 1);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Change() {
    if (is_held_) IpcAtomics::store_release(table_version, table_version + 1);
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  bool is_held() const { return is_held_; }

 private:
  bool is_held_;
};

bool overlaps(Entry& entry, uintptr_t low, uintptr_t high) {
  return IpcAtomics::load_relaxed(entry.low) < high &&
         low < IpcAtomics::load_relaxed(entry.high);
}

// Frees the entries of stacks of which [low, high) has a part. A stack that has this one
// within it stays.
Entry* free_overlapping(uintptr_t low, uintptr_t high) {
  Entry* found = nullptr;
  for (uint32_t i = 0; i < entries_used; ++i) {
    Entry& entry = entries[i];
    const bool is_around = entry.low <= low && high <= entry.high &&
                           (entry.low != low || entry.high != high);
    if (entry.number != 0 && !is_around && overlaps(entry, low, high)) {
      IpcAtomics::store_relaxed(entry.number, uint32_t{0});
    }
    if (entry.number == 0) found = &entry;
  }
  return found;
}

}  // namespace

void note_made_stack(uintptr_t low, uintptr_t high) {
  if (low >= high) return;
  const Change change;
  if (!change.is_held()) return;
  Entry* to = free_overlapping(low, high);
  if (to == nullptr)
    to = &entries[entries_used < kStacks ? entries_used++ : entries_replaced++ % kStacks];
  IpcAtomics::store_relaxed(to->low, low);
  IpcAtomics::store_relaxed(to->high, high);
  IpcAtomics::store_relaxed(to->is_entered, uint32_t{0});
  IpcAtomics::store_relaxed(to->number, ++last_coroutine);
  if (made_stacks != UINT32_MAX) IpcAtomics::store_relaxed(made_stacks, made_stacks + 1);
}

MadeStack find_made_stack(uintptr_t address) {
  MadeStack found{MadeStack::Found::kNo, 0, false, 0};
  const uint32_t seen = IpcAtomics::load_acquire(table_version);
  uintptr_t size = UINTPTR_MAX;
  const uint32_t count = IpcAtomics::load_relaxed(entries_used);
  for (uint32_t i = 0; i < count; ++i) {
    Entry& entry = entries[i];
    if (!overlaps(entry, address - 1, address)) continue;
    const uintptr_t low = IpcAtomics::load_relaxed(entry.low);
    const uintptr_t entry_size = IpcAtomics::load_relaxed(entry.high) - low;
    const uint32_t number = IpcAtomics::load_relaxed(entry.number);
    if (number == 0 || entry_size >= size) continue;
    size = entry_size;
    found = {MadeStack::Found::kYes, number,
             IpcAtomics::load_relaxed(entry.is_entered) != 0, low};
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  if (seen % 2 != 0 || IpcAtomics::load_relaxed(table_version) != seen) {
    found.found = MadeStack::Found::kBusy;
  }
  return found;
}

void forget_made_stacks(uintptr_t low, uintptr_t high) {
  const auto is_within = [&](Entry& entry) {
    return IpcAtomics::load_relaxed(entry.number) != 0 &&
           IpcAtomics::load_relaxed(entry.low) >= low &&
           IpcAtomics::load_relaxed(entry.high) <= high;
  };
  bool has_any = false;
  const uint32_t count = IpcAtomics::load_relaxed(entries_used);
  for (uint32_t i = 0; i < count && !has_any; ++i) has_any = is_within(entries[i]);
  if (!has_any) return;
  const Change change;
  if (!change.is_held()) return;
  for (uint32_t i = 0; i < entries_used; ++i) {
    if (is_within(entries[i])) IpcAtomics::store_relaxed(entries[i].number, uint32_t{0});
  }
}

uint32_t enter_made_stack(uintptr_t low) {
  const Change change;
  if (!change.is_held()) return 0;
  for (uint32_t i = 0; i < entries_used; ++i) {
    Entry& entry = entries[i];
    if (entry.number == 0 || entry.low != low) continue;
    if (entry.is_entered != 0) IpcAtomics::store_relaxed(entry.number, ++last_coroutine);
    IpcAtomics::store_relaxed(entry.is_entered, uint32_t{1});
    return entry.number;
  }
  return 0;
}

}  // namespace arctrace
