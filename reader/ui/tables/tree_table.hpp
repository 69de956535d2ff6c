// Call trees, one for each thread or process or one for all, whose nodes are folded and
// unfolded.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/labels.hpp"
#include "reader/ui/tables/sums_table.hpp"

namespace arctrace::reader {

// Memory is that of the unfolded rows. Sorting takes time for these rows, and finding a
// name for all nodes.
class TreeTable : public Table {
 public:
  // Both must outlive this object. The largest tree is unfolded.
  TreeTable(const Replay& replay, FunctionLabels& labels, Grouping grouping);

  std::string head() const override;
  std::span<const TableColumn> columns() const override { return columns_.columns; }
  size_t rows() const override { return rows_.size(); }
  std::string cell(size_t row, size_t column) const override;
  RowName name(size_t row) override;
  RowAction action(size_t row) const override;
  std::optional<TableSort> sort() const override { return sort_; }
  void set_sort(TableSort sort) override;
  bool set_folded(size_t row, bool is_folded) override;
  bool set_all_folded(size_t row, bool is_folded) override;
  std::optional<size_t> parent(size_t row) const override;
  std::optional<size_t> find(std::string_view text, std::optional<size_t> beside,
                             bool is_backward) override;

 private:
  // All groups' trees are in one CallTree, or the replay's: a node has one row.
  struct Row {
    uint32_t group;
    NodeIndex node;
    uint32_t level;  // 0: the group itself
  };

  const CallTree& tree(const Row& row) const { return *groups_.groups()[row.group].tree; }
  bool comes_before(const Row& a, const Row& b) const;
  std::vector<Row> below(const Row& row) const;
  std::vector<Row> roots() const;
  std::string text(const Row& row) const;
  // Visits the rows of the trees of `tops`, in their order. `goes_below(row)`: whether
  // the walk visits the rows below it.
  void walk(std::vector<Row> tops,
            const std::function<bool(const Row&)>& goes_below) const;
  std::vector<Row> unfolded(std::vector<Row> tops) const;

  const TreeGroups groups_;
  FunctionLabels& labels_;
  const SumColumns columns_;
  TableSort sort_;
  absl::flat_hash_set<NodeIndex> unfolded_;
  std::vector<Row> rows_;
};

}  // namespace arctrace::reader
