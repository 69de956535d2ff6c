// What `info` tells of functions that record -P has patched, or skipped.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reader/streams/json_writer.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

class PatchList {
 public:
  // Counts a record, if it is about patched functions.
  void note(const Record& record);

  // For each program, and each library of which functions were to be patched, the numbers
  // of functions that were patched, that were skipped, by reason, and that were switched
  // off in any process; with `names` also the names of those that are listed. Empty if
  // nothing was to be patched.
  std::string text(const Definitions& definitions, Symbolizer* names) const;

  // Writes the same facts of one process, as a value: null if nothing was to be patched.
  // A fork child has what its parent had when it was forked.
  void write_json(const Definitions& definitions, ProcessIndex process, Symbolizer* names,
                  JsonWriter& json) const;

 private:
  struct Noted {
    uint32_t verdict;  // enum arctrace_patch_verdict
    uint32_t count;
    std::vector<uint64_t> listed;  // addresses; the first is in the module in question
    bool operator<(const Noted& other) const {
      return std::tie(verdict, count, listed) <
             std::tie(other.verdict, other.count, other.listed);
    }
  };
  // A function, by an address at which it was.
  struct Function {
    ProcessIndex process;
    uint64_t address;
    int64_t time_ns;
  };
  // Functions of one module with one verdict.
  struct Count {
    uint64_t all = 0;
    absl::btree_map<uint64_t, Function> listed;  // some of them, by address in the file
    std::set<uint32_t> others;                   // the counts of records that list none
  };
  using Counts = absl::btree_map<uint32_t, Count>;       // by enum arctrace_patch_verdict
  using Modules = absl::btree_map<std::string, Counts>;  // by path; "": the program
  struct Shown;

  static std::optional<std::string> refusal_of(const Counts& counts);
  static uint64_t known_functions(const Counts& counts);
  static std::string text_of(const Shown& shown, const Definitions& definitions,
                             Symbolizer* names);
  static void write_counts(const Counts& own, const Counts& inherited, JsonWriter& json);
  static void write_functions(const Counts& counts, bool changed,
                              const Definitions& definitions, Symbolizer& names,
                              JsonWriter& json);
  Modules own_modules(const Definitions& definitions, ProcessIndex process) const;
  Modules inherited_modules(const Definitions& definitions, ProcessIndex process) const;

  // By session identity. A record may come again: equal records of one time count once.
  absl::btree_map<uint32_t, std::set<std::pair<Noted, int64_t>>> processes_;
};

}  // namespace arctrace::reader
