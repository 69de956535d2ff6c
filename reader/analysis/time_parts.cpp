#include "reader/analysis/time_parts.hpp"

#include <absl/container/btree_map.h>

#include <algorithm>
#include <optional>

#include "reader/analysis/function_kinds.hpp"

namespace arctrace::reader {
namespace {

std::string part_name(const Function& function) {
  if (const std::optional<FunctionKind> kind = function_kind(function)) {
    return std::string(kind_name(*kind));
  }
  if (function.module.empty()) {
    return function.name.starts_with('[') ? function.name : "functions of no module";
  }
  return "functions of " +
         std::string(function.module.substr(function.module.rfind('/') + 1));
}

}  // namespace

std::vector<TimePart> time_parts(const CallTree& tree, const Functions& functions,
                                 NodeIndex root) {
  std::vector<size_t> part_of(functions.size(), SIZE_MAX);  // by FunctionId
  absl::btree_map<std::string, size_t> by_name;
  std::vector<TimePart> parts;
  for (NodeIndex at = root; at != kNoNode; at = tree.next_in_preorder(at, root)) {
    const CallNode& node = tree[at];
    size_t& index = part_of[node.function];
    if (index == SIZE_MAX) {
      std::string name =
          at == root ? "not in recorded functions" : part_name(functions[node.function]);
      index = by_name.try_emplace(name, parts.size()).first->second;
      if (index == parts.size()) parts.push_back({std::move(name)});
    }
    TimePart& part = parts[index];
    if (at != root) part.calls += node.calls;
    part.self_ns += node.self_ns;
    part.cpu += tree.cpu_self(at);
    part.end_within_ns += tree.marks(at).end_within_ns;
    part.begin_within_ns += tree.marks(at).begin_within_ns;
  }
  std::stable_sort(parts.begin(), parts.end(), [](const TimePart& a, const TimePart& b) {
    return a.self_ns > b.self_ns;
  });
  return parts;
}

}  // namespace arctrace::reader
