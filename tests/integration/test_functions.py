"""arctrace functions: figures and verdicts are checked by what objdump and readelf say of the same files; names,
patterns, the cache, and bad input."""

import bisect
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import cases
from command import ARCTRACE, arctrace, run
from tracing import TracedTest

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static int plain(int x) { return printf("%d\n", x) + x; }
__attribute__((noinline)) static long reader(void) { return (long)__builtin_return_address(0); }
__attribute__((noinline)) static int tiny(void) { return 0; }
__attribute__((noinline)) static int table(int x) {
  switch (x) {
    case 0: return plain(7); case 1: return plain(9); case 2: return tiny();
    case 3: return rand(); case 4: return x * 31; case 5: abort(); default: return -x;
  }
}
int main(int count, char **words) {
  return table(count) + tiny() + plain(count) + (reader() == 0) + (words[0] == 0);
}
"""
BRANCH = re.compile(r"^\s*([0-9a-f]+):\t(?:[0-9a-f]{2} )+\s*\t?(?:bnd |notrack |repz |data16 |cs |ds |\{\w+\} )*"
                    r"(j\w+|call\w*|loop\w*|xbegin)\s+(?:\S+,)?([0-9a-f]+)(?: <|$)")
LEA = re.compile(r"^\s*([0-9a-f]+):\t.*\blea\b.*\(%rip\).*# ([0-9a-f]+)")


def output_of(*command):
    return run(*command, check=True).stdout


class Independent:
    """Facts that binutils print about a file."""

    def __init__(self, path):
        self.boundaries, self.targets, self.leas = [], [], []
        for line in output_of("objdump", "-d", "--no-show-raw-insn", path).splitlines():
            if re.match(r"^\s*[0-9a-f]+:\t", line):
                self.boundaries.append(int(line.split(":")[0], 16))
        for line in output_of("objdump", "-d", path).splitlines():
            if match := BRANCH.match(line):
                self.targets.append((int(match[1], 16), int(match[3], 16), match[2].startswith("call")))
            elif match := LEA.match(line):
                self.leas.append(int(match[2], 16))
        self.sections = {}
        for line in output_of("readelf", "-SW", path).splitlines():
            if match := re.match(r"^\s*\[ *\d+\] (\S+)\s+\S+\s+([0-9a-f]{16}) ([0-9a-f]{6,}) ([0-9a-f]{6,})", line):
                self.sections[match[1]] = tuple(int(word, 16) for word in match.groups()[1:])
        self.data = pathlib.Path(path).read_bytes()
        self.relocated = [int(match[1], 16) for match in
                          re.finditer(r"R_X86_64_I?RELATIV\w*\s+([0-9a-f]+)$", output_of("readelf", "-rW", path), re.M)]

    def table_targets(self):
        """The targets of jump tables: entries of .rodata that a lea points to."""
        address, offset, size = self.sections.get(".rodata", (0, 0, 0))
        text, _, text_size = self.sections[".text"]
        starts = sorted({lea for lea in self.leas if address <= lea < address + size})
        for number, start in enumerate(starts):
            end = starts[number + 1] if number + 1 < len(starts) else address + size
            for entry in range(start, min(end, start + 4096) - 3, 4):
                at = offset + entry - address
                target = start + struct.unpack_from("<i", self.data, at)[0]
                if not text <= target < text + text_size:
                    break
                yield target


class FunctionsTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.cache = self.directory / "cache"
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache)}

    def functions(self, *arguments):
        return arctrace("functions", *arguments, env=self.environment)

    def listed(self, *arguments):
        done = self.functions("--list", "--format=json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def build(self, name, *options):
        program = self.directory / name
        subprocess.run(["gcc", "-x", "c", "-", "-O2", *options, "-o", program], input=SOURCE, text=True, check=True)
        return program

    def assert_safe(self, path):
        """No jump leads between the bytes that would be moved, and these are whole instructions."""
        seen = Independent(path)
        areas = sorted((row["address"] + row["kept"], row["moved"], row["address"], row["size"])
                       for row in self.listed(path)["list"] if row["verdict"] == "patchable")
        self.assertGreater(len(areas), 2)
        starts = [area[0] for area in areas]

        def area_of(address):
            index = bisect.bisect(starts, address) - 1
            return areas[index] if index >= 0 and address < starts[index] + areas[index][1] else None

        self.assertGreater(len(seen.targets), 10)
        for origin, target, is_call in seen.targets:
            if area := area_of(target):
                self.assertEqual(target, area[0], f"{path}: {origin:#x} leads to {target:#x}")
                is_own = area[2] <= origin < area[2] + area[3]
                self.assertTrue(is_call or not is_own, f"{path}: {origin:#x} leads to its own entry")
        for target in (*seen.leas, *seen.relocated, *seen.table_targets()):
            if area := area_of(target):
                self.assertEqual(target, area[0], f"{path}: something points to {target:#x}")
        boundaries = set(seen.boundaries)
        for start, moved, address, size in areas:
            self.assertIn(start, boundaries)
            self.assertTrue(start + moved in boundaries or start + moved == address + size, hex(start))

    @cases.not_in_gate
    def test_verdicts_against_binutils(self):
        self.assert_safe(self.build("program"))
        self.assert_safe(self.build("cet", "-fcf-protection=full"))
        for path in ("/bin/bash", "/usr/bin/git", shutil.which("nginx") or "/bin/sh", "/bin/ls",
                     "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6"):
            with self.subTest(path):
                self.assert_safe(path)

    def test_names_and_patterns(self):
        program = self.build("program")
        rows = {row["linker_name"]: row for row in self.listed(program)["list"]}
        self.assertEqual(rows["plain"]["verdict"], "patchable")
        self.assertTrue(rows["reader"]["entry_only"])
        self.assertFalse(rows["table"]["entry_only"])
        self.assertEqual(rows["tiny"]["verdict"], "too_short")
        self.assertEqual(rows["_start"]["verdict"], "other_frame")
        named = {rows[name]["address"]: name for name in ("plain", "reader", "table", "main", "tiny")}
        # Without symbols the unwind table gives the same functions, and with a debug file they have their names again.
        debug = self.directory / "program.debug"
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        stripped = self.directory / "stripped"
        subprocess.run(["strip", "-o", stripped, program], check=True)
        found = {row["address"]: row for row in self.listed(stripped)["list"]}
        for address, name in named.items():
            self.assertEqual(found[address]["name"], f"stripped+{address:#x}")
            self.assertEqual(found[address]["verdict"], rows[name]["verdict"])
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", stripped], check=True)
        found = {row["address"]: row for row in self.listed(stripped)["list"]}
        self.assertEqual({address: found[address]["name"] for address in named}, named)
        # The program has no section headers here.
        bare = self.directory / "bare"
        data = bytearray(stripped.read_bytes())
        data[40:48] = bytes(8)
        data[58:64] = bytes(6)
        bare.write_bytes(data)
        found = {row["address"]: row["verdict"] for row in self.listed(bare)["list"]}
        self.assertEqual(found[rows["plain"]["address"]], "patchable")
        for patterns, names in ((["plain"], {"plain"}), (["re:^(main|tiny)$"], {"main", "tiny"}),
                                (["ma*", "reader"], {"main", "reader"}), (["."], set(rows))):
            options = [word for pattern in patterns for word in ("-P", pattern)]
            listed = self.listed(*options, program)
            self.assertEqual({row["linker_name"] for row in listed["list"]}, names)
        done = self.functions("-P", "plian", program)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn('no function of program matches -P plian; did you mean "plain"', done.stderr)
        done = self.functions("-P", "re:(", program)
        self.assertEqual(done.returncode, 2)
        self.assertIn('-P "re:("', done.stderr)

    def test_other_names(self):
        """A function is asked for by any of its names, as with record -P."""
        source = self.directory / "aliased.c"
        source.write_text("int twice(int x) { return x * 2 * x + 17 * x; }\n"
                          'int again(int) __attribute__((alias("twice")));\n', encoding="utf-8")
        library = self.directory / "libaliased.so"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        found = [self.listed("-P", name, library)["list"] for name in ("twice", "again", "ag*")]
        self.assertEqual([[row["address"] for row in rows] for rows in found], [[found[0][0]["address"]]] * 3)

    def test_text(self):
        program = self.build("a-program-with-a-name-that-is-longer-than-any-terminal-is-wide" * 2)
        done = self.functions("--list", program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^ +\d+  100\.0  in all$")
        self.assertRegex(done.stdout, r"(?m)^ +0x[0-9a-f]+ +\d+ +[5-9]  patchable +plain$")
        self.assertRegex(done.stdout, r"(?m)^ +0x[0-9a-f]+ +\d+ +[5-9]  entry only +reader$")
        narrow = run("script", "-qec", f"stty cols 60; {ARCTRACE} functions --list --no-pager '{program}'", "/dev/null",
                     env=self.environment).stdout
        lines = narrow.replace("\r", "").splitlines()
        self.assertGreater(len(lines), 10)
        self.assertLessEqual(max(map(len, lines)), 60)

    def test_cache(self):
        program = self.build("program")
        first = self.listed(program)
        plans = list((self.cache / "arctrace/plans").iterdir())
        self.assertEqual([plan.name for plan in plans], [first["build_id"] + ".plan"])
        self.assertEqual(self.listed(program), first)
        whole = plans[0].read_bytes()
        for damaged in (b"", whole[:100], whole[:-1], whole[:50] + b"?" + whole[51:], b"\xff" * 5000):
            plans[0].write_bytes(damaged)
            self.assertEqual(self.listed(program), first)
            self.assertEqual(plans[0].read_bytes(), whole)
        # Another program with this build-id is not confused with it.
        other = self.directory / "other"
        data = bytearray(program.read_bytes())
        at = next(row for row in first["list"] if row["linker_name"] == "plain")["address"]
        data[at:at + 2] = b"\xeb\xfe"
        other.write_bytes(data)
        self.assertEqual({row["linker_name"]: row["verdict"] for row in self.listed(other)["list"]}["plain"], "ends_early")
        plans[0].unlink()
        self.listed("--no-cache", program)
        self.assertEqual(list((self.cache / "arctrace/plans").iterdir()), [])
        shutil.rmtree(self.cache)
        self.cache.write_text("a file where the directory should be")
        self.assertEqual(self.listed(program), first)

    def refused(self, path, *words):
        done = self.functions(path)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_bad_input(self):
        program = self.build("program")
        self.refused(self.directory / "missing", "missing: No such file")
        self.refused(self.directory, "not a regular file")
        self.refused("/dev/zero", "not a regular file")
        text = self.directory / "text"
        text.write_text("#!/bin/sh\n")
        self.refused(text, "not an ELF file")
        text.write_text("")
        self.refused(text, "empty file")
        whole = program.read_bytes()
        other = self.directory / "other"
        for machine, word in ((183, "aarch64"), (3, "x86"), (243, "RISC-V")):
            other.write_bytes(whole[:18] + struct.pack("<H", machine) + whole[20:])
            self.refused(other, word, "x86-64")
        other.write_bytes(whole[:16] + struct.pack("<H", 1) + whole[18:])
        self.refused(other, "not linked")
        debug = self.directory / "program.debug"
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        self.refused(debug, "a debug file")
        for size in (10, 63, 64, 100):
            other.write_bytes(whole[:size])
            self.refused(other)

    def test_what_is_left_of_damaged_files(self):
        program = self.build("program", "-Wl,-z,noseparate-code")
        whole = program.read_bytes()
        other = self.directory / "other"
        frames, offset, size = Independent(program).sections[".eh_frame"]
        self.assertGreater(size, 100)
        other.write_bytes(whole[:offset + 60] + b"\xf0\xf0\xf0\xf0" * 8 + whole[offset + 92:])
        done = self.functions(other)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^arctrace: warning: .*other: \.eh_frame is damaged at offset \d+: what follows is not used\n$")
        other.write_bytes(whole[:offset + size // 2])
        done = self.functions(other)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the file is cut off: what is there was analysed", done.stderr)

    def test_static_and_fixed_addresses(self):
        for name, options in (("static", ["-static"]), ("fixed", ["-no-pie"]), ("static-pie", ["-static-pie"])):
            with self.subTest(name):
                rows = {row["linker_name"]: row for row in self.listed(self.build(name, *options))["list"]}
                self.assertEqual(rows["plain"]["verdict"], "patchable")
                self.assertEqual(rows["table"]["verdict"], "patchable")


if __name__ == "__main__":
    cases.main()
