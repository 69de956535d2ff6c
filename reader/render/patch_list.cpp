#include "reader/render/patch_list.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <arctrace/format.h>

#include <algorithm>

#include "reader/render/session_text.hpp"
#include "reader/trace/bytes.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// An address in a process, and in the file of its module, if that is known.
struct PatchedPlace {
  uint64_t address = 0;
  const Module* module = nullptr;
  const StoredSymbols& stored;

  PatchedPlace(const Definitions& definitions, ProcessIndex process, uint64_t function)
      : address(function),
        module(definitions.module_at(process, function,
                                     definitions.process(process)->start_ns)),
        stored(definitions.symbols()) {}

  uint64_t in_file() const {
    return module == nullptr ? address : address - module->bias;
  }
  // Empty: nothing is known.
  std::string name(Symbolizer& names) const {
    if (module == nullptr) return "";
    const std::string_view name =
        names.resolve(stored, module->path, module->build_id, in_file()).function;
    if (!name.empty()) return std::string(name);
    return absl::StrCat(module->path.substr(module->path.rfind('/') + 1), "+0x",
                        absl::Hex(in_file()));
  }
};

// Whether functions with this verdict were left alone.
bool is_left(uint32_t verdict) {
  return verdict != ARCTRACE_PATCH_DONE && verdict != ARCTRACE_PATCH_FLOODED &&
         patch_refusal_text(verdict).empty();
}

// Of the functions with one verdict.
template <class Counts>
uint64_t count_of(const Counts& counts, uint32_t verdict) {
  const auto found = counts.find(verdict);
  return found == counts.end() ? 0 : found->second.all;
}

std::string count_line(uint64_t count, const char* what, uint32_t verdict) {
  return absl::StrFormat("%9d  %s%s\n", count, what, patch_verdict_text(verdict).reason);
}

std::string name_line(const PatchedPlace& place, Symbolizer& names) {
  const std::string name = place.name(names);
  return absl::StrFormat("             %s\n", name.empty()
                                                  ? absl::StrFormat("%#x", place.address)
                                                  : escaped(name));
}

}  // namespace

// What is shown of the processes that run one file.
struct PatchList::Program {
  // That which knows of most functions.
  ProcessIndex process = kNoIndex;
  const Counts* counts = nullptr;
  // Those of all, by their addresses in the file: a process, and the address there.
  absl::btree_map<uint64_t, std::pair<ProcessIndex, uint64_t>> switched_off;
};

void PatchList::note(const Record& record) {
  if (record.type != ARCTRACE_TYPE_PATCHES) return;
  BodyReader reader(record.body);
  const auto body = reader.read<arctrace_patches_body>();
  Count& count = processes_[body.process][body.verdict];
  if (body.listed == 0) {
    if (count.others.insert(body.count).second) count.all += body.count;
    return;
  }
  bool is_new = false;
  for (uint32_t i = 0; i < body.listed && !reader.rest().empty(); ++i) {
    is_new |= count.listed.insert(reader.read<uint64_t>()).second;
  }
  if (is_new) count.all += body.count;
}

std::optional<std::string> PatchList::refusal_of(const Counts& counts) {
  for (const auto& [verdict, unused] : counts) {
    std::string text = patch_refusal_text(verdict);
    if (!text.empty()) return text;
  }
  return std::nullopt;
}

// But for those that were switched off, which are among the others.
uint64_t PatchList::known_functions(const Counts& counts) {
  uint64_t sum = 0;
  for (const auto& [verdict, count] : counts) {
    if (verdict != ARCTRACE_PATCH_FLOODED) sum += count.all;
  }
  return sum;
}

