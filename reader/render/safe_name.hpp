// Names as programs of others get them: valid UTF-8 without control characters, of
// bounded length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace arctrace::reader {

// A longer name loses what follows this many bytes. Viewers show a few dozen; some of
// them fail on a megabyte.
inline constexpr size_t kSafeNameMax = 4096;

// `name`, escaped as on a terminal. If it is too long it ends with "..." and a number
// that tells it apart from other names with the same beginning.
std::string safe_name(std::string_view name);

// The same of a text whose parts are escaped already, as those of lines for a terminal
// are: its backslashes stay as they are.
std::string safe_text(std::string_view text);

}  // namespace arctrace::reader
