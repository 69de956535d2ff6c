// Reads events, names, patches and untraced programs from copies of blocks of
// definitions.
#include "src/recorder/drain/definition_notes.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/untrusted_bytes.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {

namespace {

constexpr size_t kDefinedMax = 4096;  // events, fields, and names
constexpr size_t kTypesMax = 32;      // of fields of one name

// The text that follows a body's struct, at most `size` bytes of it.
std::string_view text_after(std::span<const std::byte> body, size_t offset,
                            uint32_t size) {
  const std::span<const std::byte> rest = body.subspan(offset);
  return {reinterpret_cast<const char*>(rest.data()),
          std::min<size_t>(size, rest.size())};
}

}  // namespace

void DefinedEvents::note_untrusted(std::span<const std::byte> block) {
  for_each_full_record(block,
                       [this](uint16_t type, uint64_t, std::span<const std::byte> body) {
                         if (type == ARCTRACE_TYPE_EVENT_LAYOUT) note_event(body);
                         if (type == ARCTRACE_TYPE_STRING) note_name(body);
                       });
}

void DefinedEvents::note_event(std::span<const std::byte> body) {
  if (body.size() < sizeof(arctrace_event_layout_body)) return;
  const auto layout = load_part_untrusted<arctrace_event_layout_body>(body);
  std::string text(text_after(body, sizeof layout, layout.name_size));
  size_t at = sizeof layout + ((size_t{layout.name_size} + 3) & ~size_t{3});
  for (uint32_t i = 0; i < layout.field_count; ++i) {
    if (at > body.size() || body.size() - at < sizeof(arctrace_layout_field)) break;
    const auto field = load_part_untrusted<arctrace_layout_field>(body.subspan(at));
    at += sizeof field;
    note_field(std::string(text_after(body, std::min(at, body.size()), field.name_size)),
               field.type);
    at += (size_t{field.name_size} + 3) & ~size_t{3};
  }
  const auto known = levels_.find(text);
  if (known != levels_.end()) {
    known->second = std::min(known->second, layout.level);
  } else if (levels_.size() < kDefinedMax) {
    levels_.emplace(std::move(text), layout.level);
  } else {
    has_all_events_ = false;
  }
}

void DefinedEvents::note_field(std::string name, uint32_t type) {
  const auto known = fields_.find(name);
  if (known != fields_.end()) {
    if (known->second.size() < kTypesMax) known->second.insert(type);
  } else if (fields_.size() < kDefinedMax) {
    fields_.emplace(std::move(name), std::set<uint32_t>{type});
  } else {
    has_all_events_ = false;
  }
}

void DefinedEvents::note_name(std::span<const std::byte> body) {
  if (body.size() < sizeof(arctrace_string_body)) return;
  const auto string = load_part_untrusted<arctrace_string_body>(body);
  if (string.id == 0) return;  // the filter of calls (SPEC.md REC-13)
  const std::string_view text = text_after(body, sizeof string, string.text_size);
  if (names_.contains(text)) return;
  if (names_.size() < kDefinedMax) {
    names_.emplace(text);
  } else {
    has_all_names_ = false;
  }
}

namespace {

constexpr size_t kFunctionsMax = 65536;
constexpr uint32_t kVerdictsEnd = 256;

}  // namespace

void PatchNotes::note_untrusted(std::span<const std::byte> block) {
  for_each_full_record(block, [this](uint16_t type, uint64_t,
                                     std::span<const std::byte> body) {
    if (type != ARCTRACE_TYPE_PATCHES || body.size() < sizeof(arctrace_patches_body)) {
      return;
    }
    const auto patches = load_part_untrusted<arctrace_patches_body>(body);
    if (patches.verdict == ARCTRACE_PATCH_SMALL) refusals_.insert(patches.verdict);
    if (patches.verdict >= ARCTRACE_PATCH_NO_ROOM && patches.verdict < kVerdictsEnd) {
      (patches.listed == 0 ? refusals_ : library_refusals_).insert(patches.verdict);
    }
    if (patches.verdict != ARCTRACE_PATCH_THROTTLED &&
        patches.verdict != ARCTRACE_PATCH_OVERWRITTEN) {
      return;
    }
    std::set<uint64_t>& functions =
        patches.verdict == ARCTRACE_PATCH_THROTTLED ? switched_off_ : overwritten_;
    body = body.subspan(sizeof patches);
    for (uint32_t i = 0; i < patches.listed && body.size() >= sizeof(uint64_t) &&
                         functions.size() < kFunctionsMax;
         ++i) {
      functions.insert(load_part_untrusted<uint64_t>(body));
      body = body.subspan(sizeof(uint64_t));
    }
  });
}

