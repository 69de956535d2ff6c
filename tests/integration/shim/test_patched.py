"""record -P on programs that were not built for it: the programs of the shim's other tests, without hooks."""

import contextlib
import csv
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import unittest
import unittest.mock

import cases
from command import ARCTRACE, read, read_info, read_report, run, start_arctrace
from hooked import ANY_COMPILER, TOOLS, ShimTest, both_compilers, functions_of

# Programs with their arguments. What they do must not change, and every counted call of a function that can be patched
# must be in the trace.
PROGRAMS = [("./jumps",), ("./exceptions",), ("./left",), ("./contexts",),
            ("./turns", "array"), ("./own_stack",), ("./reused",), ("./threads", "3"), ("./vforks",),
            ("./forks", "5"), ("./replaced",), ("./signals", "return"), ("./signals", "jump"),
            ("./signals", "altstack"), ("./values",), ("./deep",), ("./interpreter",)]
# The long form runs all programs, with all options below, which takes some 40 s of CPU.
LONG = bool(os.environ.get("ARCTRACE_TEST_LONG"))
SHORT = {"./jumps", "./exceptions", "./left", "./turns", "./reused", "./vforks", "./signals", "./values",
         "./deep", "./interpreter"}
# These have more nested calls than are recorded, or jump out of functions that have not counted their call yet.
UNCOUNTED = {"./contexts", "./deep", "./threads", "./replaced", "./signals"}


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


def prctl(*arguments):
    return ctypes.CDLL(None, use_errno=True).prctl(*[ctypes.c_ulong(one) for one in arguments])


REFUSE_EXECUTABLE_GAIN = (65, 1, 0, 0, 0)  # PR_SET_MDWE


