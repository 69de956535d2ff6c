// Reads aarch64's instructions as words, on any machine.
#include "writer_shim/arch/code_references.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>

#include "writer_shim/arch/aarch64/instructions.hpp"

namespace arctrace::shim {
namespace {

alignas(4096) uint64_t slots[2 * 512];
alignas(4096) uint32_t words[512];

// Instructions that do something with the slot. This one puts the slot's page into
// register n.
uint32_t page_of(const uint64_t* slot, uint32_t n, size_t at) {
  const auto pages = static_cast<int64_t>(reinterpret_cast<uintptr_t>(slot) / 4096) -
                     static_cast<int64_t>(reinterpret_cast<uintptr_t>(&words[at]) / 4096);
  const auto bits = static_cast<uint32_t>(pages);
  return 0x90000000 | (bits & 3) << 29 | (bits >> 2 & 0x7ffff) << 5 | n;
}
uint32_t load(const uint64_t* slot, uint32_t base, uint32_t to) {
  const auto offset = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(slot) / 8 % 512);
  return 0xf9400000 | offset << 10 | base << 5 | to;
}
uint32_t call(uint32_t n) { return 0xd63f0000 | n << 5; }
uint32_t jump(uint32_t n) { return 0xd61f0000 | n << 5; }

constexpr size_t kFirst = 100;  // of the words that are not NOPs

// Returns how `code` uses `slot`.
SlotUse use_of(uint64_t* slot, std::initializer_list<uint32_t> code) {
  std::fill(std::begin(words), std::end(words), kNop);
  words[kFirst - 1] = kReturn;
  std::copy(code.begin(), code.end(), &words[kFirst]);
  words[kFirst + code.size()] = kReturn;
  ModuleImage image;
  image.code = {reinterpret_cast<uintptr_t>(words),
                reinterpret_cast<uintptr_t>(words + 512)};
  // The neighbouring slots are not used.
  SlotUse uses[] = {{slot - 1, nullptr, false, false},
                    {slot, nullptr, false, false},
                    {slot + 1, nullptr, false, false}};
  find_slot_uses(image, uses, 3);
  for (const SlotUse& other : {uses[0], uses[2]}) {
    CHECK(!other.is_called);
    CHECK(!other.is_read);
  }
  CHECK(uses[1].jump == nullptr);
  return uses[1];
}

bool only_called(uint64_t* slot, std::initializer_list<uint32_t> code) {
  const SlotUse use = use_of(slot, code);
  return use.is_called && !use.is_read;
}
bool is_read(uint64_t* slot, std::initializer_list<uint32_t> code) {
  return use_of(slot, code).is_read;
}

uint64_t* const kSlot = &slots[300];

TEST_CASE("aarch64 code: a slot that is loaded and called") {
  const uint32_t page = page_of(kSlot, 1, kFirst);
  CHECK(only_called(kSlot, {page, load(kSlot, 1, 1), call(1)}));
  CHECK(only_called(kSlot, {page, load(kSlot, 1, 16), jump(16)}));
  // Other instructions in between: mov w0, w19; stp x19, x20, [sp, #16]; movz w20, #33;
  // add x0, x0, #0x821; str x4, [sp, #264]; cbz x1 before the load; nop.
  CHECK(only_called(kSlot, {page, kNop, 0xb4000041, load(kSlot, 1, 1), 0x2a1303e0,
                            0xa90153f3, 0x52800434, 0x91208400, 0xf90087e4, call(1)}));
  // The slot is on another page.
  CHECK(only_called(&slots[700],
                    {page_of(&slots[700], 2, kFirst), load(&slots[700], 2, 3), call(3)}));
  // ldr x1, slot
  const auto words_away = static_cast<uint32_t>(
      (reinterpret_cast<uintptr_t>(kSlot) - reinterpret_cast<uintptr_t>(&words[kFirst])) /
      4);
  CHECK(only_called(kSlot, {0x58000001 | (words_away & 0x7ffff) << 5, call(1)}));
}

TEST_CASE("aarch64 code: a slot that is loaded for its value") {
  const uint32_t page = page_of(kSlot, 1, kFirst);
  const uint32_t from = load(kSlot, 1, 1);
  CHECK(is_read(kSlot, {page, from}));
  CHECK(is_read(kSlot, {page, from, 0xf90007e1, call(1)}));     // str x1, [sp, #8]
  CHECK(is_read(kSlot, {page, from, 0xaa0103e0, call(1)}));     // mov x0, x1
  CHECK(is_read(kSlot, {page, from, 0xb4000041, call(1)}));     // cbz x1
  CHECK(is_read(kSlot, {page, from, 0x94000004, call(1)}));     // bl
  CHECK(is_read(kSlot, {page, from, 0xeb01005f, call(1)}));     // cmp x2, x1
  CHECK(is_read(kSlot, {page, load(kSlot, 1, 21), call(21)}));  // x21 keeps the address
  CHECK(is_read(kSlot, {page, from, 0xa9bf07e0, call(1)}));     // stp x0, x1, ...
  CHECK(is_read(kSlot, {page, from, 0xc8007c41, call(1)}));     // stxr w0, x1, [x2]
  CHECK(is_read(kSlot, {page, from, 0x48207c82, call(1)}));     // casp x0, x1, ...
  CHECK(is_read(kSlot, {page, from, call(1), page, from, 0xaa0103e0}));  // both uses
}

TEST_CASE("aarch64 code: loads whose source is not known") {
  const uint32_t from = load(kSlot, 1, 2);
  const uint32_t number = 0xd2800021;  // mov x1, #1
  CHECK(is_read(kSlot, {from, call(2)}));
  CHECK(is_read(kSlot, {number, kReturn, from, call(2)}));     // x1 comes from elsewhere
  CHECK(is_read(kSlot, {number, 0x94000004, from, call(2)}));  // x1 is what bl returned
  CHECK(is_read(kSlot, {page_of(kSlot, 1, kFirst), 0xa9400440, from, call(2)}));  // ldp
}

TEST_CASE("aarch64 code: loads from somewhere else") {
  const uint32_t from = load(kSlot, 1, 2);
  const uint32_t other_page = page_of(&slots[700], 1, kFirst);
  for (const uint32_t base : {other_page, 0xf9400041u, 0x91004041u, 0xaa0503e1u}) {
    const SlotUse use = use_of(kSlot, {base, from, call(2)});
    CHECK(!use.is_called);
    CHECK(!use.is_read);
  }
}

}  // namespace
}  // namespace arctrace::shim
