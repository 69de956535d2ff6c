#include "src/process/gate.hpp"

namespace arctrace {
namespace {

constexpr uint32_t kClosedGate = 0;

void set_fast_gate(const volatile uint32_t* gate) {
  __atomic_store_n(&fast_gate, gate, __ATOMIC_RELAXED);
}

}  // namespace

const volatile uint32_t* fast_gate = &kClosedGate;
const volatile uint32_t* live_filter_number = &kClosedGate;

void close_fast_path() { set_fast_gate(&kClosedGate); }

void close_gate() {
  close_fast_path();
  arctrace_gate = &kClosedGate;
}

void open_gate(const volatile uint32_t& gate, const volatile uint32_t& filter_number,
               bool with_fast_path) {
  live_filter_number = &filter_number;
  if (with_fast_path) set_fast_gate(&gate);
  arctrace_gate = &gate;
}

}  // namespace arctrace

// A program that never joins reads this word, which stays 0.
const volatile uint32_t* arctrace_gate = &arctrace::kClosedGate;
