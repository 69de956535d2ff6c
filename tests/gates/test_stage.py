"""tools/stage.sh: stages that pass and that fail."""

import pathlib
import subprocess
import tempfile
import unittest

import cases

STAGE = pathlib.Path(__file__).resolve().parents[2] / "tools/stage.sh"
HEAD = f"""set -euo pipefail
. {STAGE}
bad() {{ echo "of bad"; return 3; }}
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

    def test_stages_in_turn(self):
        self.assertEqual((0, ["a ok", "b ok"]), self.run_script("stage a true\nstage b true\n"))

    def test_a_failure_shows_the_log_and_stops_nothing_that_goes_on(self):
        status, lines = self.run_script("stage a bad || true\nstage b true\necho ${failed_stages[*]}\n")
        self.assertEqual((0, ["a FAILED", "of bad", "b ok", "a"]), (status, lines))

    def test_a_failure_is_the_status_of_its_stage(self):
        self.assertEqual((3, ["a FAILED", "of bad"]), self.run_script("stage a bad\nstage b true\n"))

    def test_a_failure_without_a_word_is_one_too(self):
        self.assertEqual((1, ["a FAILED"]), self.run_script("stage a false\n"))


if __name__ == "__main__":
    cases.main()
