"""Programs that wait in system calls, or allocate all the time, are joined and released, and do not
notice."""

import ctypes.util
import time

import cases
from attached_programs import LONG, AttachTest
from command import read


CALLS = 22  # each in a thread of its own


class Waits(AttachTest):
    def rows(self, joins):
        program, place = self.start("waits/attach_waits")
        self.wait_for_rounds(place, CALLS, times=2)
        for i in range(joins):
            done = self.attach(program.pid, options=("--duration=150ms",))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"joined process {program.pid} (attach_waits)", done.stderr)
            read("check", self.directory / "arctrace.data")
            time.sleep(0.02 * (i % 5))
        self.wait_for_rounds(place, CALLS, times=2)
        (place / "stop").touch()
        output, _ = program.communicate(timeout=600)
        self.assertEqual(program.returncode, 7, output)
        return dict(line.split(":", 1) for line in output.splitlines())

    def test_calls_end_as_always(self):
        """System calls end with the same result, not with EINTR, and not before their time."""
        undisturbed = self.rows(0)
        self.assertEqual(len(undisturbed), CALLS)
        self.assertEqual(self.rows(40 if LONG else 8), undisturbed)


class Allocates(AttachTest):
    def check(self, **environment):
        program, place = self.start("allocates/attach_allocates", environment=environment)
        for _ in range(40 if LONG else 10):
            done = self.attach(program.pid, options=("-b", "8M", "--duration=20ms"))
            self.assertEqual(done.returncode, 0, done.stderr)
            read("check", self.directory / "arctrace.data")
        self.assertIn("malloc", self.functions())
        self.assert_unharmed(program, place)

    def test_libc(self):
        self.check()

    def test_tcmalloc(self):
        library = ctypes.util.find_library("tcmalloc_minimal")
        if library is None:
            self.skipTest("libtcmalloc_minimal is not installed")
        self.check(LD_PRELOAD=library)


if __name__ == "__main__":
    cases.main()
