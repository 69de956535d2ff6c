"""Neither a record nor a block costs a system call, counted by strace."""

import collections
import re
import shutil
import unittest

import cases
from hooked import ShimTest, both_compilers

FEW = 1_000
MANY = 200_000
# Small blocks, of which hundreds are handed out. The buffer has space for all, and the collector is not
# woken.
OPTIONS = ("--block-size=4k", "--buffer-size=64M", "--high-water=0")


@unittest.skipUnless(shutil.which("strace"), "no strace")
class SystemCalls(ShimTest):
    def count(self, compiler, way, events, *options):
        """A traced run, and {system call: how often the program made it}."""
        traced = self.record_quietly("strace", "-f", "-qq", "-o", "strace.txt", "./events", way, str(events),
                                     compiler=compiler, options=OPTIONS + options)
        self.assertEqual(traced.status, 0)
        lines = (traced.directory / "strace.txt").read_text(encoding="utf-8").splitlines()
        found = [re.match(r"\d+ +(\w+)\(", line) for line in lines]
        return traced, collections.Counter(match[1] for match in found if match)

    def assert_no_more(self, compiler, way, *options):
        """Compares a long run with a short one; returns the trace of the long run."""
        _, few = self.count(compiler, way, FEW, *options)
        traced, many = self.count(compiler, way, MANY, *options)
        self.assertGreater(few["mmap"], 0)
        self.assertEqual(many - few, collections.Counter())
        return traced

    def assert_blocks(self, info):
        self.assertGreater(info["summary"]["blocks"], MANY * 16 // 4096)

    @both_compilers
    def test_api(self, compiler):
        for scope in ("thread", "shared"):
            with self.subTest(scope=scope):
                info = self.assert_no_more(compiler, "api", f"--scope={scope}").info()
                self.assertEqual(info["summary"]["records_by_type"]["EVENT"], MANY)
                self.assert_blocks(info)

    @both_compilers
    def test_functions(self, compiler):
        for scope in ("thread", "shared"):
            with self.subTest(scope=scope):
                traced = self.assert_no_more(compiler, "functions", f"--scope={scope}")
                self.assertEqual(traced.counted["leaf"], MANY)
                self.assert_counts(traced)
                self.assert_blocks(traced.info())

    def test_would_be_seen(self):
        _, few = self.count("gcc", "system-calls", 10)
        _, many = self.count("gcc", "system-calls", 30)
        self.assertEqual(many - few, collections.Counter(getppid=20))


if __name__ == "__main__":
    cases.main()
