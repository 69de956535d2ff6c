// The functions of a program before and after a change, from one or more runs of each.
#pragma once

#include <absl/container/btree_map.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/replay/replay.hpp"

namespace arctrace::reader {

enum class DiffSide : uint8_t { kBefore, kAfter };

// What one run spent in a function.
struct RunSums {
  uint64_t calls = 0, self_ns = 0, total_ns = 0;
  uint64_t off_ns = 0,
           ready_ns = 0;  // parts of total_ns on the wall clock, as in CpuTime
};

// Means over the runs of a side. Times are rounded; of calls there may be less than one a
// run.
struct MeanSums {
  double calls = 0;
  uint64_t self_ns = 0, total_ns = 0, off_ns = 0, ready_ns = 0;

  uint64_t blocked_ns() const { return off_ns - std::min(off_ns, ready_ns); }
  // No run of the side has the function.
  bool is_absent() const { return calls == 0 && total_ns == 0; }
};

// A function's means over the runs of each side; an absent function has zeros.
struct FunctionChange {
  std::string name, module;  // raw bytes of the traces
  MeanSums before, after;
  // Differences of self_ns (total_ns) up to these are noise: of 100 programs that were
  // not changed, 95 differ by less. Nothing if a side has one run.
  std::optional<uint64_t> self_noise_ns, total_noise_ns;
};

// The file names of two programs that are compared as one.
struct ProgramPair {
  std::string before, after;
};

// Functions are the same if their names are and the file names of their modules, so that
// a rebuild in another directory changes nothing. A program that only one side runs is
// compared with one that only the other side runs: ./old with ./new.
class FunctionDiff {
 public:
  // Adds a finished replay as the next run of a side. What the tracer itself did in the
  // threads is in no sum.
  void add_run(DiffSide side, const Replay& replay);

  // The times that are known of all runs.
  KnownTimes known_times() const { return known_; }

  size_t runs(DiffSide side) const { return runs_[static_cast<size_t>(side)]; }
  bool is_noise_known() const { return runs_[0] > 1 && runs_[1] > 1; }

  // The first programs, in the order of their starts, of which the other side has none of
  // that file name; nothing if one of the sides has no such program.
  std::optional<ProgramPair> paired_programs() const;

  // Returns all functions. With kSelf, kTotal and kCalls, the ones that changed most come
  // first.
  std::vector<FunctionChange> changes(SortKey sort) const;

 private:
  struct Runs {
    std::string module;  // the path that was seen last
    std::array<std::vector<RunSums>, 2> sides;
  };
  using Key = std::pair<std::string, std::string>;  // name, the module's file name
  using ByKey = absl::btree_map<Key, Runs>;

  // Returns functions_, with the functions of the paired programs under one module.
  ByKey paired_functions() const;

  ByKey functions_;
  // The file names of the programs of each side, in the order of their starts.
  std::array<std::vector<std::string>, 2> programs_;
  std::array<size_t, 2> runs_{};
  KnownTimes known_ = KnownTimes::kReady;
};

// The difference of the means that equal programs exceed in 5 % of all cases, by
// Student's t test; nothing if one of the samples has only one value.
std::optional<double> noise_of(const std::vector<double>& a,
                               const std::vector<double>& b);

}  // namespace arctrace::reader
