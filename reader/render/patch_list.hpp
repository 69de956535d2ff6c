// What `info` says of functions that record -P has patched, or left.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
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

  // For each program the numbers of functions that were patched, that were left, by
  // reason, and that were switched off in any of its processes; with `names` also the
  // names of those that are listed. Empty if nothing was to be patched.
  std::string text(const Definitions& definitions, Symbolizer* names) const;

  // The same of one process, as a value: null if nothing was to be patched. A fork child
  // has what its parent had when it was forked.
  void write_json(const Definitions& definitions, ProcessIndex process, Symbolizer* names,
                  JsonWriter& json) const;

 private:
  // Functions with one verdict. A record may come again: equal ones count once.
  struct Count {
    uint64_t all = 0;
    std::set<uint64_t> listed;  // the addresses of some of them
    std::set<uint32_t> others;  // the counts of records that list none
  };
  using Counts = absl::btree_map<uint32_t, Count>;  // by enum arctrace_patch_verdict
  struct Program;

  static std::optional<std::string> refusal_of(const Counts& counts);
  static uint64_t known_functions(const Counts& counts);
  static std::string text_of(const Program& program, const Definitions& definitions,
                             Symbolizer* names);
  const Counts* own_counts(const Definitions& definitions, ProcessIndex process) const;
  const Counts* inherited_counts(const Definitions& definitions,
                                 ProcessIndex process) const;

  absl::btree_map<uint32_t, Counts> processes_;  // by session identity
};

}  // namespace arctrace::reader
