#include "src/calls/call_conditions.hpp"

#include <arctrace/arctrace.h>
#include <arctrace/format.h>

#include "src/process/session.hpp"
#include "src/stack/timed_calls.hpp"
#include "src/writer/thread_local.hpp"

namespace arctrace {
namespace {

constexpr uint32_t kConditionsMax = 64;
const arctrace_shim_call_condition* conditions;
uint32_t condition_count;
uint64_t ticks_of[kConditionsMax];  // of a condition about time

uint64_t ticks_from_ns(uint64_t ns) {
  const auto& header =
      *reinterpret_cast<const arctrace_session_header*>(session.view.base());
  const uint64_t rate = header.ticks_per_second;
  constexpr uint64_t kSecond = 1'000'000'000;
  uint64_t whole = 0;
  if (__builtin_mul_overflow(ns / kSecond, rate, &whole)) return UINT64_MAX;
  return whole + ns % kSecond * rate / kSecond;
}

template <class Number>
bool compares(uint8_t compare, Number a, Number b) {
  switch (compare) {
    case ARCTRACE_SHIM_LESS:
      return a < b;
    case ARCTRACE_SHIM_LESS_OR_EQUAL:
      return a <= b;
    case ARCTRACE_SHIM_MORE:
      return a > b;
    case ARCTRACE_SHIM_MORE_OR_EQUAL:
      return a >= b;
    case ARCTRACE_SHIM_EQUAL:
      return a == b;
    default:
      return a != b;
  }
}

bool result_fulfils(const arctrace_shim_call_condition& condition, uint64_t retval) {
  const unsigned unused = 64 - 8U * condition.size;
  const uint64_t result = retval << unused;
  const uint64_t wanted = condition.value << unused;
  if (condition.is_signed == 0) {
    // A value that the type does not have is no result.
    return compares(condition.compare, result >> unused, condition.value);
  }
  return compares(condition.compare, static_cast<int64_t>(result) >> unused,
                  static_cast<int64_t>(wanted) >> unused);
}

}  // namespace

void set_call_conditions(const arctrace_shim_call_condition* all, uint32_t count) {
  conditions = all;
  condition_count = count < kConditionsMax ? count : kConditionsMax;
  for (uint32_t i = 0; i < condition_count; ++i) {
    ticks_of[i] = ticks_from_ns(all[i].value);
  }
}

void conditional_call_begins(PendingCalls& calls, uintptr_t return_slot) {
  calls.timed.begin(return_slot, session_ticks());
}

void conditional_call_ends(uint64_t wanted, uintptr_t return_slot, uintptr_t retval) {
  PendingCalls* calls = thread_local_state.calls;
  if (calls == nullptr) return;
  const uint64_t began = calls->timed.end(return_slot);
  bool is_fulfilled = false;
  for (uint32_t i = 0; i < condition_count; ++i) {
    if ((wanted >> i & 1) == 0) continue;
    if (conditions[i].is_result != 0) {
      is_fulfilled |= result_fulfils(conditions[i], retval);
    } else if (began != 0) {
      is_fulfilled |=
          compares(conditions[i].compare, session_ticks() - began, ticks_of[i]);
    }
  }
  if (is_fulfilled) arctrace_snapshot(0);
}

}  // namespace arctrace
