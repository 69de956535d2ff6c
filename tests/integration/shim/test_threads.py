"""Every thread is recorded, with its own calls and its names."""

import collections

import cases
import turns_account
from hooked import ShimTest, both_compilers, plain_name


class Threads(ShimTest):
    @both_compilers
    def test_threads(self, compiler):
        storms = 20
        traced = self.compare("./threads", str(storms), compiler=compiler)
        self.assertEqual(traced.status, 0)
        self.assert_counts(traced)

        # Each worker of the program is a thread of its own, and makes i % 7 calls.
        leaves = collections.Counter()
        for thread in traced.report("tree")["threads"]:
            for node in thread["root"]["children"]:
                if plain_name(node["name"]) == "worker":
                    self.assertEqual(node["calls"], 1)
                    leaves[sum(child["calls"] for child in node["children"])] += 1
        expected = collections.Counter(i % 7 for i in range(100))
        expected = collections.Counter({calls: n * storms for calls, n in expected.items()})
        expected[3] += 1  # the thread with a small stack
        self.assertEqual(leaves, expected)

        names = collections.defaultdict(list)  # the names of each thread, in order
        for record in traced.records("--type=THREAD"):
            names[record["writer"]].append(record["name"])
        renamed = sorted(of_thread for of_thread in names.values() if len(of_thread) > 1)
        self.assertEqual(renamed, [["threads", "main-renamed"],
                                   ["threads", "named-self", "named-other", "named-prctl"]])

    @both_compilers
    def test_late_destructors(self, compiler):
        """Destructors of keys and cleanups run after everything else of a thread; frames and
        errno are as the program expects."""
        traced = self.compare("./late", compiler=compiler)
        self.assertEqual(traced.status, 15)
        self.assertIn("errno kept\n", traced.stdout)
        self.assert_counts(traced)
        self.assertEqual(traced.counted["key_destructor"], 2 * 20)
        paths = traced.paths()
        # The calls are not below thread_body, which pthread_exit abandoned in half of the
        # threads.
        self.assertEqual(paths["key_destructor/leaf"], 2 * 20)
        self.assertNotIn("thread_body/key_destructor/leaf", paths)
        self.assertEqual(paths["thread_body/cleanup"], 20)
        self.assertEqual(paths["at_exit/leaf"], 1)
        self.assertEqual(traced.report("flat")["summary"]["orphans"], 0)

    @both_compilers
    def test_coroutines(self, compiler):
        """Each call is counted once; nothing is promised of where its frame is."""
        traced = self.compare("./contexts", compiler=compiler)
        self.assertEqual(traced.status, 13)
        self.assertIn("coroutine 0: 60\n", traced.stdout)
        self.assert_counts(traced)
        for fixture, status in (("./own_stack", 13), ("./reused", 11)):
            traced = self.compare(fixture, compiler=compiler)
            self.assertEqual(traced.status, status)
            self.assert_counts(traced)

    @both_compilers
    def test_turns(self, compiler):
        """Each coroutine's calls are on a stack of its own, however they are recorded."""
        for options in ((), ("--scope=shared",), ("--mode=overwrite",), ("--libcall",),
                        ("-t", "1us"), ("-N", "work")):
            with self.subTest(options=options):
                traced = self.compare("./turns", "array", compiler=compiler, options=options)
                self.assertEqual(traced.status, 15)
                nodes = turns_account.check(self, traced.directory, traced.report("tree"),
                                            traced.records("--type=COROUTINE"))
                if "-t" in options or "-N" in options:
                    continue
                self.assert_counts(traced)
                for node in nodes:
                    if node["name"].startswith("coroutine"):
                        self.assertEqual([plain_name(child["name"]) for child in
                                          node["children"]], ["body"])


if __name__ == "__main__":
    cases.main()
