"""The small part of others' suites that is run with every change (tools/try-suites runs all)."""

import os
import pathlib
import random
import tempfile
import unittest

import cases
import catalogue
import random_hazards
import suites

ARCTRACE = os.environ["ARCTRACE"]
KEPT = pathlib.Path(os.environ["ARCTRACE_SUITES"])


# The first two once ended with SIGSEGV in a task, the third one in a coroutine that goes on in
# another thread; the others split stacks, the last one in nested functions with -pg.
HAZARDS = (3051952525, 2688120173, 1663254220, 3, 7, 3567024639)
# For the modes in which those are not run.
OTHER_HAZARDS = (1304225252, 4096542082, 3112417129)


class FixedHazards(random_hazards.RandomHazards):
    seeds = ()

    def programs(self):
        for seed in self.seeds:
            yield from self.of_seed(seed)


class Suites(unittest.TestCase):
    def assert_same(self, suite, modes):
        wrong = []
        counts = suites.run_suite(ARCTRACE, suite, modes, 2, wrong.append)
        self.assertEqual(wrong, [], "\n".join(wrong))
        for mode in modes:
            self.assertGreater(counts[mode]["same"], 0, counts)

    def assert_part_same(self, name, share):
        try:
            suite = catalogue.make(name, KEPT, share, 20261123)
        except suites.Unavailable as reason:
            self.skipTest(f"{name}: {reason}")
        self.assert_same(suite, suites.MODES)

    def test_boost(self):
        self.assert_part_same("boost", 0.05)

    def test_zlib(self):
        self.assert_part_same("zlib", 1)

    def assert_hazards(self, seeds, modes):
        with tempfile.TemporaryDirectory() as directory:
            suite = FixedHazards(pathlib.Path(directory), 1, random.Random(1))
            suite.seeds = seeds
            suite.prepare()
            self.assert_same(suite, modes)

    def test_random_hazards(self):
        self.assert_hazards(HAZARDS, ("default", "nested"))

    def test_other_random_hazards(self):
        self.assert_hazards(OTHER_HAZARDS, ("overwrite", "shared"))


if __name__ == "__main__":
    cases.main()
