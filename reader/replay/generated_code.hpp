// The code that a process generates: which piece stands at an address at a time.
#pragma once

#include <absl/container/btree_map.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reader/trace/definitions.hpp"

namespace arctrace::reader {

// Goes through the pieces in order of time, so a question about an address takes
// logarithmic time.
class GeneratedCode {
 public:
  // `definitions` must be complete, and outlive this object.
  GeneratedCode(const Definitions& definitions, ProcessIndex process);

  struct Found {
    const Code* code = nullptr;
    int64_t until_ns = INT64_MAX;  // the answer is the same before this time
  };
  // The piece that was put at `address` last, at `time_ns` or before; if there is none,
  // the one that is put there first later. Times must not decrease from call to call.
  Found find(uint64_t address, int64_t time_ns);

 private:
  struct Piece {
    uint64_t end;
    const Code* code;
  };
  using Pieces = absl::btree_map<uint64_t, Piece>;  // by start, without overlaps
  static void put(Pieces& pieces, const Code& code);
  static const Code* at(const Pieces& pieces, uint64_t address);

  std::vector<const Code*> ordered_;  // by time, then in the order of the records
  size_t done_ = 0;                   // how many of them are in now_
  Pieces now_;
  Pieces first_;  // the first at each address
};

}  // namespace arctrace::reader
