// The call tree: finding children, insertions, merges and sums.
#include "reader/replay/call_tree.hpp"

#include <doctest/doctest.h>

using namespace arctrace::reader;

TEST_CASE("a child is made once, however many there are") {
  CallTree tree;
  const NodeIndex root = tree.add_root();
  std::vector<NodeIndex> nodes;
  for (FunctionId f = 2; f < 200; ++f) nodes.push_back(tree.child(root, f));
  for (FunctionId f = 2; f < 200; ++f) CHECK(tree.child(root, f) == nodes[f - 2]);
  CHECK(tree.size() == 199);
}

TEST_CASE("put_above keeps the tree and its child look-up") {
  CallTree tree;
  const NodeIndex root = tree.add_root();
  const NodeIndex child = tree.child(root, 5);
  const NodeIndex top = tree.put_above(root, 7);
  CHECK(tree.child(top, 7) == root);
  CHECK(tree.child(top, 8) != root);
  CHECK(tree.child(top, 7) == root);
  CHECK(tree.child(root, 5) == child);
  CHECK(tree[root].parent == top);
}

TEST_CASE("sum_up takes out what counted nothing") {
  CallTree tree;
  const NodeIndex root = tree.add_root();
  const NodeIndex kept = tree.child(root, 2);
  tree[tree.child(kept, 3)].self_ns = 4;
  tree.child(tree.child(kept, 4), 5);
  const NodeIndex marked = tree.child(root, 6);
  tree.mark(marked).lost_records = 1;
  tree.sum_up(root);
  size_t nodes = 0;
  for (NodeIndex at = root; at != kNoNode; at = tree.next_in_preorder(at, root)) ++nodes;
  CHECK(nodes == 4);
  CHECK(tree[root].total_ns == 4);
  CHECK(tree[marked].parent == root);
}

TEST_CASE("merge adds node by node") {
  CallTree from;
  const NodeIndex a = from.add_root();
  from[a].calls = 1;
  const NodeIndex f = from.child(a, 2);
  from[f] = from[f];
  from[f].calls = 3;
  from[from.child(f, 3)].self_ns = 10;
  from.mark(f).unwound = 2;
  const NodeIndex b = from.add_root();
  from[b].calls = 1;
  from[from.child(b, 3)].self_ns = 5;
  from[from.child(b, 2)].calls = 4;

  CallTree into;
  const NodeIndex root = into.add_root();
  into.merge(root, from, a);
  into.merge(root, from, b);
  into.sum_up(root);
  CHECK(into[root].calls == 2);
  CHECK(into[root].total_ns == 15);
  CHECK(into[into.child(root, 2)].calls == 7);
  CHECK(into.marks(into.child(root, 2)).unwound == 2);
  CHECK(into[into.child(into.child(root, 2), 3)].self_ns == 10);
  CHECK(into[into.child(root, 3)].self_ns == 5);
}
