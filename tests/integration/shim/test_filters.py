"""Which functions are recorded: the options of `arctrace record` on compiled-in hooks."""

import os
import subprocess
import unittest

import cases
from command import arctrace, read_report
from hooked import KIND, ShimTest, both_compilers, options_of_kind

# Calls in the whole program: each function that calls also calls leaf.
SERVED = 1 + 2 + 3
CALLS = {"Desk::serve": 3, "middle": SERVED + 2 + 1, "throws": 4, "jumps": 4, "slow": 1,
         "forks": 1, "leaf": SERVED + 2 + 1 + 5 + 4 * 3 + 2}


class Filters(ShimTest):
    def calls(self, compiler, *options):
        """{function of the namespace, or main: calls}, and what was warned of."""
        traced = self.record("./filtered", options=("--no-libcall", *options_of_kind(options), *options),
                             directory=self.place("filtered", compiler))
        self.assertEqual(traced.status, 0, traced.stderr)
        self.assertIn(" 0 lost, ", traced.stderr)
        self.assertNotIn("findings:", traced.read("check"))
        self.trace = traced.trace
        calls = {}
        for function in traced.report("flat")["functions"]:
            name = function["name"]
            if name != "main" and not name.startswith("shop::"):
                continue
            name = name.removeprefix("shop::").split("(")[0]
            calls[name] = calls.get(name, 0) + function["calls"]
        warnings = [line for line in traced.stderr.splitlines() if "warning: " in line]
        return calls, warnings

    @both_compilers
    def test_all(self, compiler):
        calls, warnings = self.calls(compiler)
        # The child returns from nothing: main is its parent's.
        self.assertEqual(calls, {"main": 1, **CALLS})
        self.assertEqual(warnings, [])

    @both_compilers
    def test_only(self, compiler):
        for pattern in ("shop::Desk::serve", "shop::Desk::s*(int)", "re:^shop::Desk::serve$"):
            calls, warnings = self.calls(compiler, "-F", pattern)
            self.assertEqual(calls, {"Desk::serve": 3, "middle": SERVED, "leaf": SERVED})
            self.assertEqual(warnings, [])
        calls, _ = self.calls(compiler, "-F", "shop::throws", "-F", "shop::jumps")
        # After the exception, or the jump, no call is inside any more.
        self.assertEqual(calls, {"throws": 4, "jumps": 4, "leaf": 8})

    @both_compilers
    def test_not(self, compiler):
        calls, warnings = self.calls(compiler, "-N", "shop::middle", "-N", "shop::throws",
                                     "-N", "shop::jumps")
        self.assertEqual(calls, {"main": 1, "Desk::serve": 3, "slow": 1, "forks": 1,
                                 "leaf": 5 + 4 + 2})
        self.assertEqual(warnings, [])
        calls, _ = self.calls(compiler, "-F", "shop::Desk::serve", "-N", "shop::leaf")
        self.assertEqual(calls, {"Desk::serve": 3, "middle": SERVED})

    @both_compilers
    def test_depth(self, compiler):
        calls, _ = self.calls(compiler, "-D", "2", "-F", "shop::*::serve")
        self.assertEqual(calls, {"Desk::serve": 3, "middle": SERVED})

    @both_compilers
    def test_duration(self, compiler):
        calls, _ = self.calls(compiler, "-t", "25ms")
        self.assertEqual(calls["slow"], 1)
        self.assertIn("main", calls)
        # On a busy machine any call may take long, and only such calls are recorded. A call that was open at a fork is
        # in the child too, from then on.
        for call in read_report(self.trace, "invocations")["invocations"]:
            if "inherited" not in call.get("flags", []):
                self.assertGreater(call["delta_ns"], 24_000_000, call)

    @both_compilers
    def test_fork_child_goes_on(self, compiler):
        calls, _ = self.calls(compiler, "-F", "shop::forks")
        self.assertEqual(calls, {"forks": 1, "middle": 1, "leaf": 1})

    @both_compilers
    def test_module_and_size(self, compiler):
        calls, warnings = self.calls(compiler, "-L", "filte[r]ed")
        self.assertEqual(calls, {"main": 1, **CALLS})
        self.assertEqual(warnings, [])
        calls, warnings = self.calls(compiler, "-L", "other")
        self.assertEqual(calls, {})
        self.assertEqual(warnings, ["arctrace: warning: no function of a module like -L other"])
        symbols = subprocess.run(["nm", "-S", "filtered"], stdout=subprocess.PIPE, text=True,
                                 cwd=self.place("symbols", compiler), check=True).stdout
        sizes = {fields[3]: int(fields[1], 16) for fields in map(str.split, symbols.splitlines())
                 if len(fields) == 4}
        calls, _ = self.calls(compiler, "-Z", str(sizes["main"]))
        self.assertEqual(calls, {"main": 1})

    @both_compilers
    def test_unknown(self, compiler):
        calls, warnings = self.calls(compiler, "-F", "shop::lead", "-N", "nobody_has_this")
        self.assertEqual(calls, {})
        self.assertEqual(warnings, [
            'arctrace: warning: no function or scope matches -F shop::lead; did you mean "shop::leaf"?',
            "arctrace: warning: no function or scope matches -N nobody_has_this"])

    @unittest.skipIf(KIND.startswith("patched"), "it builds its own program with hooks")
    def test_names_without_libstdcxx(self):
        """Patterns match C++ names of a program that has no demangler."""
        program = self.directory / "bare"
        source = ("namespace shop { __attribute__((noinline)) int leaf(int n) { return n + 1; } }\n"
                  "int main(int argc, char**) { return shop::leaf(argc) - 2; }\n")
        for options, why in (
                ((), "C++ names match only in programs with libstdc++; try -F _ZN4shop4leafEi"),
                (("-Wl,--no-as-needed", "-lstdc++"), None)):
            subprocess.run([os.environ["ARCTRACE_GCC"], "-x", "c++", "-", "-O1", "-finstrument-functions",
                            "-o", program, *options], input=source, text=True, check=True)
            for pattern, named in (("shop::leaf", "it"), ("shop::*", '"shop::leaf(int)"')):
                done = arctrace("record", "-o", self.directory / "bare.data", "--no-libcall", "-F", pattern, "--",
                                program, cwd=self.directory)
                self.assertEqual(done.returncode, 0, done.stderr)
                warning = (f"arctrace: warning: no function or scope matches -F {pattern}; {named} is in the program, "
                           f"but {why}\n")
                records = 0 if why else 2
                self.assertTrue(done.stderr.startswith((warning if why else "") + f"arctrace: {records} records, "),
                                done.stderr)
        done = arctrace("record", "-o", self.directory / "bare.data", "--no-libcall", "-F", "strlen", "--", "cat",
                        "/dev/null", cwd=self.directory)
        self.assertIn("no function or scope matches -F strlen; it is a library's, and no call of it was hooked\n",
                      done.stderr)

    def test_malformed(self):
        directory = self.directory
        done = arctrace("record", "-F", "a[", "--", "touch", "made", cwd=directory)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, 'arctrace: record: -F "a[": no ] to this [; a backslash '
                         "before it makes it plain\n  a[\n   ^\n")
        self.assertFalse((directory / "made").exists())


if __name__ == "__main__":
    cases.main()
