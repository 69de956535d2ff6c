// The short forms of demangled names: what reports show of a function by default, and
// what patterns are matched against beside the whole name. The shim, the command and the
// reader make the same forms here. No libc is used.
//
//   int app::sort<int>(std::vector<int, std::allocator<int> >) [clone .constprop.0]
//     kShort           app::sort
//     kWithArguments   app::sort<int>
//     kWithParameters  app::sort<int>(std::vector<int, std::allocator<int> >)
//
// In all of them std::string is called so. A name that has none of these parts is its own
// short form. Names of other languages have no return types, but may have the other
// parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/function_names.hpp"

namespace arctrace {

enum class NameForm : uint8_t { kShort, kWithArguments, kWithParameters };
inline constexpr NameForm kNameForms[] = {NameForm::kShort, NameForm::kWithArguments,
                                          NameForm::kWithParameters};

// Longer names have no other forms.
inline constexpr size_t kShortenedNameMax = (size_t{64} << 10) / 3 - 1;

namespace short_names {

using std::string_view_literals::operator""sv;  // sizes are constants: no strlen

// What libiberty writes for the standard's own short names.
struct StandardName {
  std::string_view whole, brief;
};
inline constexpr StandardName kStandardNames[] = {
    {"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
     "std::string"},
    {"std::__1::basic_string<char, std::__1::char_traits<char>, "
     "std::__1::allocator<char> >",
     "std::string"},
    {"std::basic_string_view<char, std::char_traits<char> >", "std::string_view"}};

// Longer operators come before those with which they begin.
inline constexpr std::string_view kOperators[] = {
    "()", "[]", "->*", "<=>",    "<<=",       ">>=",  "->",      "<<",       ">>",
    "<=", ">=", "==",  "!=",     "&&",        "||",   "++",      "--",       "+=",
    "-=", "*=", "/=",  "%=",     "&=",        "|=",   "^=",      "<",        ">",
    "=",  "+",  "-",   "*",      "/",         "%",    "&",       "|",        "^",
    "~",  "!",  ",",   " new[]", " delete[]", " new", " delete", " co_await"};

constexpr bool is_word(char c) {
  return c == '_' || ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') ||
         ('A' <= c && c <= 'Z');
}

constexpr std::string_view rest_of(std::string_view text, size_t at) {
  return {text.data() + at, text.size() - at};
}

// Behind the group that begins at `at` with `open`; 0: it has no end.
constexpr size_t group_end(std::string_view text, size_t at, char open, char close) {
  size_t depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == open) ++depth;
    if (text[i] == close && --depth == 0) return i + 1;
  }
  return 0;
}

// Behind the template's arguments that begin at `at`; 0: they have no end. Within
// parentheses, "<" and ">" may be operators.
constexpr size_t arguments_end(std::string_view text, size_t at) {
  size_t angles = 0;
  size_t parentheses = 0;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '(') ++parentheses;
    if (text[i] == ')' && parentheses != 0) --parentheses;
    if (parentheses != 0) continue;
    if (text[i] == '<') ++angles;
    if (text[i] == '>' && --angles == 0) return i + 1;
  }
  return 0;
}

// A function that returns a pointer or a reference to a function has its own name and
// parameters within those of the type: "void (*f<int>(int))(char)" is "f<int>(int)".
constexpr std::string_view without_returned_function(std::string_view name) {
  const std::string_view outer = without_parameters(name);
  if (outer.size() == name.size() || outer[outer.size() - 1] != ')') return name;
  size_t begin = outer.size();
  size_t depth = 0;
  do {
    --begin;
    if (outer[begin] == ')') ++depth;
    if (outer[begin] == '(') --depth;
  } while (depth != 0 && begin != 0);
  const std::string_view group = rest_of(outer, begin);
  if (begin == 0 || outer[begin - 1] != ' ' ||
      (!begins_with(group, "(*"sv) && !begins_with(group, "(&"sv))) {
    return name;
  }
  return {group.data() + 2, group.size() - 3};
}

// Writes one form of one name.
class Shortener {
 public:
  // `to` has room for as many bytes as the name.
  constexpr Shortener(std::string_view name, NameForm form, char* to)
      : original_(without_returned_function(without_copy_suffix(name))),
        name_(without_parameters(original_)),
        is_short_(form == NameForm::kShort),
        to_(to) {
    // Only an instance of a template has its return type in its name.
    const bool is_instance = name_.size() != original_.size() && !name_.empty() &&
                             name_[name_.size() - 1] == '>';
    while (at_ < name_.size()) step(is_instance);
    if (form == NameForm::kWithParameters) copy_rest(original_, name_.size());
    shorten_standard_names();
  }

  constexpr size_t size() const { return size_; }

