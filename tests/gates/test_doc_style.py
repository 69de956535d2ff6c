#!/usr/bin/env python3
"""Lines of documents are at most 120 characters wide, but for those that cannot be broken."""

import pathlib
import re
import subprocess
import unittest

import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH = 120
FENCE = re.compile(r" *(```+|~~~+)")
MARKER = re.compile(r" *(?:(?:[-*+]|\d+[.)]) +)?(?:\d{4}-\d\d-\d\d +)?")
ONE_LINK = re.compile(r"!?\[[^\n]*\]\([^\s()]*\)")


def documents():
    listed = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "*.md"],
                            cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).exists()]


def unbreakable(line):
    """A row of a table; or one link or one path, perhaps as an item of a list that may begin with
    a date."""
    content = line[MARKER.match(line).end():].rstrip()
    return (line.lstrip().startswith("|") or " " not in content
            or bool(ONE_LINK.fullmatch(content)) and content.count("](") == 1)


def too_wide(text):
    """(number, width) of each line that is wider than WIDTH. Blocks of code are not checked,
    because output of programs stands there as they print it."""
    found, fence = [], None
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if fence is not None:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
        elif mark:
            fence = mark[1]
        elif len(line) > WIDTH and not unbreakable(line):
            found.append((number, len(line)))
    return found


class Lines(unittest.TestCase):
    def test_documents_are_not_wider_than_they_may_be(self):
        names = documents()
        self.assertIn("README.md", names)
        for name in names:
            with self.subTest(name):
                self.assertEqual([], too_wide((ROOT / name).read_text(encoding="utf-8")))


class FindsFaults(unittest.TestCase):
    WORDS = "word " * 24  # as wide as a line may be, with the space at its end

    def test_of_each_kind(self):
        self.assertEqual([], too_wide(self.WORDS[:-1] + "s\n"))
        self.assertEqual([(1, 121)], too_wide(self.WORDS[:-1] + "es\n"))
        for line in ("* " + self.WORDS + "a", "## " + self.WORDS + "a", self.WORDS + "[a](b.md).",
                     f"* [{self.WORDS}](a.md) and [b](b.md)"):
            with self.subTest(line):
                self.assertEqual([(2, len(line))], too_wide(f"text\n{line}\ntext\n"))

    def test_after_a_block_of_code(self):
        wide = self.WORDS + "wide"
        self.assertEqual([], too_wide(f"```\n{wide}\n```\n"))
        self.assertEqual([], too_wide(f"  ```sh\n{wide}\n  ```\n"))
        self.assertEqual([], too_wide(f"````\n```\n{wide}\n````\n"))
        self.assertEqual([(4, len(wide))], too_wide(f"```\na\n```\n{wide}\n"))
        self.assertEqual([(1, len(wide))], too_wide(f"{wide}\n```\na\n```\n"))

    def test_what_cannot_be_broken(self):
        path = "/" + "long/" * 30
        for line in (f"| {self.WORDS} | cell |", f"[{self.WORDS}](a.md)", f"![{self.WORDS}](a.png)",
                     f"* 2026-11-21 [{self.WORDS}](#a)", f"1. [{self.WORDS}](#a)",
                     path, f"  * {path}", f"  `{path}`"):
            with self.subTest(line):
                self.assertGreater(len(line), WIDTH)
                self.assertEqual([], too_wide(line))


if __name__ == "__main__":
    cases.main()
