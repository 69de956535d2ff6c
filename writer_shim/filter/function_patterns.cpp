#include "writer_shim/filter/function_patterns.hpp"

#include <dlfcn.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdlib.h>

#include "src/api/shim_interface.h"
#include "src/base/memory.hpp"
#include "src/base/text.hpp"

namespace arctrace::shim {
namespace {

using Demangler = char*(const char* name, char* buffer, size_t* size, int* status);

constexpr char kRegexMark[] = "re:";
constexpr size_t kNameMax = 1024;

const ShimOptions* chosen;  // null: no choice
constinit regex_t expressions[ShimOptions::kPatternsMax]{};
bool has_expression[ShimOptions::kPatternsMax];
uint64_t matched;  // patterns that some function has matched
Demangler* demangler;

bool matches(size_t pattern, const char* name) {
  if (has_expression[pattern]) {
    return regexec(&expressions[pattern], name, 0, nullptr, 0) == 0;
  }
  return fnmatch(chosen->patterns[pattern].text, name, 0) == 0;
}

// A function's names: the linker's, without what compilers add to those of copies (.cold,
// .constprop.0), and if it is a C++ one, as people write it, with its parameters and
// without.
class Names {
 public:
  explicit Names(const char* name) {
    size_t length = 0;
    while (length < kNameMax - 1 && name[length] != '\0' && name[length] != '.') ++length;
    copy_bytes(linked_, name, length);
    linked_[length] = '\0';
    int status = 0;
    if (demangler != nullptr && starts_with(linked_, "_Z")) {
      whole_ = demangler(linked_, nullptr, nullptr, &status);
    }
  }
  ~Names() { free(whole_); }
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  bool match(size_t pattern) {
    if (matches(pattern, linked_)) return true;
    if (whole_ == nullptr) return false;
    if (matches(pattern, whole_)) return true;
    char* end = parameters();
    if (end == nullptr) return false;
    *end = '\0';
    const bool found = matches(pattern, whole_);
    *end = '(';
    return found;
  }

 private:
  // Where the last parenthesis opens that stands in no other; null: there is none.
  char* parameters() {
    char* found = nullptr;
    int depth = 0;
    for (char* at = whole_; *at != '\0'; ++at) {
      if (*at == '(' && depth++ == 0) found = at;
      if (*at == ')') --depth;
    }
    return found;
  }

  char linked_[kNameMax];
  char* whole_ = nullptr;  // malloc'ed
};

void note_matched(uint64_t found) {
  if ((found & ~matched) == 0) return;
  matched |= found;
  arctrace_shim_patterns_matched(matched);
}

const char* file_name(const char* path) {
  const char* name = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

}  // namespace

void choose_functions(const ShimOptions& options) {
  if (options.pattern_count == 0 && options.size_min == 0) return;
  for (size_t i = 0; i < options.pattern_count; ++i) {
    const char* text = options.patterns[i].text;
    has_expression[i] = starts_with(text, kRegexMark) &&
                        regcomp(&expressions[i], text + sizeof kRegexMark - 1,
                                REG_EXTENDED | REG_NOSUB) == 0;
  }
  chosen = &options;
}

bool have_function_choice() { return chosen != nullptr && chosen->have_filter(); }

bool choice_needs_place() {
  if (chosen == nullptr) return false;
  bool found = chosen->size_min != 0;
  for (size_t i = 0; i < chosen->pattern_count; ++i) {
    found = found || chosen->patterns[i].kind == Pattern::Kind::kModule;
  }
  return found;
}

void find_demangler() {
  if (chosen == nullptr || demangler != nullptr) return;
  demangler = reinterpret_cast<Demangler*>(dlsym(RTLD_DEFAULT, "__cxa_demangle"));
}

uint32_t filter_flags(const char* name, const char* path, uint64_t size) {
  if (!have_function_choice()) return 0;
  Names names(name);
  uint32_t flags = 0;
  uint64_t found = 0;
  bool has_modules = false;
  bool in_module = false;
  for (size_t i = 0; i < chosen->pattern_count; ++i) {
    const Pattern::Kind kind = chosen->patterns[i].kind;
    if (kind == Pattern::Kind::kValues) continue;
    const bool is_module = kind == Pattern::Kind::kModule;
    has_modules = has_modules || is_module;
    if (is_module ? !matches(i, file_name(path)) : !names.match(i)) continue;
    found |= uint64_t{1} << i;
    if (kind == Pattern::Kind::kChosen) flags |= ARCTRACE_SHIM_CHOSEN;
    if (kind == Pattern::Kind::kLeftOut) flags |= ARCTRACE_SHIM_LEFT_OUT;
    in_module = in_module || is_module;
  }
  if ((has_modules && !in_module) || (size != 0 && size < chosen->size_min)) {
    flags |= ARCTRACE_SHIM_HIDDEN;
  }
  note_matched(found);
  return flags;
}

uint64_t matching_values(const char* name) {
  if (chosen == nullptr) return 0;
  Names names(name);
  uint64_t found = 0;
  for (size_t i = 0; i < chosen->pattern_count; ++i) {
    if (chosen->patterns[i].kind != Pattern::Kind::kValues || !names.match(i)) continue;
    found |= uint64_t{1} << i;
  }
  note_matched(found);
  return found;
}

}  // namespace arctrace::shim
