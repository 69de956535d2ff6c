// What is said of a lock in text: in the view "locks", and on the screen of `arctrace
// tui`.
#pragma once

#include <string>
#include <vector>

#include "reader/analysis/lock_table.hpp"
#include "reader/render/function_labels.hpp"

namespace arctrace::reader {

// "0x7ffe1000"
std::string lock_address_text(const LockId& lock);
// "server+0x4060" for a lock that a program or library contains, else the address. Raw
// bytes of the trace.
std::string lock_name(const LockId& lock, const Definitions& definitions);
// "mutex server+0x4060", and " of 100", the process; escaped.
std::string lock_title(const LockId& lock, const LockSums& sums,
                       const Definitions& definitions);
std::string lock_owner(const LockId& lock, const Definitions& definitions);

// The longest first.
std::vector<LockShare> shares_by_time(std::vector<LockShare> shares);
// Who had the lock while others waited; that for which they waited longest comes first.
std::vector<LockShare> lock_holders(const LockSums& sums);

// One line about a lock: what comes before a path, and the path, which may be cut; both
// escaped.
struct LockLine {
  size_t level = 0;  // how far it is indented
  std::string before, path;
};
// The longest wait and hold, who waited meanwhile, and for whose holds: the first few.
std::vector<LockLine> lock_lines(const LockSums& sums, const Definitions& definitions,
                                 FunctionLabels& labels);

inline constexpr const char* kDeadlockHead = "Deadlock at the end:";
// "lua 100/101 waits for 0x40, which lua 100/102 has"; escaped.
std::string lock_waiter_text(const LockWaiter& waiter, const Definitions& definitions);

// What the table lacks, a line each.
std::vector<std::string> lock_notes(const LockTable& locks);

}  // namespace arctrace::reader
