"""Call trees of programs whose frames end in unusual ways."""

import os
import random
import re
import subprocess

import cases
import random_program
from hooked import TOOLS, ShimTest, both_compilers
from tracing import Recorded

JUMPS = {
    "main": 1,
    "main/loop": 1,
    "main/loop/jump_at": 5,
    "main/loop/jump_at/jump_at": 5,
    "main/loop/jump_at/jump_at/jump_at": 5,
    "main/pointers": 1,
    "main/pointers/through_pointer": 2,
    "main/pointers/through_pointer/leaf": 2,
    "main/pointers/through_pointer/leaf/inlined": 2,
    "main/pointers/through_pointer_too": 2,
    "main/deeper": 1,
    "main/deeper/jump_at": 1,
    "main/deeper/leaf": 1,
    "main/deeper/leaf/inlined": 1,
    "main/deeper/large_frame": 1,
    "main/deeper/large_frame/leaf": 1,
    "main/deeper/large_frame/leaf/inlined": 1,
    "main/deeper/many_arguments": 1,
    "main/deeper/many_arguments/leaf": 1,
    "main/deeper/many_arguments/leaf/inlined": 1,
    **{"main" + "/recurse" * depth: 1 for depth in range(1, 8)},
    "main" + "/recurse" * 4 + "/leaf": 1,
    "main" + "/recurse" * 4 + "/leaf/inlined": 1,
    "main/leaf": 1,
    "main/leaf/inlined": 1,
}

EXCEPTIONS = {
    "main": 1,
    "main/catcher": 1,
    "main/catcher/leaf": 4,
    "main/rethrower": 1,
    "main/rethrower/leaf": 1,
    "main/through_qsort": 1,
    "main/through_qsort/compare": 1,
    "main/through_qsort/leaf": 2,
    "main/leaf": 1,
}
for caller, count, levels in (("catcher", 3, 3), ("rethrower", 1, 2)):
    for level in range(1, levels + 1):
        path = f"main/{caller}" + "/thrower" * level
        EXCEPTIONS.update({path: count, f"{path}/clean": count, f"{path}/clean/leaf": count})


LEFT = {"main": 1, "main/catcher": 1, "main/catcher/thrower": 1, "main/catcher/leaf": 1,
        "main/jumped": 1, "main/jumped/leaf": 1,
        **{"main/jumped" + "/jumper" * depth: 1 for depth in (1, 2, 3)}}


class Jumps(ShimTest):
    @both_compilers
    def test_frames_end_where_they_are_left(self, compiler):
        """Abandoned frames end even if the next function that is recorded is deeper on the
        stack."""
        for options in ((), ("--libcall",), ("--nest-libcall",)):
            traced = self.compare("./left", compiler=compiler, options=options)
            self.assertEqual(traced.paths(), LEFT)

    @both_compilers
    def test_longjmp(self, compiler):
        traced = self.compare("./jumps", compiler=compiler)
        self.assertEqual(traced.status, 7)
        self.assert_counts(traced)
        self.assertEqual(traced.paths(), JUMPS)
        summary = traced.report("flat")["summary"]
        self.assertEqual(summary["frames"]["unwound"], 23)
        self.assertEqual(summary["orphans"], 0)

    @both_compilers
    def test_no_unwind_tables(self, compiler):
        """Only the abandoned frames are marked so."""
        traced = self.compare("./jumps_no_tables", compiler=compiler)
        self.assertEqual(traced.status, 7)
        self.assert_counts(traced)
        summary = traced.report("flat")["summary"]
        self.assertEqual(summary["frames"]["unwound"], 23)
        self.assertEqual(summary["orphans"], 0)

    @both_compilers
    def test_exceptions(self, compiler):
        traced = self.compare("./exceptions", compiler=compiler)
        self.assertEqual(traced.status, 5)
        self.assert_counts(traced)
        self.assertEqual(traced.paths(), EXCEPTIONS)
        self.assertEqual(traced.report("flat")["summary"]["orphans"], 0)

    @both_compilers
    def test_deep_recursion(self, compiler):
        traced = self.compare("./deep", compiler=compiler)
        self.assertEqual(traced.status, 11)
        self.assert_counts(traced)
        summary = traced.report("flat")["summary"]
        self.assertEqual(summary["orphans"], 0)
        self.assertEqual(summary["frames"]["unwound"], 100001)
        paths = traced.paths("--depth=3")
        self.assertEqual(paths["main/after"], 2)
        self.assertEqual(paths["main/jumps/after"], 1)
        self.assertEqual(paths["main/jumps/descend"], 4)

    def test_random_programs(self):
        """Random programs of calls and jumps know their own call tree."""
        seed = int(os.environ.get("ARCTRACE_TEST_SEED") or random.randrange(1 << 20))
        print(f"ARCTRACE_TEST_SEED={seed}")
        source = self.directory / "program.c"
        source.write_text(random_program.generate(seed), encoding="utf-8")
        for compiler, level in cases.shortened((("gcc", "-O2"), ("gcc", "-O0"), ("clang", "-O3"))):
            with self.subTest(compiler=compiler, level=level):
                subprocess.run(
                    [TOOLS[compiler], "-w", level, "-g", "-finstrument-functions", source,
                     "-o", self.directory / "program"], check=True)
                traced = self.compare(self.directory / "program", compiler=compiler)
                self.assertEqual(self.entries(traced), self.truth(traced))

    @staticmethod
    def truth(traced: Recorded):
        lines = (traced.directory / "truth.txt").read_text(encoding="utf-8").splitlines()
        return [(int(depth), name) for depth, name in map(str.split, lines)]

    def entries(self, traced):
        """(depth, function) of each entry in the trace, without main."""
        depth = -1
        entries = []
        for record in traced.records():
            kind = record["type"]
            if kind == "ENTER":
                if depth >= 0:
                    entries.append((depth, re.sub(r"\..*", "", record["function"])))
                depth += 1
            elif kind == "EXIT":
                depth -= 1
            elif kind == "UNWIND":
                depth -= record["count"]
            else:
                self.assertNotEqual(kind, "EXIT_NAMED")
        return entries


class Signals(ShimTest):
    @both_compilers
    def test_handlers_that_return(self, compiler):
        traced = self.compare("./signals", "return", compiler=compiler)
        self.assertEqual(traced.stdout, "done\n")
        self.assert_counts(traced)
        self.assert_paths(traced)

    @both_compilers
    def test_siglongjmp_out_of_handlers(self, compiler):
        for way in cases.shortened(("jump", "altstack")):
            with self.subTest(way=way):
                traced = self.compare("./signals", way, compiler=compiler)
                self.assertEqual(traced.stdout, "done\n")
                # A call whose entry is recorded may be interrupted before it counts itself.
                recorded = traced.calls()
                handled = traced.counted["handler"]
                for name, count in traced.counted.items():
                    self.assertGreaterEqual(recorded[name], count, name)
                    self.assertLessEqual(recorded[name], count + handled, name)
                self.assert_paths(traced)

    def assert_paths(self, traced):
        """Handlers interrupt, and no frame of theirs stays open; a handler may come before a call
        shows that the former one was abandoned."""
        ordinary = re.compile(
            r"main(/branch(/leaf)?)?(/handler)*(/handler/handler_part)?|main/after(/leaf)?")
        for path in traced.paths():
            self.assertRegex(path, f"^(?:{ordinary.pattern})$")
        self.assertEqual(traced.report("flat")["summary"]["orphans"], 0)


if __name__ == "__main__":
    cases.main()
