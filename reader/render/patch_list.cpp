#include "reader/render/patch_list.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <arctrace/format.h>

#include <algorithm>

#include "reader/render/session_text.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// Returns the function's name, else its place in the module; empty: nothing is known.
std::string name_of(const Definitions& definitions, ProcessIndex process,
                    uint64_t address, int64_t time_ns, Symbolizer& names) {
  const Module* module = definitions.module_at(process, address, time_ns);
  if (module == nullptr) return "";
  const uint64_t in_file = address - module->bias;
  const std::string_view name =
      names.resolve(definitions.symbols(), module->path, module->build_id, in_file)
          .function;
  if (!name.empty()) return std::string(name);
  return absl::StrCat(module->path.substr(module->path.rfind('/') + 1), "+0x",
                      absl::Hex(in_file));
}

// Whether functions with this verdict were skipped.
bool is_left(uint32_t verdict) {
  return verdict != ARCTRACE_PATCH_DONE && verdict != ARCTRACE_PATCH_THROTTLED &&
         verdict != ARCTRACE_PATCH_OVERWRITTEN && patch_refusal_text(verdict).empty();
}

// Returns the number of functions with one verdict.
template <class Counts>
uint64_t count_of(const Counts& counts, uint32_t verdict) {
  const auto found = counts.find(verdict);
  return found == counts.end() ? 0 : found->second.all;
}

std::string count_line(uint64_t count, const char* what, uint32_t verdict) {
  return absl::StrFormat("%9d  %s%s\n", count, what, patch_verdict_text(verdict).reason);
}

}  // namespace

// What the text shows of a module.
struct PatchList::Shown {
  std::string path;
  Counts counts;  // of the process that knows of most of its functions
  absl::btree_map<uint64_t, Function> switched_off;  // in any process
};

void PatchList::note(const Record& record) {
  if (record.type != ARCTRACE_TYPE_PATCHES) return;
  BodyReader reader(record.body);
  const auto body = reader.read<arctrace_patches_body>();
  Noted noted{body.verdict, body.count, {}};
  for (uint32_t i = 0; i < body.listed && !reader.rest().empty(); ++i) {
    noted.listed.push_back(reader.read<uint64_t>());
  }
  processes_[body.process].emplace(std::move(noted), record.time_ns);
}

std::optional<std::string> PatchList::refusal_of(const Counts& counts) {
  for (const auto& [verdict, unused] : counts) {
    std::string text = patch_refusal_text(verdict);
    if (!text.empty()) return text;
  }
  return std::nullopt;
}

// Sums up all functions but those that were switched off, which have another verdict,
// too, and those with compiled-in hooks.
uint64_t PatchList::known_functions(const Counts& counts) {
  uint64_t sum = 0;
  for (const auto& [verdict, count] : counts) {
    if (verdict != ARCTRACE_PATCH_THROTTLED && verdict != ARCTRACE_PATCH_OVERWRITTEN) {
      sum += count.all;
    }
  }
  return sum;
}

std::string PatchList::text_of(const Shown& shown, const Definitions& definitions,
                               Symbolizer* names) {
  const auto add_names = [&](const absl::btree_map<uint64_t, Function>& functions,
                             std::string& out) {
    if (names == nullptr) return;
    for (const auto& [unused, one] : functions) {
      const std::string name =
          name_of(definitions, one.process, one.address, one.time_ns, *names);
      absl::StrAppendFormat(
          &out, "             %s\n",
          name.empty() ? absl::StrFormat("%#x", one.address) : escaped(name));
    }
  };
  std::string out = absl::StrCat(
      "\n", count_text(count_of(shown.counts, ARCTRACE_PATCH_DONE), "patched function"),
      " of ", escaped(shown.path), "\n");
  if (const auto refusal = refusal_of(shown.counts)) {
    absl::StrAppend(&out, "  none was patched: ", *refusal, "\n");
  }
  if (!shown.switched_off.empty()) {
    out += count_line(shown.switched_off.size(), "of them ", ARCTRACE_PATCH_THROTTLED);
    add_names(shown.switched_off, out);
  }
  for (const auto& [verdict, count] : shown.counts) {
    if (!is_left(verdict) && verdict != ARCTRACE_PATCH_OVERWRITTEN) continue;
    out += count_line(count.all, "left: ", verdict);
    if (verdict != ARCTRACE_PATCH_SMALL && verdict != ARCTRACE_PATCH_PART &&
        verdict != ARCTRACE_PATCH_SLOT_STUB) {
      add_names(count.listed, out);
    }
  }
  return out;
}

std::string PatchList::text(const Definitions& definitions, Symbolizer* names) const {
  // By the program's path, and the library's.
  absl::btree_map<std::pair<std::string, std::string>, Shown> modules;
  for (const auto& [id, unused] : processes_) {
    const ProcessIndex index = definitions.find_process(id);
    const Process* process = definitions.process(index);
    if (process == nullptr) continue;
    for (auto& [path, counts] : own_modules(definitions, index)) {
      const std::string program = path.empty() ? process->executable : "";
      Shown& shown = modules[{program, path}];
      shown.path = path.empty() ? process->executable : path;
      const auto flooded = counts.find(ARCTRACE_PATCH_THROTTLED);
      if (flooded != counts.end()) {
        shown.switched_off.insert(flooded->second.listed.begin(),
                                  flooded->second.listed.end());
      }
      if (shown.counts.empty() ||
          known_functions(counts) > known_functions(shown.counts)) {
        shown.counts = counts;
      }
    }
  }
  std::string programs;
  std::string libraries;
  for (const auto& [key, shown] : modules) {
    (key.second.empty() ? programs : libraries) += text_of(shown, definitions, names);
  }
  return programs + libraries;
}

