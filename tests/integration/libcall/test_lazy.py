"""Slots that are bound at their first call: what untraced programs get by with, and all calls."""

import os
import unittest

import cases
import mold_plt
import plain


class Lazy(plain.PlainTest):
    def test_nowhere(self):
        """A function that no library has does no harm until it is called, and then the same."""
        for compiler in plain.COMPILERS:
            bare, _ = self.compare(["./lazy"], compiler)
            self.assertEqual(bare.returncode, 0, bare)
            for called in ("program", "plugin"):
                bare, _ = self.compare(["./lazy", called], compiler)
                self.assertEqual(bare.returncode, 127, bare)
                self.assertIn(b"undefined symbol: nowhere", bare.stderr)

    def assert_counts(self, directory):
        _, trace = self.record(["./lazy"], directory, ["--nest-libcall"])
        calls = self.calls(trace)
        expected = {"weighted": 4, "resolved_late": 5, "widen": 6,
                    "qsort": 1, "dlopen": 2, "strlen": 2}
        self.assertEqual({name: calls.get(name) for name in expected}, expected)
        self.assertGreaterEqual(calls["strcmp"], 4)
        self.assertIn(calls.get("add_four", 3), (3,))

    def test_counts(self):
        """From the first call on, also what is called back while the first one runs."""
        for compiler in plain.COMPILERS:
            self.assert_counts(self.directory(compiler))

    def test_threads(self):
        """All of the first calls that two threads make at the same time."""
        for compiler in plain.COMPILERS:
            for _ in range(4):
                bare, trace = self.compare(["./bound"], compiler)
                calls = {name: count for name, count in self.calls(trace).items()
                         if name.startswith("bound_")}
                self.assertEqual(bare.stdout, b"512\n")
                self.assertEqual((len(calls), set(calls.values())), (256, {2}), compiler)

    def test_molds_table(self):
        """The same with slots that all hold the address of the table's head."""
        for compiler in plain.COMPILERS:
            bare = plain.run(["./lazy"], self.directory(compiler))
            directory = self.directory(compiler)
            self.assertGreater(mold_plt.rewrite(directory / "lazy", directory / "lazy"), 5)
            changed = plain.run(["./lazy"], directory)
            self.assertEqual((changed.returncode, changed.stdout), (bare.returncode, bare.stdout))
            self.assert_counts(directory)

    def test_retpolines(self):
        """The same with entries that jump by returning, as lld makes them."""
        for compiler in plain.COMPILERS:
            directory = self.directory(compiler)
            if not (directory / "lazy_retpolines").exists():
                self.skipTest("no lld")
            (directory / "lazy_retpolines").rename(directory / "lazy")
            bare = plain.run(["./lazy"], directory)
            done, _ = self.record(["./lazy"], directory)
            self.assertEqual((done.returncode, done.stdout), (bare.returncode, bare.stdout))
            self.assert_counts(directory)

    def test_filters(self):
        """Patterns of names, modules and sizes hold for calls that are not bound yet."""
        directory = self.directory("gcc")
        for options, expected in ((["-F", "wi*"], {"widen": 6}),
                                  (["-N", "*", "-F", "widen"], {}),
                                  (["-L", "liblazy.so"],
                                   {"weighted", "resolved_late", "widen", "add_four"}),
                                  (["-L", "libc.so.6", "-F", "qsort"], {"qsort", "strcmp"})):
            _, trace = self.record(["./lazy"], directory, options)
            calls = self.calls(trace)
            if isinstance(expected, set):
                self.assertEqual(set(calls) | {"add_four"}, expected | {"add_four"}, options)
            else:
                self.assertEqual(calls, expected, options)

    def test_environment(self):
        """A program sees the environment that it has untraced, and what traces its children."""
        own = {"LD_PRELOAD", "ARCTRACE_SESSION", "ARCTRACE_OPTIONS"}

        def variables(text):
            return {line for line in text.decode().splitlines() if line.split("=")[0] not in own}

        for extra in ({}, {"LD_BIND_NOW": "1"}):
            bare = plain.run(["env"], self.directory(), env={**os.environ, **extra})
            done, _ = self.record(["env"], self.directory(), env={**os.environ, **extra})
            self.assertEqual(variables(done.stdout), variables(bare.stdout))


if __name__ == "__main__":
    cases.main()
