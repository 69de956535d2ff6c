// The writers of the records in shared blocks.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/own_number.hpp"
#include "reader/trace/record_cursor.hpp"

namespace arctrace::reader {

// What the shared blocks have of one writer.
struct SharedFacts {
  uint32_t tgid = 0;                  // of a thread in the kernel's records
  std::optional<std::string> name;    // the last one of such a thread
  bool is_foreign = false;            // such a thread is of no recorded process
  uint64_t first_ticks = UINT64_MAX;  // of a thread's own records
};

class SharedWriters {
 public:
  // A record of a shared block of class data. Those of a block come in order of time.
  void add_untrusted(const RawRecord& record, const BlockRef& block);

  // A thread has records in such a block, the first of them at `first_ticks`.
  void add(uint32_t writer, uint64_t first_ticks);

  // By writer.
  const absl::flat_hash_map<uint32_t, SharedFacts>& all() const { return writers_; }
  // Whether records of the kernel's show that the process of this number is recorded: it
  // tells of the programs and the children of no others, but for the children of the
  // recorder itself.
  bool is_recorded(uint32_t tgid, uint32_t recorder) const {
    const auto forked = forkers_.find(tgid);
    return executed_.contains(tgid) ||
           (forked != forkers_.end() && forked->second != recorder);
  }
  // The number of the process that forked this one last, if the kernel's records tell.
  std::optional<uint32_t> forker_of(uint32_t tgid) const {
    const auto forked = forkers_.find(tgid);
    return forked == forkers_.end() ? std::nullopt : std::optional(forked->second);
  }
  // The number that the thread `tid` gives itself, by the last NUMBERED.
  OwnNumber own_number(uint32_t tid) const {
    const auto found = numbered_.find(tid);
    return found == numbered_.end() ? OwnNumber{0, tid} : found->second;
  }
  // The CPUs of which there are INTERRUPT records, and that a buffer may have.
  const absl::btree_set<uint32_t>& interrupted_cpus() const { return interrupted_cpus_; }
  // The writers, so that threads are numbered alike each time.
  std::vector<uint32_t> sorted() const;

 private:
  absl::flat_hash_map<uint32_t, SharedFacts> writers_;
  // By the number of a process: that of the one that forked it last.
  absl::flat_hash_map<uint32_t, uint32_t> forkers_;
  absl::flat_hash_set<uint32_t> executed_;  // processes that executed a program
  OwnNumbers numbered_;
  absl::btree_set<uint32_t> interrupted_cpus_;
};

}  // namespace arctrace::reader
