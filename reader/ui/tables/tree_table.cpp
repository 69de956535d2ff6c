#include "reader/ui/tables/tree_table.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"

namespace arctrace::reader {
namespace {

// Trees are sorted by the columns by which reports sort trees.
SumColumns tree_columns(KnownTimes known) {
  SumColumns columns(known, false);
  for (size_t i = 0; i < columns.types.size(); ++i) {
    const Column type = columns.types[i];
    columns.columns[i].can_sort =
        type == Column::kCalls || type == Column::kSelf || type == Column::kTotal;
  }
  return columns;
}

SortKey sort_key(const SumColumns& columns, TableSort sort) {
  if (sort.column >= columns.types.size()) return SortKey::kName;
  const Column type = columns.types[sort.column];
  if (type == Column::kCalls) return SortKey::kCalls;
  return type == Column::kSelf ? SortKey::kSelf : SortKey::kTotal;
}

}  // namespace

TreeTable::TreeTable(const Replay& replay, FunctionLabels& labels, Grouping grouping)
    : groups_(replay, grouping, TreeGroups::Of::kThreadsAndInterrupts),
      labels_(labels),
      columns_(tree_columns(replay.known_times())),
      sort_{columns_.find(Column::kTotal), false} {
  rows_ = roots();
  if (!rows_.empty()) set_folded(0, false);
}

std::string TreeTable::head() const {
  switch (groups_.grouping()) {
    case Grouping::kThread:
      return "Calls of each thread";
    case Grouping::kProcess:
      return "Calls of each process";
    case Grouping::kAll:
    case Grouping::kName:
      break;
  }
  return "Calls of all threads";
}

std::string TreeTable::cell(size_t row, size_t column) const {
  const Row& at = rows_[row];
  const CallNode& node = tree(at)[at.node];
  const uint64_t all_ns = tree(at)[groups_.groups()[at.group].root].total_ns;
  return column_text(columns_.types[column],
                     {node.calls, node.self_ns, node.total_ns, all_ns,
                      tree(at).cpu_total(at.node), nullptr});
}

std::string TreeTable::text(const Row& row) const {
  const TreeGroup& group = groups_.groups()[row.group];
  if (row.level == 0) return group_title(group, groups_.grouping()) + end_text(group);
  return labels_.text((*group.tree)[row.node].function);
}

RowName TreeTable::name(size_t row) {
  const Row& at = rows_[row];
  const CallNode& node = tree(at)[at.node];
  RowName name;
  name.text = text(at);
  name.notes = marks_text(tree(at).marks(at.node));
  if (at.level != 0) name.notes += labels_.recorded_note(node.function);
  name.level = at.level;
  if (node.first_child != kNoNode) {
    name.fold = unfolded_.contains(at.node) ? RowFold::kUnfolded : RowFold::kFolded;
  }
  const uint64_t all_ns = tree(at)[groups_.groups()[at.group].root].total_ns;
  if (at.level == 0) {
    name.emphasis = RowEmphasis::kBold;
  } else if (is_hot(node.self_ns, all_ns)) {
    name.emphasis = RowEmphasis::kHot;
  }
  return name;
}

RowAction TreeTable::action(size_t row) const {
  const Row& at = rows_[row];
  if (at.level == 0) return {};
  return {RowAction::Kind::kFunction, tree(at)[at.node].function};
}

bool TreeTable::comes_before(const Row& a, const Row& b) const {
  const auto values = [&](const Row& row) {
    const CallNode& node = tree(row)[row.node];
    return SortValues{node.calls, node.self_ns, node.total_ns,
                      labels_[node.function].name, row.node};
  };
  const SortKey key = sort_key(columns_, sort_);
  return sort_.is_reversed ? sorts_before(key, values(b), values(a))
                           : sorts_before(key, values(a), values(b));
}

std::vector<TreeTable::Row> TreeTable::roots() const {
  std::vector<Row> rows;
  for (uint32_t i = 0; i < groups_.groups().size(); ++i) {
    rows.push_back({i, groups_.groups()[i].root, 0});
  }
  std::sort(rows.begin(), rows.end(),
            [this](const Row& a, const Row& b) { return comes_before(a, b); });
  return rows;
}

std::vector<TreeTable::Row> TreeTable::below(const Row& row) const {
  std::vector<Row> rows;
  for (NodeIndex child = tree(row)[row.node].first_child; child != kNoNode;
       child = tree(row)[child].next_sibling) {
    rows.push_back({row.group, child, row.level + 1});
  }
  std::sort(rows.begin(), rows.end(),
            [this](const Row& a, const Row& b) { return comes_before(a, b); });
  return rows;
}

// Walks without recursion: only the trace bounds the depth of a tree.
void TreeTable::walk(std::vector<Row> tops,
                     const std::function<bool(const Row&)>& goes_below) const {
  std::vector<Row> waiting(tops.rbegin(), tops.rend());
  while (!waiting.empty()) {
    const Row row = waiting.back();
    waiting.pop_back();
    if (!goes_below(row)) continue;
    const std::vector<Row> more = below(row);
    waiting.insert(waiting.end(), more.rbegin(), more.rend());
  }
}

std::vector<TreeTable::Row> TreeTable::unfolded(std::vector<Row> tops) const {
  std::vector<Row> rows;
  walk(std::move(tops), [&](const Row& row) {
    rows.push_back(row);
    return unfolded_.contains(row.node);
  });
  return rows;
}

void TreeTable::set_sort(TableSort sort) {
  sort_ = sort;
  rows_ = unfolded(roots());
}

bool TreeTable::set_folded(size_t row, bool is_folded) {
  const Row at = rows_[row];
  if (tree(at)[at.node].first_child == kNoNode) return false;
  if (is_folded) {
    if (unfolded_.erase(at.node) == 0) return false;
    size_t end = row + 1;
    while (end < rows_.size() && rows_[end].level > at.level) ++end;
    rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(row + 1),
                rows_.begin() + static_cast<std::ptrdiff_t>(end));
    return true;
  }
  if (!unfolded_.insert(at.node).second) return false;
  const std::vector<Row> more = unfolded(below(at));
  rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(row + 1), more.begin(),
               more.end());
  return true;
}

