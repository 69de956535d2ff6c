"""Modules that are loaded and unloaded, and code that runs before and after everything else."""

import shutil
import unittest

import cases
from command import ARCTRACE, run
from hooked import ShimTest, both_compilers

LOOPS = 40


class Modules(ShimTest):
    def assert_plugin_calls(self, traced):
        self.assert_counts(traced)
        paths = traced.paths()
        for plugin in ("alpha", "bravo"):
            # Constructor and destructor run inside dlopen and dlclose.
            for path in (f"main/use/{plugin}_begins", f"main/use/{plugin}_begins/{plugin}_leaf",
                         f"main/use/plugin_run/{plugin}_leaf", f"main/use/{plugin}_ends"):
                self.assertEqual(paths[path], LOOPS, path)

    @both_compilers
    def test_plugins(self, compiler):
        traced = self.compare("./plugins", compiler=compiler)
        self.assertEqual(traced.stdout, "same address: yes\nmissing: 1\n")
        self.assert_plugin_calls(traced)
        modules = traced.info()["processes"][0]["modules"]
        for name in ("plugin_a.so", "plugin_b.so"):
            found = [module for module in modules if module["path"].endswith(name)]
            self.assertEqual(len(found), LOOPS)
            self.assertTrue(all(module["unloaded_ns"] is not None for module in found))
            self.assertTrue(all(module["build_id"] for module in found))

    @both_compilers
    def test_plugins_that_find_libc_first(self, compiler):
        """RTLD_DEEPBIND: the loader binds a plugin's calls of the hooks to libc's functions of their names."""
        for how in (("deep",), ("deep", "lazy")):
            with self.subTest(how=how):
                self.assert_plugin_calls(self.compare("./plugins", *how, compiler=compiler))

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    @both_compilers
    def test_under_gdb(self, compiler):
        """gdb has its breakpoint where we would jump; so we see loads because gdb stops at them."""
        traced = self.record_quietly("gdb", "-nx", "-q", "-batch", "-ex", "set startup-with-shell off", "-ex",
                                     "catch load plugin_b", "-ex", "run", "-ex", "delete", "-ex", "continue",
                                     "./plugins", compiler=compiler)
        self.assertIn("Inferior loaded ./plugin_b.so", traced.stdout)
        self.assertIn("same address: yes", traced.stdout)
        self.assertIn("exited with code 011", traced.stdout)
        self.assert_plugin_calls(traced)

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    @both_compilers
    def test_gdb_attached_inside(self, compiler):
        """gdb on a program that `arctrace record` started: breakpoints and backtraces work."""
        directory = self.place("gdb", compiler)
        done = run("gdb", "-nx", "-q", "-batch", "-ex", "set startup-with-shell off", "-ex",
                   "set follow-fork-mode child", "-ex", "set detach-on-fork on", "-ex", "set breakpoint pending on",
                   "-ex", "break bravo_leaf", "-ex", "run", "-ex", "backtrace", "--args", ARCTRACE, "record", "-o",
                   "arctrace.data", "--", "./plugins", cwd=directory)
        self.assertRegex(done.stdout, r"#0 .*bravo_leaf")
        self.assertRegex(done.stdout, r"#\d+ .* main \(")


class Early(ShimTest):
    @both_compilers
    def test_constructors_and_destructors(self, compiler):
        traced = self.compare("./early", compiler=compiler)
        self.assertEqual(traced.status, 10)
        self.assert_counts(traced)
        for function in ("library_constructor", "library_destructor", "first_constructor",
                         "constructor", "destructor"):
            self.assertEqual(traced.counted[function], 1)
        # The process' end is its last record, after the destructors.
        kinds = [record["type"] for record in traced.records() if record["pid"] is not None]
        last = max(i for i, kind in enumerate(kinds) if kind in ("ENTER", "EXIT"))
        self.assertGreater(kinds.index("PROCESS_END"), last)


if __name__ == "__main__":
    cases.main()
