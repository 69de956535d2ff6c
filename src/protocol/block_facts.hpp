// What the records of an exclusive block say that its header does not, and that decides
// whether the reader of a range may pass over the block (ARCTRACE_FACT_*).
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/base/untrusted_bytes.hpp"

namespace arctrace {

// Whether a record of this type says what no later STACK tells.
constexpr bool is_needed_later(uint32_t type) {
  return type == ARCTRACE_TYPE_COROUTINE || type == ARCTRACE_TYPE_VFORK_BEGIN ||
         type == ARCTRACE_TYPE_VFORK_END || type == ARCTRACE_TYPE_EXIT_NAMED;
}

// What a committed record adds to its block's facts. `body` is what follows its head.
inline uint16_t facts_of_record_untrusted(uint32_t type,
                                          std::span<const std::byte> body) {
  if (is_needed_later(type)) return ARCTRACE_FACT_NEEDED;
  if (type != ARCTRACE_TYPE_STACK || body.size() < sizeof(arctrace_stack_body)) return 0;
  const auto stack = load_part_untrusted<arctrace_stack_body>(body);
  uint16_t facts = 0;
  if (stack.count < stack.depth) facts |= ARCTRACE_FACT_PARTIAL_STACK;
  if (stack.depth != 0) facts |= ARCTRACE_FACT_FRAMES;
  if (body.size() > sizeof stack + uint64_t{stack.count} * sizeof(uint64_t)) {
    facts |= ARCTRACE_FACT_NEEDED;
  }
  return facts;
}

}  // namespace arctrace
