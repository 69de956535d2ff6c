"""Each kind of hook that compilers put into functions, on the programs that make it hard for a
tracer. The fixtures are built without inlining, so that each function that counts its calls has a
hook."""

import itertools

import cases
import test_calls
import test_filters
import test_modules
import test_processes
import turns_account
from command import arctrace, run
from hooked import COMPILERS, ShimTest, both_compilers, plain_name
from tracing import FIXTURES


class Plugins(test_modules.Modules):
    @both_compilers
    def test_plugins(self, compiler):
        """Functions of modules that are loaded later are hooked before any of them runs."""
        for how in ((), ("deep",), ("deep", "lazy")):
            with self.subTest(how=how):
                self.assert_plugin_calls(self.compare("./plugins", *how, compiler=compiler))

    # These tests are about modules.
    test_plugins_that_find_libc_first = test_under_gdb = test_gdb_attached_inside = None


class StaticChains(ShimTest):
    def test_nested_functions(self):
        """The hooks preserve the register by which a nested function finds the variables around it, also in
        functions that have two kinds of hooks."""
        if "gcc" not in COMPILERS:
            self.skipTest("gcc has no such hooks")
        for fixture in ("./nested", "./nested_landing", "./nested_room", "./nested_landing_room"):
            self.assert_counts(self.compare(fixture, compiler="gcc"))


class Uprobes(ShimTest):
    @cases.not_in_gate
    @both_compilers
    def test_uprobes_that_come_and_go(self, compiler):
        """A uprobe stands on the first byte of a function that begins with a hook. Calls by the function
        meanwhile, and later ones if its NOP area is small, are not recorded."""
        for fixture in sorted((FIXTURES / compiler).glob("probed*")):
            command = f"./{fixture.name}"
            bare = run(command, cwd=self.place("probed", compiler))
            if bare.returncode == 77:
                self.skipTest("uprobes are refused")
            for option in ("--no-libcall", "--libcall"):
                traced = self.compare(command, compiler=compiler, options=(option,),
                                      may_say=("has written over its hook",))
                self.assertEqual(traced.status, 0)
                calls = sum(row["calls"] for row in traced.report("flat")["functions"]
                            if plain_name(row["name"]) == "probed")
                self.assertGreaterEqual(calls, 100)
                # Where calls are missing, the recorder says why, and info names the function.
                said = ("calls of 1 function are missing since a uprobe, or code of the program such as XRay's, has "
                        "written over its hook") in traced.stderr
                self.assertEqual(said, calls < 700, (command, calls, traced.stderr))
                if said:
                    self.assertIn("1  left: without their hook, over which a uprobe or the program has written\n"
                                  "             probed", traced.read("info", "-v"))
                    self.assertEqual(traced.info("-v")["processes"][0]["patches"]["left"], {"overwritten": 1})


