#include "reader/render/thread_paths.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

std::vector<FunctionId> path_of(const CallTree& tree, NodeIndex node) {
  std::vector<FunctionId> path;
  for (; node != kNoNode && tree[node].parent != kNoNode; node = tree[node].parent) {
    if (path.size() == kPathFunctionsMax) break;
    path.push_back(tree[node].function);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

std::string thread_title(const Definitions& definitions, ThreadIndex thread) {
  const Thread* facts = definitions.thread(thread);
  return absl::StrCat(escaped(thread_label(definitions, thread)), " ",
                      definitions.pid_of(thread), "/", facts == nullptr ? 0 : facts->tid);
}

std::string path_text(const CallTree& tree, NodeIndex node, FunctionNames& names) {
  std::string text;
  for (const FunctionId function : path_of(tree, node)) {
    if (!text.empty()) text += " > ";
    text += names.text(function);
  }
  return text;
}

void write_path_json(const CallTree& tree, NodeIndex node, FunctionNames& names,
                     JsonWriter& json) {
  json.begin_array();
  for (const FunctionId function : path_of(tree, node)) json.text(names[function].name);
  json.end();
}

}  // namespace arctrace::reader
