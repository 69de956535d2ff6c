"""tests/harness/isolate: a test that has ended has ended, with all that it has started."""

import pathlib
import signal
import subprocess
import sys
import unittest

import cases

ROOT = pathlib.Path(__file__).parents[2]


def isolated(script, *arguments):
    """Runs the script isolated, and returns when all processes that have its output open have ended."""
    return subprocess.run([ROOT / "tests/harness/isolate", sys.executable, "-c", script, *arguments],
                          capture_output=True, text=True, check=False)


class Isolate(unittest.TestCase):
    def test_what_is_left_is_ended(self):
        left = isolated("import subprocess\n"
                        "subprocess.Popen(['sleep', '1000'])\n"
                        "subprocess.run(['sh', '-c', '(setsid sleep 1001 &)'])\n"
                        "print('done', flush=True)")
        self.assertEqual((left.returncode, left.stdout), (0, "done\n"))
        # A process that has not executed sleep yet has the name of the shell.
        self.assertEqual(left.stderr.count("left by the test, and ended: "), 2, left.stderr)

    def test_the_exit_status_is_the_tests(self):
        self.assertEqual(isolated("raise SystemExit(7)").returncode, 7)
        self.assertEqual(isolated("import os; os.kill(os.getpid(), 9)").returncode, 128 + signal.SIGKILL)

    def test_no_signal_is_ignored(self):
        read = "print(open('/proc/self/status').read().split('SigIgn:')[1].split()[0])"
        self.assertEqual(isolated(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {read!r}])").stdout,
                         subprocess.run([sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, "
                                         f"'-c', {read!r}])"], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    cases.main()
