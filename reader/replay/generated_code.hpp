// The code that a process generates, as it comes and goes: which one is at an address.
#pragma once

#include <absl/container/btree_map.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reader/trace/definitions.hpp"

namespace arctrace::reader {

class GeneratedCode {
 public:
  // `definitions` must be complete, and outlive this object.
  GeneratedCode(const Definitions& definitions, ProcessIndex process);

  struct Found {
    const Code* code = nullptr;
    int64_t until_ns = INT64_MAX;  // up to then, without it, the answer is the same
  };
  // What stands at `address`: the last one that was put there by then; if there is none,
  // the first one that is put there later. Times must not fall.
  Found find(uint64_t address, int64_t time_ns);

 private:
  struct Piece {
    uint64_t end;
    const Code* code;
  };
  using Pieces = absl::btree_map<uint64_t, Piece>;  // by start; they don't overlap
  static void put(Pieces& pieces, const Code& code);
  static const Code* at(const Pieces& pieces, uint64_t address);

  std::vector<const Code*> ordered_;  // by time, then as they were told
  size_t done_ = 0;                   // of them, in now_
  Pieces now_;
  Pieces first_;  // the first at each address
};

}  // namespace arctrace::reader
