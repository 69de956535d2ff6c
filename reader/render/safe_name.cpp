#include "reader/render/safe_name.hpp"

#include <absl/strings/str_cat.h>

#include <functional>

#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

template <class Escape>
std::string bounded(std::string_view text, const Escape& escape) {
  if (text.size() <= kSafeNameMax) return escape(text);
  // The cut may fall into a character, whose first bytes are escaped then.
  return absl::StrCat(escape(text.substr(0, kSafeNameMax)), "...#",
                      absl::Hex(std::hash<std::string_view>()(text)));
}

}  // namespace

std::string safe_name(std::string_view name) { return bounded(name, escaped); }

std::string safe_text(std::string_view text) { return bounded(text, printable); }

}  // namespace arctrace::reader
