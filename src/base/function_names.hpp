// The forms of a function's name that patterns are matched against: the shim, the command
// and the reader match the same names, so that a pattern means the same when it records a
// function, changes the live filter, and reports the function. No libc is used, because
// the shim calls this in hooks.
#pragma once

#include <cstddef>
#include <string_view>

namespace arctrace {

inline constexpr size_t kLinkerNameMax = 1024;  // bytes that count

// A linker's name without the suffixes of copies that compilers make of functions (.cold,
// .constprop.0).
constexpr std::string_view plain_linker_name(std::string_view name) {
  size_t length = 0;
  while (length < kLinkerNameMax && length < name.size() && name[length] != '.') ++length;
  return {name.data(), length};
}

// Whether `text` begins with `part`.
constexpr bool begins_with(std::string_view text, std::string_view part) {
  if (text.size() < part.size()) return false;
  for (size_t i = 0; i < part.size(); ++i) {
    if (text[i] != part[i]) return false;
  }
  return true;
}

// Whether `text`, which follows a dot in the name of a C function, is the suffix of a
// copy that gcc or clang makes, and not a part of the name, as in "main.work" (Go),
// "Stdlib.map" (OCaml) and "shop.serve" (Ada).
constexpr bool is_copy_suffix(std::string_view text) {
  constexpr std::string_view kSuffixes[] = {
      "cold",   "constprop.", "isra.",      "part.",   "lto_priv.", "llvm.",
      "clone.", "_omp_fn.",   "localalias", "default", "resolver",  "ifunc",
      "warm",   "simdclone.", "avx",        "sse",     "arch_",     "__uniq."};
  if (!text.empty() && '0' <= text[0] && text[0] <= '9') return true;
  for (const std::string_view suffix : kSuffixes) {
    if (begins_with(text, suffix)) return true;
  }
  return false;
}

// A name as reports print it, without the suffixes of copies: "f(int) [clone .part.0]" is
// "f(int)", and "work.constprop.0" is "work".
constexpr std::string_view without_copy_suffix(std::string_view name) {
  constexpr std::string_view kClone = " [clone ";
  size_t suffix = name.size();
  bool is_plain = true;  // no name that has parameters
  for (size_t i = 0; i < name.size(); ++i) {
    const std::string_view rest(name.data() + i, name.size() - i);
    if (begins_with(rest, kClone)) return {name.data(), i};
    if (name[i] == '(') is_plain = false;
    if (name[i] == '.' && suffix == name.size() &&
        is_copy_suffix({rest.data() + 1, rest.size() - 1})) {
      suffix = i;
    }
  }
  return is_plain && suffix != 0 ? std::string_view(name.data(), suffix) : name;
}

// Whether `text` is what a demangled name has after its parameters: nothing, a qualifier
// such as " const", a constraint, or the suffix of a copy ("[clone .cold]").
constexpr bool may_follow_parameters(std::string_view text) {
  if (text.empty()) return true;
  // These are string_views, so that their sizes are constants: the shim must not call
  // strlen.
  constexpr std::string_view kEndings[] = {" const", " volatile", " &", " requires ",
                                           " ["};
  for (const std::string_view wanted : kEndings) {
    size_t same = 0;
    while (same < wanted.size() && same < text.size() && text[same] == wanted[same]) {
      ++same;
    }
    if (same == wanted.size()) return true;
  }
  return false;
}

// Whether `name` ends with the word "operator".
constexpr bool ends_with_operator(std::string_view name) {
  constexpr std::string_view kWord = "operator";
  if (name.size() < kWord.size()) return false;
  const size_t begin = name.size() - kWord.size();
  for (size_t i = 0; i < kWord.size(); ++i) {
    if (name[begin + i] != kWord[i]) return false;
  }
  return begin == 0 || name[begin - 1] == ':' || name[begin - 1] == ' ';
}

// A demangled C++ name without its parameters: "f(int) const" is "f". The parameters are
// the last parentheses that are within no others. A name that has no parameters is
// returned as it is: "main", "(anonymous namespace)::x", "f()::{lambda()#1}". Takes time
// in proportion to the name, which may be anything.
constexpr std::string_view without_parameters(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && name[end - 1] != ')') --end;
  if (end == 0 || !may_follow_parameters({name.data() + end, name.size() - end})) {
    return name;
  }
  size_t begin = end;
  size_t depth = 0;
  do {
    --begin;
    if (name[begin] == ')') ++depth;
    if (name[begin] == '(') --depth;
  } while (depth != 0 && begin != 0);
  const std::string_view plain(name.data(), begin);
  const bool is_call_operator = end - begin == 2 && ends_with_operator(plain);
  return begin == 0 || is_call_operator ? name : plain;
}

}  // namespace arctrace
