// Finds the functions of frame keys, as processes record them.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "reader/replay/functions.hpp"
#include "reader/replay/shown_names.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/definitions.hpp"

namespace arctrace::reader {

// The code that a process generates: which piece stands at an address at a time. It goes
// through the pieces in order of time, so that finding an address takes logarithmic time.
class GeneratedCode {
 public:
  // `definitions` must be complete, and outlive this object.
  GeneratedCode(const Definitions& definitions, ProcessIndex process);

  struct Found {
    const Code* code = nullptr;
    int64_t until_ns = INT64_MAX;  // the answer is the same before this time
  };
  // Returns the last piece that was put at `address`, at `time_ns` or before; if there is
  // none, the first one that is put there later. Times must not decrease from call to
  // call.
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

// Finds functions, and caches them for each process, as long as its map of modules stays
// the same.
class FunctionResolver {
 public:
  // Both must outlive this object. Without a symbolizer (nullptr) every address is shown
  // as module+0xoffset.
  FunctionResolver(const Definitions& definitions, Symbolizer* symbolizer);

  // Returns the function of a frame key (an address, or with bit 63 a name id) in a
  // process at a time. Times must not decrease from call to call. Generated code is in
  // module [jit]. A key without a name is called module+0xoffset, 0xaddress, or name#id.
  // The first look-up of a key may read symbol tables; later ones take constant time.
  FunctionId resolve(ProcessIndex process, uint64_t key, int64_t time_ns) {
    Cache& cache = cache_of(process);
    const Entry& entry = cache.recent[slot_of(key)];
    if (entry.key == key && time_ns < entry.valid_until_ns) return entry.function;
    return resolve_uncached(cache, process, key, time_ns);
  }

  // Returns the function that resolve() last found for a key in a process, or nullopt if
  // resolve() had no such key.
  std::optional<FunctionId> known(ProcessIndex process, uint64_t key) const;

  const Functions& functions() const { return functions_; }
  // The functions, to which callers add those that have no key.
  Functions& mutable_functions() { return functions_; }
  ShownNames& shown_names() { return shown_names_; }

  // "file:line" of a function's beginning, by its debug data; empty if not known.
  std::string source_line(FunctionId function);

 private:
  struct Entry {
    uint64_t key = 0;
    int64_t valid_until_ns = INT64_MIN;
    FunctionId function = kUnknownFunction;
  };
  static constexpr unsigned kRecentBits = 9;
  struct Cache {
    // A small cache in front of the map, for the functions that are called all the time.
    std::array<Entry, 1u << kRecentBits> recent;
    absl::flat_hash_map<uint64_t, Entry> all;
    std::optional<GeneratedCode> code;  // nullopt until it is first needed
  };

  static size_t slot_of(uint64_t key) {
    return (key * 0x9E3779B97F4A7C15u) >> (64 - kRecentBits);
  }
  Cache& cache_of(ProcessIndex process);
  FunctionId resolve_uncached(Cache& cache, ProcessIndex process, uint64_t key,
                              int64_t time_ns);
  Entry find_address(Cache& cache, ProcessIndex process, uint64_t address,
                     int64_t time_ns);
  Entry find_generated(Cache& cache, ProcessIndex process, uint64_t address,
                       int64_t time_ns);
  Entry find_name(ProcessIndex process, uint64_t key, int64_t time_ns);
  const Module* find_exporter(ProcessIndex process, std::string_view name,
                              int64_t time_ns);

  const Definitions& definitions_;
  Symbolizer* symbolizer_;
  Functions functions_;
  ShownNames shown_names_{functions_};
  std::vector<std::unique_ptr<Cache>> caches_;  // by ProcessIndex + 1; [0]: no process
};

}  // namespace arctrace::reader
