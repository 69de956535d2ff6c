// The view "locks": who waited for which lock, and who had it meanwhile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reader/analysis/lock_table.hpp"
#include "reader/render/labels.hpp"
#include "reader/report/view.hpp"
#include "reader/symbols/symbolizer.hpp"

namespace arctrace::reader {

// Makes the view of each lock that a call named in its arguments: waits and holds, the
// longest ones with their threads and frames; and of threads that wait for one another at
// the end.
//
// JSON: members "locks", an array of kind, pid, address, name, acquired, waits,
// open_waits (those of the waits that had not ended), waited_ns, holds, open_holds,
// held_ns, wakes, longest_wait and longest_hold (duration_ns, start_ns, open, pid, tid,
// path; null if there is none), holder (of the longest wait; null if not known),
// longest_hold_waiters and waited_for (arrays of pid, tid, path, waited_ns) and
// waited_for_nobody_ns, with which the times of waited_for add up to waited_ns;
// "deadlocks", an array of arrays of pid, tid, lock; "calls_without_lock" and
// "holds_without_end".
std::unique_ptr<View> make_locks_view(const ViewSettings& settings);

// The text about a lock: in the view "locks", and on the screen of `arctrace tui`.

// "0x7ffe1000"
std::string lock_address_text(const LockId& lock);

// Names of locks.
class LockNames {
 public:
  // `definitions` must outlive this object.
  explicit LockNames(const Definitions& definitions) : definitions_(definitions) {}

  // Returns "pool in server" for a variable of a program or library, if the trace has its
  // name (arctrace archive), or its file exists; "server+0x4060" for another lock in a
  // module; else the address. Raw bytes of the trace and the file.
  std::string name(const LockId& lock);
  // "mutex pool in server"; escaped.
  std::string title(const LockId& lock, const LockSums& sums);
  // "lua 100/101 waits for 0x40, which lua 100/102 has"; escaped.
  std::string waiter_text(const LockWaiter& waiter);

 private:
  const Definitions& definitions_;
  DataSymbols variables_;
};

// " [open: 1 wait, 2 holds]"; empty if none is.
std::string open_locks_text(const LockSums& sums);

// " of 100", the process.
std::string lock_owner(const LockId& lock, const Definitions& definitions);

// Sorts by time, the longest first.
std::vector<LockShare> shares_by_time(std::vector<LockShare> shares);
// The threads that had the lock while others waited; the one with the longest waits comes
// first.
std::vector<LockShare> lock_holders(const LockSums& sums);

// One line about a lock: a text before a path, and the path, which may be cut; both
// escaped.
struct LockLine {
  size_t level = 0;  // how far it is indented
  std::string before, path;
};
// Lines about the longest wait and hold, who waited meanwhile, and for whose holds: the
// first few, and a line for the others. The parts by holder add up to the time of all
// waits.
std::vector<LockLine> lock_lines(const LockSums& sums, const Definitions& definitions,
                                 FunctionLabels& labels);

inline constexpr const char* kDeadlockHead = "Deadlock at the end:";

// Notes on what the table lacks, and on what its marks mean, a line each.
std::vector<std::string> lock_notes(const LockTable& locks);

}  // namespace arctrace::reader
