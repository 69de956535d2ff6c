// The text about a lock: in the view "locks", and on the screen of `arctrace tui`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/lock_table.hpp"
#include "reader/render/labels.hpp"
#include "reader/symbols/data_symbols.hpp"

namespace arctrace::reader {

// "0x7ffe1000"
std::string lock_address_text(const LockId& lock);

// Names of locks.
class LockNames {
 public:
  // `definitions` must outlive this object.
  explicit LockNames(const Definitions& definitions, SymbolOptions options = {})
      : definitions_(definitions), variables_(std::move(options)) {}

  // Returns "pool in server" for a variable of a program or library, or "pool.lock in
  // server" for a member of one, if the trace has its name, or its file or debug file
  // exists; "server+0x4060" for another lock in a module; else the address. Raw bytes of
  // the trace and the file.
  std::string name(const LockId& lock);
  // "mutex pool in server"; escaped. If it has no name: "mutex 0x40, first in connect",
  // by the innermost recorded function around its first call.
  std::string title(const LockId& lock, const LockSums& sums, FunctionLabels& labels);
  // "lua 100/101 waits for 0x40, which lua 100/102 has"; escaped.
  std::string waiter_text(const LockWaiter& waiter);

 private:
  struct Name {
    std::string text;
    bool is_variable = false;
  };
  Name find(const LockId& lock);

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
