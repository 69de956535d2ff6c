// Calls of foreign code that keep the vector registers, and the loader's binding of
// slots, on x86-64.
#include "writer_shim/arch/loader_calls.hpp"

#include <cpuid.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/base/text.hpp"
#include "writer_shim/arch/x86_64/instructions.hpp"
#include "writer_shim/arch/x86_64/vector_state.h"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Whether this processor can save the vector registers.
bool can_keep_vectors();

}  // namespace arctrace::shim

// The parts of the vector state that XSAVE and XRSTOR keep: those that the processor and
// the kernel have. Without them the code is just called.
uint32_t arctrace_vector_parts;
uint64_t arctrace_vector_bytes;

namespace arctrace::shim {

// Finds the parts of the vector state that may hold arguments, and the size of their
// copy.
bool can_keep_vectors() {
  // Two threads may be here at once: a thread that sees the size sees the parts.
  if (IpcAtomics::load_acquire(arctrace_vector_bytes) != 0) return true;
  constexpr uint32_t kParts = 1U << 1 | 1U << 2 | 1U << 5 | 1U << 6 | 1U << 7;
  constexpr uint32_t kLeaf = 0xd;
  constexpr uint32_t kPartsCount = 8;
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  // CPUID is used as rarely as possible, because a hypervisor answers it in microseconds.
  if (static_cast<uint32_t>(__get_cpuid_max(0, nullptr)) < kLeaf) return false;
  __cpuid(1, eax, ebx, ecx, edx);
  if ((ecx & bit_OSXSAVE) == 0) return false;
  uint32_t enabled = 0;
  asm("xgetbv" : "=a"(enabled), "=d"(edx) : "c"(0));
  arctrace_vector_parts = enabled & kParts;
  uint64_t bytes = ARCTRACE_VECTOR_HEADER_END;
  for (uint32_t part = 2; part < kPartsCount; ++part) {
    if ((arctrace_vector_parts & 1U << part) == 0) continue;
    __cpuid_count(kLeaf, part, eax, ebx, ecx, edx);
    if (bytes < uint64_t{ebx} + eax) bytes = uint64_t{ebx} + eax;
  }
  IpcAtomics::store_release(arctrace_vector_bytes, bytes);
  return true;
}

uintptr_t call_keeping_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                               uintptr_t first, uint32_t second) {
  return can_keep_vectors() ? arctrace_keep_vectors(function, first, second)
                            : function(first, second);
}

// The copies of a module's relocations are in the module itself: the loader counts
// relocations from the module's first one by 32 bits, in units of their size, so a copy
// must come after that one and not far from it. The last page of the module's variables
// is mapped to its end, writable, and unused after the last variable.

// The place for one thread that binds a slot. All zero is a free one.
struct BindingPlace {
  static constexpr uint32_t kRelocationWords = sizeof(ElfW(Rela)) / sizeof(uint64_t);

  uint64_t is_taken;
  uint64_t target;  // the loader writes to this instead of the slot
  // The copy begins at the word that is a whole number of relocations from the first.
  uint64_t words[2 * kRelocationWords - 1];
};

struct BindingArea {
  const ElfW(Rela) * relocations;  // of the module's slots
  uint64_t count;                  // of places, which follow
};

// Prepares the module's space for copies, unless that has been done, and returns its
// distance from `table` in words; 0: there is no space. REQUIRES: no other thread calls
// through the module's slots that are bound lazily, or the space has been prepared.
uint32_t binding_area_distance(const ModuleImage& image, const uint64_t* table);

// The module's space for copies; null: it has none.
BindingArea* binding_area(const LazyBinding& binding);

// Takes a place; null: other threads, or frames of this one, have taken all. Threads take
// places at the same time; in a fork child, the places that its parent's other threads
// had taken stay taken.
BindingPlace* take_binding_place(BindingArea& area);
void leave_binding_place(BindingPlace& place);

// Copies the relocation `index` so that it leads to the place's target, in a module with
// this bias. Returns the copy's index.
uint32_t copy_relocation(const BindingArea& area, BindingPlace& place, uint32_t index,
                         uintptr_t bias);

namespace {

constexpr uint64_t kPlacesMax = 16;

BindingPlace* places_of(BindingArea& area) {
  return reinterpret_cast<BindingPlace*>(&area + 1);
}

}  // namespace

uint32_t binding_area_distance(const ModuleImage& image, const uint64_t* table) {
  constexpr uintptr_t kWord = sizeof(uint64_t);
  const uintptr_t end = image.unused.high;
  const uintptr_t size = end - image.unused.low;
  const auto table_address = reinterpret_cast<uintptr_t>(table);
  const auto relocations = reinterpret_cast<uintptr_t>(image.jump_slots);
  if (size < sizeof(BindingArea) + sizeof(BindingPlace)) return 0;
  const uint64_t fitting = (size - sizeof(BindingArea)) / sizeof(BindingPlace);
  const uint64_t count = fitting < kPlacesMax ? fitting : kPlacesMax;
  // The copies are at the page's end, so that a program that writes a little beyond its
  // last variable, which does no harm untraced, does none here.
  const uintptr_t begin = end - sizeof(BindingArea) - count * sizeof(BindingPlace);
  const bool is_reached = begin > table_address && begin > relocations &&
                          table_address % kWord == 0 && relocations % kWord == 0 &&
                          (begin - table_address) / kWord <= UINT32_MAX &&
                          (end - relocations) / sizeof(ElfW(Rela)) <= UINT32_MAX;
  if (!is_reached) return 0;
  auto& area = *reinterpret_cast<BindingArea*>(begin);
  if (area.relocations != image.jump_slots || area.count != count) {
    area = {image.jump_slots, count};
    for (uint64_t i = 0; i < count; ++i) places_of(area)[i] = {};
  }
  return static_cast<uint32_t>((begin - table_address) / kWord);
}

