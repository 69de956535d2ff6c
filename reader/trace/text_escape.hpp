// Makes text that a traced program wrote harmless for terminals. The writer of JSON
// (reader/render/json_writer.hpp) takes any text as it is.
#pragma once

#include <string>
#include <string_view>

namespace arctrace::reader {

// Appends `text` for a terminal, on one line. UTF-8 stays as it is. Control characters,
// characters that change the direction or the line of text, and bytes that are not UTF-8
// become \n, \t, \xNN or \u{NNNN}; a backslash becomes two.
void append_escaped(std::string& out, std::string_view text);
std::string escaped(std::string_view text);
// The same between double quotes, with a backslash before each one in the text.
void append_quoted(std::string& out, std::string_view text);

}  // namespace arctrace::reader
