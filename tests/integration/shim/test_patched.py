"""record -P on programs that were not built for it: those of the other tests of the shim, without
hooks."""

import ctypes
import json
import os
import random
import struct
import subprocess

import cases
from harness import (ANY_COMPILER, ARCTRACE, ShimTest, both_compilers, plain_name, signal,
                     unittest)

# Programs with their arguments; what they do must not change, and of the functions that can be
# patched every call that the program counts must be in the trace.
PROGRAMS = [("./jumps",), ("./exceptions",), ("./left",), ("./contexts",),
            ("./turns", "array"), ("./own_stack",), ("./reused",), ("./threads", "3"), ("./vforks",),
            ("./forks", "5"), ("./replaced",), ("./signals", "return"), ("./signals", "jump"),
            ("./signals", "altstack"), ("./values",), ("./deep",)]
# The long form runs all of them, and all options below; they take some 40 s of CPU.
LONG = bool(os.environ.get("ARCTRACE_TEST_LONG"))
SHORT = {"./jumps", "./exceptions", "./left", "./turns", "./reused", "./vforks", "./signals", "./values",
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


def allow_all():
    """Puts the calling process under a seccomp filter that forbids nothing."""
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    allow = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000), 8)
    program = Program(1, ctypes.addressof(allow))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, seccomp, filtered = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(seccomp, filtered,
                                                              ctypes.byref(program)):
        raise OSError(ctypes.get_errno())


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
        compiler = ANY_COMPILER
        for pattern, recorded in (("callee", {"callee"}), ("jumper", {"jumper"}),
                                  ("re:^call_c", {"call_callee"})):
            directory = self.place("chosen", compiler)
            done = self.start([ARCTRACE, "record", "--no-libcall", "-P", pattern, "-o", "t", "--",
                               "./canary", "7", "100"], directory)
            self.assertEqual(done.returncode, 0, done.stderr)
            shown = self.start([ARCTRACE, "report", "--view=flat", "--format=json", "t"], directory)
            names = {row["name"] for row in json.loads(shown.stdout)["functions"]}
            self.assertEqual({name for name in names if not name.startswith("[")}, recorded)

    def start_patched(self, directory, *options, command=("./canary", "7", "100")):
        return self.start([ARCTRACE, "record", "--no-libcall", *options, "-o", "t", "--", *command],
                          directory)

    def test_what_was_left(self):
        """info counts it by reason, and names it."""
        directory = self.place("left", ANY_COMPILER)
        done = self.start_patched(directory, "-P", ".")
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = self.start([ARCTRACE, "functions", "--list", "--format=json", "canary"], directory)
        functions = json.loads(shown.stdout)
        info = self.info(directory)[0]
        large = {function["name"] for function in functions["list"]
                 if function["verdict"] == "patchable" and function["size"] >= 64}
        left = {function["name"]: function["verdict"] for function in functions["list"]
                if function["verdict"] not in ("patchable", "part", "slot_stub")}
        self.assertTrue(left and large)
        self.assertEqual(info["patched"], len(large))
        self.assertEqual(info["left"]["small"], functions["patchable"] - len(large))
        self.assertEqual({row["name"]: row["verdict"] for row in info["functions"]}, left)
        self.assertIsNone(info["refused"])
        text = self.start([ARCTRACE, "info", "-v", "t"], directory).stdout
        self.assertIn(f"{len(large)} patched functions of", text)
        self.assertIn("left: smaller than 64 bytes, or than -Z says", text)
        for name in left:
            self.assertIn(f"\n             {name}\n", text)

    def test_refused(self):
        """Where no function can be patched, record and info say why."""
        directory = self.place("confined", ANY_COMPILER)
        done = self.start([ARCTRACE, "record", "--no-libcall", "-P", ".", "-o", "t", "--",
                           "./canary", "7", "100"], directory, preexec_fn=allow_all)
        self.assertEqual((done.returncode, done.stdout), (0, "100 rounds\n"), done.stderr)
        why = "it is under a seccomp filter"
        self.assertIn(f"; nothing was patched for -P: {why}\n", done.stderr)
        [patches] = self.info(directory)
        self.assertEqual((patches["patched"], patches["refused"]), (0, why))
        text = self.start([ARCTRACE, "info", "t"], directory).stdout
        self.assertIn("\n0 patched functions of ", text)
        self.assertIn(f"\n  none was patched: {why}\n", text)

    def test_pattern_without_functions(self):
        """A line says so before the program runs, if it executes no other one."""
        directory = self.place("unmatched", ANY_COMPILER)
        for pattern, said in (
                ("calee", 'no function of ./canary matches -P calee; did you mean "callee"'),
                ("jump*", "-P jump* matches only functions of ./canary of fewer than 64 bytes"),
                ("_start", "-P _start: _start cannot be patched: not entered like a function")):
            done = self.start_patched(directory, "-P", "callee", "-P", pattern)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("", 1))
            self.assertIn(f"arctrace: record: {said}", done.stderr)
            self.assertFalse((directory / "t").exists())
        done = self.start_patched(directory, "-P", "callee",
                                  command=("sh", "-c", "./canary 7 100; true"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def flood(self, kind, *patterns, options=("--no-libcall",)):
        """Records a program whose calls fill the buffer, which nobody empties meanwhile. Returns
        what record said, the calls by function, and the directory."""
        directory = self.place("flooding", ANY_COMPILER)
        chosen = [word for pattern in patterns for word in ("-P", pattern)]
        command = [ARCTRACE, "record", *options, "--buffer-size=2M", "-Z", "1", *chosen, "-o", "t",
                   "--", "./flooding", kind, "50", "20000"]
        with subprocess.Popen(command, cwd=directory, stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
            self.assertEqual(recorder.stdout.readline(), "ready\n")
            recorder.send_signal(signal.SIGSTOP)
            try:
                recorder.stdin.write("\n")
                recorder.stdin.flush()
                self.assertEqual(recorder.stdout.readline(), "done\n")
            finally:
                recorder.send_signal(signal.SIGCONT)
            said = recorder.stderr.read()
        self.assertEqual(recorder.returncode, 0, said)
        checked = self.start([ARCTRACE, "check", "t"], directory)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        shown = self.start([ARCTRACE, "report", "--view=flat", "--format=json", "t"], directory)
        calls = {row["name"]: row["calls"] for row in json.loads(shown.stdout)["functions"]}
        return said, calls, directory

    def info(self, directory):
        """What info says of the patches of each process, in the order in which they joined."""
        shown = self.start([ARCTRACE, "info", "-v", "--format=json", "t"], directory)
        return [process["patches"] for process in json.loads(shown.stdout)["processes"]]

    def test_flooding(self):
        """A function whose calls fill the buffer is switched off, so that none is lost."""
        said, calls, directory = self.flood("own", "*")
        self.assertIn(" 0 lost, ", said)
        self.assertIn("arctrace: 1 function was switched off", said)
        self.assertEqual(calls["outer"], 50)
        self.assertTrue(10_000 < calls["leaf"] < 1_000_000, calls)
        [patches] = self.info(directory)
        self.assertEqual(patches["switched_off"], 1)
        self.assertEqual([row["name"] for row in patches["functions"]
                          if row["verdict"] == "flooded"], ["leaf"])
        text = self.start([ARCTRACE, "info", "-v", "t"], directory).stdout
        self.assertIn("        1  of them switched off, because their calls filled the buffer\n"
                      "             leaf\n", text)

    def test_flooding_child(self):
        """A forked process has what its parent has patched, and switches functions off alone."""
        said, calls, directory = self.flood("child", "*")
        self.assertIn(" 0 lost, ", said)
        self.assertLess(calls["leaf"], 1_000_000)
        parent, child = self.info(directory)
        self.assertEqual((parent["switched_off"], child["switched_off"]), (0, 1))
        self.assertEqual(parent["patched"], child["patched"])
        self.assertEqual(parent["left"], child["left"])
        text = self.start([ARCTRACE, "info", "t"], directory).stdout
        self.assertIn(f"\n{parent['patched']} patched functions of ", text)
        self.assertIn("        1  of them switched off", text)
        dump = self.start([ARCTRACE, "dump", "--type=PATCHES", "--format=json", "t"],
                          directory).stdout
        self.assertEqual((dump.count('"flooded"'), dump.count('"patchable"')), (1, 1))

    def test_named_functions_stay_on(self):
        """Also if their calls are lost."""
        said, _, directory = self.flood("own", "*", "leaf")
        self.assertNotIn(" 0 lost, ", said)
        self.assertNotIn("switched off", said)
        self.assertEqual(self.info(directory)[0]["switched_off"], 0)

    def test_others_flood(self):
        """Functions stay on if it is library calls that fill the buffer."""
        said, _, directory = self.flood("libc", "*", options=())
        self.assertNotIn(" 0 lost, ", said)
        self.assertNotIn("switched off", said)
        self.assertEqual(self.info(directory)[0]["switched_off"], 0)

    def test_nothing_to_patch(self):
        """A line says so, and the program goes on."""
        directory = self.place("bare", ANY_COMPILER)
        done = self.start_patched(directory, "-P", ".", command=("./jumps_no_tables",))
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("arctrace: warning: no function matches -P .", done.stderr)


if __name__ == "__main__":
    cases.main()
