"""The small part of others' suites that is run with every change (tools/try-suites runs all)."""

import os
import pathlib
import random
import tempfile
import time
import unittest

import cases
import catalogue
import comparison
import random_hazards
import suites

ARCTRACE = os.environ["ARCTRACE"]
KEPT = pathlib.Path(os.environ["ARCTRACE_SUITES"])


# The first two once ended with SIGSEGV in a task, the third one in a coroutine that continues in
# another thread; the others split stacks, the last one in nested functions with -pg.
HAZARDS = (3051952525, 2688120173, 1663254220, 3, 7, 3567024639)
# The modes in which those are not run have these.
OTHER_HAZARDS = (1304225252, 4096542082, 3112417129)


class FixedHazards(random_hazards.RandomHazards):
    seeds = ()

    def programs(self):
        for seed in self.seeds:
            yield from self.of_seed(seed)


class Shell(suites.Suite):
    """A suite of one program, a script of the shell, which sees by LD_PRELOAD whether it is
    traced."""

    name = "shell"
    seconds = 1
    script = ""

    def programs(self):
        yield suites.Program("script", ["sh", "-c", self.script], self.place)


class Comparison(unittest.TestCase):
    def outcomes(self, script, seconds=1):
        """{outcome: count} of the script in the default mode, and the messages about it."""
        with tempfile.TemporaryDirectory() as directory:
            suite = Shell(pathlib.Path(directory), 1, random.Random(1))
            suite.script = script
            suite.seconds = seconds
            said = []
            counts = comparison.compare_all(ARCTRACE, suite, ["default"], 1, said.append)
            return counts["default"], "\n".join(said)

    def test_busy_machine(self):
        """A program may take longer than on an idle machine."""
        self.assertEqual(self.outcomes("sleep 2.5", 2), ({"same": 1}, ""))

    def test_hang(self):
        """A traced program that hangs, while another one has its output open, is ended."""
        started = time.monotonic()
        counts, said = self.outcomes('test -z "$LD_PRELOAD" || { sleep 1000 & wait; }')
        self.assertEqual(counts, {"hangs": 1})
        self.assertIn("traced None", said)
        self.assertLess(time.monotonic() - started, 1000)

    def test_unstable(self):
        """A program that is never the same is named, and no fault."""
        counts, said = self.outcomes("echo $$")
        self.assertEqual(counts, {"unstable": 1})
        self.assertIn("script, default: unstable", said)

    def test_unstable_and_wrong(self):
        """An unstable program's status must still be one that it has untraced."""
        counts, _ = self.outcomes('echo $$; test -z "$LD_PRELOAD"')
        self.assertEqual(counts, {"different": 1})

    def test_few_ways(self):
        """A program may do one of three things untraced, and traced one of these."""
        step = "n=$(cat n 2>/dev/null || echo 0); echo $n; echo $(((n + 1) % 3)) >n"
        self.assertEqual(self.outcomes(step), ({"same": 1}, ""))

    def test_once(self):
        """A difference in only one run is a fault if the program never differs so untraced."""
        counts, said = self.outcomes(
            'test -z "$LD_PRELOAD" -o -e n || { : >n; echo wrong; }; echo right')
        self.assertEqual(counts, {"sometimes different": 1})
        self.assertIn("1 of 5 runs differ", said)


class Suites(unittest.TestCase):
    def assert_same(self, suite, modes):
        wrong = []
        counts = comparison.compare_all(ARCTRACE, suite, modes, 2, wrong.append)
        self.assertEqual(wrong, [], "\n".join(wrong))
        for mode in modes:
            self.assertGreater(counts[mode]["same"], 0, counts)

    def assert_part_same(self, name, share):
        try:
            suite = catalogue.make(name, KEPT, share, 20261123)
        except suites.Unavailable as reason:
            self.skipTest(f"{name}: {reason}")
        self.assert_same(suite, comparison.MODES)

    def test_interrupted_build(self):
        """A partial file of a compiler that was killed is not taken for a program by the next
        run."""
        half = ["sh", "-c", 'printf half >"$2"; kill -KILL $$', "sh"]
        whole = ["sh", "-c", 'printf whole >"$2"', "sh"]
        with tempfile.TemporaryDirectory() as directory:
            place = pathlib.Path(directory)
            suite = suites.Suite(place, 1, random.Random(1))
            program = place / "program"
            with self.assertRaises(suites.Unavailable):
                suite.build_file(program, half, place)
            self.assertFalse(program.exists())
            suite.build_file(program, whole, place)
            self.assertEqual(program.read_text(), "whole")

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
