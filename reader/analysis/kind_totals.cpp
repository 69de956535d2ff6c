#include "reader/analysis/kind_totals.hpp"

#include <absl/container/btree_map.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "reader/analysis/function_kinds.hpp"

namespace arctrace::reader {
namespace {

using KindSet = uint32_t;  // a bit for each
static_assert(kFunctionKinds <= 32);

KindSet bit(FunctionKind kind) { return KindSet{1} << static_cast<unsigned>(kind); }

// The times of the outermost calls of each kind.
void add_total(const CallTree& tree, const Functions& functions, NodeIndex root,
               const std::vector<std::optional<FunctionKind>>& kinds,
               std::array<KindTotal, kFunctionKinds>& totals) {
  std::vector<KindSet> around;  // by level: the kinds on the path, that level's included
  walk_tree(tree, functions, root, SortKey::kEntry, [&](const TreePosition& at) {
    around.resize(at.level);
    KindSet here = at.level == 0 ? 0 : around.back();
    const auto& kind = kinds[tree[at.node].function];
    if (kind && (here & bit(*kind)) == 0) {
      KindTotal& total = totals[static_cast<size_t>(*kind)];
      total.total_ns += tree[at.node].total_ns;
      total.cpu += tree.cpu_total(at.node);
      here |= bit(*kind);
    }
    around.push_back(here);
    return Step::kInto;
  });
}

}  // namespace

std::vector<KindTotal> kind_totals(const CallTree& tree, const Functions& functions,
                                   NodeIndex root, SortKey sort) {
  std::array<KindTotal, kFunctionKinds> totals;
  std::vector<std::optional<FunctionKind>> kinds(functions.size());
  for (const FunctionTotal& function : function_totals(tree, functions, root, sort)) {
    const auto kind = kinds[function.function] =
        function_kind(functions[function.function]);
    if (!kind) continue;
    KindTotal& total = totals[static_cast<size_t>(*kind)];
    total.kind = *kind;
    total.calls += function.calls;
    total.self_ns += function.self_ns;
    total.functions.push_back(function);
  }
  add_total(tree, functions, root, kinds, totals);
  std::vector<KindTotal> found;
  for (KindTotal& total : totals) {
    if (!total.functions.empty()) found.push_back(std::move(total));
  }
  const auto values = [](const KindTotal& total) {
    const auto first = std::min_element(
        total.functions.begin(), total.functions.end(),
        [](const auto& a, const auto& b) { return a.function < b.function; });
    return SortValues{total.calls, total.self_ns, total.total_ns, kind_name(total.kind),
                      first->function};
  };
  std::sort(found.begin(), found.end(), [&](const KindTotal& a, const KindTotal& b) {
    return sorts_before(sort, values(a), values(b));
  });
  return found;
}

namespace {

// The names that arctrace_python gives to functions begin so.
constexpr std::string_view kPythonMark = "py:";

std::string part_name(const Function& function) {
  if (const std::optional<FunctionKind> kind = function_kind(function)) {
    return std::string(kind_name(*kind));
  }
  if (function.module.empty()) {
    if (function.name.starts_with('[')) return function.name;
    return function.name.starts_with(kPythonMark) ? "Python functions"
                                                  : "functions of no module";
  }
  return "functions of " +
         std::string(function.module.substr(function.module.rfind('/') + 1));
}

}  // namespace

const char* outside_name(const Replay& replay) {
  return replay.has_all_calls() ? "not in recorded functions"
                                : "not in the functions that are shown";
}

std::vector<TimePart> time_parts(const CallTree& tree, const Replay& replay,
                                 NodeIndex root) {
  const Functions& functions = replay.functions();
  std::vector<size_t> part_of(functions.size(), SIZE_MAX);  // by FunctionId
  absl::btree_map<std::string, size_t> by_name;
  std::vector<TimePart> parts;
  for (NodeIndex at = root; at != kNoNode; at = tree.next_in_preorder(at, root)) {
    const CallNode& node = tree[at];
    size_t& index = part_of[node.function];
    if (index == SIZE_MAX) {
      std::string name =
          at == root ? outside_name(replay) : part_name(functions[node.function]);
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
