// A thread's number in the PID namespace of its process.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <utility>

namespace arctrace::reader {

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

}  // namespace arctrace::reader
