#!/usr/bin/env python3
"""The walks of docs/architecture.md: how many files one has to open to follow one thing."""

import unittest

import cases
import walks

# The most files of each walk. To exceed a limit, join two files, or give the reason in docs/decisions.md.
LIMITS = {
    "An event of the API": 8,
    "A library call": 12,
    "The drain": 12,
    "A row of a report": 25,
    "`-F`, from the command line to the traced process": 20,
    "`record -p`, which joins a process that runs": 20,
}


class Walks(unittest.TestCase):
    def test_each_has_few_files(self):
        found = walks.read()
        self.assertEqual(LIMITS.keys(), found.keys())
        for name, files in found.items():
            with self.subTest(name):
                print(name, len(files))
                self.assertLessEqual(len(files), LIMITS[name])
                self.assertEqual([], [file for file in files if not (walks.ROOT / file).is_file()])


class FindsFaults(unittest.TestCase):
    def test_files_are_counted(self):
        text = ("## One record's life\n\n**One** thing:\n\n1. `src/a.cpp`: and `src/b/c.hpp`, `d.hpp`.\n\n"
                "Else `src/slow.cpp`.\n\n**Two**:\n\n1. `src/a.cpp`, `src/a.cpp`\n   `writer_shim/e.S`\n\n"
                "## Glossary\n\n1. `src/late.cpp`\n")
        self.assertEqual({"One": {"src/a.cpp", "src/b/c.hpp"}, "Two": {"src/a.cpp", "writer_shim/e.S"}},
                         walks.read(text))


if __name__ == "__main__":
    cases.main()
