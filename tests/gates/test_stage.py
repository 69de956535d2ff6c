"""tools/stage.sh: stages that pass, fail, and run in the background."""

import pathlib
import subprocess
import tempfile
import time
import unittest

STAGE = pathlib.Path(__file__).resolve().parents[2] / "tools/stage.sh"
HEAD = f"""set -euo pipefail
stage_failed() {{ echo "stopped"; }}
. {STAGE}
slow() {{ sleep 1; echo "of slow"; }}
bad() {{ echo "of bad"; false; }}
forever() {{ sleep 1000 & echo "$!" >forever.pid; wait; }}
"""


class Stages(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def run_script(self, lines):
        """(exit status, output lines with times replaced)."""
        done = subprocess.run(["bash", "-c", HEAD + lines], cwd=self.directory.name, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=60)
        return done.returncode, [" ".join(line.split()[:2]) for line in done.stdout.splitlines()]

    def test_stages_in_turn_and_beside_each_other(self):
        self.assertEqual((0, ["b ok", "a ok"]),
                         self.run_script("begin a slow\nstage b true\nfinish a\n"))

    def test_what_was_begun_runs_in_turn(self):
        """Each waits for the one before, and is waited for in any order."""
        status, lines = self.run_script(
            "first() { sleep 1; [ ! -e second ] && touch first; }\n"
            "second() { touch second; [ -e first ]; }\n"
            "begin a first\nbegin b second\nstage c true\nfinish b\nfinish a\n")
        self.assertEqual((0, ["c ok", "b ok", "a ok"]), (status, lines))

    def test_a_failure_in_the_background_does_not_keep_the_next_waiting(self):
        status, lines = self.run_script("begin a bad\nbegin b slow\nfinish b\nfinish a\n")
        self.assertEqual((1, ["b ok", "a FAILED", "of bad", "stopped"]), (status, lines))

    def test_a_failure_shows_the_log_and_ends_the_script(self):
        status, lines = self.run_script("stage a bad\nstage b true\n")
        self.assertEqual((1, ["a FAILED", "of bad", "stopped"]), (status, lines))

    def test_a_failure_in_the_background_is_one_when_it_is_waited_for(self):
        status, lines = self.run_script("begin a bad\nstage b true\nfinish a\nstage c true\n")
        self.assertEqual((1, ["b ok", "a FAILED", "of bad", "stopped"]), (status, lines))

    def test_a_failure_without_a_word_is_one_too(self):
        self.assertEqual((1, ["a FAILED", "stopped"]), self.run_script("stage a false\n"))

    def test_nothing_is_left_of_what_was_begun(self):
        status, _ = self.run_script(
            "begin a forever\nwhile [ ! -s forever.pid ]; do sleep 0.1; done\nstage b false\n")
        self.assertEqual(1, status)
        pid = int(pathlib.Path(self.directory.name, "forever.pid").read_text())
        for _ in range(100):
            if not pathlib.Path(f"/proc/{pid}").exists():
                return
            time.sleep(0.1)
        self.fail("it runs on")


if __name__ == "__main__":
    unittest.main()
