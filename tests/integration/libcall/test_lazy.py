"""Slots that are bound at their first call: untraced programs and traced ones bind alike, and all
calls are recorded."""

import os

import cases
import mold_plt
import plain
from command import run


AUDITOR = """
    #define _GNU_SOURCE
    #include <link.h>
    unsigned la_version(unsigned version) { return version; }
    unsigned la_objopen(struct link_map* module, Lmid_t space, uintptr_t* cookie) {
      return LA_FLG_BINDTO | LA_FLG_BINDFROM;
    }
    uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned index, uintptr_t* from, uintptr_t* to, unsigned* flags,
                           const char* name) {
      return symbol->st_value;
    }
"""


class Lazy(plain.PlainTest):
    def test_nowhere(self):
        """A function that no library has does no harm until it is called, and then the same as
        untraced."""
        for compiler in plain.COMPILERS:
            traced = self.compare_modes("./lazy", compiler=compiler)
            self.assertEqual(traced.status, 0, traced)
            for called in ("program", "plugin"):
                traced = self.compare_modes("./lazy", called, compiler=compiler)
                self.assertEqual(traced.status, 127, traced)
                self.assertIn("undefined symbol: nowhere", traced.errors)

    def assert_counts(self, directory):
        traced = self.record_quietly("./lazy", directory=directory, options=["--nest-libcall"])
        calls = traced.calls()
        expected = {"weighted": 4, "resolved_late": 5, "widen": 6,
                    "qsort": 1, "dlopen": 2, "strlen": 2}
        self.assertEqual({name: calls.get(name) for name in expected}, expected)
        self.assertGreaterEqual(calls["strcmp"], 4)
        self.assertIn(calls.get("add_four", 3), (3,))

    def test_counts(self):
        """Calls are recorded from the first one on, also those that are called back while the
        first one runs."""
        for compiler in plain.COMPILERS:
            self.assert_counts(self.place("program", compiler))

    def test_threads(self):
        """All first calls are recorded when two threads make them at the same time."""
        for compiler in plain.COMPILERS:
            for _ in range(4):
                traced = self.compare_modes("./bound", compiler=compiler)
                calls = {name: count for name, count in traced.calls().items()
                         if name.startswith("bound_")}
                self.assertEqual(traced.stdout, "512\n")
                self.assertEqual((len(calls), set(calls.values())), (256, {2}), compiler)

    def test_auditors(self):
        """A library that audits what the loader binds, by LD_AUDIT or named by the program, does not change that."""
        for compiler in plain.COMPILERS:
            directory = self.place("program", compiler)
            auditor = directory / "auditor.so"
            run("gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", auditor, check=True, input=AUDITOR)
            program = directory / "audited"
            run("gcc", "-O1", "-Wl,-z,lazy", f"-Wl,--audit={auditor}", "-x", "c", "-", "-o", program, check=True, input=(
                "#include <stdio.h>\n#include <stdlib.h>\n"
                "int main(int count, char** list) { puts(list[0]); return abs(count) + 2; }"))
            for command, counted in ((("./audited",), {"puts": 1}),
                                     (("env", f"LD_AUDIT={auditor}", "./lazy"), {"widen": 6, "weighted": 4})):
                bare = run(*command, cwd=directory)
                traced = self.record_quietly(*command, directory=directory, options=["--nest-libcall"])
                self.assert_same(bare, traced)
                calls = traced.calls()
                self.assertEqual({name: calls.get(name) for name in counted}, counted)

    def test_molds_table(self):
        """The same is true for slots that all have the address of the table's head."""
        for compiler in plain.COMPILERS:
            bare = run("./lazy", cwd=self.place("program", compiler))
            directory = self.place("program", compiler)
            self.assertGreater(mold_plt.rewrite(directory / "lazy", directory / "lazy"), 5)
            changed = run("./lazy", cwd=directory)
            self.assertEqual((changed.returncode, changed.stdout), (bare.returncode, bare.stdout))
            self.assert_counts(directory)

    def test_retpolines(self):
        """The same is true for entries that jump by returning, as lld makes them."""
        for compiler in plain.COMPILERS:
            directory = self.place("program", compiler)
            if not (directory / "lazy_retpolines").exists():
                self.skipTest("no lld")
            (directory / "lazy_retpolines").rename(directory / "lazy")
            bare = run("./lazy", cwd=directory)
            traced = self.record_quietly("./lazy", directory=directory, trace="first.data")
            self.assertEqual((traced.status, traced.stdout), (bare.returncode, bare.stdout))
            self.assert_counts(directory)

    def test_filters(self):
        """Patterns of names, modules and sizes apply to calls that are not bound yet."""
        for options, expected in ((["-F", "wi*"], {"widen": 6}),
                                  (["-N", "*", "-F", "widen"], {}),
                                  (["-L", "liblazy.so"],
                                   {"weighted", "resolved_late", "widen", "add_four"}),
                                  (["-L", "libc.so.6", "-F", "qsort"], {"qsort", "strcmp"})):
            traced = self.record_quietly("./lazy", compiler="gcc", options=options)
            calls = traced.calls()
            if isinstance(expected, set):
                self.assertEqual(set(calls) | {"add_four"}, expected | {"add_four"}, options)
            else:
                self.assertEqual(calls, expected, options)

    def test_environment(self):
        """A program sees the environment that it has untraced, and the variables that trace its
        children."""
        own = {"LD_PRELOAD", "ARCTRACE_SESSION", "ARCTRACE_OPTIONS"}

        def variables(text):
            return {line for line in text.splitlines() if line.split("=")[0] not in own}

        for extra in ({}, {"LD_BIND_NOW": "1"}):
            bare = run("env", cwd=self.place("program"), env={**os.environ, **extra})
            traced = self.record_quietly("env", env={**os.environ, **extra})
            self.assertEqual(variables(traced.stdout), variables(bare.stdout))


if __name__ == "__main__":
    cases.main()
