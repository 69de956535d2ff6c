// Globs as fnmatch has them, without libc: hooks match, wherever they stand.
#pragma once

#include <string_view>

namespace arctrace::shim {

// `pattern`: * any characters, ? one, [a-z] and [!a-z] one of these or another, \x the
// character x. One that is not complete matches nothing. Takes at most pattern.size() *
// text.size() steps.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace arctrace::shim
