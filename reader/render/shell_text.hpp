// Commands in messages, which somebody may paste into a shell.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace arctrace::reader {

// Returns the text as one word of any shell: as it is, in single quotes, or, if it has
// characters that would do harm on a terminal, as the output of printf.
std::string shell_word(std::string_view text);

// Returns the name of a file as a word that no command takes for an option.
std::string shell_file(std::string_view path);

// Returns the words as a command line. It goes on in further lines, by a backslash, where
// it would be wider than `width` beside `begin` columns; 0: one line.
std::string shell_command(const std::vector<std::string>& words, size_t begin,
                          size_t width);

}  // namespace arctrace::reader
