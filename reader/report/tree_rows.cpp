#include "reader/report/tree_rows.hpp"

#include "reader/render/report_parts.hpp"

namespace arctrace::reader {

uint64_t walk_rows(const TreeGroup& group, const Functions& functions,
                   const ViewOptions& options,
                   absl::FunctionRef<bool(const TreePosition&)> row) {
  const CallTree& tree = *group.tree;
  const uint64_t all_ns = tree[group.root].total_ns;
  uint64_t rows = 0, hidden = 0;
  walk_tree(tree, functions, group.root, options.sort, [&](const TreePosition& at) {
    if (rows == options.limit ||
        !is_large_enough(tree[at.node].total_ns, all_ns, options)) {
      ++hidden;
      return Step::kOver;
    }
    ++rows;
    return row(at) ? Step::kInto : Step::kStop;
  });
  return hidden;
}

}  // namespace arctrace::reader
