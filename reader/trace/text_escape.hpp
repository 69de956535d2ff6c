// Text that a traced program wrote, made harmless.
#pragma once

#include <string>
#include <string_view>

namespace arctrace::reader {

// Appends `text` for a terminal, on one line: UTF-8 stays as it is; control characters,
// characters that change the direction or the line of text, and bytes that are no UTF-8
// become \n, \t, \xNN or \u{NNNN}, and a backslash becomes two.
void append_escaped(std::string& out, std::string_view text);
std::string escaped(std::string_view text);
// The same between double quotes, those in it behind a backslash.
void append_quoted(std::string& out, std::string_view text);

// Appends `text` as a JSON string in its quotes; bytes that are no UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace arctrace::reader
