// Makes text that a traced program or a user wrote harmless for terminals, on which
// people read JSON, too.
#pragma once

#include <string>
#include <string_view>

namespace arctrace::reader {

// Appends `text` for a terminal, on one line. UTF-8 stays as it is. Control characters,
// characters that change the direction or the line of text, and bytes that are not UTF-8
// become \n, \t, \xNN or \u{NNNN}; a backslash becomes two.
void append_escaped(std::string& out, std::string_view text);
std::string escaped(std::string_view text);
// Appends the same between double quotes, with a backslash before each one in the text.
void append_quoted(std::string& out, std::string_view text);

// Escapes a message of one line, parts of which may be escaped already, in the same way,
// but a backslash stays as it is.
std::string printable(std::string_view message);

// Returns a JSON string of valid UTF-8 in which characters that append_escaped() would
// replace and JSON permits (DEL, C1, bidirectional controls, line separators) become
// \uNNNN.
std::string json_without_controls(std::string_view json);

}  // namespace arctrace::reader