namespace {

constexpr size_t kIdentitiesMax = 65'536;

template <class Body>
std::optional<Body> begin_of(std::span<const std::byte> body) {
  if (body.size() < sizeof(Body)) return std::nullopt;
  return load_part_untrusted<Body>(body);
}

}  // namespace

ProgramChanges::Identity* ProgramChanges::identity(uint32_t process) {
  const auto found = identities_.find(process);
  if (found != identities_.end()) return &found->second;
  return identities_.size() < kIdentitiesMax ? &identities_[process] : nullptr;
}

void ProgramChanges::note_untrusted(std::span<const std::byte> block) {
  for_each_full_record(
      block, [this](uint16_t type, uint64_t ticks, std::span<const std::byte> body) {
        if (type == ARCTRACE_TYPE_PROCESS) {
          const auto process = begin_of<arctrace_process_body>(body);
          Identity* its = process ? identity(process->process) : nullptr;
          if (its == nullptr) return;
          its->pid = process->pid;
          its->was_executed = process->origin == ARCTRACE_ORIGIN_EXEC;
          its->start_ticks = process->start_ticks;
        } else if (type == ARCTRACE_TYPE_PID_NAMESPACE) {
          const auto space = begin_of<arctrace_pid_namespace_body>(body);
          Identity* its = space ? identity(space->process) : nullptr;
          if (its != nullptr) its->pid_namespace = space->inode;
        } else if (type == ARCTRACE_TYPE_PROCESS_END) {
          const auto end = begin_of<arctrace_process_end_body>(body);
          Identity* its = end ? identity(end->process) : nullptr;
          if (its == nullptr) return;
          its->has_exited =
              end->how == ARCTRACE_END_EXIT || end->how == ARCTRACE_END_EXIT_DIRECT;
          its->end_ticks = ticks;
        } else if (type == ARCTRACE_TYPE_THREAD) {
          const auto thread = begin_of<arctrace_thread_body>(body);
          Identity* its = thread ? identity(thread->process) : nullptr;
          if (its != nullptr && its->pid == thread->tid) its->has_first_thread = true;
        }
      });
}

ProgramChanges::Counts ProgramChanges::count() const {
  std::vector<const Identity*> order;
  order.reserve(identities_.size());
  for (const auto& [process, its] : identities_) {
    if (its.pid != 0) order.push_back(&its);
  }
  std::stable_sort(order.begin(), order.end(), [](const Identity* a, const Identity* b) {
    return std::tie(a->pid_namespace, a->pid, a->start_ticks) <
           std::tie(b->pid_namespace, b->pid, b->start_ticks);
  });
  Counts counts;
  for (size_t i = 1; i < order.size(); ++i) {
    const Identity &before = *order[i - 1], &its = *order[i];
    if (before.pid != its.pid || before.pid_namespace != its.pid_namespace ||
        !its.was_executed || (before.has_exited && before.end_ticks < its.start_ticks)) {
      continue;
    }
    ++counts.processes;
    counts.threads += before.has_first_thread && its.has_first_thread ? 1 : 0;
  }
  return counts;
}

namespace {

constexpr size_t kProgramsMax = 256;

}  // namespace

void UntracedPrograms::note_untrusted(std::span<const std::byte> block) {
  for_each_full_record(block, [this](uint16_t type, uint64_t,
                                     std::span<const std::byte> body) {
    if (type != ARCTRACE_TYPE_UNTRACED || body.size() < sizeof(arctrace_untraced_body) ||
        programs_.size() == kProgramsMax) {
      return;
    }
    const auto untraced = load_part_untrusted<arctrace_untraced_body>(body);
    const std::span<const std::byte> path = body.subspan(sizeof untraced);
    programs_.insert({std::string(reinterpret_cast<const char*>(path.data()),
                                  std::min<size_t>(untraced.path_size, path.size())),
                      untraced.why});
  });
}

}  // namespace arctrace::recorder
