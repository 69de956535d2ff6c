#include "writer_shim/arch/x86_64/binding_room.hpp"

#include "src/base/shared_atomics.hpp"

namespace arctrace::shim {
namespace {

constexpr uint64_t kPlacesMax = 16;

BindingPlace* places_of(BindingRoom& room) {
  return reinterpret_cast<BindingPlace*>(&room + 1);
}

}  // namespace

uint32_t binding_room_distance(const ModuleImage& image, const uint64_t* table) {
  constexpr uintptr_t kWord = sizeof(uint64_t);
  const uintptr_t end = image.unused.high;
  const uintptr_t size = end - image.unused.low;
  const auto table_address = reinterpret_cast<uintptr_t>(table);
  const auto relocations = reinterpret_cast<uintptr_t>(image.jump_slots);
  if (size < sizeof(BindingRoom) + sizeof(BindingPlace)) return 0;
  const uint64_t fitting = (size - sizeof(BindingRoom)) / sizeof(BindingPlace);
  const uint64_t count = fitting < kPlacesMax ? fitting : kPlacesMax;
  // At the page's end: a program that writes a little beyond its last variable, which
  // does no harm untraced, does none here.
  const uintptr_t begin = end - sizeof(BindingRoom) - count * sizeof(BindingPlace);
  const bool is_reached = begin > table_address && begin > relocations &&
                          table_address % kWord == 0 && relocations % kWord == 0 &&
                          (begin - table_address) / kWord <= UINT32_MAX &&
                          (end - relocations) / sizeof(ElfW(Rela)) <= UINT32_MAX;
  if (!is_reached) return 0;
  auto& room = *reinterpret_cast<BindingRoom*>(begin);
  if (room.relocations != image.jump_slots || room.count != count) {
    room = {image.jump_slots, count};
    for (uint64_t i = 0; i < count; ++i) places_of(room)[i] = {};
  }
  return static_cast<uint32_t>((begin - table_address) / kWord);
}

BindingRoom* binding_room(const LazyBinding& binding) {
  if (binding.room_distance == 0) return nullptr;
  const auto table = reinterpret_cast<uintptr_t>(binding.table);
  return reinterpret_cast<BindingRoom*>(table + uintptr_t{binding.room_distance} *
                                                    sizeof(uint64_t));
}

BindingPlace* take_binding_place(BindingRoom& room) {
  for (uint64_t i = 0; i < room.count && i < kPlacesMax; ++i) {
    BindingPlace& place = places_of(room)[i];
    uint64_t free = 0;
    if (IpcAtomics::compare_exchange_acq_rel(place.is_taken, free, uint64_t{1})) {
      return &place;
    }
  }
  return nullptr;
}

void leave_binding_place(BindingPlace& place) {
  // Release: the copy is no longer read when another thread takes the place.
  IpcAtomics::store_release(place.is_taken, uint64_t{0});
}

uint32_t copy_relocation(const BindingRoom& room, BindingPlace& place, uint32_t index,
                         uintptr_t bias) {
  const auto first = reinterpret_cast<uintptr_t>(room.relocations);
  auto copy = reinterpret_cast<uintptr_t>(place.words);
  while ((copy - first) % sizeof(ElfW(Rela)) != 0) copy += sizeof(uint64_t);
  auto& relocation = *reinterpret_cast<ElfW(Rela)*>(copy);
  relocation = room.relocations[index];
  relocation.r_offset = reinterpret_cast<uintptr_t>(&place.target) - bias;
  return static_cast<uint32_t>((copy - first) / sizeof(ElfW(Rela)));
}

}  // namespace arctrace::shim
