#!/usr/bin/env python3
"""Traces that are deep or wide: reports stay readable, and take time in proportion."""

import json
import re
import sys
import unittest

import attack
from attack import API, TraceTest

DEEP = API + """
keys = [key(f"f{i}") for i in range(3)]
depth, rounds = int(sys.argv[1]), int(sys.argv[2])
for _ in range(rounds):
    for i in range(depth): api.arctrace_enter(keys[i % 3])
    for i in reversed(range(depth)): api.arctrace_exit(keys[i % 3])
"""
WIDE = API + """
outer = key("outer")
api.arctrace_enter(outer)
for i in range(int(sys.argv[1])):
    inner = key(f"callee {i}")
    api.arctrace_enter(inner)
    api.arctrace_exit(inner)
api.arctrace_exit(outer)
"""
DEPTH, ROUNDS = 1000, 3


class LimitsTest(TraceTest):
    def run_program(self, program, *arguments):
        recorded = self.record(sys.executable, "-c", program, *map(str, arguments),
                               options=("--no-libcall", "-b", "64M"))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        return recorded.trace

    @staticmethod
    def functions(rows):
        """Those that are not made up, as [loader] is."""
        return [row for row in rows if not row["name"].startswith("[")]

    def test_json_of_a_deep_tree_can_be_read(self):
        trace = self.run_program(DEEP, DEPTH, ROUNDS)
        tree = json.loads(attack.arctrace("report", trace, "--format=json").stdout)["threads"][0]
        nodes = {}  # by id
        level, node = 0, tree["root"]
        while functions := self.functions(node["children"]):
            level, node = level + 1, functions[0]
            self.assertEqual((node["name"], node["calls"]), (f"f{(level - 1) % 3}", ROUNDS))
        self.assertEqual(level, 200)
        nodes[node["id"]] = level
        self.assertEqual(len(tree["deeper"]), DEPTH - level)
        for row in tree["deeper"]:
            self.assertEqual(row["level"], nodes[row["parent"]] + 1)
            self.assertEqual((row["name"], row["calls"]),
                             (f"f{(row['level'] - 1) % 3}", ROUNDS))
            nodes[row["id"]] = row["level"]
        self.assertEqual(max(nodes.values()), DEPTH)
        # A shallow one has no such rows.
        shallow = json.loads(attack.arctrace("report", self.run_program(DEEP, 50, 1),
                                             "--format=json").stdout)["threads"][0]
        self.assertNotIn("deeper", shallow)

    def test_a_function_with_many_callees(self):
        trace = self.run_program(WIDE, 20_000)
        done = attack.arctrace("report", trace, "--view=arcs", "--limit=1000000", timeout=60)
        rows = re.findall("^self .*", done.stdout, re.M)
        self.assertEqual(len([row for row in rows if "  [" not in row]), 20_001)


if __name__ == "__main__":
    attack.main()
