"""libarctrace-reader exports its own symbols with their version, and nothing else.
usage: test_reader_gates.py LIBRARY [unittest options]
"""

import pathlib
import re
import sys
import unittest

import cases
import elf_gates

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parents[1] / "include/arctrace/reader.h"


class Reader(unittest.TestCase):
    library = None

    def check(self, findings):
        self.assertEqual(findings, [])

    def wanted(self):
        return set((HERE / "exports_reader.txt").read_text(encoding="utf-8").split())

    def test_exports(self):
        self.check(elf_gates.exports(self.library, self.wanted()))

    def test_finds_a_foreign_export(self):
        self.assertTrue(elf_gates.exports(self.library, self.wanted() - {"arctrace_reader_open"}))

    def test_versions_of_symbols(self):
        self.check(elf_gates.unversioned(self.library, "ARCTRACE_READER_0", "ARCTRACE_READER_0"))

    def test_header_declares_all(self):
        text = HEADER.read_text(encoding="utf-8")
        declared = set(re.findall(r"\b(arctrace_reader_\w+)\(\s*(?:const |arctrace_|void|size_t|uint32_t)", text))
        self.assertEqual(declared & self.wanted(), self.wanted())

    def test_soname(self):
        self.check(elf_gates.soname(self.library, "libarctrace-reader.so.0"))

    def test_hardening(self):
        self.check(elf_gates.text_relocations(self.library))
        self.check(elf_gates.executable_stack(self.library))


if __name__ == "__main__":
    Reader.library = sys.argv[1]
    cases.main(sys.argv[2:])
