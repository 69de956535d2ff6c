#include "src/stack/call_edges.hpp"

namespace arctrace {

uint64_t call_edges_epoch;

void forget_call_edges() {
  static uint64_t changes;
  // A multiplicative hash: successive numbers differ in all bits.
  __atomic_store_n(&call_edges_epoch, ++changes * 0x9E3779B97F4A7C15U, __ATOMIC_RELAXED);
}

}  // namespace arctrace