bool TreeTable::set_all_folded(size_t row, bool is_folded) {
  const Row at = rows_[row];
  bool has_changed = false;
  walk({at}, [&](const Row& each) {
    if (tree(each)[each.node].first_child == kNoNode) return false;
    has_changed |=
        is_folded ? unfolded_.erase(each.node) != 0 : unfolded_.insert(each.node).second;
    return true;
  });
  if (has_changed) rows_ = unfolded(roots());
  return has_changed;
}

std::optional<size_t> TreeTable::parent(size_t row) const {
  const uint32_t level = rows_[row].level;
  if (level == 0) return std::nullopt;
  while (rows_[row].level >= level) --row;
  return row;
}

std::optional<size_t> TreeTable::find(std::string_view text, std::optional<size_t> beside,
                                      bool is_backward) {
  enum class Match : uint8_t { kNotKnown, kNo, kYes };
  std::vector<Match> known;  // by FunctionId
  const auto matches = [&](const Row& row) {
    if (row.level == 0) return has_text(this->text(row), text);
    const FunctionId function = tree(row)[row.node].function;
    if (function >= known.size()) known.resize(function + size_t{1});
    Match& match = known[function];
    if (match == Match::kNotKnown) {
      match = has_text(labels_.text(function), text) ? Match::kYes : Match::kNo;
    }
    return match == Match::kYes;
  };
  // The walk visits all nodes, and meets the shown rows in their order. A hidden node
  // comes after the last shown row that was met.
  std::optional<Row> found;
  size_t passed = 0;
  walk(roots(), [&](const Row& row) {
    const bool is_shown = passed < rows_.size() && rows_[passed].node == row.node;
    if (is_shown) ++passed;
    bool is_candidate = true;
    if (beside.has_value() && is_backward) is_candidate = passed <= *beside;
    if (beside.has_value() && !is_backward) {
      is_candidate = passed > *beside + (is_shown ? 1 : 0);
    }
    if (is_candidate && (is_backward || !found.has_value()) && matches(row)) found = row;
    return true;
  });
  if (!found.has_value()) return std::nullopt;
  bool is_hidden = false;
  for (NodeIndex node = tree(*found)[found->node].parent; node != kNoNode;
       node = tree(*found)[node].parent) {
    is_hidden |= unfolded_.insert(node).second;
  }
  if (is_hidden) rows_ = unfolded(roots());
  const auto at = std::find_if(rows_.begin(), rows_.end(),
                               [&](const Row& row) { return row.node == found->node; });
  return static_cast<size_t>(at - rows_.begin());
}

}  // namespace arctrace::reader
