// The frame keys that occur in a trace, found without putting its records in order.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "reader/trace/input.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Processes, and the keys that occur in their records.
using UsedKeys = absl::flat_hash_set<std::pair<ProcessIndex, uint64_t>>;

// Further keys are dropped.
inline constexpr size_t kUsedKeysMax = size_t{1} << 20;

// Adds the keys in all blocks of `trace`, whose bytes `input` has, and to `locks`, if
// that is not nullptr, processes and the addresses of locks in lock calls (SPEC.md
// REC-11). `goes_on` is asked between two blocks. Blocks from all of the time come first,
// so that a scan that `goes_on` stops has keys of all of it. Returns whether all keys
// were found. Costs some 5 ns for each call. Error: the input cannot be read.
absl::StatusOr<bool> scan_keys_untrusted(Input& input, const Trace& trace,
                                         const std::function<bool()>& goes_on,
                                         UsedKeys& keys, UsedKeys* locks = nullptr);

}  // namespace arctrace::reader