def can_refuse_executable_gain():
    """Whether the kernel has it, asked in a child, because it can't be undone."""
    child = os.fork()
    if child == 0:
        os._exit(0 if prctl(*REFUSE_EXECUTABLE_GAIN) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def refuse_executable_gain():
    if prctl(*REFUSE_EXECUTABLE_GAIN) != 0:
        raise OSError("PR_SET_MDWE")


def unshare_mounts():
    """Makes mounts from now on visible to this process and its children only."""
    new_mounts, private = 0x20000, 0x44000
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(new_mounts) != 0 or libc.mount(b"none", b"/", None, private, None) != 0:
        raise OSError(ctypes.get_errno())


class Patched(ShimTest):
    @both_compilers
    def test_programs(self, compiler):
        for command in PROGRAMS if compiler == "gcc" else PROGRAMS[:2]:
            if not LONG and command[0] not in SHORT:
                continue
            with self.subTest(command=command):
                traced = self.compare(*command, compiler=compiler, may_lose=command[0] == "./deep")
                if command[0] in UNCOUNTED:
                    continue
                verdicts = functions_of(traced.directory / command[0])
                left = {name for name in traced.counted if not verdicts.get(name)}
                self.assert_counts(traced, but_for=left)

    @cases.not_in_gate
    @both_compilers
    def test_registers_are_kept(self, compiler):
        """All registers are preserved at both ends of a call, whatever path it takes."""
        options = [(), ("-t", "1ms"), ("-F", "jumper"), ("--entry-only", "callee"),
                   ("--scope=shared", "-A", "callee@arg1,fparg1", "-R", "callee@retval")]
        if LONG:
            options += [("-Z", "64"), ("--scope=shared",), ("-N", "callee"),
                        ("-A", "callee@arg1,fparg1", "-R", "callee@retval"),
                        ("--mode=overwrite",)]
        for chosen in options if compiler == "gcc" else options[:1]:
            seed = str(random.randrange(1 << 32))
            with self.subTest(options=chosen, seed=seed):
                for canary in ("./canary", "./canary_pushes"):
                    traced = self.compare(canary, seed, "3000", compiler=compiler, options=chosen)
                    self.assertEqual(traced.stdout, "3000 rounds\n")
                    calls = traced.calls()
                    if "-t" not in chosen and "-F" not in chosen and "-N" not in chosen:
                        if "--mode=overwrite" not in chosen:
                            self.assertEqual(calls["callee"], 3000)

    def test_others_stay(self):
        """Functions that no pattern matches are not recorded; small ones only if they are named."""
        compiler = ANY_COMPILER
        for pattern, recorded in (("callee", {"callee"}), ("jumper", {"jumper"}),
                                  ("re:^call_c", {"call_callee"})):
            traced = self.record_patched(self.place("chosen", compiler), "-P", pattern)
            self.assertEqual(traced.status, 0, traced.stderr)
            self.assertEqual(set(traced.calls()), recorded)

    def test_uprobes(self):
        """Uprobes stand on the first instruction, which stays in its place, or on a landing pad."""
        place = self.place("probed", "gcc")
        bare = run("./probed_plain", "before", cwd=place)
        if bare.returncode == 77:
            self.skipTest("uprobes are refused")
        self.assertEqual(bare.returncode, 0, bare.stderr)
        self.assertIn(" 100 hits", bare.stdout)
        for command in (("./probed_plain", "before"), ("./probed_plain",), ("./probed", "before"), ("./probed",)):
            bare = run(*command, cwd=place)
            directory = self.place("traced", "gcc")
            traced = self.record_patched(directory, "-P", "probed", command=command)
            self.assertEqual((traced.status, traced.stdout), (bare.returncode, bare.stdout), traced.stderr)
            last = self.patches(traced.trace)[-1]
            self.assertEqual((last["patched"], last["left"].get("changed", 0)), (1, 0))

    def test_uprobes_by_first_instruction(self):
        """Uprobes and uretprobes are attached and removed on what compilers begin functions with: all calls are
        recorded, and do what they should."""
        bare = run("./probed_firsts", cwd=self.place("probed", "gcc"))
        if bare.returncode == 77:
            self.skipTest("uprobes are refused")
        for options in cases.shortened(((), ("--mode=overwrite",), ("-A", "pushes_rbx@arg1"))):
            traced = self.compare("./probed_firsts", compiler="gcc", options=("-Z", "1", *options))
            calls = traced.calls()
            for line in bare.stdout.splitlines():
                self.assertEqual(calls[line.split(":")[0]], 500)

    def test_calls_among_the_first_instructions(self):
        """A function that begins with a call is recorded; what it calls returns to the function itself, also by an
        exception, and an unwinder gets through the copies at each instruction."""
        names = ("reserves", "pushes", "at_once", "moves")
        directory = self.compare("./calls_at_entry", compiler="gcc").directory
        for options in ((), ("-t", "1ns"), ("-N", "inner"), ("--mode=overwrite",)):
            traced = self.record_patched(directory, "-P", ".", "-Z", "1", *options, command=("./calls_at_entry",))
            self.assertEqual(traced.status, 0, traced.stderr)
            calls = traced.calls()
            self.assertEqual({name: calls.get(name) for name in names}, dict.fromkeys(names, 2000))
        # The handler of the steps may call nothing that is recorded (docs/guide/limits.md).
        bare = run("./calls_at_entry", "stepped", cwd=directory)
        for name in names:
            traced = self.record_patched(directory, "-P", name, command=("./calls_at_entry", "stepped"))
            self.assert_same(bare, traced)

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_under_gdb(self):
        """gdb opens what the loader maps, by the path that it has from the loader, and continues."""
        directory = self.place("gdb", "gcc")
        gdb = ["gdb", "-nx", "-q", "-batch", "-ex", "set startup-with-shell off", "-ex", "run",
               "./jumps"]
        done = run("timeout", "-k", "5", "120", ARCTRACE, "record", "-P", "main", "--no-libcall", "-o", "t", "--",
                   *gdb, cwd=directory)
        self.assertRegex(done.stdout, r"\[Inferior 1 \(process \d+\) exited ", done.stderr)
        patches = [program for program in self.patches(directory / "t") if program is not None]
        self.assertIn(1, [program["patched"] for program in patches])

    def record_patched(self, directory, *options, command=("./canary", "7", "100"), **run_options):
        return self.record(*command, options=("--no-libcall", *options), directory=directory, **run_options)

    @staticmethod
    def patches(trace):
        """The patches of each process by info, in the order in which they joined."""
        return [process["patches"] for process in read_info(trace, "-v")["processes"]]

    def test_what_was_left(self):
        """info counts a skipped function by its reason, and names it."""
        directory = self.place("left", ANY_COMPILER)
        traced = self.record_patched(directory, "-P", ".")
        self.assertEqual(traced.status, 0, traced.stderr)
        functions = json.loads(read("functions", "--list", "--format=json", directory / "canary"))
        info = self.patches(traced.trace)[0]
        large = {function["name"] for function in functions["list"]
                 if function["verdict"] == "patchable" and (function["size"] >= 64 or function["may_last"])}
        left = {function["name"]: function["verdict"] for function in functions["list"]
                if function["verdict"] not in ("patchable", "part", "slot_stub")}
        self.assertTrue(left and large)
        self.assertEqual(info["patched"], len(large))
        self.assertEqual(info["left"]["small"], functions["patchable"] - len(large))
        self.assertEqual({row["name"]: row["verdict"] for row in info["functions"]}, left)
        self.assertIsNone(info["refused"])
        text = traced.read("info", "-v")
        self.assertIn(f"{len(large)} patched functions of", text)
        self.assertIn("left: small, without calls and loops, or smaller than -Z says", text)
        for name in left:
            self.assertIn(f"\n             {name}\n", text)

    def test_objects_without_unwind_tables(self):
        """Functions of an object without unwind tables, beside others, are counted in a stripped program, too."""
        sources = {
            "bare.c": "int inner(int n) { volatile int sum = n; return sum + 1; }\n"
                      "int outer(int n) { volatile int sum = inner(n); return sum + inner(n + 1); }\n",
            "full.c": "int outer(int n);\n__attribute__((noinline)) int full(int n) { volatile int sum = outer(n);\n"
                      "  return sum + outer(n + 1); }\nint main(int count) { return full(count) == 0; }\n"}
        directory = self.place("bare", ANY_COMPILER)
        for name, text in sources.items():
            (directory / name).write_text(text)
            options = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"] if name == "bare.c" else []
            subprocess.run([TOOLS["gcc"], "-O1", "-fno-inline", "-c", name, *options], cwd=directory, check=True)
        subprocess.run([TOOLS["gcc"], "-s", "-o", "bare", "full.o", "bare.o"], cwd=directory, check=True)
        plan = json.loads(read("functions", "--list", "--format=json", directory / "bare"))
        self.assertEqual([one["verdict"] for one in plan["list"]].count("no_frame_info"), 2)
        traced = self.record_patched(directory, "-P", ".", "-Z", "1", command=("./bare",))
        [patches] = self.patches(traced.trace)
        self.assertEqual(patches["left"]["no_frame_info"], 2)

    def test_refused(self):
        """If no function can be patched, record and info say why."""
        directory = self.place("confined", ANY_COMPILER)
        traced = self.record_patched(directory, "-P", ".", preexec_fn=allow_all)
        self.assertEqual((traced.status, traced.stdout), (0, "100 rounds\n"), traced.stderr)
        why = "it is under a seccomp filter"
        self.assertIn(f"; nothing was patched for -P: {why}\n", traced.stderr)
        [patches] = self.patches(traced.trace)
        self.assertEqual((patches["patched"], patches["refused"]), (0, why))
        text = traced.read("info")
        self.assertIn("\n0 patched functions of ", text)
        self.assertIn(f"\n  none was patched: {why}\n", text)
        self.assertNotIn("matches", traced.stderr)

    def test_refused_patterns(self):
        """What was refused is no pattern that nothing matches, and is said beside what other hooks have recorded."""
        why = "it is under a seccomp filter"
        library = f"nothing of some library was patched for -P: {why}; arctrace info says of which\n"
        for pattern, command, said in (
                ("callee", ("./canary", "7", "100"), f"; nothing was patched for -P: {why}\n"),
                ("callee", ("sh", "-c", "./canary 7 100"), f"; nothing was patched for -P: {why}\n"),
                ("lib:libc.so.6", ("./canary", "7", "100"), library),
                ("lib:libc:malloc", ("./canary", "7", "100"), library)):
            with self.subTest(pattern=pattern, command=command):
                traced = self.record_patched(self.place("confined", ANY_COMPILER), "-P", pattern, command=command,
                                             preexec_fn=allow_all)
                self.assertEqual((traced.status, traced.stdout), (0, "100 rounds\n"), traced.stderr)
                self.assertIn(said, traced.stderr)
                for wrong in ("matches", "could be patched", "could not be patched"):
                    self.assertNotIn(wrong, traced.stderr)
        directory = self.place("hooked", ANY_COMPILER)
        traced = self.record_patched(directory, "-P", ".", "-Z", "1", command=("./hooked",), preexec_fn=allow_all)
        self.assertIn(f"nothing of some program was patched for -P: {why}; arctrace info says of which\n",
                      traced.stderr)
        self.assertNotIn("matches", traced.stderr)

    def assert_refused(self, directory, why, command=("./canary", "7", "100"), status=0,
                       stdout="100 rounds\n", **options):
        """Nothing is patched, record and info say so, and the program runs as before."""
        traced = self.record_patched(directory, "-P", ".", "-Z", "1", command=command, **options)
        self.assertEqual((traced.status, traced.stdout), (status, stdout), traced.stderr)
        refused = [patches["refused"] for patches in self.patches(traced.trace) if patches]
        self.assertIn(why, refused)
        [patches] = [patches for patches in self.patches(traced.trace) if patches and patches["refused"] == why]
        self.assertEqual(patches["patched"], 0)
        self.assertIn(f"\n  none was patched: {why}\n", traced.read("info"))

    def test_threads_before(self):
        """With other threads nothing is patched, because one may be executing the code that would change."""
        directory = self.place("threads", ANY_COMPILER)
        self.assert_refused(directory, "it had other threads before its own code ran",
                            command=("./early_thread",), stdout="3 4\n")

    def test_compiled_in_hooks(self):
        """Compiled-in hooks record the functions, so nothing is patched."""
        directory = self.place("hooked", ANY_COMPILER)
        self.assert_refused(directory, "its functions have compiled-in hooks",
                            command=("./hooked",), status=7, stdout=unittest.mock.ANY)

    def test_no_command(self):
        """The command was removed before the program begins."""
        directory = self.place("gone", ANY_COMPILER)
        installed = directory / "installed"
        shutil.copytree(pathlib.Path(ARCTRACE).parent.parent / "lib", installed / "lib",
                        symlinks=True)
        (installed / "bin").mkdir()
        command = installed / "bin" / "arctrace"
        shutil.copy(ARCTRACE, command)
        done = run(command, "record", "--no-libcall", "-P", ".", "-o", "t", "--", "sh", "-c",
                   f"rm {command}; ./canary 7 100; true", cwd=directory)
        self.assertEqual((done.returncode, done.stdout), (0, "100 rounds\n"), done.stderr)
        refused = {process["executable"].rpartition("/")[2]: process["patches"]["refused"]
                   for process in read_info(directory / "t")["processes"]}
        self.assertEqual(refused["canary"], "the arctrace command could not be run in it")

    def test_code_that_cannot_change(self):
        """Neither /proc/self/mem nor the code itself can be written."""
        directory = self.place("unwritten", ANY_COMPILER)
        if os.geteuid() != 0 or not can_refuse_executable_gain():
            self.skipTest("needs root, and a kernel that can refuse to make memory executable")

        def confine():
            refuse_executable_gain()
            unshare_mounts()

        script = ("mount --bind /dev/full /proc/$$/mem && exec ./canary 7 100")
        self.assert_refused(directory, "its code could not be changed",
                            command=("sh", "-c", script), preexec_fn=confine)

    def test_arguments_and_results(self):
        """-A, -R, and -t with them, work for functions that are patched."""
        directory = self.place("args", ANY_COMPILER)
        for options, rounds in (((), 20), (("-t", "100ms"), 1)):
            traced = self.record_patched(
                directory, "-P", "serve", "-A", "serve@arg1/i32,arg2/i32,arg3/i32",
                "-R", "serve@retval/i32", *options, command=("./flight", "20", "7", "9"))
            self.assertEqual(traced.status, 0, traced.stderr)
            calls = [(call["args"], call["retval"])
                     for call in traced.report("invocations")["invocations"] if call["name"] == "serve"]
            expected = [([i, 7, 9], -7 if i == 9 else i + 1) for i in range(20)]
            if rounds == 1:
                self.assertIn(expected[7], calls)
                self.assertLess(len(calls), 20)
            else:
                self.assertEqual(calls, expected)

    def test_changed_instructions(self):
        """A function with a debugger's breakpoint is not changed; others are patched."""
        directory = self.place("changed", ANY_COMPILER)
        traced = self.record_patched(directory, "-P", ".", "-Z", "1", command=("./changed",))
        self.assertEqual((traced.status, traced.stdout), (0, "3 4\n"), traced.stderr)
        [patches] = self.patches(traced.trace)
        self.assertEqual(patches["left"]["changed"], 1)
        self.assertEqual([row["name"] for row in patches["functions"]
                          if row["verdict"] == "changed"], ["changed"])
        calls = traced.calls()
        self.assertIn("same", calls)
        self.assertNotIn("changed", calls)

    def test_waiting_is_no_constructor(self):
        """The time that the program waits for its image is the recording's own, before main."""
        directory = self.place("waited", ANY_COMPILER)
        traced = self.record_patched(directory, "-P", "callee", command=("./canary", "7", "10"))
        self.assertEqual(traced.status, 0, traced.stderr)
        [thread] = traced.report("tree")["threads"]
        parts = {node["name"]: node for node in thread["root"]["children"]}
        own = parts["[arctrace]"]
        self.assertEqual((own["calls"], own["cum_ns"], own["children"]), (1, 0, []))
        # The shim starts a process, which reads a program.
        self.assertGreater(own["overhead_ns"], 300_000)
        self.assertGreater(own["overhead_ns"], parts["[constructors]"]["cum_ns"])

    def test_too_many_functions(self):
        """Functions for which there is no stub are counted and named."""
        directory = self.place("many", ANY_COMPILER)
        traced = self.record_patched(directory, "-P", ".", "-Z", "1", command=("./many",))
        self.assertEqual(traced.status, 5, traced.stderr)
        [patches] = self.patches(traced.trace)
        self.assertGreater(patches["patched"], 30_000)
        self.assertGreater(patches["left"]["no_stub"], 100)
        listed = [row for row in patches["functions"] if row["verdict"] == "no_stub"]
        self.assertEqual(len(listed), patches["left"]["no_stub"])

    def test_pattern_without_functions(self):
        """A line says that nothing matches before the program runs, if it executes no other program."""
        directory = self.place("unmatched", ANY_COMPILER)
        for pattern, said in (
                ("calee", 'no function of ./canary matches -P calee; did you mean "callee"'),
                ("next_r*", "-P next_r* matches only functions of ./canary of fewer than 64 bytes"),
                ("_start", "-P _start: _start cannot be patched: not entered like a function")):
            traced = self.record_patched(directory, "-P", "callee", "-P", pattern)
            self.assertEqual(traced.status, 2, traced.stderr)
            self.assertEqual((traced.stdout, len(traced.stderr.splitlines())), ("", 1))
            self.assertIn(f"arctrace: record: {said}", traced.stderr)
            self.assertFalse(traced.trace.exists())
        # A function that -P skips is not there for a filter either.
        traced = self.record_patched(directory, "-P", ".", "-F", "next_random")
        self.assertIn("no function or scope matches -F next_random; it is in the program, but was not patched: "
                      "try -P next_random, or see arctrace functions --list\n", traced.stderr)
        traced = self.record_patched(directory, "-P", "callee",
                                     command=("sh", "-c", "./canary 7 100; true"))
        self.assertEqual(traced.status, 0, traced.stderr)

    def flood(self, kind, *patterns, options=("--no-libcall",)):
        """Records a program whose calls fill the buffer, which nobody empties meanwhile. Returns what record printed,
        the calls by function, and the trace."""
        directory = self.place("flooding", ANY_COMPILER)
        chosen = [word for pattern in patterns for word in ("-P", pattern)]
        trace = directory / "arctrace.data"
        with start_arctrace("record", *options, "--buffer-size=2M", "-Z", "1", *chosen, "-o", trace, "--", "./flooding",
                            kind, "50", "20000", cwd=directory, stdin=subprocess.PIPE, text=True,
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
        calls = {row["name"]: row["calls"] for row in read_report(trace, "flat")["functions"]}
        return said, calls, trace

    def test_flooding(self):
        """A function whose calls fill the buffer is switched off, so that no record is lost."""
        said, calls, trace = self.flood("own", "*")
        self.assertIn(" 0 lost, ", said)
        self.assertIn("arctrace: 1 function was switched off", said)
        self.assertEqual(calls["outer"], 50)
        self.assertTrue(10_000 < calls["leaf"] < 1_000_000, calls)
        [patches] = self.patches(trace)
        self.assertEqual(patches["switched_off"], 1)
        self.assertEqual([row["name"] for row in patches["functions"]
                          if row["verdict"] == "flooded"], ["leaf"])
        text = read("info", "-v", trace)
        self.assertIn("        1  of them switched off, because their calls filled the buffer\n"
                      "             leaf\n", text)
        self.assert_until(trace, "leaf")

    def assert_until(self, trace, name):
        """All views tell until when the function was recorded, and other functions have no mark."""
        flat = read_report(trace, "flat")
        recorded = {row["name"]: row["recorded"] for row in flat["functions"] if "recorded" in row}
        self.assertEqual(recorded.keys(), {name})
        until = recorded[name]["until_ns"]
        self.assertEqual(recorded[name], {"until_ns": until, "until_by": "switched off"})
        times = read_info(trace)["summary"]
        self.assertTrue(times["first_ns"] < until <= times["last_ns"], (until, times))
        self.assertEqual(read_report(trace, "summary")["left_out"],
                         [{"by": "switched off", "from_ns": until, "to_ns": None, "functions": 1}])
        for view in ("flat", "tree", "arcs"):
            lines = [line for line in read("report", f"--view={view}", trace).splitlines() if "[until " in line]
            self.assertTrue(lines and all(f"  {name} " in line for line in lines), (view, lines))
        out = trace.with_name("out")
        read("export", "--to=sqlite", "-o", out, trace)
        with contextlib.closing(sqlite3.connect(out)) as base:
            self.assertEqual(base.execute("SELECT name, start_ns, duration_ns, reason FROM left_out "
                                          "JOIN functions ON functions.id = function_id").fetchall(),
                             [(name, until, None, "switched off")])
        out.unlink()
        read("export", "--to=csv", "-o", out, trace)
        with open(out, encoding="utf-8") as file:
            self.assertEqual([(row["name"], row["start_ns"]) for row in csv.DictReader(file) if row["type"] == "left-out"],
                             [(name, str(until))])
        out.unlink()

    def test_flooding_child(self):
        """A forked process has the functions that its parent has patched, and switches them off alone."""
        said, calls, trace = self.flood("child", "*")
        self.assertIn(" 0 lost, ", said)
        self.assertLess(calls["leaf"], 1_000_000)
        parent, child = self.patches(trace)
        self.assertEqual((parent["switched_off"], child["switched_off"]), (0, 1))
        self.assert_until(trace, "leaf")
        self.assertEqual(parent["patched"], child["patched"])
        self.assertEqual(parent["left"], child["left"])
        text = read("info", trace)
        self.assertIn(f"\n{parent['patched']} patched functions of ", text)
        self.assertIn("        1  of them switched off", text)
        dump = read("dump", "--type=PATCHES", "--format=json", trace)
        self.assertEqual((dump.count('"flooded"'), dump.count('"patchable"')), (1, 1))

    def test_named_functions_stay_on(self):
        """Functions that are asked for stay on, also if their calls are lost."""
        said, _, trace = self.flood("own", "*", "leaf")
        self.assertNotIn(" 0 lost, ", said)
        self.assertNotIn("switched off", said)
        self.assertEqual(self.patches(trace)[0]["switched_off"], 0)

    def test_others_flood(self):
        """Functions stay on if library calls fill the buffer."""
        said, _, trace = self.flood("libc", "*", options=())
        self.assertNotIn(" 0 lost, ", said)
        self.assertNotIn("switched off", said)
        self.assertEqual(self.patches(trace)[0]["switched_off"], 0)

    def test_nothing_to_patch(self):
        """A line says that the program has no unwind tables, and the program continues."""
        directory = self.place("bare", ANY_COMPILER)
        traced = self.record_patched(directory, "-P", ".", command=("./jumps_no_tables",))
        self.assertEqual(traced.status, 7, traced.stderr)
        self.assertIn("arctrace: warning: no function matches -P .", traced.stderr)

    def test_small_functions(self):
        """Small functions are recorded if they may take time: if they call or loop."""
        directory = self.place("bare", ANY_COMPILER)
        source = """
            #define APART __attribute__((noinline, noipa))
            APART int plain(int n) { return n * 7 + (n >> 3); }
            APART int looping(int n) { int sum = 0; do sum += n ^ sum; while (--n); return sum; }
            APART int calling(int n) { return plain(n * 3 + 11) + n; }
            int main(int count, char** v) { return calling(count) + looping(count) == 0 || !v; }"""
        subprocess.run(["gcc", "-O2", "-x", "c", "-", "-o", directory / "small"], input=source, text=True, check=True)
        for options, recorded in (((), {"looping", "calling"}), (("-Z", "64"), set()),
                                  (("-Z", "1"), {"looping", "calling", "plain"}),
                                  (("-P", "plain"), {"looping", "calling", "plain"})):
            with self.subTest(options=options):
                traced = self.record_patched(directory, "-P", ".", *options, command=("./small",))
                self.assertEqual(traced.status, 0, traced.stderr)
                self.assertEqual(set(traced.calls()) & {"looping", "calling", "plain"}, recorded)

    def test_tail_calls(self):
        """A small function whose only call is a jump at its end is recorded: its callee takes its time."""
        directory = self.place("bare", ANY_COMPILER)
        source = """
            #include <unistd.h>
            #define APART __attribute__((noinline, noipa))
            APART int hold(unsigned us) { return usleep(us); }
            APART int disk_read(unsigned kib) { return usleep(kib * 40); }
            APART int by_pointer(int (*f)(unsigned), unsigned n) { return f(n); }
            int main(void) { hold(20000); disk_read(50); return by_pointer(hold, 10); }"""
        subprocess.run(["gcc", "-O2", "-x", "c", "-", "-o", directory / "held"], input=source, text=True, check=True)
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", directory / "held"], capture_output=True,
                              text=True, check=True).stdout
        self.assertRegex(code, r"<hold>:\n.*\tjmp +[0-9a-f]+ <usleep@plt>\n")
        called = {"hold": 2, "disk_read": 1, "by_pointer": 1}
        for options, expected in ((("-P", "."), called), (("-P", ".", "-F", "hold"), {"hold": 2})):
            with self.subTest(options=options):
                traced = self.record_patched(directory, *options, command=("./held",))
                self.assertEqual(traced.status, 0, traced.stderr)
                self.assertEqual({name: count for name, count in traced.calls().items() if name in called}, expected)
                times = {row["name"]: row["max_ns"] for row in traced.report("flat")["functions"]}
                self.assertGreaterEqual(times["hold"], 20_000_000)
        traced = self.record_patched(directory, "-P", ".", "--mode=overwrite",
                                     "--snapshot-when=hold>5ms", command=("./held",))
        self.assertIn("1 snapshot for --snapshot-when", traced.stderr)

    def test_nothing_large_enough(self):
        """A function that is skipped because it is small is said to be so."""
        directory = self.place("bare", ANY_COMPILER)
        source = "int main(int count, char** v) { return v[count] == 0 ? 7 : 0; }"
        subprocess.run(["gcc", "-O2", "-x", "c", "-", "-o", directory / "small"], input=source,
                       text=True, check=True)
        traced = self.record_patched(directory, "-P", ".", command=("./small",))
        self.assertEqual(traced.status, 7, traced.stderr)
        self.assertIn("fewer than 64 bytes, without calls and loops, or than -Z says: -Z 1 takes them, too",
                      traced.stderr)
        self.assertRegex(traced.stderr, r"no function matches -P \.\n")
        traced = self.record_patched(directory, "-P", ".", "-Z", "1", command=("./small",))
        self.assertNotIn("warning", traced.stderr)


if __name__ == "__main__":
    cases.main()