 private:
  constexpr void step(bool has_return_type) {
    if (take_operator()) return;
    const char c = name_[at_];
    if (c == '<') return take_arguments();
    if (c == '(') return take_parentheses();
    if (c == '{') return copy_to(group_end(name_, at_, '{', '}'));
    if (c == '[' && is_short_ && begins_with(rest_of(name_, at_), "[abi:"sv)) {
      return skip_to(group_end(name_, at_, '[', ']'));
    }
    if (c == ' ' && has_return_type && !in_conversion_) {
      size_ = 0;  // what was written is the return type
      return skip_to(at_ + 1);
    }
    if (at_is_component_ && take_standard_name()) return;
    copy_to(at_ + 1);
  }

  // An operator's name may have signs that mean something else elsewhere.
  constexpr bool take_operator() {
    constexpr std::string_view kWord = "operator";
    const char before = at_ == 0 ? ' ' : name_[at_ - 1];
    if ((before != ' ' && before != ':') || !begins_with(rest_of(name_, at_), kWord)) {
      return false;
    }
    size_t end = at_ + kWord.size();
    if (end < name_.size() && is_word(name_[end])) return false;
    for (const std::string_view sign : kOperators) {
      if (!begins_with(rest_of(name_, end), sign)) continue;
      const size_t behind = end + sign.size();
      if (is_word(sign[sign.size() - 1]) && behind < name_.size() &&
          is_word(name_[behind])) {
        continue;  // a conversion to a type such as "newer"
      }
      copy_to(behind);
      // "operator<< <int>": the blank is there only before arguments.
      if (is_short_ && begins_with(rest_of(name_, at_), " <"sv)) ++at_;
      at_is_component_ = false;
      return true;
    }
    if (end < name_.size() && name_[end] == ' ') {
      in_conversion_ = true;
      ++end;
    }
    copy_to(end);
    at_is_component_ = in_conversion_;
    return true;
  }

  constexpr void take_arguments() {
    const size_t end = arguments_end(name_, at_);
    // Where a component only consists of them, as in Rust's "<T as Trait>::f", they are
    // its name.
    if (!is_short_ || at_is_component_ || end == 0) return copy_to(end);
    skip_to(end);
  }

  // Parameters of a function around this one, or "(anonymous namespace)".
  constexpr void take_parentheses() {
    in_conversion_ = false;
    size_t end = group_end(name_, at_, '(', ')');
    if (end == 0 || at_is_component_) return copy_to(end);
    constexpr std::string_view kQualifiers[] = {" const", " volatile", " &&", " &"};
    for (const std::string_view qualifier : kQualifiers) {
      if (begins_with(rest_of(name_, end), qualifier)) end += qualifier.size();
    }
    const bool is_around = begins_with(rest_of(name_, end), "::"sv);
    if (!is_around) end = group_end(name_, at_, '(', ')');
    if (is_around && is_short_) return skip_to(end);
    copy_to(end);
  }

  constexpr bool take_standard_name() {
    for (const StandardName& standard : kStandardNames) {
      if (!begins_with(rest_of(name_, at_), standard.whole)) continue;
      for (const char c : standard.brief) to_[size_++] = c;
      skip_to(at_ + standard.whole.size());
      return true;
    }
    return false;
  }

  // Goes on behind a group, or at the name's end if the group has none (0).
  constexpr void skip_to(size_t end) {
    at_ = end == 0 ? name_.size() : end;
    at_is_component_ = size_ == 0 || to_[size_ - 1] == ':';
  }

  constexpr void copy_to(size_t end) {
    const size_t behind = end == 0 ? name_.size() : end;
    for (size_t i = at_; i < behind; ++i) to_[size_++] = name_[i];
    skip_to(behind);
  }

  constexpr void copy_rest(std::string_view text, size_t from) {
    for (size_t i = from; i < text.size(); ++i) to_[size_++] = text[i];
  }

  // Within what was copied.
  constexpr void shorten_standard_names() {
    size_t kept = 0;
    for (size_t i = 0; i < size_;) {
      const std::string_view rest(to_ + i, size_ - i);
      const StandardName* found = nullptr;
      for (const StandardName& standard : kStandardNames) {
        if (begins_with(rest, standard.whole)) found = &standard;
      }
      if (found == nullptr) {
        to_[kept++] = to_[i++];
        continue;
      }
      for (const char c : found->brief) to_[kept++] = c;
      i += found->whole.size();
    }
    size_ = kept;
  }

  const std::string_view original_;  // with parameters
  const std::string_view name_;      // without
  const bool is_short_;
  char* const to_;
  size_t size_ = 0;              // bytes written
  size_t at_ = 0;                // in name_
  bool at_is_component_ = true;  // at the begin of a part between "::"
  bool in_conversion_ = false;   // in the type after "operator"
};

}  // namespace short_names

// Writes a form of a demangled name to `to`, which has room for as many bytes as the name
// has, and returns its size. Takes time in proportion to the name, which may be anything.
constexpr size_t write_name_form(std::string_view name, NameForm form, char* to) {
  return short_names::Shortener(name, form, to).size();
}

// Whether a name may have forms that differ from it.
constexpr bool has_name_forms(std::string_view name) {
  if (name.size() > kShortenedNameMax) return false;
  for (const char c : name) {
    if (c == '<' || c == '(' || c == '[') return true;
  }
  return false;
}

}  // namespace arctrace
