#!/usr/bin/env python3
"""Files that are planted where a trace is to be written."""

import os
import signal
import stat
import subprocess
import time

import attack
from command import arctrace, start_arctrace
from tracing import TracedTest


class OutputTest(TracedTest):
    def is_trace(self, path):
        return stat.S_ISREG(path.lstat().st_mode) and path.read_bytes()[:8] == b"ARCTFILE"

    def test_default_output_is_never_a_planted_device_or_fifo(self):
        output = self.directory / "arctrace.data"
        precious = self.directory / "precious"
        plants = {"device": lambda: output.symlink_to("/dev/full"),
                  "file": lambda: (precious.write_text("precious"), output.symlink_to(precious)),
                  "nothing": lambda: output.symlink_to(self.directory / "nothing")}
        for name, plant in plants.items():
            with self.subTest(planted=name):
                plant()
                done = arctrace("record", "--", "true", cwd=self.directory)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(self.is_trace(output))
                output.unlink()
        os.mkfifo(output)
        done = arctrace("record", "--", "true", cwd=self.directory)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a FIFO, into which only -o arctrace.data writes", done.stderr)
        self.assertTrue(stat.S_ISFIFO(output.lstat().st_mode))
        self.assertEqual(precious.read_text(), "precious")
        self.assertFalse((self.directory / "nothing").exists())

    def test_a_named_device_gets_the_trace_and_a_line(self):
        done = arctrace("record", "-o", "/dev/null", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("arctrace: writing into the character device /dev/null\n", done.stderr)

    def test_a_named_link_to_a_device_only_where_nobody_else_can_put_it(self):
        public = self.directory / "public"
        public.mkdir()
        public.chmod(0o1777)
        link = public / "trace"
        link.symlink_to("/dev/full")
        done = arctrace("record", "-o", link, "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("a link to a character device, which anybody may have put there", done.stderr)
        public.chmod(0o755)
        done = arctrace("record", "-o", link, "--", "true")
        self.assertIn("writing into the character device", done.stderr)

    def test_a_fifo_that_nobody_reads_does_not_hold_signals_off(self):
        fifo = self.directory / "fifo"
        os.mkfifo(fifo)
        for number in (signal.SIGTERM, signal.SIGINT):
            with start_arctrace("record", "-o", fifo, "--", "true", stderr=subprocess.PIPE, text=True) as recorder:
                time.sleep(1)
                self.assertIsNone(recorder.poll())
                recorder.send_signal(number)
                recorder.communicate(timeout=600)
                self.assertIn(recorder.returncode, (2, -number))

    def test_a_fifo_that_is_read_gets_the_trace(self):
        fifo = self.directory / "fifo"
        os.mkfifo(fifo)
        with open(self.directory / "got", "wb") as got, \
             subprocess.Popen(["cat", fifo], stdout=got) as reader:
            done = arctrace("record", "-o", fifo, "--", "true")
            self.assertEqual(done.returncode, 0, done.stderr)
            reader.wait()
        self.assertTrue(self.is_trace(self.directory / "got"))

    def test_a_planted_directory_is_an_error(self):
        (self.directory / "arctrace.data").mkdir()
        done = arctrace("record", "--", "true", cwd=self.directory)
        self.assertEqual(done.returncode, 2)
        self.assertTrue((self.directory / "arctrace.data").is_dir())


if __name__ == "__main__":
    attack.main()
