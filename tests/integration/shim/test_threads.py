"""Threads: every one of them, each with its own calls and its names."""

import collections

from harness import ShimTest, both_compilers, plain_name, unittest


class Threads(ShimTest):
    @both_compilers
    def test_threads(self, compiler):
        storms = 20
        traced = self.compare(compiler, "./threads", str(storms))
        self.assertEqual(traced.status, 0)
        self.assert_counts(traced)

        # Each worker of a storm is a thread of its own, and makes i % 7 calls.
        leaves = collections.Counter()
        for thread in traced.report("tree")["threads"]:
            for node in thread["root"]["children"]:
                if plain_name(node["name"]) == "worker":
                    self.assertEqual(node["calls"], 1)
                    leaves[sum(child["calls"] for child in node["children"])] += 1
        expected = collections.Counter(i % 7 for i in range(100))
        expected = collections.Counter({calls: n * storms for calls, n in expected.items()})
        expected[3] += 1  # the one with a small stack
        self.assertEqual(leaves, expected)

        names = collections.defaultdict(list)  # of each thread, in order
        for record in traced.records("--type=THREAD"):
            names[record["writer"]].append(record["name"])
        renamed = sorted(of_thread for of_thread in names.values() if len(of_thread) > 1)
        self.assertEqual(renamed, [["threads", "main-renamed"],
                                   ["threads", "named-self", "named-other", "named-prctl"]])


if __name__ == "__main__":
    unittest.main()