class Frames(ShimTest):
    def traced(self, compiler, *command, status=0):
        traced = self.compare(*command, compiler=compiler)
        self.assertEqual(traced.status, status)
        self.assert_counts(traced)
        self.assertEqual(traced.report("flat")["summary"]["orphans"], 0)
        return traced

    @both_compilers
    def test_longjmp(self, compiler):
        traced = self.traced(compiler, "./jumps", status=7)
        self.assertEqual(traced.paths(), test_calls.JUMPS)

    @both_compilers
    def test_frames_end_where_they_are_left(self, compiler):
        """Abandoned frames end even if the next function that is recorded is deeper on the stack."""
        for options in ((), ("--libcall",), ("--nest-libcall",)):
            traced = self.compare("./left", compiler=compiler, options=options)
            self.assertEqual(traced.paths(), test_calls.LEFT)

    @both_compilers
    def test_frame_address(self, compiler):
        """A frame that is found by _Unwind_GetCFA is found next to a frame of ours, too."""
        if not (FIXTURES / compiler / "interpreter").exists():
            self.skipTest("its frames are x86-64's")
        for options in ((), ("--libcall",), ("--nest-libcall",)):
            traced = self.compare("./interpreter", compiler=compiler, options=options)
            self.assertEqual(traced.status, 0)
            self.assert_counts(traced)

    @both_compilers
    def test_no_unwind_tables(self, compiler):
        """All calls are recorded; which frames a jump has abandoned is not always known at once."""
        self.traced(compiler, "./jumps_no_tables", status=7)

    @both_compilers
    def test_room_before_functions(self, compiler):
        """Some of the NOPs are before the function, with and without unwind tables."""
        fixtures = sorted((FIXTURES / compiler).glob("jumps_before_*"))
        if not fixtures:
            self.skipTest("not this kind of hook")
        for fixture in fixtures:
            with self.subTest(fixture=fixture.name):
                self.traced(compiler, f"./{fixture.name}", status=7)

    @both_compilers
    def test_exceptions(self, compiler):
        traced = self.traced(compiler, "./exceptions", status=5)
        self.assertEqual(traced.paths(), test_calls.EXCEPTIONS)

    @both_compilers
    def test_last_acts(self, compiler):
        """A function that records its exit has ended before it jumps to another one."""
        if not (FIXTURES / compiler / "exceptions_last").exists():
            self.skipTest("functions do not report their exits")
        traced = self.traced(compiler, "./exceptions_last", status=5)
        paths = traced.paths()
        self.assertEqual(paths["main/rethrower/thrower/clean"], 1)
        self.assertEqual(paths["main/rethrower/thrower/leaf"], 1)
        self.assertNotIn("main/rethrower/thrower/clean/leaf", paths)

    @both_compilers
    def test_sanitized(self, compiler):
        """clang puts data of its own before the first instruction of functions."""
        if not (FIXTURES / compiler / "exceptions_checked").exists():
            self.skipTest("not built with this kind of hook")
        traced = self.traced(compiler, "./exceptions_checked", status=5)
        self.assertEqual(traced.paths(), test_calls.EXCEPTIONS)

    @both_compilers
    def test_coroutines(self, compiler):
        self.compare("./contexts", compiler=compiler)
        traced = self.compare("./turns", "array", compiler=compiler)
        self.assertEqual(traced.status, 15)
        self.assert_counts(traced)
        turns_account.check(self, traced.directory, traced.report("tree"),
                            traced.records("--type=COROUTINE"))

    @both_compilers
    def test_coroutines_on_the_own_stack(self, compiler):
        """Frames further out are entered while others, further in, are suspended."""
        traced = self.compare("./own_stack", compiler=compiler)
        self.assertEqual(traced.status, 13)
        self.assert_counts(traced)

    @both_compilers
    def test_a_thread_on_what_was_a_coroutines_stack(self, compiler):
        """The coroutine's calls, which never end, have the same addresses as the thread's."""
        self.traced(compiler, "./reused", status=11)

    @both_compilers
    def test_deep_recursion(self, compiler):
        """Beyond 4,096 nested calls there is no space for return addresses, and beyond 1,024 for what a filter
        says of them: calls that are not recorded are counted."""
        for options in ((), ("-N", "nobody"), ("-D", "100")):
            traced = self.compare("./deep", compiler=compiler, options=options, may_lose=True,
                                  may_say=("no function or scope matches -N nobody",))
            self.assertEqual(traced.status, 11)
            summary = traced.report("flat")["summary"]
            self.assertEqual(summary["orphans"], 0)
            self.assertEqual(summary["lost"], summary["lost_by_cause"]["nested"])
            if "-D" in options:
                self.assertEqual(summary["lost"], 0)
                continue
            made, recorded = traced.counted["descend"], traced.plain_calls()["descend"]
            self.assertGreaterEqual(recorded, 1000 if options else 4000)
            # clang's counting functions have hooks of their own: each call calls two of them at most.
            self.assertGreaterEqual(summary["lost"], 2 * (made - recorded))
            self.assertLess(summary["lost"], 7 * max(made - recorded, 1))
            if summary["lost"] != 0:
                self.assertIn("nested", arctrace("report", traced.trace).stdout)

    @both_compilers
    def test_threads(self, compiler):
        self.compare("./threads", "20", compiler=compiler)

    @cases.not_in_gate
    @both_compilers
    def test_tasks_without_storage_of_their_own(self, compiler):
        """Two tasks share thread-local storage: the calls of one are recorded, or of both in turn if the other
        waits for it."""
        for flags, stack, thread in itertools.product(("c", "fs", "t", "v"), "mal", "mt"):
            waits = flags == "v"
            traced = self.compare("./tasks", flags, stack, thread, compiler=compiler, may_lose=not waits)
            calls = traced.plain_calls()
            self.assertEqual(calls["work"], 3 if waits else 2)

    @both_compilers
    def test_no_lock_at_a_first_call(self, compiler):
        """No first call takes the loader's lock, which both tasks would hold as the same thread, and leave
        locked."""
        for options in ((), ("--libcall",), ("--nest-libcall",)):
            traced = self.compare("./first_calls", compiler=compiler, options=options)
            self.assertIn(" locked 0 times", traced.stdout)
            calls = traced.plain_calls()
            self.assertEqual([calls[name] for name in ("one", "two", "three")], [3, 2, 1])

    @both_compilers
    def test_a_task_that_libc_does_not_know(self, compiler):
        self.compare("./tasks", "r", "m", "m", compiler=compiler, may_lose=True)

    @both_compilers
    def test_own_malloc(self, compiler):
        self.compare("./replaced", compiler=compiler)

    @both_compilers
    def test_vfork(self, compiler):
        self.traced(compiler, "./vforks", status=8)

    @both_compilers
    def test_fork_storm(self, compiler):
        traced = self.compare("./forks", "40", compiler=compiler)
        self.assertEqual(traced.status, 6)
        self.assert_counts(traced)


class Signals(ShimTest):
    @both_compilers
    def test_handlers_that_return(self, compiler):
        traced = self.compare("./signals", "return", compiler=compiler)
        self.assert_counts(traced)
        self.assertEqual(traced.report("flat")["summary"]["orphans"], 0)

    @both_compilers
    def test_siglongjmp_out_of_handlers(self, compiler):
        for way in ("jump", "altstack"):
            with self.subTest(way=way):
                traced = self.compare("./signals", way, compiler=compiler)
                self.assertEqual(traced.report("flat")["summary"]["orphans"], 0)


# These run the same tests as for hooks at entry and exit.
Ends = test_processes.Ends
Filters = test_filters.Filters
Confined = test_processes.Confined

if __name__ == "__main__":
    cases.main()
