#!/usr/bin/env python3
"""How many instructions a traced call takes more than the same call untraced, by single steps:
the same number on any machine and under any load. A rise above the limits is a regression; who
lowers the number lowers the limit."""

import collections
import os
import pathlib
import subprocess
import tempfile
import unittest

import cases

ARCTRACE = os.environ["ARCTRACE"]
PROGRAMS = pathlib.Path(os.environ["ARCTRACE_PROGRAMS"])

# (program, arguments): most instructions added.
LIMITS = {
    ("calls_cyg", "repeated"): 162,
    ("calls_cyg", "in_turn"): 324,
    ("calls_cyg", "through_pointers"): 324,
    ("calls_cyg", "recursive"): 162,
    ("calls_fentry", "repeated"): 202,
    ("calls_fentry", "in_turn"): 404,
    ("calls_fentry", "through_pointers"): 404,
    ("calls_fentry", "recursive"): 202,
    ("calls_returns", "repeated"): 120,
    ("calls_returns", "in_turn"): 240,
    ("calls_returns", "through_pointers"): 240,
    ("calls_returns", "recursive"): 120,
    ("calls_xray", "repeated"): 174,
    ("calls_xray", "in_turn"): 348,
    ("calls_xray", "through_pointers"): 348,
    ("calls_xray", "recursive"): 174,
    ("calls_patchable", "repeated"): 224,
    ("calls_patchable", "in_turn"): 448,
    ("calls_patchable", "through_pointers"): 448,
    ("calls_patchable", "recursive"): 224,
    ("calls_pg", "repeated"): 211,
    ("calls_pg", "in_turn"): 422,
    ("calls_pg", "through_pointers"): 422,
    ("calls_pg", "recursive"): 211,
    ("library_calls", "repeated"): 214,
    ("library_calls", "in_turn"): 428,
    ("lock_calls", "locked"): 460,
    ("api_calls", "event"): 70,
    ("api_calls", "scope"): 98,
}
SHARED_LIMITS = {
    ("api_calls", "event"): 110,
    ("api_calls", "scope"): 174,
    ("calls_cyg", "repeated"): 245,
    ("calls_fentry", "repeated"): 302,
    ("library_calls", "repeated"): 311,
}
COROUTINE_LIMITS = {
    ("switches", "1", "switch"): 1_950,
    ("switches", "1000", "switch"): 2_150,
    ("switches", "4000", "switch"): 2_200,
    ("switches", "1", "call"): 235,
    ("switches", "4000", "call"): 235,
}
# (what makes the writer search, buffer): calls, and most instructions of any.
WORST_LIMITS = {
    ("full", ("--mode=stop", "--buffer-size=4M")): (8, 16_000),
    ("full", ("--mode=stop", "--buffer-size=64M")): (8, 16_000),
    ("threads", ("--mode=stop", "--buffer-size=4M", "--slots=1024")): (64, 4_000),
    ("threads", ("--mode=stop", "--buffer-size=4M", "--slots=65535")): (64, 4_000),
    ("processes", ("--mode=stop", "--buffer-size=4M", "--slots=1024")): (16, 30_000),
    ("processes", ("--mode=stop", "--buffer-size=4M", "--slots=65535")): (16, 30_000),
}


CLOCKS = pathlib.Path("/sys/devices/system/clocksource/clocksource0/available_clocksource")


def with_counter(directory):
    """What to put before a command that records, so that its records are stamped by the CPU's
    counter; None: nothing helps. Where the kernel does not trust the counter, it is made to say
    that it does: only with the counter is there a fast path, and counts of instructions hold with
    any clock."""
    if not CLOCKS.exists() or "tsc" in CLOCKS.read_text(encoding="utf-8").split():
        return []
    clocks = pathlib.Path(directory, "clocks")
    clocks.write_text("tsc\n", encoding="utf-8")
    prefix = ["unshare", "--mount", "sh", "-c", f'mount --bind "$0" {CLOCKS} && exec "$@"', clocks]
    return prefix if subprocess.run([*prefix, "true"], check=False).returncode == 0 else None


class Instructions(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        prefix = with_counter(self.directory)
        if prefix is None:
            self.skipTest("the kernel does not trust the CPU's counter")
        self.record = [*prefix, ARCTRACE, "record", "-o", f"{self.directory}/arctrace.data"]

    def counts(self, *command):
        done = subprocess.run(command, text=True, capture_output=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [int(line) for line in done.stdout.split()]

    def count(self, *command):
        counts = self.counts(*command)
        self.assertEqual(len(counts), 1)
        return counts[0]

    def check(self, limits, *options):
        for (program, *arguments), limit in limits.items():
            with self.subTest(program=program, arguments=arguments, options=options):
                stepped = [PROGRAMS / "count_steps", PROGRAMS / program, *arguments]
                untraced = self.count(*stepped)
                traced = self.count(*self.record, *options, "--", *stepped)
                self.assertGreater(traced, untraced, "nothing was recorded")
                print(program, *arguments, *options, f"+ {traced - untraced}")
                self.assertLessEqual(traced - untraced, limit)

    def test_own_blocks(self):
        self.check(LIMITS, "--scope=thread")

    def test_shared_chain(self):
        self.check(SHARED_LIMITS, "--scope=shared")

    def test_coroutines(self):
        """A switch, there and back, costs about the same however many there are; a call costs
        what it does without."""
        self.check(COROUTINE_LIMITS, "--scope=thread")

    def test_searches_have_an_end(self):
        """The histogram of a call's steps does not depend on how many blocks and slots there
        are."""
        for (what, options), (calls, limit) in WORST_LIMITS.items():
            with self.subTest(what=what, options=options):
                counts = self.counts(*self.record, "--no-libcall", "--block-size=384", *options,
                                     "--", PROGRAMS / "count_steps", PROGRAMS / "worst_calls",
                                     what)
                self.assertEqual(len(counts), calls)
                histogram = collections.Counter(1 << count.bit_length() for count in counts)
                print(what, *options, " ".join(f"<{steps}: {n}" for steps, n
                                               in sorted(histogram.items())))
                self.assertLessEqual(max(counts), limit)


if __name__ == "__main__":
    cases.main()
