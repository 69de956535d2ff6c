// Reads types from the DWARF data of the program and its libraries, and encodes them for
// the shim.
#include "src/recording/arg_types.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <arctrace/format.h>
#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "reader/symbols/elf_file.hpp"
#include "reader/symbols/function_types.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/recording/patterns/function_pattern.hpp"
#include "src/recording/patterns/program_functions.hpp"
#include "src/shim_protocol/arg_spec_code.hpp"
#include "src/shim_protocol/auto_args.hpp"
#include "src/shim_protocol/call_kinds.hpp"

namespace arctrace::recording {
namespace {

using reader::FunctionTypes;
using reader::TypedArg;

constexpr const char* kEntryHooks[] = {"__fentry__", "mcount", "_mcount"};

struct Spec {
  const char* option;
  std::string text;  // the pattern
  bool has_specs;
  std::unique_ptr<FunctionPattern> pattern;
};

std::vector<Spec> specs_of(const CallFilterOptions& options) {
  std::vector<Spec> specs;
  const auto add = [&specs](const char* option, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const size_t at = text.rfind('@');
      std::string pattern = text.substr(0, at);
      auto compiled = std::make_unique<FunctionPattern>(pattern);
      specs.push_back(
          {option, std::move(pattern), at != std::string::npos, std::move(compiled)});
    }
  };
  add("-A", options.args);
  add("-R", options.retvals);
  return specs;
}

bool has_auto_args(const std::string& name) {
  return std::any_of(std::begin(shim::kAutoArgsTable), std::end(shim::kAutoArgsTable),
                     [&](const auto& known) { return name == known.name.text; });
}

// Whether auto-args apply: not to functions with rules of their own, or without values.
bool is_recorded(const std::string& name) {
  return shim::call_kind(name.c_str()) != shim::CallKind::kSkipped;
}

// The linker's names of the functions that the program calls in other modules.
std::set<std::string> imported_functions(const reader::ElfFile& file) {
  std::set<std::string> names;
  file.for_each_dynamic_symbol([&names](const reader::ElfDynamicSymbol& symbol) {
    const bool is_function = symbol.type == STT_FUNC || symbol.type == STT_NOTYPE;
    if (!symbol.is_defined && is_function && *symbol.name != '\0') {
      names.insert(symbol.name);
    }
    return true;
  });
  return names;
}

// Whether the file's functions have only hooks that don't see the arguments.
bool is_only_instrumented(const reader::ElfFile& file,
                          const std::set<std::string>& imports) {
  return imports.contains("__cyg_profile_func_enter") &&
         !file.has_section("__patchable_function_entries") &&
         !file.has_section("xray_instr_map") &&
         std::none_of(std::begin(kEntryHooks), std::end(kEntryHooks),
                      [&](const char* hook) { return imports.contains(hook); });
}

// The kind: enum arctrace_value_kind, or ARCTRACE_SHIM_STD_STRING.
uint8_t kind_of(TypedArg::Kind kind) {
  switch (kind) {
    case TypedArg::Kind::kSigned:
      return ARCTRACE_VALUE_SIGNED;
    case TypedArg::Kind::kUnsigned:
      return ARCTRACE_VALUE_UNSIGNED;
    case TypedArg::Kind::kBool:
      return ARCTRACE_VALUE_BOOL;
    case TypedArg::Kind::kChar:
      return ARCTRACE_VALUE_CHAR;
    case TypedArg::Kind::kPointer:
      return ARCTRACE_VALUE_POINTER;
    case TypedArg::Kind::kString:
      return ARCTRACE_VALUE_STRING;
    case TypedArg::Kind::kStdString:
      return ARCTRACE_SHIM_STD_STRING;
    default:
      return ARCTRACE_VALUE_FLOAT;
  }
}

bool is_identifier(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

// "/1=one/2=two"; empty if it is too long for one of eight in a name.
std::string encoded_enumerators(const TypedArg& value) {
  constexpr size_t kTextMax = 400;
  std::string text;
  for (const reader::Enumerator& enumerator : value.enumerators) {
    if (!is_identifier(enumerator.name)) return {};
    absl::StrAppend(&text, "/", enumerator.value, "=", enumerator.name);
  }
  return text.size() <= kTextMax ? text : std::string();
}

// The types of a function as the shim takes them.
class EncodedTypes {
 public:
  explicit EncodedTypes(const FunctionTypes& types) {
    constexpr size_t kNamesMax = 1000;  // of one name's bytes, that a process defines
    std::vector<std::string> names;
    std::vector<std::string> words;  // names with enumerators
    for (const TypedArg& value : types.args) {
      if (names.size() == ARCTRACE_SHIM_RECORDED_ARGS_MAX) break;
      if (!add_spec(value)) continue;
      names.push_back(value.name);
      words.push_back(value.name + encoded_enumerators(value));
    }
    if (std::all_of(names.begin(), names.end(), is_identifier)) {
      arg_names_ = absl::StrJoin(words, ",");
      if (arg_names_.size() > kNamesMax) arg_names_ = absl::StrJoin(names, ",");
    }
    if (types.retval && add_spec(*types.retval)) {
      retval_names_ = encoded_enumerators(*types.retval);
    }
  }

  // The texts, valid as long as this object.
  shim::OptionsEncoder::Types texts() const {
    return {arg_specs_, arg_names_, retval_names_};
  }

 private:
  // Adds a value. False: it is not where the shim could find it.
  bool add_spec(const TypedArg& value) {
    if (value.position > UINT8_MAX || value.size > UINT8_MAX) return false;
    const arctrace_shim_arg_spec spec = {.kind = kind_of(value.kind),
                                         .argument = static_cast<uint8_t>(value.position),
                                         .size = static_cast<uint8_t>(value.size),
                                         .failure = ARCTRACE_SHIM_FAILS_NEVER};
    if (!shim::is_valid_arg_spec(spec)) return false;
    arg_specs_.append(shim::encode_arg_spec(spec).text, shim::kArgSpecSize);
    return true;
  }

  std::string arg_specs_;
  std::string arg_names_;
  std::string retval_names_;
};

std::string listed(const std::set<std::string>& names) {
  constexpr size_t kShownMax = 3;
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() < kShownMax) shown.push_back(reader::escaped(name));
  }
  const size_t more = names.size() - shown.size();
  return absl::StrJoin(shown, ", ") +
         (more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

// A file whose functions have hooks: the program, or a library that it is linked with.
struct HookedFile {
  HookedFile(std::string file_path, const reader::ElfFile& file)
      : path(std::move(file_path)), imports(imported_functions(file)) {
    hides_args = is_only_instrumented(file, imports);
    has_hooks = file.has_section("__patchable_function_entries") ||
                file.has_section("xray_instr_map") ||
                imports.contains("__cyg_profile_func_enter") ||
                std::any_of(std::begin(kEntryHooks), std::end(kEntryHooks),
                            [&](const char* hook) { return imports.contains(hook); });
    for (const reader::ElfSymbolTable& table : file.function_symbols()) {
      for (const reader::ElfSymbol& symbol : table.symbols) {
        const std::string name = table.names.c_str() + symbol.name;
        // Parts and copies of functions have other parameters, or none.
        if (name.find('.') == std::string::npos) defined.emplace(name, symbol.address);
      }
    }
  }

  std::string path;
  std::set<std::string> imports;
  bool hides_args = false;
  bool has_hooks = false;
  std::multimap<std::string, uint64_t> defined;
  std::map<uint64_t, FunctionTypes> types;  // of the wanted ones that are known
};

// Finds the types of functions of one program and its libraries.
class TypeFinder {
 public:
  TypeFinder(std::string path, const reader::ElfFile& file)
      : imports_(imported_functions(file)) {
    files_.emplace_back(std::move(path), file);
  }

  // Encodes the types; returns a line for each spec that can't be recorded.
  std::vector<std::string> encode(const std::vector<Spec>& specs,
                                  shim::OptionsEncoder& encoder) {
    std::set<std::string> declared;
    for (const Spec& spec : specs) {
      if (spec.has_specs) continue;
      for_imports(spec, [&](const std::string& name) { declared.insert(name); });
    }
    find_in(files_.front(), specs, declared);
    for (const auto& [name, types] : declared_) declared.erase(name);
    const bool wants_types = std::any_of(
        specs.begin(), specs.end(), [](const Spec& spec) { return !spec.has_specs; });
    if (wants_types) add_libraries(specs, declared);
    put_types(encoder);
    std::vector<std::string> warnings;
    for (const Spec& spec : specs) add_warning(spec, warnings);
    return warnings;
  }

 private:
  // Functions with auto-args need no types.
  template <class Visit>
  void for_imports(const Spec& spec, const Visit& visit) {
    for (const std::string& name : imports_) {
      if (!has_auto_args(name) && is_recorded(name) &&
          spec.pattern->matches_any(FunctionNames(name))) {
        visit(name);
      }
    }
  }

  template <class Visit>
  static void for_defined(const HookedFile& file, const Spec& spec, const Visit& visit) {
    for (const auto& [name, address] : file.defined) {
      if (spec.pattern->matches_any(FunctionNames(name))) visit(name, address);
    }
  }

  // Reads the types of the functions of `file` that the specs match, and of the program's
  // imports `declared`, whose types its own debug information may have.
  void find_in(HookedFile& file, const std::vector<Spec>& specs,
               const std::set<std::string>& declared) {
    std::set<uint64_t> wanted;
    for (const Spec& spec : specs) {
      if (spec.has_specs) continue;
      for_defined(file, spec,
                  [&](const std::string&, uint64_t address) { wanted.insert(address); });
    }
    if (wanted.empty() && declared.empty()) return;
    reader::ModuleTypes types =
        reader::read_function_types_untrusted(file.path, debug_files_, wanted, declared);
    file.types = std::move(types.defined);
    declared_.merge(types.declared);
  }

  // Finds the types of the imports that are `missing` in the program in the first library
  // that defines them. Libraries may also have functions with hooks.
  void add_libraries(const std::vector<Spec>& specs, std::set<std::string> missing) {
    for (const std::string& path : libraries_of(files_.front().path)) {
      const absl::StatusOr<reader::ElfFile> elf = reader::ElfFile::open_untrusted(path);
      if (!elf.ok()) continue;
      HookedFile file(path, *elf);
      std::map<std::string, uint64_t> offered;
      std::set<uint64_t> addresses;
      for (const std::string& name : missing) {
        const auto found = file.defined.find(name);
        if (found == file.defined.end()) continue;
        offered.emplace(name, found->second);
        addresses.insert(found->second);
      }
      for (const auto& [name, address] : offered) missing.erase(name);
      if (!addresses.empty()) {
        const reader::ModuleTypes types =
            reader::read_function_types_untrusted(path, debug_files_, addresses, {});
        for (const auto& [name, address] : offered) {
          const auto found = types.defined.find(address);
          if (found != types.defined.end()) declared_.emplace(name, found->second);
        }
      }
      if (!file.has_hooks) continue;
      find_in(file, specs, {});
      files_.push_back(std::move(file));
    }
  }

  void put_types(shim::OptionsEncoder& encoder) const {
    for (const HookedFile& file : files_) {
      struct stat status {};
      if (file.types.empty() || stat(file.path.c_str(), &status) != 0) continue;
      encoder.set_file(status.st_dev, status.st_ino);
      for (const auto& [address, types] : file.types) {
        encoder.add_function(address, EncodedTypes(types).texts());
      }
    }
    for (const auto& [name, types] : declared_) {
      encoder.add_callee(name, EncodedTypes(types).texts());
    }
  }

  void add_warning(const Spec& spec, std::vector<std::string>& warnings) {
    std::set<std::string> unseen, unknown;
    for (const HookedFile& file : files_) {
      if (spec.has_specs && !file.hides_args) continue;
      for_defined(file, spec, [&](const std::string& name, uint64_t address) {
        if (file.hides_args) unseen.insert(name);
        if (!file.types.contains(address)) unknown.insert(name);
      });
    }
    for_imports(spec, [&](const std::string& name) {
      if (!declared_.contains(name) && !has_types(name)) unknown.insert(name);
    });
    const std::string option =
        absl::StrCat(spec.option, " ", reader::escaped(spec.text), ": ");
    if (!unseen.empty()) {
      warnings.push_back(absl::StrCat(
          option, "-finstrument-functions hides what functions are given and return: ",
          listed(unseen), "; -pg -mfentry and -fpatchable-function-entry=5 do not"));
    } else if (!spec.has_specs && !unknown.empty()) {
      warnings.push_back(absl::StrCat(
          option, "no types are known of ", listed(unknown), ": build with -g, or say ",
          spec.option, " ", reader::escaped(spec.text),
          spec.option == std::string("-A") ? "@arg1/i32" : "@retval/i32"));
    }
  }

  // Whether the types of a library's function with a hook are known.
  bool has_types(const std::string& name) const {
    return std::any_of(files_.begin(), files_.end(), [&](const HookedFile& file) {
      const auto found = file.defined.find(name);
      return found != file.defined.end() && file.types.contains(found->second);
    });
  }

  const reader::DebugFiles debug_files_{reader::SymbolOptions{}};
  std::set<std::string> imports_;                  // of the program
  std::vector<HookedFile> files_;                  // the program comes first
  std::map<std::string, FunctionTypes> declared_;  // functions that the program imports
};

}  // namespace

std::vector<std::string> encode_types(const CallFilterOptions& options,
                                      const std::string& command,
                                      shim::OptionsEncoder& encoder) {
  const std::vector<Spec> specs = specs_of(options);
  if (specs.empty() || command.empty()) return {};
  const std::string path = find_program(command);
  const absl::StatusOr<reader::ElfFile> file = reader::ElfFile::open_untrusted(path);
  if (!file.ok()) return {};
  return TypeFinder(path, *file).encode(specs, encoder);
}

}  // namespace arctrace::recording
