#!/usr/bin/env python3
"""Thousands of threads on the default buffer, which has 1,024 blocks: nothing is lost, in any
mode, however many of them were busy once. A ring may overwrite records where the CPUs' other
work keeps the threads from sharing blocks for long; how many is counted."""

import sys

import cases
import support
from command import read_info
from tracing import TracedTest

# Arguments: threads, records of each at its beginning, depth of its stack. After that each writes
# little.
PROGRAM = support.API + """
threads, busy, depth = (int(argument) for argument in sys.argv[1:])
ring = name("ring")
frame = key("level")
everyone = threading.Barrier(threads)
def work():
    for _ in range(depth): api.arctrace_enter(frame)
    for _ in range(busy): api.arctrace_instant(ring)
    everyone.wait()
    for _ in range(4):
        api.arctrace_instant(ring)
        time.sleep(0.05)
    for _ in range(depth): api.arctrace_exit(frame)
threading.stack_size(65536)
all_threads = [threading.Thread(target=work) for _ in range(threads)]
for thread in all_threads: thread.start()
for thread in all_threads: thread.join()
"""


class CrowdTest(TracedTest):
    def check_threads(self, threads, busy, depth, *options):
        recorded = self.record(sys.executable, "-c", PROGRAM, str(threads), str(busy), str(depth),
                               options=("--no-libcall", *options))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        summary = read_info(recorded.trace)["summary"]
        self.assertEqual(summary["lost"], 0)
        written = threads * (busy + 4 + 2 * depth)
        self.assertEqual(summary["records"] + summary["overwritten"], written)
        self.assertGreater(summary["records"], 0)
        if "--mode=overwrite" not in options:
            self.assertEqual(summary["overwritten"], 0)
        self.assertEqual(summary["findings"], 0)
        return summary

    def test_all_at_a_low_rate(self):
        for mode in ("drop", "overwrite", "stop"):
            with self.subTest(mode=mode):
                summary = self.check_threads(2500, 0, 20, f"--mode={mode}")
                # No thread writes enough to get a block of its own, however quick it is.
                self.assertEqual(summary["own_blocks"]["threads"], 0)

    def test_all_were_busy_once(self):
        for mode in ("drop", "stop"):
            with self.subTest(mode=mode):
                self.check_threads(1500, 500, 2, f"--mode={mode}")


if __name__ == "__main__":
    cases.main()
