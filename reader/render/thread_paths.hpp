// Threads, and where they stand, in words.
#pragma once

#include <string>

#include "reader/render/json_writer.hpp"
#include "reader/render/view_options.hpp"

namespace arctrace::reader {

// "lua 100/101"
std::string thread_title(const Definitions& definitions, ThreadIndex thread);

// Of a path these many are shown, the innermost ones: recursion may go deep.
inline constexpr size_t kPathFunctionsMax = 64;

// The functions that a node of the replay's tree stands in, outermost first, escaped:
// "main > f > K:read"; empty for a thread itself or kNoNode.
std::string path_text(const CallTree& tree, NodeIndex node, FunctionNames& names);

// The same as an array of names, the value of a key.
void write_path_json(const CallTree& tree, NodeIndex node, FunctionNames& names,
                     JsonWriter& json);

}  // namespace arctrace::reader
