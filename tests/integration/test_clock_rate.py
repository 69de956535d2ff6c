"""Compares the stamps of user and kernel while the rate of the system's clock changes."""
import contextlib
import os
import subprocess
import unittest

import cases
from command import start_arctrace
from kernel_programs import NO_KERNEL, SOURCES, BracketsTest, measured_of


CHANGES = 20 if os.environ.get("ARCTRACE_TEST_LONG") else 2


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class ClockRateTest(BracketsTest):
    def setUp(self):
        super().setUp()
        self.helper = self.directory / "slew"
        subprocess.run(["gcc", "-O1", SOURCES / "slew.c", "-o", self.helper], check=True)

    @contextlib.contextmanager
    def slewing(self):
        """The rate changes after three seconds, and then every two."""
        with subprocess.Popen([self.helper, "3000", *["2000"] * (CHANGES - 1)], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as slew:
            try:
                state = slew.stdout.readline().strip()
                if state != "slewing":
                    self.skipTest(f"the clock's rate can't be changed: {state}")
                yield
            finally:
                slew.stdin.close()  # restores the rate, however this test ends

    def record_program(self, *options, arguments=(), program=None):
        """The rate is steady for a while after the recording has begun, however long that takes."""
        trace = self.directory / "arctrace.data"
        with start_arctrace("record", "-o", trace, "--kernel=bpf", "--no-libcall", *options, "--",
                            program or self.program, *arguments, cwd=self.directory, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
            begun = recorder.stdout.readline()
            with self.slewing():
                output, errors = recorder.communicate()
        self.assertEqual(recorder.returncode, 0, errors)
        return trace, measured_of(begun + output), errors

    def test_stamps_are_in_order_while_the_clock_is_slewed(self):
        """The kernel's clock changes its rate by 1000 ppm every now and then."""
        self.check_brackets(2 * CHANGES + 3)


if __name__ == "__main__":
    cases.main()
