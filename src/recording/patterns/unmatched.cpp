// Writes the warnings about patterns, events and names that nothing matched.
#include "src/recording/patterns/unmatched.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "reader/render/shell_text.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/glob.hpp"
#include "src/base/near_names.hpp"
#include "src/protocol/record_filter.hpp"
#include "src/recording/patterns/function_pattern.hpp"
#include "src/recording/patterns/program_functions.hpp"
#include "src/shim_protocol/options.hpp"
#include "src/shim_protocol/patching.hpp"

namespace arctrace::recording {

namespace {

// Adds a line for each glob of an option that matches none of the names. `what` has these
// names: "event".
void add_unmatched(const std::string& what, const std::string& option,
                   const std::vector<std::string>& globs,
                   const std::vector<std::string>& names,
                   std::vector<std::string>& lines) {
  for (const std::string& glob : globs) {
    const bool is_matched =
        std::any_of(names.begin(), names.end(),
                    [&](const std::string& name) { return glob_matches(glob, name); });
    if (is_matched) continue;
    const std::string line =
        absl::StrCat("no ", what, " matches ", option, " ", reader::escaped(glob));
    if (names.empty()) {
      lines.push_back(line + ": programs have defined none");
      continue;
    }
    std::vector<std::string> shown;
    shown.reserve(names.size());
    for (const std::string& name : names) shown.push_back(reader::escaped(name));
    lines.push_back(line + near_names(plain_part(glob), shown));
  }
}

}  // namespace

std::vector<std::string> unmatched_events(const RecordFilterOptions& filter,
                                          const EventLevels& events,
                                          const reader::FieldTypes& fields) {
  std::vector<std::string> lines;
  std::vector<std::string> names;
  for (const auto& [name, level] : events) names.push_back(name);
  add_unmatched("event", "--event", filter.events, names, lines);
  add_unmatched("event", "--no-event", filter.not_events, names, lines);
  if (filter.level && !events.empty()) {
    const uint32_t lowest =
        std::min_element(events.begin(), events.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->second;
    if (lowest > *filter.level) {
      lines.push_back(absl::StrCat("no event has level ", *filter.level,
                                   " or less: the lowest that programs have defined is ",
                                   lowest));
    }
  }
  const std::string unmet = reader::unmet_condition(filter.where, fields);
  if (!unmet.empty()) lines.push_back(reader::escaped(unmet));
  if (!lines.empty() || events.empty()) return lines;
  const std::string text = filter.text();
  const bool admits_one =
      std::any_of(events.begin(), events.end(), [&text](const auto& event) {
        return admits_event(text, event.first, event.second);
      });
  if (!admits_one) {
    lines.emplace_back(
        "--event, --no-event and --level together admit none of the events that programs "
        "have defined");
  }
  return lines;
}

std::vector<std::string> unmatched_instants(const RecordFilterOptions& filter,
                                            const DefinedNames& names) {
  std::vector<std::string> lines;
  const std::vector<std::string> all(names.begin(), names.end());
  add_unmatched("instant or counter", "--mark", filter.instants, all, lines);
  add_unmatched("instant or counter", "--no-mark", filter.not_instants, all, lines);
  if (!lines.empty() || filter.instants.empty()) return lines;
  const std::string text = filter.text();
  if (std::none_of(all.begin(), all.end(), [&text](const std::string& name) {
        return admits_instant(text, name);
      })) {
    lines.emplace_back(
        "--mark and --no-mark together admit none of the names that programs have "
        "defined");
  }
  return lines;
}

EventLevels events_of(const reader::Definitions& definitions) {
  EventLevels events;
  for (reader::ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    for (const reader::EventLayout* layout : definitions.layouts(i)) {
      const auto [known, is_new] = events.try_emplace(layout->name, layout->level);
      if (!is_new) known->second = std::min(known->second, layout->level);
    }
  }
  return events;
}

DefinedNames names_of(const reader::Definitions& definitions) {
  DefinedNames names;
  for (reader::ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    for (const std::string_view name : definitions.names(i)) names.emplace(name);
  }
  return names;
}

std::vector<std::string> unmatched_threads(const RecordFilterOptions& filter,
                                           const reader::BufferState& buffer) {
  using Slot = reader::BufferState::Slot;
  std::vector<std::string> lines;
  const auto add = [&](const char* what, const std::vector<uint32_t>& numbers,
                       uint32_t Slot::*number) {
    for (const uint32_t wanted : numbers) {
      const bool is_there = std::any_of(
          buffer.slots.begin(), buffer.slots.end(),
          [&](const Slot& slot) { return slot.alive && slot.*number == wanted; });
      if (!is_there) {
        lines.push_back(absl::StrCat("no ", what, " ", wanted,
                                     " writes into the session at present"));
      }
    }
  };
  add("process", filter.pids, &Slot::pid);
  add("thread", filter.tids, &Slot::tid);
  return lines;
}

namespace {

using PatternKind = shim::Pattern::Kind;

bool is_for_library(const PatternOption& option, const std::string& text) {
  return option.kind == PatternKind::kPatch &&
         !shim::split_patch_pattern(text).library.empty();
}

bool is_for_scopes(const PatternOption& option) {
  return option.kind == PatternKind::kFilter || option.kind == PatternKind::kNotrace;
}

// A program's functions, as far as its file has their names.
class ProgramFunctions {
 public:
  explicit ProgramFunctions(const std::string& command) : path_(find_program(command)) {
    const absl::StatusOr<reader::ElfFile> file = reader::ElfFile::open_untrusted(path_);
    if (!file.ok()) return;
    for (const reader::ElfSymbolTable& table : file->function_symbols()) {
      for (const reader::ElfSymbol& symbol : table.symbols) {
        functions_.emplace_back(table.names.c_str() + symbol.name);
        short_names_.push_back(functions_.back().brief);
      }
    }
    // Functions that the program calls in libraries count, too; some names are no
    // functions.
    const std::string dynamic = file->section_bytes(".dynstr").value_or("");
    for (const auto name : absl::StrSplit(dynamic, '\0', absl::SkipEmpty())) {
      short_names_.push_back(FunctionNames(std::string(name)).brief);
    }
    std::sort(short_names_.begin(), short_names_.end());
    short_names_.erase(std::unique(short_names_.begin(), short_names_.end()),
                       short_names_.end());
  }

  // A function that matches; null: none does.
  const FunctionNames* find(const FunctionPattern& pattern) const {
    const auto found =
        std::find_if(functions_.begin(), functions_.end(),
                     [&](const auto& names) { return pattern.matches_any(names); });
    return found == functions_.end() ? nullptr : &*found;
  }

  // The short names of its functions and of those that it calls in libraries.
  const std::vector<std::string>& short_names() const { return short_names_; }

  // Whether the shim finds a demangler in it, so that patterns match C++ names. Runs the
  // program's loader.
  bool demangles() const {
    const std::vector<std::string> libraries = libraries_of(path_);
    return exports_demangler(path_) ||
           std::any_of(libraries.begin(), libraries.end(), exports_demangler);
  }

 private:
  const std::string path_;
  std::vector<FunctionNames> functions_;
  std::vector<std::string> short_names_;
};

// The reason why a pattern matched no function, though the program has one that it
// matches. `patches`: -P was given, too.
std::string why_unmatched(const PatternOption& option, const FunctionPattern& pattern,
                          const FunctionNames& function, const ProgramFunctions& program,
                          bool patches) {
  const bool is_exact = pattern.text() == function.plain ||
                        pattern.text() == function.base ||
                        pattern.text() == function.brief;
  const std::string is_there =
      is_exact
          ? "it is in the program"
          : absl::StrCat("\"", reader::escaped(function.copy), "\" is in the program");
  if (option.kind == PatternKind::kPatch) {
    return absl::StrCat("; ", is_there,
                        ", but could not be patched: arctrace functions --list says why");
  }
  if (!pattern.matches_undemangled(function)) {
    const char* why = nullptr;
    if (function.linked.starts_with("_D")) {
      why = "names of D match only without template arguments and parameters";
    } else if (!program.demangles()) {
      why = "C++ names match only in programs with libstdc++";
    }
    if (why != nullptr) {
      return absl::StrCat("; ", is_there, ", but ", why, "; try ", option.option, " ",
                          reader::shell_word(function.base));
    }
  }
  if (patches) {
    return absl::StrCat("; ", is_there, ", but was not patched: try -P ",
                        reader::shell_word(pattern.text()),
                        ", or see arctrace functions --list");
  }
  return absl::StrCat("; ", is_there, ", but was not built with hooks: try -P ",
                      reader::shell_word(pattern.text()));
}

// The libraries' file names.
std::vector<std::string> library_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  names.reserve(paths.size());
  for (const std::string& path : paths) names.push_back(path.substr(path.rfind('/') + 1));
  return names;
}

// The line about a pattern of -P for libraries; empty: it is only `refused`.
std::string library_line(const std::string& text, const std::string& command,
                         bool refused) {
  const shim::PatchPattern split = shim::split_patch_pattern(text);
  const std::vector<std::string> paths = libraries_of(find_program(command));
  std::vector<std::string> names = library_names(paths);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!shim::is_for_module(split, names[i])) continue;
    std::vector<std::string> functions;
    const auto file = reader::ElfFile::open_untrusted(paths[i]);
    if (file.ok()) functions = file->exported_functions();
    const FunctionPattern pattern{std::string(split.function)};
    if (refused && std::any_of(functions.begin(), functions.end(), [&](const auto& name) {
          return pattern.matches_any(FunctionNames(name));
        })) {
      return "";
    }
    std::vector<std::string> short_names;
    short_names.reserve(functions.size());
    for (const std::string& name : functions) {
      short_names.push_back(FunctionNames(name).brief);
    }
    return absl::StrCat("no function of ", reader::escaped(names[i]),
                        " that can be patched "
                        "matches -P ",
                        reader::escaped(text),
                        near_names(plain_part(split.function), short_names));
  }
  // The names in the form that patterns may have.
  for (size_t i = 0; i < paths.size(); ++i) {
    names.push_back(names[i].substr(0, names[i].find(".so")));
  }
  return absl::StrCat("no library that was loaded matches -P ", reader::escaped(text),
                      near_names(plain_part(split.library), names));
}