BindingArea* binding_area(const LazyBinding& binding) {
  if (binding.area_distance == 0) return nullptr;
  const auto table = reinterpret_cast<uintptr_t>(binding.table);
  return reinterpret_cast<BindingArea*>(table + uintptr_t{binding.area_distance} *
                                                    sizeof(uint64_t));
}

BindingPlace* take_binding_place(BindingArea& area) {
  for (uint64_t i = 0; i < area.count && i < kPlacesMax; ++i) {
    BindingPlace& place = places_of(area)[i];
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

uint32_t copy_relocation(const BindingArea& area, BindingPlace& place, uint32_t index,
                         uintptr_t bias) {
  const auto first = reinterpret_cast<uintptr_t>(area.relocations);
  auto copy = reinterpret_cast<uintptr_t>(place.words);
  while ((copy - first) % sizeof(ElfW(Rela)) != 0) copy += sizeof(uint64_t);
  auto& relocation = *reinterpret_cast<ElfW(Rela)*>(copy);
  relocation = area.relocations[index];
  relocation.r_offset = reinterpret_cast<uintptr_t>(&place.target) - bias;
  return static_cast<uint32_t>((copy - first) / sizeof(ElfW(Rela)));
}

// Lazy binding: reads the PLT entry and its head for the slot's index and the module's
// table, and the loader's resolver for the function that it calls. That function is then
// called in place of the resolver.

namespace {

constexpr unsigned char kPush = 0x68;         // and 4 bytes
constexpr unsigned char kBoundPrefix = 0xf2;  // before jumps of some linkers
constexpr size_t kTableModule = 1;            // words of the table
constexpr size_t kTableResolver = 2;

// This is the code of the loader's resolver after it has saved the registers that have
// arguments: mov 16(%rbx),%rsi; mov 8(%rbx),%rdi; call; mov %rax,%r11.
constexpr unsigned char kBeforeCall[] = {0x48, 0x8b, 0x73, 0x10, 0x48,
                                         0x8b, 0x7b, 0x08, 0xe8};
constexpr unsigned char kAfterCall[] = {0x49, 0x89, 0xc3};
constexpr size_t kResolverMax = 160;  // bytes that are searched

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

// The module's table, whose words the head pushes and jumps through; null: there is no
// head. If `takes_index`, the head also pushes the index, which the entries put into
// %r11.
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

constexpr char kAuditVariable[] = "LD_AUDIT=";

// Whether the dynamic section of the program, with which the loader's list of modules
// begins, names a library that audits.
bool names_auditor(const link_map* module) {
  while (module->l_prev != nullptr) module = module->l_prev;
  for (const ElfW(Dyn)* entry = module->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_AUDIT || entry->d_tag == DT_DEPAUDIT) return true;
  }
  return false;
}

bool environment_names_auditor() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (starts_with(*entry, kAuditVariable)) {
      return (*entry)[sizeof kAuditVariable - 1] != '\0';
    }
  }
  return false;
}

enum class Auditors : uint8_t { kNotKnown, kNone, kSome };
uint8_t known_auditors;  // Auditors; the same whichever thread finds it

// Whether libraries may audit what the loader binds, which is so from the start or never.
// Then the loader has a table of what it has bound, by the index of the relocation, in
// which a copy would stand far beyond the end.
bool has_auditors(const link_map* module) {
  auto known = static_cast<Auditors>(IpcAtomics::load_relaxed(known_auditors));
  if (known == Auditors::kNotKnown) {
    known = environment_names_auditor() || names_auditor(module) ? Auditors::kSome
                                                                 : Auditors::kNone;
    IpcAtomics::store_relaxed(known_auditors, static_cast<uint8_t>(known));
  }
  return known == Auditors::kSome;
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
  const auto* module = reinterpret_cast<const link_map*>(table[kTableModule]);
  return {table, static_cast<uint32_t>(index),
          has_auditors(module) ? 0 : binding_area_distance(image, table)};
}

uintptr_t bind_lazily(const LazyBinding& binding) {
  Fixup* fixup = find_fixup(binding.table[kTableResolver]);
  const uint64_t module = binding.table[kTableModule];
  BindingArea* area = binding_area(binding);
  BindingPlace* place = area != nullptr ? take_binding_place(*area) : nullptr;
  if (place == nullptr) return call_keeping_vectors(fixup, module, binding.index);
  const uintptr_t bias = reinterpret_cast<const link_map*>(module)->l_addr;
  const uint32_t copy = copy_relocation(*area, *place, binding.index, bias);
  const uintptr_t target = call_keeping_vectors(fixup, module, copy);
  leave_binding_place(*place);
  return target;
}

}  // namespace arctrace::shim
