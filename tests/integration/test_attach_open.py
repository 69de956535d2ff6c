"""Functions that threads of a program are in when it is joined."""

import subprocess

import cases
from attached_programs import AttachTest
from command import read, read_report, start_arctrace

UNKNOWN = "[frames that could not be unwound]"
LAST_SEEN = "getgid"  # called by `last` only
READ, FUTEX = 0, 202  # system calls


def walk(node, path=()):
    """Each node of a tree with the names from the root to it."""
    for child in node["children"]:
        yield path + (child["name"],), child
        yield from walk(child, path + (child["name"],))


class OpenFunctions(AttachTest):
    def record_open(self, fixture, *arguments, options=(), warned=None, threads=1):
        """Records the program from within its functions to its end. Returns the trees of its threads: nodes by their
        paths. `warned`: whether a pattern may have matched nothing. `threads`: how many threads iterate."""
        program, place = self.start(fixture, *arguments)
        trace = self.directory / "arctrace.data"
        trace.unlink(missing_ok=True)
        with start_arctrace("record", "-o", trace, "-p", program.pid, *options, text=True,
                            stderr=subprocess.PIPE) as recorder:
            self.addCleanup(recorder.kill)
            self.assertIn("joined process", recorder.stderr.readline())
            self.wait_for_rounds(place, threads)
            (place / "leave").touch()
            self.wait_for_rounds(place, threads)  # each thread but the first begins them in `last`
            self.assert_unharmed(program, place)
            errors = recorder.stderr.read()
        self.assertEqual(recorder.returncode, 0, errors)
        self.assertIn(", 0 lost,", errors)
        if warned is not None:
            self.assertEqual("no function" in errors, warned, errors)
        read("check", trace)
        return [dict(walk(thread["root"])) for thread in read_report(trace, "tree")["threads"]]

    def assert_opened(self, tree, path):
        """The functions on this path were open, and the ends of all but the first were not seen."""
        for depth in range(1, len(path) + 1):
            node = tree[path[:depth]]
            self.assertEqual(node["calls"], 1, path[:depth])
            # The recorder may see that a thread is gone before it sees the process end.
            marks = {name: count for name, count in node["marks"].items() if name != "end_within_ns"}
            self.assertEqual(marks, {"entered_before": 1, "open" if depth == 1 else "exit_lost": 1}, path[:depth])
        self.assertGreater(tree[path + ("getppid",)]["calls"], 0)
        self.assertNotIn(path + (LAST_SEEN,), tree)

    @cases.in_gate
    def test_calls(self):
        """Library calls stand in the functions that make them, also after some of these have ended."""
        for compiler in ("gcc", "clang"):
            with self.subTest(compiler=compiler):
                (tree,) = self.record_open(f"{compiler}/open_functions", "calls")
                self.assert_opened(tree, ("main", "outer", "inner", "loop"))
                # This function is called through the same pointer and from the same place as inner, without a hook.
                self.assertGreater(tree["main", "outer", "geteuid"]["calls"], 0)
                self.assertEqual([path for path in tree if path[-1] == "geteuid"], [("main", "outer", "geteuid")])
                self.assertEqual([path for path in tree if path[-1] == LAST_SEEN], [("main", LAST_SEEN)])

    def test_threads(self):
        trees = self.record_open("gcc/open_functions", "threads", threads=3)
        (main,) = [tree for tree in trees if ("main",) in tree]  # main waits for the others
        self.assertIn(("main", "puts"), main)
        self.assertEqual(len(trees), 4)
        for tree in trees:
            if tree is main:
                continue
            self.assert_opened(tree, ("thread_main", "outer", "inner", "loop"))
            self.assertEqual([path for path in tree if path[-1] == LAST_SEEN], [("thread_main", LAST_SEEN)])

    def test_handlers(self):
        """A signal has interrupted the function that the handler stands in; the handler is on the same stack or on
        another."""
        for mode in ("handler", "signal_stack"):
            with self.subTest(mode=mode):
                (tree,) = self.record_open("gcc/open_functions", mode)
                self.assert_opened(tree, ("main", "spin", "on_tick", "loop"))
                self.assertEqual([path for path in tree if path[-1] == LAST_SEEN], [("main", "spin", LAST_SEEN)])

    def test_without_symbols(self):
        """Functions without names are distinguished."""
        (tree,) = self.record_open("gcc/open_stripped", "calls")
        (path,) = [path[:-1] for path in tree if path[-1] == "getppid"]
        self.assertEqual(len(path), 4)
        self.assertEqual(len(set(path)), 4)
        for name in path:
            self.assertRegex(name, r"^open_stripped\+0x[0-9a-f]+$")
        self.assert_opened(tree, path)

    def test_threads_that_wait(self):
        """Threads that make no call meanwhile are in the functions in which they wait, at a second join, too, if that
        is certain; of a running thread nothing is known. The buffer is overwritten in the second mode."""
        for fixture in ("gcc/open_functions", "clang/open_functions"):
            for options in ((), ("--mode=overwrite",)):
                with self.subTest(fixture=fixture, options=options):
                    program, place = self.start(fixture, "waits")
                    self.wait_for_rounds(place)
                    self.wait_for_calls(program.pid, READ, READ, FUTEX)
                    for _ in range(2):
                        done = self.attach(program.pid, options=("--duration=1s", *options))
                        self.assertEqual(done.returncode, 0, done.stderr)
                        trace = self.directory / "arctrace.data"
                        read("check", trace)
                        paths = {path: node for thread in read_report(trace, "tree")["threads"]
                                 for path, node in walk(thread["root"])}
                        for path in (("wait_in_read", "read_input", "read"),
                                     ("wait_for_word", "take_word", "pthread_cond_wait"),
                                     (UNKNOWN, "read_in_room", "read")):
                            self.assertIn(path, paths)
                            self.assertEqual(paths[path]["calls"], 1)
                            self.assertEqual(paths[path]["marks"], {"entered_before": 1, "open": 1})
                        self.assertFalse([path for path in paths if "compute" in path or "start_thread" in path])
                        self.assertIn("no call recorded", read("report", trace))
                        trace.unlink()
                    done = self.attach(program.pid, options=("--duration=200ms", "-N", "take_word", *options))
                    self.assertEqual(done.returncode, 0, done.stderr)
                    for thread in read_report(trace, "tree")["threads"]:
                        self.assertNotIn("take_word", [path[-1] for path, _ in walk(thread["root"])])
                    self.assert_unharmed(program, place)

    def test_what_cannot_be_unwound(self):
        (tree,) = self.record_open("gcc/open_functions", "blind")
        self.assert_opened(tree, (UNKNOWN, "inner", "loop"))
        self.assertEqual([path for path in tree if path[-1] == LAST_SEEN], [(UNKNOWN, LAST_SEEN)])

    def test_deep_stack(self):
        """The innermost functions are found, and a mark says that there are others."""
        (tree,) = self.record_open("gcc/open_functions", "deep")
        functions = self.functions()
        self.assertEqual([functions[name] for name in (UNKNOWN, "descend", "loop")], [1, 511, 1])
        self.assertEqual([path for path in tree if path[-1] == LAST_SEEN], [(UNKNOWN, LAST_SEEN)])

    def test_compiled_in_hooks(self):
        """Functions with exit hooks have known ends: the first exit is that of an open function."""
        (tree,) = self.record_open("gcc/open_instrumented", "calls")
        path = ("main", "outer", "inner", "loop")
        for depth in range(1, len(path) + 1):
            # The exit of an inlined function may be seen first, whose frame unwinding does not find.
            marks = {name: count for name, count in tree[path[:depth]]["marks"].items() if name != "orphan_exits"}
            self.assertEqual(marks, {"entered_before": 1})
        self.assertEqual(tree["main", "outer", "sibling"]["calls"], 1)
        self.assertNotIn("marks", tree["main", "outer", "sibling"])
        self.assertGreater(tree["main", "last", LAST_SEEN]["calls"], 0)

    def test_patched_functions(self):
        """Functions of a program that was not rebuilt, patched from then on, stand in those that were open."""
        (tree,) = self.record_open("gcc/open_functions", "calls", options=("-P", ".", "-Z", "1"))
        self.assert_opened(tree, ("main", "outer", "inner", "loop"))
        self.assertGreater(tree["main", "outer", "sibling", "geteuid"]["calls"], 0)
        self.assertEqual([path for path in tree if path[-1] == LAST_SEEN], [("main", "last", LAST_SEEN)])

    def test_small_functions(self):
        """Functions that are too small for -P are no reason to refuse the program."""
        program, _ = self.start("gcc/open_functions", "calls")
        done = self.attach(program.pid, options=("-P", ".", "--duration=50ms"))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 3), done.stderr)
        self.assertIn("without calls and loops were not patched: -Z 1 takes them, too\n", done.stderr)

    def test_again(self):
        """A second recording finds the functions that are open then, also those with the first one's hooks."""
        program, place = self.start("gcc/open_functions", "calls")
        for _ in range(2):
            self.attach_for_rounds(program, place, "-P", ".", "-Z", "1")
            read("check", self.directory / "arctrace.data")
            (thread,) = read_report(self.directory / "arctrace.data", "tree")["threads"]
            self.assertIn(("main", "outer", "inner", "loop", "getppid"), dict(walk(thread["root"])))

    def test_filters(self):
        """Open functions are filtered as if they began then; only the limit of depth counts from them on."""
        (tree,) = self.record_open("gcc/open_functions", "calls", options=("-F", "getppid"))
        self.assertEqual(set(tree), {("getppid",)})
        (tree,) = self.record_open("gcc/open_functions", "calls", options=("-N", "access", "-D", "1"))
        self.assert_opened(tree, ("main", "outer", "inner", "loop"))
        self.assertEqual([path for path in tree if path[-1] == "access"], [])

    def test_left_out(self):
        """An open function that -N matches is not shown, nor what it calls, until it ends."""
        for fixture in ("gcc/open_functions", "gcc/open_instrumented"):
            with self.subTest(fixture=fixture):
                (tree,) = self.record_open(fixture, "calls", options=("-N", "inner"), warned=False)
                named = {name for path in tree for name in path}
                self.assertEqual(named & {"inner", "loop", "getppid", "access"} - {"access"}, set())
                self.assertEqual(tree["main",]["marks"]["entered_before"], 1)
                self.assertTrue([path for path in tree if path[:2] == ("main", "outer") and path[-1] == "geteuid"])
                self.assertTrue([path for path in tree if path[0] == "main" and path[-1] == LAST_SEEN])
                self.assertEqual(self.record_open(fixture, "calls", options=("-N", "main"), warned=False), [])

    def test_asked_for(self):
        """An open function that -F matches is shown with what it calls; its callers are not."""
        for fixture in ("gcc/open_functions", "gcc/open_instrumented"):
            with self.subTest(fixture=fixture):
                (tree,) = self.record_open(fixture, "calls", options=("-F", "inner"), warned=False)
                self.assertGreater(tree["inner", "loop", "getppid"]["calls"], 0)
                self.assertEqual({path[0] for path in tree}, {"inner"})
                self.assertEqual([path for path in tree if path[-1] in ("geteuid", LAST_SEEN)], [])

    def test_module_and_size(self):
        """-L and -Z leave out open functions, too, whether they have names or not."""
        for fixture in ("gcc/open_functions", "gcc/open_stripped"):
            with self.subTest(fixture=fixture):
                (tree,) = self.record_open(fixture, "calls", options=("-L", "libc.so*"), warned=False)
                self.assertEqual({len(path) for path in tree}, {1})
                self.assertIn(("getppid",), tree)
                # main, loop and nanosleep have more bytes than that; outer, inner and getppid have fewer.
                (tree,) = self.record_open(fixture, "calls", options=("-Z", "48"), warned=False)
                self.assertEqual({len(path) for path in tree if path[-1] == "nanosleep"}, {2, 3})
                self.assertEqual([path for path in tree if path[-1] == "getppid"], [])


if __name__ == "__main__":
    cases.main()