// Empty: the pattern is only refused.
std::string line_for(const PatternOption& option, const std::string& text,
                     const ProgramFunctions& program, bool patches, bool refused) {
  const std::string pattern = pattern_of(option, text);
  std::string line = absl::StrCat(
      is_for_scopes(option) ? "no function or scope matches " : "no function matches ",
      option.option, " ", reader::escaped(text == "." ? text : pattern));
  const bool is_refused = refused && option.kind == PatternKind::kPatch;
  // Such a pattern matches all functions, so any of them would be a poor example.
  if (text == "." || pattern == "*") return is_refused ? "" : line;
  const FunctionPattern compiled(pattern);
  if (const FunctionNames* function = program.find(compiled); function != nullptr) {
    if (is_refused) return "";
    return line + why_unmatched(option, compiled, *function, program, patches);
  }
  const std::vector<std::string>& names = program.short_names();
  if (std::binary_search(names.begin(), names.end(), pattern)) {
    return line + "; it is a library's, and no call of it was hooked";
  }
  const std::string near = near_names(plain_part(pattern), names);
  // Other programs than the command may have it, and were refused.
  return is_refused && near.empty() ? "" : line + near;
}

}  // namespace

uint64_t matched_patterns(const CallFilterOptions& options,
                          const SessionFunctions& session) {
  uint64_t matched = 0;
  unsigned i = 0;
  for (const PatternOption& option : pattern_options(options)) {
    for (const std::string& text : *option.patterns) {
      const bool in_library = is_for_library(option, text);
      const FunctionPattern pattern(
          in_library ? std::string(shim::split_patch_pattern(text).function)
                     : pattern_of(option, text));
      const bool found =
          option.kind == PatternKind::kModule
              ? std::any_of(session.modules.begin(), session.modules.end(),
                            [&](const auto& name) { return pattern.matches(name); })
              : std::any_of(
                    session.functions.begin(), session.functions.end(),
                    [&](const auto& names) { return names.is_matched_by(pattern); }) ||
                    (is_for_scopes(option) &&
                     std::any_of(
                         session.scopes.begin(), session.scopes.end(),
                         [&](const auto& name) { return pattern.matches(name); }));
      matched |= uint64_t{found} << i++;
    }
  }
  return matched;
}

std::vector<std::string> unmatched_patterns(const CallFilterOptions& options,
                                            uint64_t matched, const std::string& command,
                                            RefusedPatches refused) {
  std::vector<std::string> lines;
  std::unique_ptr<ProgramFunctions> program;  // read when it is needed
  for (const PatternOption& option : pattern_options(options)) {
    for (const std::string& text : *option.patterns) {
      const bool is_matched = (matched & 1) != 0;
      matched >>= 1;
      if (is_matched) continue;
      if (option.kind == PatternKind::kModule) {
        lines.push_back(absl::StrCat("no function of a module like ", option.option, " ",
                                     reader::escaped(text)));
        continue;
      }
      if (is_for_library(option, text)) {
        lines.push_back(library_line(text, command, refused.libraries));
        continue;
      }
      if (program == nullptr) program = std::make_unique<ProgramFunctions>(command);
      lines.push_back(
          line_for(option, text, *program, !options.patch.empty(), refused.programs));
    }
  }
  std::erase(lines, "");
  return lines;
}

}  // namespace arctrace::recording
