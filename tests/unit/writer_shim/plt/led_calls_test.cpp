// Tests slots of a module that is made here, with the relocations, symbols and range that
// lead_slot() needs.
#include <doctest/doctest.h>
#include <elf.h>

#include <array>
#include <string>

#include "writer_shim/plt/library_hooks.hpp"

// A function that a module finds first by its name (-rdynamic), and functions that stand
// in for the hooks to which its calls are led.
extern "C" {
void led_first();
void led_first() {}
}

namespace arctrace::shim {
namespace {

void led_second() {}
void hook_first() {}
void hook_second() {}
void other() {}

uint64_t address_of(void (*function)()) { return reinterpret_cast<uint64_t>(function); }

// A module with one slot for each name, of another module's function or its own.
struct MadeModule {
  static constexpr size_t kSlots = 4;
  std::string strings = std::string("\0led_first\0led_second\0other\0", 28);
  std::array<ElfW(Sym), kSlots> symbols{};
  std::array<ElfW(Rela), kSlots> relocations{};
  std::array<uint64_t, kSlots> slots{};
  ModuleImage image;

  MadeModule() {
    constexpr std::array<uint32_t, kSlots> kNames = {1, 11, 22, 1};
    for (size_t i = 0; i < kSlots; ++i) {
      const bool is_own = i == 3;
      symbols[i].st_name = kNames[i];
      symbols[i].st_shndx = is_own ? 1 : SHN_UNDEF;
      relocations[i].r_offset = reinterpret_cast<uintptr_t>(&slots[i]);
      relocations[i].r_info = ELF64_R_INFO(i, 0);
    }
    image.strings = strings.data();
    image.symbols = symbols.data();
    image.range = {reinterpret_cast<uintptr_t>(this),
                   reinterpret_cast<uintptr_t>(this + 1)};
  }
  MadeModule(const MadeModule&) = delete;
  MadeModule& operator=(const MadeModule&) = delete;

  // The address of the loader's entry in the PLT, which is in the module itself.
  uint64_t unbound() const { return image.range.low + 1; }

  // The value of slot `i` after lead_slot() has handled its former value, `target`.
  uint64_t led(size_t i, uint64_t target, Relocated when) {
    slots[i] = target;
    lead_slot(image, relocations[i], image.slot_of(relocations[i]),
              image.name_of(relocations[i]), when);
    return slots[i];
  }
};

TEST_CASE("led calls: slots lead to the hooks that were asked for, and no others do") {
  CHECK_FALSE(are_led("led_first"));
  MadeModule module;
  CHECK(module.led(0, address_of(led_first), Relocated::kAtStart) ==
        address_of(led_first));

  lead_calls("led_first", address_of(led_first), address_of(hook_first));
  lead_calls("led_second", address_of(led_second), address_of(hook_second));
  lead_calls("other", address_of(other), address_of(hook_first));  // one too many
  CHECK(are_led("led_first"));
  CHECK(are_led("led_second"));
  CHECK_FALSE(are_led("other"));
  CHECK_FALSE(are_led("led"));

  for (const Relocated when : {Relocated::kAtStart, Relocated::kLater}) {
    CAPTURE(static_cast<int>(when));
    CHECK(module.led(0, address_of(led_first), when) == address_of(hook_first));
    CHECK(module.led(1, address_of(led_second), when) == address_of(hook_second));
    CHECK(module.led(2, address_of(other), when) == address_of(other));
    // This is another function of that name, which the module found first.
    CHECK(module.led(0, address_of(other), when) == address_of(other));
    // The module's own function.
    CHECK(module.led(3, address_of(led_first), when) == address_of(led_first));
    // The slot is led already.
    CHECK(module.led(0, address_of(hook_first), when) == address_of(hook_first));
  }

  // A slot that is not bound yet will be bound to the function that is found first. It is
  // led if that is the wanted one, and the module was there when the program started.
  CHECK(module.led(0, module.unbound(), Relocated::kAtStart) == address_of(hook_first));
  CHECK(module.led(0, module.unbound(), Relocated::kLater) == module.unbound());
  CHECK(module.led(1, module.unbound(), Relocated::kAtStart) == module.unbound());
  CHECK(module.led(2, module.unbound(), Relocated::kAtStart) == module.unbound());
  CHECK(module.led(3, module.unbound(), Relocated::kAtStart) == module.unbound());
}

}  // namespace
}  // namespace arctrace::shim
