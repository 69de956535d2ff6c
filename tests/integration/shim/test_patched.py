"""record -P on programs that were not built for it: those of the other tests of the shim, without
hooks."""

import json
import os
import random
import subprocess

from harness import ARCTRACE, COMPILERS, ShimTest, both_compilers, plain_name, unittest

# Programs with their arguments; what they do must not change, and of the functions that can be
# patched every call that the program counts must be in the trace.
PROGRAMS = [("./jumps",), ("./exceptions",), ("./left",), ("./contexts",),
            ("./turns", "array"), ("./own_stack",), ("./threads", "3"), ("./vforks",),
            ("./forks", "5"), ("./replaced",), ("./signals", "return"), ("./signals", "jump"),
            ("./signals", "altstack"), ("./values",), ("./deep",)]
# The long form runs all of them, and all options below; they take some 40 s of CPU.
LONG = bool(os.environ.get("ARCTRACE_TEST_LONG"))
SHORT = {"./jumps", "./exceptions", "./left", "./turns", "./vforks", "./signals", "./values",
         "./deep"}
# They have more calls within one another than are kept, or jump out of functions that have not
# counted their call yet.
UNCOUNTED = {"./contexts", "./deep", "./threads", "./replaced", "./signals"}


def functions_of(program):
    """{plain name of a function: whether it can be patched}, where the name is of one only."""
    done = subprocess.run([ARCTRACE, "functions", "--list", "--format=json", program],
                          stdout=subprocess.PIPE, text=True, check=True)
    verdicts = {}
    for function in json.loads(done.stdout)["list"]:
        can = function["verdict"] == "patchable"
        name = plain_name(function["name"].split(" [clone")[0])
        verdicts[name] = can and verdicts.get(name, True)
    return verdicts


class Patched(ShimTest):
    @both_compilers
    def test_programs(self, compiler):
        for command in PROGRAMS if compiler == "gcc" else PROGRAMS[:2]:
            if not LONG and command[0] not in SHORT:
                continue
            with self.subTest(command=command):
                traced = self.compare(compiler, *command)
                if command[0] in UNCOUNTED:
                    continue
                verdicts = functions_of(traced.directory / command[0])
                left = {name for name in traced.calls if not verdicts.get(name)}
                self.assert_counts(traced, but_for=left)

    @both_compilers
    def test_registers_are_kept(self, compiler):
        """All of them, at both ends of a call, whatever way it takes."""
        options = [(), ("-t", "1ms"), ("-F", "jumper"), ("--entry-only", "callee"),
                   ("--scope=shared", "-A", "callee@arg1,fparg1", "-R", "callee@retval")]
        if LONG:
            options += [("-Z", "64"), ("--scope=shared",), ("-N", "callee"),
                        ("-A", "callee@arg1,fparg1", "-R", "callee@retval"),
                        ("--mode=overwrite",)]
        for chosen in options if compiler == "gcc" else options[:1]:
            seed = str(random.randrange(1 << 32))
            with self.subTest(options=chosen, seed=seed):
                traced = self.compare(compiler, "./canary", seed, "3000", options=chosen)
                self.assertEqual(traced.stdout, "3000 rounds\n")
                calls = {row["name"]: row["calls"] for row in
                         traced.report("flat")["functions"]}
                if "-t" not in chosen and "-F" not in chosen and "-N" not in chosen:
                    if "--mode=overwrite" not in chosen:
                        self.assertEqual(calls["callee"], 3000)

    def test_others_stay(self):
        """Functions that no pattern matches are not recorded, small ones only if they are named."""
        compiler = next(iter(COMPILERS))
        for pattern, recorded in (("callee", {"callee"}), ("jump*", set()), ("jumper", {"jumper"}),
                                  ("re:^call_c", {"call_callee"})):
            directory = self.place("chosen", compiler)
            done = self.start([ARCTRACE, "record", "--no-libcall", "-P", pattern, "-o", "t", "--",
                               "./canary", "7", "100"], directory)
            self.assertEqual(done.returncode, 0, done.stderr)
            shown = self.start([ARCTRACE, "report", "--view=flat", "--format=json", "t"], directory)
            names = {row["name"] for row in json.loads(shown.stdout)["functions"]}
            self.assertEqual({name for name in names if not name.startswith("[")}, recorded)

    def test_nothing_to_patch(self):
        """A line says so, and the program goes on."""
        compiler = next(iter(COMPILERS))
        directory = self.place("bare", compiler)
        for pattern, said in ((".", "no function matches -P ."), ("calee", "no function matches")):
            done = self.start([ARCTRACE, "record", "--no-libcall", "-P", pattern, "-o", "t", "--",
                               "./jumps_no_tables"], directory)
            self.assertEqual(done.returncode, 7, done.stderr)
            self.assertIn(f"arctrace: warning: {said}", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
