"""test_changed.py BUILD: what tools/changed selects for changed files, where all is built."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest

import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1])
del sys.argv[1]


def load_changed():
    loader = importlib.machinery.SourceFileLoader("changed", str(ROOT / "tools/changed"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("changed", loader))
    loader.exec_module(module)
    return module


changed = load_changed()
FOREVER = 1e9


class Selection(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = changed.Build(BUILD)
        cls.tests = changed.Tests(cls.build)
        cls.tree = {name for name, (labels, _, _) in cls.tests.tests.items() if "tree" in labels}

    def selected(self, *files, seconds=FOREVER):
        for name in files:
            self.assertTrue((ROOT / name).is_file(), name)
        run, left = self.tests.selected(files, seconds)
        self.assertFalse(set(run) & set(left))
        self.assertLessEqual(self.tree, set(run))
        return set(run) - self.tree, set(left)

    def targets(self, *files):
        return set(self.build.targets(files))

    @cases.in_gate
    def test_a_document_needs_the_tests_of_the_tree_only(self):
        self.assertEqual((set(), set()), self.selected("docs/testing.md"))
        self.assertEqual(set(), self.targets("docs/testing.md"))

    @cases.in_gate
    def test_a_unit_test(self):
        self.assertEqual({"writer"}, self.selected("tests/unit/writer/loss_test.cpp")[0])
        self.assertEqual({"bin/writer_test"}, self.targets("tests/unit/writer/loss_test.cpp"))

    @cases.in_gate
    def test_a_file_that_is_named_by_a_compile_option(self):
        self.assertEqual({"spec", "integration.second_reader", "integration.kernel_sessions"}, self.selected("SPEC.md")[0])

    def test_a_source_of_the_command(self):
        run, _ = self.selected("reader/report/tree_view.cpp")
        self.assertLessEqual({"report", "cli", "integration.lua"}, run)
        self.assertFalse({"writer", "shim", "interleavings", "gates.elf"} & run)
        self.assertLessEqual({"bin/arctrace", "bin/report_test"},
                             self.targets("reader/report/tree_view.cpp"))

    def test_a_source_of_the_shim_is_used_by_whoever_records(self):
        run, _ = self.selected("writer_shim/elf/module_slots.cpp")
        self.assertLessEqual({"gates.elf", "integration.record", "integration.libcall-calls"}, run)
        self.assertFalse({"report", "spec"} & run)

    @cases.in_gate
    def test_a_header_by_what_compilers_recorded(self):
        run, _ = self.selected("reader/trace/findings.hpp")
        self.assertLessEqual({"spec", "trace"}, run)
        self.assertNotIn("shim", run)

    def test_a_public_header(self):
        run, _ = self.selected("include/arctrace/arctrace.h")
        self.assertLess(0, sum(name.startswith("gates.header.arctrace.h.") for name in run))

    def test_a_python_test_and_what_it_imports(self):
        self.assertEqual({"integration.rings"}, self.selected("tests/integration/test_rings.py")[0])
        run, _ = self.selected("tests/integration/support.py")
        self.assertLessEqual({"integration.rings", "integration.lua"}, run)
        for name in ("command", "tracing", "trace_checks"):
            run, _ = self.selected(f"tests/harness/{name}.py")
            self.assertLessEqual({"integration.rings", "integration.libcall-calls", "integration.shim-calls",
                                  "attack.rights"}, run)
            self.assertNotIn("writer", run)

    def test_a_file_that_a_python_test_reads(self):
        run, _ = self.selected("tests/integration/kernel/waits.c")
        self.assertIn("integration.perf", run)
        self.assertNotIn("integration.rings", run)
        run, _ = self.selected("tests/integration/lua/workload.lua", seconds=0)
        self.assertIn("integration.lua", run)

    def test_a_tool(self):
        self.assertEqual(set(), self.selected("tools/test")[0])
        self.assertIn("integration.lua-build", self.selected("tools/lua")[0])

    def test_a_fixture(self):
        run, _ = self.selected("tests/integration/shim/fixtures/jumps.c")
        self.assertIn("integration.shim-calls", run)
        self.assertNotIn("integration.lua", run)

    def test_what_takes_too_long_is_left_out_but_for_what_changed_itself(self):
        run, left = self.selected("reader/report/tree_view.cpp", "tests/integration/test_rings.py",
                                  seconds=0)
        self.assertLessEqual({"report", "cli", "integration.rings"}, run)
        self.assertIn("integration.lua", left)

    @cases.in_gate
    def test_sources_for_tidy(self):
        tidy = changed.tidy_sources
        self.assertEqual(["reader/report/group_view.cpp"],
                         tidy(self.build, ["reader/report/group_view.hpp", "README.md"]))
        self.assertEqual(["reader/trace/text_escape.cpp"],
                         tidy(self.build, ["reader/trace/text_escape.cpp"]))


class Manifest(unittest.TestCase):
    @cases.in_gate
    def test_statements(self):
        edges = changed.manifest_edges([
            "build a.o b.o | c$ d: CC x.cpp | y.h || order", "  DEFINES = -DF=\\\"/s/t.md\\\" -g",
            "", "build all: phony || a.o", ""])
        self.assertEqual((["a.o", "b.o", "c d"], ["x.cpp", "y.h"]), edges[0][:2])
        self.assertIn("/s/t.md", edges[0][2])
        self.assertEqual((["all"], ["a.o"]), edges[1][:2])


if __name__ == "__main__":
    cases.main()
