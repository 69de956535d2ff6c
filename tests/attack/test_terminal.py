#!/usr/bin/env python3
"""Names that would control a terminal, or reorder what stands on it, wherever they are shown."""

import json
import os
import re
import shutil

import attack
from command import arctrace
from tracing import TracedTest

NASTY = ("\x1b[31m\x9b\x7f\u202e\u2066\u2028\u2029\u061c\u200b\ufeff\u180e"
         "\U000e0021")
# C0 without the newline, DEL, C1, and characters that order or separate text or are invisible.
HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e"
                     "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
READERS = (["info"], ["dump"], ["report"], ["check"], ["info", "--format=json"],
           ["dump", "--format=json"], ["report", "--format=json"],
           *(["report", f"--view={view}"]
             for view in ("tree", "flat", "arcs", "flow", "log-rt", "locks")),
           *(["report", f"--view={view}", "-F", "*"] for view in ("histogram", "slowest")),
           ["graph", "*"])


class TerminalTest(TracedTest):
    def assert_harmless(self, done):
        for text in (done.stdout, done.stderr):
            found = HARMFUL.search(text)
            self.assertIsNone(found, repr(text[max(0, found.start() - 80):][:160]) if found else "")

    def test_names_of_command_arguments_and_output(self):
        program = self.directory / f"program{NASTY}"
        shutil.copy("/bin/true", program)
        trace = self.directory / f"trace{NASTY}"
        done = arctrace("record", "-o", trace, "--", program, NASTY, "\\u{9b}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_harmless(done)
        for reader in READERS:
            done = arctrace(*reader, trace)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_harmless(done)
        done = arctrace("diff", trace, trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_harmless(done)
        shown = json.loads(arctrace("info", "--format=json", trace).stdout)
        self.assertEqual(shown["processes"][0]["arguments"][1:], [NASTY, "\\u{9b}"])

    def test_what_does_not_work(self):
        for arguments in (["record", "--", f"/nothing{NASTY}"], ["report", f"nothing{NASTY}"],
                          ["diff", f"nothing{NASTY}", "x"], ["graph", NASTY, os.devnull],
                          ["record", "-o", f"nothing{NASTY}/x", "--", "true"], [f"x{NASTY}"],
                          ["record", f"--x{NASTY}"], ["record", f"--mode={NASTY}", "--", "true"],
                          ["record", "-F", NASTY, "--", "true"], ["attach", NASTY],
                          ["record", "-o", os.devnull, "-F", f"x{NASTY}", "--", "true"]):
            done = arctrace(*arguments, cwd=self.directory)
            self.assertTrue(done.stderr)
            self.assert_harmless(done)


if __name__ == "__main__":
    attack.main()
