// Matches patterns against a function's names: the linker's, with and without the
// suffixes of copies that compilers make, the C++ name by the program's own
// __cxa_demangle, with its parameters and without, the names of other languages
// (src/base/language_names.hpp), and the short forms of both (src/base/short_names.hpp).
// Regular expressions are libc's.
#include "writer_shim/filter/function_patterns.hpp"

#include <regex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <iterator>

#include "src/api/shim_interface.h"
#include "src/base/function_names.hpp"
#include "src/base/glob.hpp"
#include "src/base/language_names.hpp"
#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/base/short_names.hpp"
#include "src/base/text.hpp"
#include "writer_shim/elf/symbol_search.hpp"

namespace arctrace::shim {
namespace {

using Demangler = char*(const char* name, char* buffer, size_t* size, int* status);

const ShimOptions* options;  // null: there is no pattern
ARCTRACE_LARGE_TABLE constinit regex_t expressions[kPatternsMax]{};
bool has_expression[kPatternsMax];
uint64_t matched;  // patterns that some function has matched
Demangler* demangler;

// Memory for a decoded name and for short forms, which is kept for the next name. It is
// mapped with the first patterns, so that it is there when the process has confined
// itself; a thread that finds it in use maps its own.
uint64_t kept_memory;  // its address; 0: it is in use, or not mapped yet

class NameMemory {
 public:
  NameMemory() : address_(IpcAtomics::exchange_acq_rel(kept_memory, uint64_t{0})) {
    if (address_ != 0) return;
    address_ = reinterpret_cast<uintptr_t>(
        sys::map(kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
  }
  ~NameMemory() {
    const uint64_t other = IpcAtomics::exchange_acq_rel(kept_memory, address_);
    if (other != 0) raw_syscall(SYS_munmap, static_cast<long>(other), kSize);
  }
  NameMemory(const NameMemory&) = delete;
  NameMemory& operator=(const NameMemory&) = delete;

  // kDecodedNameMax bytes and one; null: there is no memory.
  char* bytes() const {
    return reinterpret_cast<char*>(static_cast<uintptr_t>(address_));
  }
  // Memory for a short form. REQUIRES: there is memory.
  char* form(size_t i) const {
    return bytes() + kDecodedNameMax + 1 + i * (kShortenedNameMax + 1);
  }

 private:
  static constexpr size_t kSize =
      kDecodedNameMax + 1 + std::size(kNameForms) * (kShortenedNameMax + 1);

  uint64_t address_;
};

bool matches(size_t pattern, const char* name) {
  if (has_expression[pattern]) {
    return regexec(&expressions[pattern], name, 0, nullptr, 0) == 0;
  }
  const char* glob = options->patterns[pattern].text;
  return glob_matches({glob, text_length(glob, SIZE_MAX)},
                      {name, text_length(name, SIZE_MAX)});
}

// A function's names: the linker's, and of a C++ function also the demangled one, or of
// another language's its own; of a copy that a compiler made those of the copy and of its
// function.
class Names {
 public:
  explicit Names(const char* name) {
    const std::string_view linked(name, text_length(name, kLinkerNameMax));
    const std::string_view base = plain_linker_name(linked);
    set(base_, base);
    is_copy_ = base.size() != linked.size();
    if (is_copy_) set(linked_, linked);
    decode(linked);
    if (decoded_ != nullptr) {
      make_forms({decoded_, decoded_size_});
      return;
    }
    whole_ = demangled(base_);
    if (is_copy_) copy_ = demangled(linked_);
    if (whole_ != nullptr) make_forms({whole_, text_length(whole_, SIZE_MAX)});
  }
  ~Names() {
    free(whole_);
    free(copy_);
  }
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  bool match(size_t pattern) {
    return matches(pattern, base_) || (is_copy_ && matches(pattern, linked_)) ||
           (copy_ != nullptr && matches(pattern, copy_)) ||
           (whole_ != nullptr &&
            (matches(pattern, whole_) || matches_without_parameters(pattern))) ||
           (decoded_ != nullptr &&
            (matches(pattern, decoded_) ||
             matches_up_to(decoded_, decoded_size_, plain_size_, pattern))) ||
           matches_form(pattern);
  }

 private:
  using LinkerName = char[kLinkerNameMax + 1];

  static void set(LinkerName& to, std::string_view name) {
    copy_bytes(to, name.data(), name.size());
    to[name.size()] = '\0';
  }

  // The demangled name, malloc'ed; null: it is no C++ function, or there is no demangler.
  static char* demangled(const char* name) {
    int status = 0;
    return demangler != nullptr && starts_with(name, "_Z")
               ? demangler(name, nullptr, nullptr, &status)
               : nullptr;
  }

  // Sets decoded_, if the name is one of those languages'.
  void decode(std::string_view linked) {
    if (!may_be_decoded(linked) || memory_.bytes() == nullptr) return;
    const DecodedName name = decode_name(linked, memory_.bytes(), kDecodedNameMax);
    if (name.language == Language::kNone) return;
    decoded_ = memory_.bytes();
    decoded_size_ = name.size;
    plain_size_ = name.plain_size;
    decoded_[decoded_size_] = '\0';
  }

  void make_forms(std::string_view name) {
    has_forms_ = has_name_forms(name) && memory_.bytes() != nullptr;
    for (size_t i = 0; has_forms_ && i < std::size(kNameForms); ++i) {
      char* const form = memory_.form(i);
      form[write_name_form(name, kNameForms[i], form)] = '\0';
    }
  }

  bool matches_form(size_t pattern) const {
    for (size_t i = 0; has_forms_ && i < std::size(kNameForms); ++i) {
      if (matches(pattern, memory_.form(i))) return true;
    }
    return false;
  }

  bool matches_without_parameters(size_t pattern) {
    const size_t size = text_length(whole_, SIZE_MAX);
    return matches_up_to(whole_, size, without_parameters({whole_, size}).size(),
                         pattern);
  }

  // Whether the pattern matches the first `part` bytes of a name of `size` bytes, if
  // these are fewer.
  static bool matches_up_to(char* name, size_t size, size_t part, size_t pattern) {
    if (part == size) return false;
    const char end = name[part];
    name[part] = '\0';
    const bool found = matches(pattern, name);
    name[part] = end;
    return found;
  }

  LinkerName base_;
  LinkerName linked_;  // of a copy
  bool is_copy_;
  char* whole_ = nullptr;  // the base demangled
  char* copy_ = nullptr;   // the linker's name of a copy demangled
  NameMemory memory_;
  char* decoded_ = nullptr;  // another language's name
  size_t decoded_size_ = 0;
  size_t plain_size_ = 0;   // of it, without what patterns need not have
  bool has_forms_ = false;  // memory_ has the short forms of the one or the other
};

void note_matched(uint64_t found) {
  if ((found & ~matched) == 0) return;
  matched |= found;
  arctrace_shim_patterns_matched(matched);
}

}  // namespace

void set_patterns(const ShimOptions& wanted) {
  const bool has_any = wanted.pattern_count != 0 || wanted.filters_sizes();
  options = has_any ? &wanted : nullptr;
  if (has_any) NameMemory();
  matched = 0;
  for (size_t i = 0; i < kPatternsMax; ++i) {
    if (has_expression[i]) regfree(&expressions[i]);
    const char* text = i < wanted.pattern_count ? wanted.patterns[i].text : "";
    has_expression[i] =
        starts_with(text, kRegexMark.data()) &&
        regcomp(&expressions[i], text + kRegexMark.size(), REG_EXTENDED | REG_NOSUB) == 0;
  }
}

bool filters_functions() { return options != nullptr && options->has_flags(); }

bool filter_needs_module() {
  if (options == nullptr) return false;
  bool found = options->filters_sizes();
  for (size_t i = 0; i < options->pattern_count; ++i) {
    found = found || options->patterns[i].kind == Pattern::Kind::kModule;
  }
  return found;
}

void find_demangler() {
  if (options == nullptr || demangler != nullptr) return;
  demangler =
      reinterpret_cast<Demangler*>(find_function("__cxa_demangle", SearchFrom::kProgram));
}

FilterMatch match_filter(const char* name, const char* path, uint64_t size) {
  if (!filters_functions()) return {};
  Names names(name);
  FilterMatch match{filter_flags_by_size(size), 0};
  bool has_modules = false;
  bool in_module = false;
  for (size_t i = 0; i < options->pattern_count; ++i) {
    const Pattern::Kind kind = options->patterns[i].kind;
    if (kind == Pattern::Kind::kArgs || kind == Pattern::Kind::kPatch ||
        kind == Pattern::Kind::kWhen) {
      continue;
    }
    const bool is_module = kind == Pattern::Kind::kModule;
    has_modules = has_modules || is_module;
    if (is_module ? !matches(i, file_name(path)) : !names.match(i)) continue;
    match.patterns |= uint64_t{1} << i;
    if (kind == Pattern::Kind::kFilter) match.flags |= ARCTRACE_SHIM_FILTERED_IN;
    if (kind == Pattern::Kind::kNotrace) match.flags |= ARCTRACE_SHIM_NOTRACE;
    if (kind == Pattern::Kind::kEntryOnly) match.flags |= ARCTRACE_SHIM_ENTRY_ONLY;
    in_module = in_module || is_module;
  }
  if (has_modules && !in_module) match.flags |= ARCTRACE_SHIM_HIDDEN;
  return match;
}

uint32_t filter_flags(const char* name, const char* path, uint64_t size) {
  const FilterMatch match = match_filter(name, path, size);
  note_matched(match.patterns);
  return match.flags;
}

uint32_t named_frame_flags(const char* name) {
  uint64_t found = 0;
  uint32_t flags = 0;
  for (size_t i = 0; options != nullptr && i < options->pattern_count; ++i) {
    const Pattern::Kind kind = options->patterns[i].kind;
    const bool is_asked =
        kind == Pattern::Kind::kFilter || kind == Pattern::Kind::kNotrace;
    if (!is_asked || !matches(i, name)) continue;
    found |= uint64_t{1} << i;
    flags |= kind == Pattern::Kind::kFilter ? uint32_t{ARCTRACE_SHIM_FILTERED_IN}
                                            : uint32_t{ARCTRACE_SHIM_NOTRACE};
  }
  note_matched(found);
  return flags;
}

uint32_t filter_flags_by_size(uint64_t size) {
  const bool is_small = options != nullptr && size != 0 && size < options->size_min;
  return is_small ? uint32_t{ARCTRACE_SHIM_HIDDEN} : 0U;
}

bool is_module_filtered_out(const char* path) {
  bool has_modules = false;
  for (size_t i = 0; options != nullptr && i < options->pattern_count; ++i) {
    if (options->patterns[i].kind != Pattern::Kind::kModule) continue;
    if (matches(i, file_name(path))) return false;
    has_modules = true;
  }
  return has_modules;
}

uint64_t matching_arg_patterns(const char* name) {
  if (options == nullptr) return 0;
  Names names(name);
  uint64_t found = 0;
  for (size_t i = 0; i < options->pattern_count; ++i) {
    const Pattern::Kind kind = options->patterns[i].kind;
    const bool is_asked = kind == Pattern::Kind::kArgs || kind == Pattern::Kind::kWhen;
    if (!is_asked || !names.match(i)) continue;
    found |= uint64_t{1} << i;
  }
  note_matched(found);
  return found;
}

}  // namespace arctrace::shim
