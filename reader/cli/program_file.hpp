// The file of a command that is about to be run: where it is, and whether a program of
// that kind can be traced.
#pragma once

#include <optional>
#include <string>

namespace arctrace::cli {

// The file that PATH leads to for `command`, or `command` itself if it has a slash;
// empty: there is none that can be executed.
std::string find_program(const std::string& command);

// Why the program in the file `path` (if that is a script, its interpreter) will not join
// a session, to stand behind "it is"; nothing if it will, as far as its file tells.
std::optional<std::string> why_untraceable(const std::string& path);

// Whether the program in the file `path` has a loader that can't load our library, and
// would say so on standard error: of another machine or word size.
bool has_foreign_loader(const std::string& path);

}  // namespace arctrace::cli
