#include "reader/render/thread_labels.hpp"

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

std::string thread_ids_text(const Definitions& definitions, ThreadIndex thread) {
  const Thread* facts = definitions.thread(thread);
  if (facts == nullptr) return "-";
  return absl::StrCat(definitions.pid_of(thread), "/", facts->tid);
}

void write_thread_ids_json(const Definitions& definitions, ThreadIndex thread,
                           JsonWriter& json) {
  const Thread* facts = definitions.thread(thread);
  if (facts == nullptr) return;
  json.member("pid", definitions.pid_of(thread));
  json.member("tid", facts->tid);
}

std::string path_text(const CallTree& tree, NodeIndex node, FunctionLabels& labels) {
  std::string text;
  for (const FunctionId function : path_of(tree, node)) {
    if (!text.empty()) text += " > ";
    text += labels.text(function);
  }
  return text;
}

void write_path_json(const CallTree& tree, NodeIndex node, FunctionLabels& labels,
                     JsonWriter& json) {
  json.begin_array();
  for (const FunctionId function : path_of(tree, node)) json.value(labels[function].name);
  json.end();
}

}  // namespace arctrace::reader