// Returns what a process' own records tell, by module. Records that list no address are
// about the program, and so are those whose address is in no known module.
PatchList::Modules PatchList::own_modules(const Definitions& definitions,
                                          ProcessIndex process) const {
  Modules modules;
  const Process& known = *definitions.process(process);
  const auto found = processes_.find(known.id);
  if (found == processes_.end()) return modules;
  for (const auto& [noted, time_ns] : found->second) {
    const Module* module =
        noted.listed.empty()
            ? nullptr
            : definitions.module_at(process, noted.listed.front(), time_ns);
    const bool is_library = module != nullptr && module->path != known.executable;
    Count& count = modules[is_library ? module->path : ""][noted.verdict];
    if (noted.listed.empty()) {
      if (count.others.insert(noted.count).second) count.all += noted.count;
      continue;
    }
    bool is_new = false;
    for (const uint64_t address : noted.listed) {
      const uint64_t in_file = module == nullptr ? address : address - module->bias;
      is_new |=
          count.listed.try_emplace(in_file, Function{process, address, time_ns}).second;
    }
    // A verdict that nothing was patched lists an address only to name the library.
    if (is_new && patch_refusal_text(noted.verdict).empty()) count.all += noted.count;
  }
  return modules;
}

// Returns the modules of the process that has patched them: this one, or one from which
// it was forked.
PatchList::Modules PatchList::inherited_modules(const Definitions& definitions,
                                                ProcessIndex process) const {
  for (int i = 0; i < Definitions::kForkDepthMax && process != kNoIndex; ++i) {
    Modules modules = own_modules(definitions, process);
    for (const auto& [unused, counts] : modules) {
      if (known_functions(counts) != 0 || refusal_of(counts).has_value()) return modules;
    }
    process = definitions.inherited_from(process);
  }
  return {};
}

void PatchList::write_counts(const Counts& own, const Counts& inherited,
                             JsonWriter& json) {
  json.member("patched", count_of(inherited, ARCTRACE_PATCH_DONE));
  json.member("refused", refusal_of(inherited));
  json.member("switched_off", count_of(own, ARCTRACE_PATCH_THROTTLED));
  json.key("left").begin_object();
  for (const auto& [verdict, count] : inherited) {
    if (is_left(verdict)) json.member(patch_verdict_text(verdict).key, count.all);
  }
  if (const uint64_t count = count_of(own, ARCTRACE_PATCH_OVERWRITTEN); count != 0) {
    json.member(patch_verdict_text(ARCTRACE_PATCH_OVERWRITTEN).key, count);
  }
  json.end();
}

// `changed`: functions that were switched off or overwritten; else those that were left.
void PatchList::write_functions(const Counts& counts, bool changed,
                                const Definitions& definitions, Symbolizer& names,
                                JsonWriter& json) {
  for (const auto& [verdict, count] : counts) {
    const bool is_changed =
        verdict == ARCTRACE_PATCH_THROTTLED || verdict == ARCTRACE_PATCH_OVERWRITTEN;
    if (is_changed != changed || (!changed && !is_left(verdict)) ||
        verdict == ARCTRACE_PATCH_SMALL || verdict == ARCTRACE_PATCH_PART ||
        verdict == ARCTRACE_PATCH_SLOT_STUB) {
      continue;
    }
    for (const auto& [unused, one] : count.listed) {
      json.begin_object();
      json.member("address", absl::StrCat("0x", absl::Hex(one.address)));
      json.member("name",
                  name_of(definitions, one.process, one.address, one.time_ns, names));
      json.member("verdict", patch_verdict_text(verdict).key);
      json.end();
    }
  }
}

void PatchList::write_json(const Definitions& definitions, ProcessIndex process,
                           Symbolizer* names, JsonWriter& json) const {
  Modules own = own_modules(definitions, process);
  Modules inherited = inherited_modules(definitions, process);
  if (own.empty() && inherited.empty()) return json.value(nullptr);
  const auto write = [&](const std::string& path) {
    write_counts(own[path], inherited[path], json);
    if (names == nullptr) return;
    json.key("functions").begin_array();
    write_functions(inherited[path], false, definitions, *names, json);
    write_functions(own[path], true, definitions, *names, json);
    json.end();
  };
  json.begin_object();
  write("");
  json.key("libraries").begin_array();
  std::set<std::string> paths;
  for (const auto& [path, unused] : own) paths.insert(path);
  for (const auto& [path, unused] : inherited) paths.insert(path);
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    json.begin_object();
    json.member("path", path);
    write(path);
    json.end();
  }
  json.end();
  json.end();
}

}  // namespace arctrace::reader
