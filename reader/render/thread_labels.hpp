// Names of threads, and of the frames that they are in, as reports show them.
#pragma once

#include <string>

#include "reader/render/function_labels.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

// "lua 100/101": name, process and thread.
std::string thread_title(const Definitions& definitions, ThreadIndex thread);

// "100/101"; "-" for a thread that is not known.
std::string thread_ids_text(const Definitions& definitions, ThreadIndex thread);
// Members pid and tid; none for a thread that is not known.
void write_thread_ids_json(const Definitions& definitions, ThreadIndex thread,
                           JsonWriter& json);

// Paths show this many functions, the innermost ones, because recursion may go deep.
inline constexpr size_t kPathFunctionsMax = 64;

// The path to a node of the replay's tree, outermost function first, escaped:
// "main > f > K:read"; empty for a thread itself or kNoNode.
std::string path_text(const CallTree& tree, NodeIndex node, FunctionLabels& labels);

// The same as an array of names: the value of a key.
void write_path_json(const CallTree& tree, NodeIndex node, FunctionLabels& labels,
                     JsonWriter& json);

}  // namespace arctrace::reader
