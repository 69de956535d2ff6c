// The writers of blocks: the exclusive blocks of each writer in their order, the writers
// of the records in shared blocks, and threads that have records and no definition.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// Groups the exclusive blocks by writer, in the order of each writer's first block in
// `blocks`; each group is sorted by serial.
std::vector<std::vector<BlockRef>> group_exclusive(std::span<const BlockRef> blocks);

// Adds findings for serials of a writer's blocks that repeat, or leave one out. Missing
// blocks are no breach in overwrite mode, in a buffer, in a file that was cut off, or if
// another file has them. REQUIRES: `blocks` are of one writer, sorted, and not empty.
void check_serials(std::span<const BlockRef> blocks, const Session& session,
                   FindingLog& findings);

// A thread's number in the PID namespace of its process.
struct OwnNumber {
  uint32_t pid_namespace = 0;  // 0: the first
  uint32_t tid = 0;
  bool operator==(const OwnNumber&) const = default;
  template <class H>
  friend H AbslHashValue(H hash, const OwnNumber& number) {
    return H::combine(std::move(hash), number.pid_namespace, number.tid);
  }
};

// The own numbers of threads in other PID namespaces, by their number in the first one.
using OwnNumbers = absl::flat_hash_map<uint32_t, OwnNumber>;

// The facts of one writer in shared blocks.
struct SharedFacts {
  uint32_t tgid = 0;                  // of a thread in the kernel's records
  std::optional<std::string> name;    // the last one of such a thread
  bool is_foreign = false;            // such a thread is of no recorded process
  uint64_t first_ticks = UINT64_MAX;  // of a thread's own records
};

// The writers of the records in shared blocks.
class SharedWriters {
 public:
  // Adds a record of a shared block of class data. The records of a block come in order
  // of time.
  void add_untrusted(const RawRecord& record, const BlockRef& block);

  // Adds a thread that has records in such a block, the first of them at `first_ticks`.
  void add(uint32_t writer, uint64_t first_ticks);

  // By writer.
  const absl::flat_hash_map<uint32_t, SharedFacts>& all() const { return writers_; }
  // Whether records of the kernel's show that the process of this number is recorded: it
  // records the programs and the children only of such processes, and the children of the
  // recorder itself.
  bool is_recorded(uint32_t tgid, uint32_t recorder) const {
    const auto forked = forkers_.find(tgid);
    return executed_.contains(tgid) ||
           (forked != forkers_.end() && forked->second.forker != recorder);
  }
  // How the process with this number was forked last, if the kernel's records tell.
  struct Fork {
    uint32_t forker;  // the number of the process that did it
    uint64_t monotonic_ns;
  };
  std::optional<Fork> fork_of(uint32_t tgid) const {
    const auto forked = forkers_.find(tgid);
    return forked == forkers_.end() ? std::nullopt : std::optional(forked->second);
  }
  // The number of the thread `tid` in its own PID namespace, by the last NUMBERED.
  OwnNumber own_number(uint32_t tid) const {
    const auto found = numbered_.find(tid);
    return found == numbered_.end() ? OwnNumber{0, tid} : found->second;
  }
  // The CPUs that have INTERRUPT records, and that a buffer may have.
  const absl::btree_set<uint32_t>& interrupted_cpus() const { return interrupted_cpus_; }
  // The writers in a fixed order, so that threads have the same numbers each time.
  std::vector<uint32_t> sorted() const;

 private:
  absl::flat_hash_map<uint32_t, SharedFacts> writers_;
  absl::flat_hash_map<uint32_t, Fork> forkers_;  // by the number of the child
  absl::flat_hash_set<uint32_t> executed_;       // processes that executed a program
  OwnNumbers numbered_;
  absl::btree_set<uint32_t> interrupted_cpus_;
};

// Adds threads that have records and no definition: one for each writer in `exclusive`
// (group_exclusive()) or `shared` that `definitions` lack, and its process; and a finding
// for each that should have a definition. The threads of the kernel's records have no
// definitions, and lead to none. Last comes a thread for each CPU that has served
// interrupts.
void add_unknown_writers(std::span<const std::vector<BlockRef>> exclusive,
                         const SharedWriters& shared, const Session& session,
                         const ClockMap& clock, Definitions& definitions,
                         FindingLog& findings);

}  // namespace arctrace::reader
