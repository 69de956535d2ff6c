#!/usr/bin/env python3
"""Signals at each system call of a recording: it leaves a good file or none, and no buffer."""

import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import unittest

import attack
from command import ARCTRACE, arctrace, read, run, start_arctrace
from tracing import TracedTest

# LeakSanitizer's check at exit stops the process, and takes a signal during that for a failure.
NO_LEAK_CHECK = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}

# System calls from one signal to the next. A sanitized command takes ten times as long.
STEP = int(os.environ.get("ARCTRACE_SIGNAL_STEP", "51" if os.environ.get("ARCTRACE_SANITIZE") else "17"))


@unittest.skipUnless(shutil.which("strace"), "no strace")
class SignalTest(TracedTest):
    def run_with(self, number, at, *command):
        """Runs the command under strace, which sends the signal at its system call of that number. Returns the
        status, as subprocess has it, whether the command reached that call, and the buffers that it made and
        did not remove."""
        log = self.directory / "strace.log"
        inject = f"--inject=!exit_group,exit:signal={number.name}:when={at}"
        done = run("strace", "-o", log, inject, *command, cwd=self.directory, env={**os.environ, **NO_LEAK_CHECK})
        text = log.read_text(errors="replace")
        log.unlink()
        has_come = f"--- {number.name} " in text or "killed by" in text
        # Other recorders run on this machine too, and have buffers for a while.
        named = set(re.findall(r"/dev/shm/arctrace-\d+-\d+-\w+", text))
        if "record" in command and not has_come:
            self.assertTrue(named, text)
        return done, has_come, {path for path in named if os.path.exists(path)}

    def check_all(self, number, *command, statuses=()):
        output = self.directory / "arctrace.data"
        at = 1
        while True:
            done, has_come, leftovers = self.run_with(number, at, *command)
            if not has_come:
                break
            with self.subTest(signal=number.name, at=at):
                self.assertIn(done.returncode, (0, -number, 128 + number, *statuses), done.stderr)
                self.assertEqual(leftovers, set(), done.stderr)
                self.assertEqual([p.name for p in self.directory.iterdir()
                                  if p.name not in ("arctrace.data", "session")], [])
                if output.exists():
                    read("check", output)
                    output.unlink()
            at += STEP
        self.assertGreater(at, 50)
        for path in self.directory.glob("arctrace.data*"):
            path.unlink()

    def test_record(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXFSZ):
            self.check_all(number, ARCTRACE, "record", "-b", "1M", "--", "true")

    def test_snapshot(self):
        session = self.directory / "session"
        done = arctrace("create", session, "-b", "1M")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_all(signal.SIGTERM, ARCTRACE, "snapshot", session)
        self.check_all(signal.SIGTERM, ARCTRACE, "recover", session)

    def test_kill_while_the_buffer_is_made(self):
        for after in (0.02, 0.1, 0.3):
            with start_arctrace("record", "-b", "256M", "--", "true", cwd=self.directory,
                                stderr=subprocess.DEVNULL) as recorder:
                try:
                    recorder.wait(timeout=after)
                except subprocess.TimeoutExpired:
                    recorder.kill()
                recorder.wait()
            for path in pathlib.Path("/dev/shm").glob(f"arctrace-*-{recorder.pid}-*"):
                # The remaining buffer is whole, and can be destroyed. The command may live a moment longer than
                # its recorder.
                self.assertEqual(arctrace("destroy", "--force", path).returncode, 0)
            # The file of a recorder that was killed while it ended is cut off.
            for path in self.directory.glob("arctrace.data*"):
                path.unlink()

    def test_a_limit_of_file_sizes_is_an_error(self):
        def limit(size):
            return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        for size in (0, 4096, 1 << 20, 5 << 20):
            with start_arctrace("record", "-b", "4M", "--", "sh", "-c", "exit 3", cwd=self.directory,
                                stderr=subprocess.PIPE, text=True, preexec_fn=limit(size)) as recorder:
                errors = recorder.stderr.read()
            self.assertIn(recorder.returncode, (2, 3), errors)
            self.assertEqual(
                list(pathlib.Path("/dev/shm").glob(f"arctrace-*-{recorder.pid}-*")), [])


if __name__ == "__main__":
    attack.main()
