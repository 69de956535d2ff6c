// The receiver of text output.
#pragma once

#include <functional>
#include <string_view>

namespace arctrace::reader {

// Takes the next piece of output. Returns false once it wants no more.
using WriteText = std::function<bool(std::string_view)>;

}  // namespace arctrace::reader
