// Leads calls of the shim's functions straight to libarctrace.so (library_hooks.hpp).
#include "src/base/shared_atomics.hpp"
#include "src/base/text.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/plt/library_hooks.hpp"

namespace arctrace::shim {
namespace {

struct LedCalls {
  const char* name;
  uint64_t from;
  uint64_t to;
  bool is_found_first;  // modules that are there when the program starts find it first
};
constinit LedCalls led_calls[kLedCallsMax]{};
size_t led_calls_used;

const LedCalls* find_led_calls(const char* name) {
  for (size_t i = 0; i < led_calls_used; ++i) {
    if (equal(led_calls[i].name, name)) return &led_calls[i];
  }
  return nullptr;
}

}  // namespace

void lead_calls(const char* name, uintptr_t from, uintptr_t to) {
  if (led_calls_used == kLedCallsMax) return;
  const bool is_found_first = find_function(name, SearchFrom::kProgram) == from;
  led_calls[led_calls_used++] = {name, from, to, is_found_first};
}

bool are_led(const char* name) { return find_led_calls(name) != nullptr; }

void lead_slot(const ModuleImage& image, const ElfW(Rela) & relocation, uint64_t* slot,
               const char* name, Relocated when) {
  const LedCalls* led = find_led_calls(name);
  if (led == nullptr || !image.is_of_another(relocation)) return;
  const uint64_t target = IpcAtomics::load_relaxed(*slot);
  const bool will_be_bound =
      led->is_found_first && when == Relocated::kAtStart && image.range.contains(target);
  // Release: a thread that calls through the slot finds the data that the hook needs.
  if (target == led->from || will_be_bound) IpcAtomics::store_release(*slot, led->to);
}

}  // namespace arctrace::shim
