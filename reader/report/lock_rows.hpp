// What is said of a lock in text: in the view "locks", and on the screen of `arctrace
// tui`.
#pragma once

#include <string>
#include <vector>

#include "reader/analysis/lock_table.hpp"
#include "reader/render/function_labels.hpp"
#include "reader/symbols/data_symbols.hpp"

namespace arctrace::reader {

// "0x7ffe1000"
std::string lock_address_text(const LockId& lock);

// What locks are called.
class LockNames {
 public:
  // `definitions` must outlive this object.
  explicit LockNames(const Definitions& definitions) : definitions_(definitions) {}

  // "pool in server" for a variable of a program or library, as far as the trace has its
  // name (arctrace archive), or its file is there;
  // "server+0x4060" for a lock that it contains otherwise; else the address. Raw bytes of
  // the trace and the file.
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
// The longest wait and hold, who waited meanwhile, and for whose holds: the first few,
// and a line for the others. What was waited for adds up to the time of all waits.
std::vector<LockLine> lock_lines(const LockSums& sums, const Definitions& definitions,
                                 FunctionLabels& labels);

inline constexpr const char* kDeadlockHead = "Deadlock at the end:";

// What the table lacks, and what its marks mean, a line each.
std::vector<std::string> lock_notes(const LockTable& locks);

}  // namespace arctrace::reader
