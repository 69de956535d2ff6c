// The list of the process' definitions, in private memory: it only grows, without a lock.
#include <sys/mman.h>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/protocol/live_filter.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/record.hpp"

namespace arctrace::writer {

uint64_t first_definition;

namespace {

constexpr size_t kChunkSize = size_t{256} << 10;

struct Chunk {
  uint64_t used;
};

uint64_t newest_chunk;     // address
uint64_t last_definition;  // a hint: the end is where next is 0
uint32_t definition_count;
uint64_t valid_bytes;  // of the bodies of definitions that are not retired

template <class T>
T* at_address(uint64_t address) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(address));
}
uint64_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

void* allocate(size_t size) {
  size = (size + 7) & ~size_t{7};
  if (size > kChunkSize - sizeof(Chunk)) return nullptr;
  for (;;) {
    uint64_t newest = IpcAtomics::load_acquire(newest_chunk);
    if (newest != 0) {
      const uint64_t offset = IpcAtomics::fetch_add_relaxed(
          at_address<Chunk>(newest)->used, static_cast<uint64_t>(size));
      if (offset + size <= kChunkSize) return at_address<std::byte>(newest) + offset;
    }
    void* made =
        sys::map(kChunkSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (made == nullptr) return nullptr;
    static_cast<Chunk*>(made)->used = sizeof(Chunk);
    if (!IpcAtomics::compare_exchange_acq_rel(newest_chunk, newest, address_of(made))) {
      raw_syscall(SYS_munmap, sys::pointer_argument(made), long{kChunkSize});
    }
  }
}

void append(Definition& definition) {
  const uint64_t address = address_of(&definition);
  uint64_t expected = 0;
  if (IpcAtomics::compare_exchange_acq_rel(first_definition, expected, address)) {
    IpcAtomics::store_release(last_definition, address);
    return;
  }
  const uint64_t hint = IpcAtomics::load_acquire(last_definition);
  auto* at = at_address<Definition>(hint != 0 ? hint : expected);
  for (;;) {
    uint64_t next = 0;
    if (IpcAtomics::compare_exchange_acq_rel(at->next, next, address)) break;
    at = at_address<Definition>(next);
  }
  IpcAtomics::store_release(last_definition, address);
}

// The first definition of this type that `is_it` accepts; null: there is none.
template <class IsIt>
Definition* find_definition(uint32_t type, const IsIt& is_it) {
  for (uint64_t at = definition_after(0); at != 0; at = definition_after(at)) {
    Definition* definition = definition_at(at);
    if (definition->type == type && is_it(*definition)) return definition;
  }
  return nullptr;
}

bool is_filter_text(Definition& definition) {
  return part_at<arctrace_string_body>(definition.body()).id == kCallFilterNameId;
}

}  // namespace

uint32_t parts_size(const BodyPart* parts, uint32_t part_count) {
  uint32_t size = 0;
  for (uint32_t i = 0; i < part_count; ++i) size += padded_size(parts[i].size);
  return size;
}

void copy_parts(std::byte* to, const BodyPart* parts, uint32_t part_count) {
  for (uint32_t i = 0; i < part_count; ++i) {
    const uint32_t size = parts[i].size;
    copy_bytes(to, parts[i].bytes, size);
    fill_zero(to + size, padded_size(size) - size);
    to += padded_size(size);
  }
}

Definition* add_definition(uint16_t type, const BodyPart* parts, uint32_t part_count,
                           uint32_t cut_at, uint64_t ticks) {
  const uint32_t size = parts_size(parts, part_count);
  auto* definition = static_cast<Definition*>(allocate(sizeof(Definition) + size));
  if (definition == nullptr) return nullptr;
  definition->ticks = ticks;
  definition->retired_ticks = UINT64_MAX;
  definition->size = size;
  definition->cut_at = cut_at;
  definition->type = type;
  definition->number = IpcAtomics::fetch_add_relaxed(definition_count, uint32_t{1});
  if (type != ARCTRACE_TYPE_MODULE_GONE) {
    IpcAtomics::fetch_add_relaxed(valid_bytes, uint64_t{size});
  }
  copy_parts(definition->body(), parts, part_count);
  append(*definition);
  return definition;
}

const arctrace_event_layout_body* find_event(uint32_t id) {
  Definition* definition =
      find_definition(ARCTRACE_TYPE_EVENT_LAYOUT, [id](Definition& candidate) {
        return part_at<arctrace_event_layout_body>(candidate.body()).id == id;
      });
  if (definition == nullptr) return nullptr;
  return &part_at<arctrace_event_layout_body>(definition->body());
}

std::string_view name_text(Definition& definition) {
  const auto& body = part_at<arctrace_string_body>(definition.body());
  return {reinterpret_cast<const char*>(&body + 1), body.text_size};
}

void define_filter_text(std::string_view text) {
  const arctrace_string_body body{.process = 0,
                                  .id = kCallFilterNameId,
                                  .text_size = static_cast<uint32_t>(text.size())};
  const BodyPart parts[] = {{&body, sizeof body}, {text.data(), body.text_size}};
  add_definition(ARCTRACE_TYPE_STRING, parts, 2,
                 offsetof(arctrace_string_body, text_size), 0);
}

void retire_filter_text() {
  find_definition(ARCTRACE_TYPE_STRING, [](Definition& definition) {
    if (is_filter_text(definition) &&
        IpcAtomics::load_relaxed(definition.retired_ticks) != 0) {
      retire_definition(definition, 0);
    }
    return false;
  });
}

NameFacts find_name(uint32_t id) {
  if (id == kCallFilterNameId) return {};
  Definition* definition =
      find_definition(ARCTRACE_TYPE_STRING, [id](Definition& candidate) {
        return part_at<arctrace_string_body>(candidate.body()).id == id;
      });
  if (definition == nullptr) return {};
  return {name_text(*definition), IpcAtomics::load_relaxed(definition->filter_flags)};
}

void set_name_flags(Definition& definition, uint32_t flags) {
  IpcAtomics::store_relaxed(definition.filter_flags, flags);
}

void for_each_name(void (*use)(Definition& definition)) {
  find_definition(ARCTRACE_TYPE_STRING, [use](Definition& definition) {
    if (!is_filter_text(definition)) use(definition);
    return false;
  });
}

void retire_definition(Definition& definition, uint64_t ticks) {
  IpcAtomics::store_release(definition.retired_ticks, ticks);
  IpcAtomics::fetch_add_relaxed(valid_bytes, ~uint64_t{definition.size} + 1);
}

uint64_t valid_definition_bytes() { return IpcAtomics::load_relaxed(valid_bytes); }

}  // namespace arctrace::writer
