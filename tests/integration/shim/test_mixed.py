"""The API within instrumented functions: both write into the same stacks."""

import collections
import re

import cases
from hooked import ShimTest, both_compilers

PROCESSES = 4
THREADS = 4  # threads of each kind, beside the main thread
LOOPS = 50


class Mixed(ShimTest):
    @both_compilers
    def test_threads_and_processes(self, compiler):
        traced = self.compare("./mixed", compiler=compiler)
        self.assertEqual(traced.status, 14)
        self.assert_counts(traced, but_for=("counter",))
        summary = traced.report("flat")["summary"]
        self.assertEqual(summary["orphans"], 0)
        self.assertEqual((summary["processes"], summary["threads"]),
                         (PROCESSES, PROCESSES * (1 + THREADS)))
        self.assertEqual(traced.counted["scoped"], PROCESSES * THREADS * LOOPS)
        self.assert_events(traced)
        self.assert_nesting(traced)

    def assert_events(self, traced):
        """The counts that each process prints of what it wrote."""
        printed = [tuple(map(int, numbers)) for numbers in
                re.findall(r"(\d+) events, sum (-?\d+)", traced.stdout)]
        self.assertEqual(len(printed), PROCESSES)
        found = collections.defaultdict(list)  # the events of each process, in order
        for record in traced.records("--type=EVENT"):
            self.assertEqual(record["event"], "tick")
            found[record["pid"]].append(record["fields"])
        self.assertEqual([(len(fields), sum(field["value"] for field in fields))
                          for fields in found.values()], printed)
        for fields in list(found.values())[1:]:  # the first event of a fork child is of its main thread
            self.assertEqual(fields[0]["worker"], 9)
        counters = collections.defaultdict(list)
        for record in traced.records("--type=COUNTER"):
            counters[record["pid"], record["tid"]].append(record["value"])
        self.assertEqual(sum(map(len, counters.values())), traced.counted["counter"])
        self.assertEqual(len(counters), PROCESSES * THREADS)
        for values in counters.values():
            self.assertEqual(values, sorted(set(values)))
        self.assertEqual([record["text"] for record in traced.records("--type=MARK")], ["done"])

    def assert_nesting(self, traced):
        """A scope stands between the function that has it and the functions that are called in
        it."""
        paths = traced.paths()
        ours = {path: count for path, count in paths.items() if "/scoped" in path}
        main = "work/scoped"
        calls = PROCESSES * THREADS * LOOPS
        expected = {main: calls, f"{main}/outer scope": calls, f"{main}/outer scope/leaf": calls,
                    f"{main}/outer scope/inner scope": calls,
                    f"{main}/outer scope/inner scope/leaf": calls}
        self.assertEqual(ours, expected)
        # Other calls of leaf come from catching functions, and from the children's main threads.
        thrown = traced.counted["scoped"] - traced.counted["counter"]
        self.assertEqual(paths["work/leaf"], thrown)
        leaves = sum(count for path, count in paths.items() if path.endswith("leaf"))
        self.assertEqual(leaves, 2 * calls + thrown + PROCESSES - 1)


if __name__ == "__main__":
    cases.main()
