#!/usr/bin/env python3
"""Options in a file that belongs to another user, or that others can write to."""

import os

import attack
from attack import NOBODY
from command import arctrace
from tracing import TracedTest


class ConfigTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.config = self.directory / ".config/arctrace/config"
        self.config.parent.mkdir(parents=True)
        self.victim = self.directory / "victim"
        self.config.write_text(f"[record]\noutput={self.victim}\n")

    def run_in_home(self, *options, as_nobody=False):
        cwd = self.directory
        if as_nobody:
            cwd = self.directory / "theirs"
            cwd.mkdir(exist_ok=True)
            os.chown(cwd, NOBODY, NOBODY)
        environment = {**os.environ, "HOME": str(self.directory)}
        environment.pop("XDG_CONFIG_HOME", None)
        return arctrace("record", *options, "--", "true", cwd=cwd, env=environment,
                        preexec_fn=(lambda: attack.become(NOBODY)) if as_nobody else None)

    @attack.needs_root
    def test_root_with_a_users_home(self):
        os.chown(self.config, NOBODY, NOBODY)
        done = self.run_in_home()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("it belongs to another user", done.stderr)
        self.assertFalse(self.victim.exists())
        done = self.run_in_home("--config", self.config)
        self.assertEqual(done.returncode, 2)
        self.assertFalse(self.victim.exists())

    @attack.needs_root
    def test_an_output_of_roots_is_not_a_users(self):
        self.directory.chmod(0o755)
        for option, status in (("output=x", 2), ("buffer-size=4M", 0)):
            self.config.write_text(f"[record]\n{option}\n")
            done = self.run_in_home(as_nobody=True)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual("config:2: output is only for the file's own user" in done.stderr,
                             status != 0, done.stderr)

    def test_a_file_that_others_may_write_to(self):
        self.config.chmod(0o666)
        done = self.run_in_home()
        self.assertIn("others may write to it", done.stderr)
        self.assertFalse(self.victim.exists())
        self.config.chmod(0o600)
        done = self.run_in_home()
        self.assertTrue(self.victim.exists(), done.stderr)

    def test_a_fifo_holds_nobody_up(self):
        self.config.unlink()
        os.mkfifo(self.config)
        done = self.run_in_home()
        self.assertEqual(done.returncode, 0)
        self.assertIn("it is not a regular file", done.stderr)


if __name__ == "__main__":
    attack.main()
