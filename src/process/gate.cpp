#include "src/process/gate.hpp"

#include "src/protocol/live_filter.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace {
namespace {

constexpr FastGate kClosed{};
constexpr const uint32_t* kClosedGate = &kClosed.gate;

void set_fast_gate(const volatile FastGate& gate) {
  __atomic_store_n(&fast_gate, &gate, __ATOMIC_RELAXED);
}

}  // namespace

const volatile FastGate* fast_gate = &kClosed;
const volatile uint32_t* live_filter_number = kClosedGate;
const volatile uint32_t* record_filter_number = kClosedGate;

void close_fast_path() { set_fast_gate(kClosed); }

void close_gate() {
  close_fast_path();
  arctrace_gate = kClosedGate;
}

void open_gate(const BufferView& view, bool with_fast_path) {
  live_filter_number = &live_filter_area(view).round;
  record_filter_number = &record_filter_area(view).round;
  if (with_fast_path) set_fast_gate(FastGate::of(view));
  arctrace_gate = &view.control().gate;
}

}  // namespace arctrace

// A program that never joins reads this word, which stays 0.
const volatile uint32_t* arctrace_gate = arctrace::kClosedGate;
