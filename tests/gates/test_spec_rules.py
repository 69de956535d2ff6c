#!/usr/bin/env python3
"""Rules of SPEC.md are cited by name: each citation names a rule that exists, none a position."""

import pathlib
import re
import subprocess
import unittest

import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFINITION = re.compile(r"^\*\*([A-Z]+)-(\d+)\.\*\*", re.MULTILINE)
POSITION = re.compile(r"\brules? \d|\bSPEC(?:\.md)?,? (?:section )?\d", re.IGNORECASE)


def defined_rules(spec):
    """The names of rules in the order in which they are defined."""
    return [f"{subject}-{number}" for subject, number in DEFINITION.findall(spec)]


def faults(text, rules):
    """The citations of a text that name no rule, or a position."""
    subjects = "|".join(sorted({rule.split("-")[0] for rule in rules}))
    cited = re.findall(rf"\b(?:{subjects})-\d+\b", text)
    return [name for name in cited if name not in rules] + POSITION.findall(text)


def texts():
    """(path, text) of every tracked file but this one."""
    listed = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT,
                            capture_output=True, check=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path != pathlib.Path(__file__).resolve() and path.is_file():
            try:
                yield name, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # a file of the fuzzers' corpus


class Rules(unittest.TestCase):
    def setUp(self):
        self.rules = defined_rules((ROOT / "SPEC.md").read_text(encoding="utf-8"))

    def test_each_name_is_given_once(self):
        self.assertGreater(len(self.rules), 50)
        self.assertEqual(len(set(self.rules)), len(self.rules))

    def test_citations_name_rules(self):
        for name, text in texts():
            with self.subTest(name):
                self.assertEqual([], faults(text, set(self.rules)))


class FindsFaults(unittest.TestCase):
    RULES = {"BUF-1", "COL-2"}

    def test_of_each_kind(self):
        self.assertEqual([], faults("as BUF-1 and COL-2 say; R3, F1", self.RULES))
        self.assertEqual(["BUF-9"], faults("by BUF-9", self.RULES))
        self.assertEqual(["rule 1"], faults("(rule 12)", self.RULES))
        self.assertEqual(["SPEC.md, 5"], faults("(SPEC.md, 5.2)", self.RULES))


if __name__ == "__main__":
    cases.main()
