#!/usr/bin/env python3
"""Counts by single steps how many instructions a traced call takes more than the same call untraced: the
same number on any machine and under any load. A rise above the limits is a regression; a change that
lowers the number lowers the limit."""

import collections
import os
import pathlib
import re
import tempfile
import unittest

import cases
import walks
from command import ARCTRACE, run

PROGRAMS = pathlib.Path(os.environ["ARCTRACE_PROGRAMS"])

# (program, arguments): most instructions added. Some of the 840 calls in many places evict other known
# calls; which ones depends on addresses.
LIMITS = {
    ("calls_cyg", "repeated"): 120,
    ("calls_cyg", "in_turn"): 240,
    ("calls_cyg", "through_pointers"): 240,
    ("calls_cyg", "recursive"): 120,
    ("calls_cyg", "in_many_places"): 840 * 125,
    ("calls_cyg_frames", "repeated"): 128,
    ("calls_fentry", "repeated"): 163,
    ("calls_fentry", "in_turn"): 326,
    ("calls_fentry", "through_pointers"): 326,
    ("calls_fentry", "recursive"): 163,
    ("calls_fentry", "in_many_places"): 840 * 330,
    ("calls_returns", "repeated"): 105,
    ("calls_returns", "in_turn"): 210,
    ("calls_returns", "through_pointers"): 210,
    ("calls_returns", "recursive"): 105,
    ("calls_xray", "repeated"): 157,
    ("calls_xray", "in_turn"): 314,
    ("calls_xray", "through_pointers"): 314,
    ("calls_xray", "recursive"): 157,
    ("calls_patchable", "repeated"): 185,
    ("calls_patchable", "in_turn"): 370,
    ("calls_patchable", "through_pointers"): 370,
    ("calls_patchable", "recursive"): 185,
    ("calls_patchable", "in_many_places"): 840 * 390,
    ("calls_pg", "repeated"): 186,
    ("calls_pg", "in_turn"): 372,
    ("calls_pg", "through_pointers"): 372,
    ("calls_pg", "recursive"): 186,
    ("calls_pg", "in_many_places"): 840 * 360,
    ("library_calls", "repeated"): 176,
    ("library_calls", "in_turn"): 352,
    ("lock_calls", "locked"): 424,
    ("api_calls", "event"): 46,
    ("api_calls", "scope"): 95,
    ("api_calls", "reserve"): 68,
    ("api_calls", "instant"): 24,
    ("api_calls", "counter"): 26,
}
SHARED_LIMITS = {
    ("api_calls", "event"): 111,
    ("api_calls", "scope"): 170,
    ("api_calls", "reserve"): 106,
    ("api_calls", "instant"): 51,
    ("api_calls", "counter"): 56,
    ("calls_cyg", "repeated"): 213,
    ("calls_fentry", "repeated"): 304,
    ("library_calls", "repeated"): 318,
}
# By the options of a filter: calls that it leaves out, with and without a frame, and calls that it lets through.
FILTERED_LIMITS = {
    ("-F", "other"): {
        ("library_calls", "repeated"): 210,
        ("calls_fentry", "repeated"): 188,
        ("calls_cyg", "repeated"): 358,
    },
    ("-N", "*first"): {
        ("library_calls", "repeated"): 540,
        ("calls_fentry", "repeated"): 535,
        ("calls_patchable", "repeated"): 555,
        ("calls_cyg", "repeated"): 350,
    },
    ("-N", "other"): {
        ("library_calls", "repeated"): 605,
        ("lock_calls", "locked"): 1_240,
        ("calls_fentry", "repeated"): 600,
        ("calls_patchable", "repeated"): 625,
        ("calls_pg", "repeated"): 800,
        ("calls_returns", "repeated"): 590,
        ("calls_cyg", "repeated"): 405,
        ("api_calls", "scope"): 400,
    },
}
# By the clock word, which stands still meanwhile: a record that has another time than the one before it costs more.
WORD_LIMITS = {
    ("calls_cyg", "repeated"): 130,
    ("calls_fentry", "repeated"): 176,
    ("calls_returns", "repeated"): 110,
    ("library_calls", "repeated"): 190,
    ("lock_calls", "locked"): 515,
    ("api_calls", "event"): 48,
    ("api_calls", "scope"): 100,
    ("api_calls", "instant"): 20,
}
COROUTINE_LIMITS = {
    ("switches", "1", "switch"): 2_050,
    ("switches", "1000", "switch"): 2_240,
    ("switches", "4000", "switch"): 2_290,
    ("switches", "1", "call"): 191,
    ("switches", "4000", "call"): 191,
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


# Costs of the calls of api_calls in the public headers: (header, a text with the numbers, these calls).
TOLD = [
    ("arctrace.h", r"FUNCTIONS; at most (\d+) instructions for both", ["scope"]),
    ("arctrace.h", r"EVENTS; at most (\d+) instructions for 8 bytes", ["event"]),
    ("arctrace.h", r"At most (\d+) instructions for both calls", ["reserve"]),
    ("arctrace.h", r"MARKS; at most (\d+) and (\d+) instructions", ["instant", "counter"]),
    ("arctrace.hpp", r"FUNCTIONS; at most (\d+) instructions for both", ["scope"]),
    ("arctrace.hpp", r"EVENTS; at most (\d+) instructions for a number", ["event"]),
]
ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include/arctrace"

# The walks of docs/architecture.md that the calls of these programs take.
WALKS = {("api_calls", "event"): "An event of the API",
         ("library_calls", "repeated"): "A library call"}


CLOCKS = pathlib.Path("/sys/devices/system/clocksource/clocksource0/available_clocksource")


def with_counter(directory):
    """The words to put before a command that records, so that its records are stamped by the CPU's
    counter; None: nothing helps. If the kernel does not trust the counter, it is made to say that it
    does: only with the counter is there a fast path, and counts of instructions hold with any clock."""
    if not CLOCKS.exists() or "tsc" in CLOCKS.read_text(encoding="utf-8").split():
        return []
    clocks = pathlib.Path(directory, "clocks")
    clocks.write_text("tsc\n", encoding="utf-8")
    prefix = ["unshare", "--mount", "sh", "-c", f'mount --bind "$0" {CLOCKS} && exec "$@"', clocks]
    return prefix if run(*prefix, "true").returncode == 0 else None


def source_files(places):
    """The project's files that have the code at `places` (count_steps --places), by line tables."""
    found = set()
    by_path = collections.defaultdict(list)
    for line in places.splitlines():
        path, offset = line.rsplit(" ", 1)
        if pathlib.Path(path).name.startswith("libarctrace"):
            by_path[path].append(f"{int(offset):#x}")
    for path, offsets in by_path.items():
        # Our linker gives the code's segment the same addresses as offsets in the file.
        for line in run("addr2line", "-i", "-e", path, *offsets, check=True).stdout.splitlines():
            parts = pathlib.PurePath(line.split(":")[0]).parts
            # A compiler's cache may return an object that was compiled in another directory.
            names = ["/".join(parts[i:]) for i in range(1, len(parts))]
            found |= {name for name in names[-6:] if (ROOT / name).is_file()}
    return found


class ToldCosts(unittest.TestCase):
    """The costs in the public headers are the ones that the tests check."""

    def test_headers(self):
        for header, text, calls in TOLD:
            with self.subTest(header=header, calls=calls):
                words = re.sub(r"\n\s*(\*|//)?\s*", " ", (HEADERS / header).read_text(encoding="utf-8"))
                found = re.search(text, words)
                self.assertTrue(found, text)
                self.assertEqual([int(number) for number in found.groups()],
                                 [LIMITS["api_calls", call] for call in calls])

    def test_no_other_number_is_told(self):
        for header in ("arctrace.h", "arctrace.hpp"):
            words = re.sub(r"\n\s*(\*|//)?\s*", " ", (HEADERS / header).read_text(encoding="utf-8"))
            told = sum(text_header == header for text_header, *_ in TOLD)
            self.assertEqual(len(re.findall(r"(?<![-\d])\d+ instructions", words)), told, header)


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
        return [int(line) for line in run(*command, check=True).stdout.split()]

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
                self.assertGreater(traced, untraced, "no call was hooked")
                print(program, *arguments, *options, f"+ {traced - untraced}")
                self.assertLessEqual(traced - untraced, limit)

    def test_own_blocks(self):
        limits = LIMITS.items()
        if cases.IS_GATE:  # one way to call for each kind
            limits = [(call, limit) for call, limit in limits
                      if not call[0].startswith("calls_") or call[1] == "repeated"]
        self.check(dict(limits), "--scope=thread")

    def test_walks(self):
        """The files whose instructions a call executes are those that its walk names."""
        for call, walk in WALKS.items():
            with self.subTest(call=call):
                places = pathlib.Path(self.directory, "places")
                program, *arguments = call
                run(*self.record, "--scope=thread", "--", PROGRAMS / "count_steps", "--places", places,
                    PROGRAMS / program, *arguments, check=True)
                executed = source_files(places.read_text(encoding="utf-8"))
                print(walk, *sorted(executed))
                self.assertTrue(executed, "no line tables")
                self.assertLessEqual(executed, walks.files_of(walk))

    def test_shared_chain(self):
        self.check(SHARED_LIMITS, "--scope=shared")

    def test_filtered(self):
        for options, limits in FILTERED_LIMITS.items():
            if cases.IS_GATE:
                limits = {call: limit for call, limit in limits.items() if call[0] in ("library_calls", "calls_cyg")}
            self.check(limits, "--scope=thread", *options)

    def test_clock_word(self):
        self.check(WORD_LIMITS, "--scope=thread", "--clock=order", "--clock-resolution=1s")

    def test_coroutines(self):
        """A switch, there and back, costs about the same however many coroutines there are; a call costs
        what it does without them."""
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
