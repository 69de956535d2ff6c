// Reads the PLT entry and its head for the slot's index and the module's table, and the
// loader's resolver for the function that it calls, which is then called in its stead.
#include "writer_shim/arch/lazy_binding.hpp"

#include <link.h>
#include <sys/auxv.h>

#include "writer_shim/arch/x86_64/binding_room.hpp"
#include "writer_shim/arch/x86_64/instructions.hpp"
#include "writer_shim/arch/x86_64/kept_vectors.hpp"

namespace arctrace::shim {
namespace {

constexpr unsigned char kPush = 0x68;         // and 4 bytes
constexpr unsigned char kBoundPrefix = 0xf2;  // before jumps of some linkers
constexpr size_t kTableModule = 1;            // words of the table
constexpr size_t kTableResolver = 2;

// The code of the loader's resolver after it has saved the registers that hold arguments:
// mov 16(%rbx),%rsi; mov 8(%rbx),%rdi; call; mov %rax,%r11.
constexpr unsigned char kBeforeCall[] = {0x48, 0x8b, 0x73, 0x10, 0x48,
                                         0x8b, 0x7b, 0x08, 0xe8};
constexpr unsigned char kAfterCall[] = {0x49, 0x89, 0xc3};
constexpr size_t kResolverMax = 160;  // bytes that are looked through

using Fixup = uintptr_t(uintptr_t module, uint32_t index);

template <size_t n>
bool stands_at(const unsigned char* at, const unsigned char (&bytes)[n]) {
  return __builtin_memcmp(at, bytes, n) == 0;
}

// The address that the distance at `at` reaches, counted from its end.
uintptr_t reached_from(const unsigned char* at) {
  int32_t distance;
  __builtin_memcpy(&distance, at, sizeof distance);
  return reinterpret_cast<uintptr_t>(at) + sizeof distance +
         static_cast<uintptr_t>(int64_t{distance});
}

// Finds an entry's index and the address of the head; false: it is no entry.
bool read_entry(const AddressRange& code, uintptr_t address, uint32_t& index,
                uintptr_t& head) {
  constexpr uintptr_t kEntrySize = 16;
  if (!code.contains(address) || code.high - address < kEntrySize) return false;
  const auto* at = reinterpret_cast<const unsigned char*>(address);
  if (stands_at(at, kEndbr64)) at += sizeof kEndbr64;
  if (*at != kPush) return false;
  __builtin_memcpy(&index, at + 1, sizeof index);
  at += 1 + sizeof index;
  if (*at == kBoundPrefix) ++at;
  if (*at != kJump) return false;
  head = reached_from(at + 1);
  return true;
}

constexpr unsigned char kPushIndex[] = {0x41, 0x53};  // push %r11

// The module's table, whose words the head pushes and jumps through; null: it is no head.
// If `takes_index`, the head also pushes the index, which the entries put into %r11.
const uint64_t* read_head(const AddressRange& code, uintptr_t address, bool takes_index) {
  constexpr unsigned char kPushWord[] = {0xff, 0x35};  // push distance(%rip)
  constexpr unsigned char kJumpWord[] = {0xff, 0x25};  // jmp *distance(%rip)
  // mov distance(%rip),%r11, to jump there by a return (lld's -z retpolineplt)
  constexpr unsigned char kLoadWord[] = {0x4c, 0x8b, 0x1d};
  constexpr uintptr_t kHeadMax = sizeof kEndbr64 + sizeof kPushIndex + sizeof kPushWord +
                                 sizeof kBoundPrefix + sizeof kJumpWord +
                                 2 * sizeof(int32_t);
  if (!code.contains(address) || code.high - address < kHeadMax) return nullptr;
  const auto* at = reinterpret_cast<const unsigned char*>(address);
  if (stands_at(at, kEndbr64)) at += sizeof kEndbr64;
  if (takes_index) {
    if (!stands_at(at, kPushIndex)) return nullptr;
    at += sizeof kPushIndex;
  }
  if (!stands_at(at, kPushWord)) return nullptr;
  const uintptr_t module = reached_from(at + sizeof kPushWord);
  at += sizeof kPushWord + sizeof(int32_t);
  if (*at == kBoundPrefix) ++at;
  if (stands_at(at, kJumpWord)) {
    at += sizeof kJumpWord;
  } else if (stands_at(at, kLoadWord)) {
    at += sizeof kLoadWord;
  } else {
    return nullptr;
  }
  const uintptr_t resolver = reached_from(at);
  if (resolver != module + sizeof(uint64_t)) return nullptr;
  return reinterpret_cast<const uint64_t*>(module) - kTableModule;
}

// The loader's function that its resolver calls; null: the resolver has another form.
Fixup* find_fixup(uintptr_t resolver) {
  const auto* at = reinterpret_cast<const unsigned char*>(resolver);
  for (size_t i = 0; i < kResolverMax; ++i, ++at) {
    if (!stands_at(at, kBeforeCall)) continue;
    const unsigned char* distance = at + sizeof kBeforeCall;
    if (!stands_at(distance + sizeof(int32_t), kAfterCall)) return nullptr;
    return reinterpret_cast<Fixup*>(reached_from(distance));
  }
  return nullptr;
}

}  // namespace

LazyBinding find_lazy_binding(const ModuleImage& image, size_t index, uint64_t value,
                              bool& is_known) {
  const ElfW(Rela)& relocation = image.jump_slots[index];
  is_known = true;
  if (!image.range.contains(value)) return {};
  uint32_t found = 0;
  uintptr_t head = 0;
  const uint64_t* table = nullptr;
  if (read_entry(image.code, value, found, head) && found == index) {
    table = read_head(image.code, head, false);
    is_known = table != nullptr;
  } else {
    // mold's slots all lead to the head. Otherwise the slot is bound to a function of the
    // module's own, if it has that.
    table = read_head(image.code, value, true);
    is_known = table != nullptr || !image.is_of_another(relocation);
  }
  if (table == nullptr) return {};
  is_known = can_keep_vectors() && find_fixup(table[kTableResolver]) != nullptr;
  if (!is_known) return {};
  return {table, static_cast<uint32_t>(index), binding_room_distance(image, table)};
}

uintptr_t bind_lazily(const LazyBinding& binding) {
  Fixup* fixup = find_fixup(binding.table[kTableResolver]);
  const uint64_t module = binding.table[kTableModule];
  BindingRoom* room = binding_room(binding);
  BindingPlace* place = room != nullptr ? take_binding_place(*room) : nullptr;
  if (place == nullptr) return call_keeping_vectors(fixup, module, binding.index);
  const uintptr_t bias = reinterpret_cast<const link_map*>(module)->l_addr;
  const uint32_t copy = copy_relocation(*room, *place, binding.index, bias);
  const uintptr_t target = call_keeping_vectors(fixup, module, copy);
  leave_binding_place(*place);
  return target;
}

}  // namespace arctrace::shim
