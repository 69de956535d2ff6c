// Where the views' output goes.
#pragma once

#include <functional>
#include <string_view>

namespace arctrace::reader {

// Takes the next piece of output; false: no more is wanted.
using WriteText = std::function<bool(std::string_view)>;

}  // namespace arctrace::reader
