"""Programs that make it hard for a tracer that stands between a call and its return."""

import itertools
import json
import os
import re

import cases
import plain
import turns_account
from command import LIBRARY, run
from tracing import FIXTURES


def stacks(report):
    """The functions and lines of all stacks in a report."""
    return re.findall(r"^ +#\d+ 0x\w+ in (\w+) .*?([\w.]+:\d+)?", report, re.MULTILINE)


class Hazards(plain.PlainTest):
    def both(self, *command, **options):
        for compiler in plain.COMPILERS:
            traced = self.compare_modes(*command, compiler=compiler, **options)
            self.assertGreaterEqual(traced.status, 0)  # no fixture ends by a signal

    def test_unwinding(self):
        """Exceptions, backtraces, jumps, cancelled and ended threads, through callbacks."""
        self.both("./unwinding")
        self.both("./exceptions")

    def test_jumps(self):
        self.both("./jumps")

    def test_coroutines(self):
        """Coroutines are suspended in library functions, and resumed in other threads."""
        self.both("./coroutines")
        self.both("./fibers")

    def test_turns_of_coroutines(self):
        """The reports tell which coroutine called what in a program without hooks, too."""
        for compiler in plain.COMPILERS:
            traced = self.record_quietly("./turns", compiler=compiler, options=("--libcall",))
            self.assertEqual(traced.status, 15)
            turns_account.check(self, traced.directory, traced.report("tree"), traced.records("--type=COROUTINE"))

    def test_fibers(self):
        """Fibers of Boost.Context have stacks of their own in the reports, too."""
        for compiler in plain.COMPILERS:
            traced = self.record_quietly("./fibers", compiler=compiler, options=("--libcall",))
            report = traced.report("flat")
            self.assertEqual(report["summary"]["orphans"], 0)
            names = {row["name"] for row in report["functions"]}
            self.assertGreater(len([name for name in names if name.startswith("coroutine ")]), 3)

    def test_coroutines_on_the_own_stack(self):
        """Calls further out on the stack begin while others, further in, are suspended."""
        self.both("./own_stack")

    def test_copied_stacks(self):
        """A call returns on a copy of its stack, after another task has used the place."""
        traced = self.compare_modes("./copied", compiler="gcc")
        self.assertEqual(traced.status, 17)
        self.assertGreater(traced.calls()["through"], 20)

    def test_calling_convention(self):
        """The program passes arguments and results of every kind, errno, rounding, pointers to functions."""
        self.both("./abi")

    def test_other_conventions(self):
        """The registers that ms_abi and preserve_most preserve are preserved."""
        self.both("./conventions")

    def test_functions_that_use_their_caller(self):
        """The functions return twice, or read the address to which they return."""
        self.both("./callers")
        self.both("./callers", "covert", options=("--entry-only", "save_covertly"))
        for compiler in plain.COMPILERS:
            traced = self.compare_modes("./callers", compiler=compiler)
            self.assertEqual(self.callees(traced, "ordinary"), {"snprintf"})
            self.assertEqual(self.callees(traced, "returns_to_late"), set())

    def test_functions_with_hooks(self):
        """A function that passes its return address to a hook does not count as one that reads it."""
        for compiler in plain.COMPILERS:
            directory = self.place("program", compiler)
            library = directory / "libcallers.so"
            library.unlink()
            library.symlink_to(FIXTURES / compiler / "libcallers_hooked.so")
            environment = {**os.environ, "LD_LIBRARY_PATH": str(directory)}
            traced = self.record_quietly("./callers", directory=directory, options=("--nest-libcall",),
                                         env=environment)
            self.assertLessEqual({"snprintf"}, self.callees(traced, "ordinary"))

    @staticmethod
    def callees(traced, name):
        """The functions that are shown as called by those with this name."""
        found = set()
        tree = json.loads(traced.read("report", "--format=json", "--merge"))
        open_nodes = [group["root"] for group in tree["all"]]
        while open_nodes:
            node = open_nodes.pop()
            open_nodes += node["children"]
            if node.get("name") == name:
                found |= {child["name"] for child in node["children"]}
        return found

    def test_stacks_of_address_sanitizer(self):
        """Reports of AddressSanitizer name the same callers."""
        environment = {**os.environ, "ASAN_OPTIONS": "halt_on_error=0"}
        for compiler in plain.COMPILERS:
            bare = run("./reports", cwd=self.place("program", compiler), env=environment)
            self.assertIn("released\n", bare.stdout)
            self.assertIn(" in release ", bare.stderr)
            for mode in plain.MODES:
                traced = self.record_quietly("./reports", compiler=compiler, options=(mode,), env=environment)
                self.assertEqual(stacks(traced.errors), stacks(bare.stderr))

    def test_ends_of_others(self):
        """A library defines _exit() before libc's, as gcc's sanitizers do."""
        self.both("./ended")
        self.both("./ended", "c")

    def test_plugins(self):
        self.both("./loads")

    def test_storm(self):
        """The programs have many threads, signals, and recursion deeper than the stack of pending calls."""
        self.both("./storm")
        self.both("./deep")

    @cases.not_in_gate
    def test_backtraces_of_signal_handlers(self):
        self.both("./sampled")

    def test_libunwind(self):
        """Walks of libunwind, which do not know where we say that our caller's stack pointer is."""
        if not (FIXTURES / "gcc/walks").exists():
            self.skipTest("there is no libunwind.so.8")
        self.both("./walks")
        self.both("./walks_fentry", "calls")
        self.both("./walks_patchable", "calls")

    def test_signals(self):
        self.both("./signals", "return")
        self.both("./signals", "altstack")

    def test_signals_and_calls(self):
        """Timers, queues, waits, small stacks and faults are the program's own."""
        for case in run("./signalled", "all", cwd=self.place("program", "gcc")).stdout.split():
            with self.subTest(case=case):
                self.both("./signalled", case)

    def test_processes(self):
        self.both("./forks", "20")
        self.both("./vforks")

    @cases.not_in_gate
    def test_tasks_without_storage_of_their_own(self):
        """Two tasks share thread-local storage: only the calls of one are recorded."""
        for flags, stack, thread in itertools.product(("c", "fs", "t", "v"), "mal", "mt"):
            self.both("./tasks", flags, stack, thread)

    def test_locked_memory(self):
        """A limit on locked memory applies to the program's own memory, all of which is locked, and no signal is
        ignored."""
        self.both("./locked", "present")
        traced = self.compare_modes("./locked", "all", compiler="gcc")
        self.assertIn("mlockall 0 Success\nlocked 64 of 64 KiB\n", traced.stdout)

    def test_locked_memory_without_session(self):
        """A program that can't join a session, because it is another user's, has our libraries' memory too."""
        program = FIXTURES / "gcc/locked"
        shim = LIBRARY.with_name("libarctrace-shim.so")
        outputs = [run(program, "all", env={**os.environ, **preloaded}, check=True).stdout
                   for preloaded in ({}, {"LD_PRELOAD": str(shim)})]
        self.assertIn("mlockall 0 Success\n", outputs[0])
        self.assertEqual(outputs[0], outputs[1])

    def test_own_malloc(self):
        self.both("./replaced")

    def test_address_sanitizer(self):
        """AddressSanitizer's runtime refuses to be loaded after another library, unless an option permits
        that."""
        self.both("./counted_asan")
        self.both("./exceptions_asan")

    def test_confined(self):
        self.both("./confined", "closed")
        self.both("./confined", "seccomp", options=("--block-size=4k",))
        self.both("./confined", "probed")
        self.both("./confined", "child")
        if os.geteuid() == 0:
            self.both("./confined", "chroot")


if __name__ == "__main__":
    cases.main()
