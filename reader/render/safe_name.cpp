#include "reader/render/safe_name.hpp"

#include <absl/strings/str_cat.h>

#include <functional>

#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {

std::string safe_name(std::string_view name) {
  if (name.size() <= kSafeNameMax) return escaped(name);
  // The cut may fall into a character, whose first bytes are escaped then.
  return absl::StrCat(escaped(name.substr(0, kSafeNameMax)), "...#",
                      absl::Hex(std::hash<std::string_view>()(name)));
}

}  // namespace arctrace::reader
