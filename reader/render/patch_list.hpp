// What `info` says of functions that record -P has patched, or left.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reader/render/json_writer.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

class PatchList {
 public:
  // Counts a record, if it is about patched functions.
  void note(const Record& record);

  // For each program the numbers of functions that were patched, and that were left, by
  // reason; with `names` also the names of those that are listed. Empty if there are
  // none.
  std::string text(const Definitions& definitions, Symbolizer* names) const;

  // The same of one process, as a value: null if nothing was to be patched.
  void write_json(const Definitions& definitions, ProcessIndex process, Symbolizer* names,
                  JsonWriter& json) const;

 private:
  // Functions with one verdict.
  struct Count {
    uint64_t all = 0;
    std::set<uint64_t> listed;  // the addresses of some of them
    std::set<uint32_t> others;  // records that list none; each may come again
  };
  using Counts = absl::btree_map<uint32_t, Count>;  // by enum arctrace_patch_verdict

  static const Count* find(const Counts& counts, uint32_t verdict);
  static void append_program(std::string& out, const Definitions& definitions,
                             ProcessIndex process, const Counts& counts,
                             Symbolizer* names);

  absl::btree_map<uint32_t, Counts> processes_;  // by session identity
};

}  // namespace arctrace::reader
