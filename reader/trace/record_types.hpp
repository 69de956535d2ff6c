// What is known of each record type: its name, where it belongs, how long its body is.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace arctrace::reader {

enum class RecordClass : uint8_t {
  kFiller,      // PAD, TIME: of the block, not of the trace
  kStream,      // STACK, LOST: keep a thread's stream whole
  kData,        // what a program recorded: ENTER ... MARK, and unknown ones below 32
  kDefinition,  // PROCESS ... UNTRACED, and unknown ones below 48
  kCollector,   // SYSTEM ..., and unknown ones below 64
  kKernel,      // 64 and above
};

inline RecordClass class_of(uint16_t type) {
  if (type >= 64) return RecordClass::kKernel;
  if (type >= ARCTRACE_TYPE_SYSTEM) return RecordClass::kCollector;
  if (type >= ARCTRACE_TYPE_PROCESS) return RecordClass::kDefinition;
  if (type >= ARCTRACE_TYPE_ENTER) return RecordClass::kData;
  if (type >= ARCTRACE_TYPE_STACK) return RecordClass::kStream;
  return RecordClass::kFiller;
}

// Every type that has a name is below this.
inline constexpr uint16_t kKnownTypes = 96;

// "ENTER", ...; empty for an unknown type.
std::string_view type_name(uint16_t type);
// By name, in any case, or number; nullopt if it is neither.
std::optional<uint16_t> type_of_name(std::string_view name);

// Why `body` is not one of `type`, or nullptr if it is: it holds the type's fixed part
// and what the counts and sizes in it name. An unknown type may hold anything.
const char* body_problem_untrusted(uint16_t type, std::span<const std::byte> body);

}  // namespace arctrace::reader