std::string PatchList::text_of(const Program& program, const Definitions& definitions,
                               Symbolizer* names) {
  const Counts& counts = *program.counts;
  std::string out = absl::StrCat(
      "\n", count_text(count_of(counts, ARCTRACE_PATCH_DONE), "patched function"), " of ",
      escaped(definitions.process(program.process)->executable), "\n");
  if (const auto refusal = refusal_of(counts)) {
    absl::StrAppend(&out, "  none was patched: ", *refusal, "\n");
  }
  if (!program.switched_off.empty()) {
    out += count_line(program.switched_off.size(), "of them ", ARCTRACE_PATCH_FLOODED);
    for (const auto& [unused, at] : program.switched_off) {
      if (names == nullptr) break;
      out += name_line(PatchedPlace(definitions, at.first, at.second), *names);
    }
  }
  for (const auto& [verdict, count] : counts) {
    if (!is_left(verdict)) continue;
    out += count_line(count.all, "left: ", verdict);
    for (const uint64_t function : count.listed) {
      if (names == nullptr) break;
      out += name_line(PatchedPlace(definitions, program.process, function), *names);
    }
  }
  return out;
}

std::string PatchList::text(const Definitions& definitions, Symbolizer* names) const {
  absl::btree_map<std::string, Program> programs;
  for (const auto& [id, counts] : processes_) {
    const ProcessIndex index = definitions.find_process(id);
    const Process* process = definitions.process(index);
    if (process == nullptr) continue;
    Program& program = programs[process->executable];
    if (program.counts == nullptr ||
        known_functions(counts) > known_functions(*program.counts)) {
      program.process = index;
      program.counts = &counts;
    }
    const auto flooded = counts.find(ARCTRACE_PATCH_FLOODED);
    if (flooded == counts.end()) continue;
    for (const uint64_t function : flooded->second.listed) {
      program.switched_off.try_emplace(
          PatchedPlace(definitions, index, function).in_file(), index, function);
    }
  }
  std::string out;
  for (const auto& [unused, program] : programs) {
    out += text_of(program, definitions, names);
  }
  return out;
}

const PatchList::Counts* PatchList::own_counts(const Definitions& definitions,
                                               ProcessIndex process) const {
  const auto found = processes_.find(definitions.process(process)->id);
  return found == processes_.end() ? nullptr : &found->second;
}

// Those of the process that has patched the program: this one, or one before it was
// forked.
const PatchList::Counts* PatchList::inherited_counts(const Definitions& definitions,
                                                     ProcessIndex process) const {
  for (int i = 0; i < Definitions::kForkDepthMax && process != kNoIndex; ++i) {
    const Counts* counts = own_counts(definitions, process);
    if (counts != nullptr &&
        (known_functions(*counts) != 0 || refusal_of(*counts).has_value())) {
      return counts;
    }
    process = definitions.inherited_from(process);
  }
  return nullptr;
}

void PatchList::write_json(const Definitions& definitions, ProcessIndex process,
                           Symbolizer* names, JsonWriter& json) const {
  static const Counts none;
  const Counts* own = own_counts(definitions, process);
  const Counts* inherited = inherited_counts(definitions, process);
  if (own == nullptr && inherited == nullptr) return json.value(nullptr);
  if (own == nullptr) own = &none;
  if (inherited == nullptr) inherited = &none;
  json.begin_object();
  json.member("patched", count_of(*inherited, ARCTRACE_PATCH_DONE));
  json.member("refused", refusal_of(*inherited));
  json.member("switched_off", count_of(*own, ARCTRACE_PATCH_FLOODED));
  json.key("left").begin_object();
  for (const auto& [verdict, count] : *inherited) {
    if (is_left(verdict)) json.member(patch_verdict_text(verdict).key, count.all);
  }
  json.end();
  if (names != nullptr) {
    json.key("functions").begin_array();
    const auto write = [&](const Counts& counts, bool flooded) {
      for (const auto& [verdict, count] : counts) {
        if ((verdict == ARCTRACE_PATCH_FLOODED) != flooded) continue;
        for (const uint64_t function : count.listed) {
          const PatchedPlace place(definitions, process, function);
          json.begin_object();
          json.member("address", absl::StrCat("0x", absl::Hex(function)));
          json.member("name", place.name(*names));
          json.member("verdict", patch_verdict_text(verdict).key);
          json.end();
        }
      }
    };
    write(*inherited, false);
    write(*own, true);
    json.end();
  }
  json.end();
}

}  // namespace arctrace::reader
