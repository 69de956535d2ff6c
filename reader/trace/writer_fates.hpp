// Whether a writer may still commit the records that it left in progress.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>

namespace arctrace::reader {

enum class WriterFate : uint8_t { kUnknown, kDead, kAlive };

// By writer identity; one that is missing is kUnknown.
using WriterFates = absl::flat_hash_map<uint32_t, WriterFate>;

}  // namespace arctrace::reader
