"""Programs that were linked with the last release's libarctrace run with this one: abidiff compares it with
libarctrace.abi.xz, which tools/release writes.

usage: test_abi.py LIBARCTRACE [unittest options]
"""

import lzma
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import cases

HERE = pathlib.Path(__file__).resolve().parent
HEADERS = HERE.parents[1] / "include/arctrace"
# Bits of abidiff's exit status: it could not compare, or it found a change.
ERROR, CHANGE = 3, 4


@unittest.skipUnless(shutil.which("abidiff"), "no abidiff (Debian: abigail-tools)")
class Abi(unittest.TestCase):
    library = None

    def changes(self, released):
        """Changes that a program that was linked with `released`, the text of abidw, may notice; additions are none."""
        with tempfile.NamedTemporaryFile("w", suffix=".abi", encoding="utf-8") as file:
            file.write(released)
            file.flush()
            done = subprocess.run(
                ["abidiff", "--suppressions", HERE / "abi_private.ini", "--drop-private-types", "--headers-dir2", HEADERS,
                 "--no-added-syms", file.name, self.library],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode & ERROR, 0, done.stdout)
        return done.stdout if done.returncode & CHANGE else ""

    def released(self):
        return lzma.decompress((HERE / "libarctrace.abi.xz").read_bytes()).decode("utf-8")

    def test_compatible(self):
        self.assertEqual(self.changes(self.released()), "")

    def test_finds_what_is_gone(self):
        self.assertIn("arctrace_marked", self.changes(self.released().replace("arctrace_mark'", "arctrace_marked'")))

    def test_finds_another_parameter(self):
        released = self.released()
        at = released.index("name='arctrace_counter' mangled-name")
        of_counter, rest = released[at:].split("</function-decl>", 1)
        self.assertIn("name='value'", of_counter)
        changed = released[:at] + of_counter.replace("name='value'", "name='other'").replace(
            self.type_of(of_counter, "value"), self.type_of(of_counter, "name_id")) + "</function-decl>" + rest
        self.assertIn("arctrace_counter", self.changes(changed))

    @staticmethod
    def type_of(declaration, parameter):
        line = next(line for line in declaration.splitlines() if f"name='{parameter}'" in line)
        return line.split("type-id='")[1].split("'")[0]


if __name__ == "__main__":
    Abi.library = sys.argv[1]
    cases.main(sys.argv[2:])
