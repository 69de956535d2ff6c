"""Programs that a seccomp filter confines, and programs that these execute. The filters end a process at
any system call but those of the program itself."""

import cases
from command import HINT, lines_without, run
from plain import COMPILERS, MODES, PlainTest

THREADS = 6
CALLS = 500


class Confined(PlainTest):
    def both(self, way, options=()):
        """The traced runs of a way of fixtures/filtered.c, in each mode; the program must do what it does
        untraced, which is what it is made for."""
        for compiler in COMPILERS:
            bare = run("./filtered", way, cwd=self.place("program", compiler))
            self.assertGreaterEqual(bare.returncode, 0, bare.stderr)
            for mode in MODES:
                traced = self.record("./filtered", way, options=(mode, *options),
                                     directory=self.place("program", compiler))
                self.assertEqual(traced.status, bare.returncode, (way, compiler, mode))
                self.assertEqual(traced.stdout, bare.stdout)
                yield traced, lines_without(traced.stderr, HINT)

    def assert_all_calls(self, traced):
        calls = traced.calls()
        self.assertEqual(calls["strtol"], THREADS * CALLS)
        self.assertEqual(calls["snprintf"], THREADS * CALLS)
        self.assertEqual(calls["pthread_create"], THREADS)

    @staticmethod
    def thread_names(traced):
        """The names of all threads but each process' first."""
        records = traced.records()
        pids = {record["pid"] for record in records if record["type"] == "PROCESS"}
        return {record["writer"]: record["name"] for record in records
                if record["type"] == "THREAD" and record["tid"] not in pids}

    def test_threads(self):
        """Threads that begin under a filter lose nothing, without a system call."""
        for way in ("threads", "counted", "twice"):
            for traced, printed in self.both(way):
                self.assertRegex(printed[-1], r" 0 lost, 1 process, 7 threads, ")
                self.assert_all_calls(traced)
                self.assertEqual(sorted(self.thread_names(traced).values()), ["worker"] * THREADS)

    def test_args(self):
        for traced, printed in self.both("threads", ("-a", "--scope=shared", "--block-size=4k")):
            self.assertRegex(printed[-1], r" 0 lost, 1 process, 7 threads, ")
            self.assert_all_calls(traced)

    def test_threads_whose_death_would_not_be_seen(self):
        for _, printed in self.both("unlisted"):
            self.assertRegex(printed[-1], r" ([\d,]+) lost \(no_slot \1\), 1 process, 1 thread, ")

    def test_filter_that_forbids_us_nothing(self):
        """Children and what they execute are recorded as ever."""
        for traced, printed in self.both("allowed"):
            self.assertRegex(printed[-1], r" 0 lost, 2 processes, 8 threads, ")
            self.assertEqual(traced.calls()["strtol"], (THREADS + 1) * CALLS)

    def test_children(self):
        """Children that libc forks join, with their threads."""
        for traced, printed in self.both("child"):
            self.assertRegex(printed[-1], r" 0 lost, 3 processes, 9 threads, ")
            self.assertEqual(traced.calls()["strtol"], (2 + THREADS) * CALLS)
            processes = traced.records("--type=PROCESS")
            self.assertEqual([record["ppid"] for record in processes[1:]],
                             [record["pid"] for record in processes[:-1]])
            for record in processes:
                self.assertEqual(record["arguments"], ["./filtered", "child"])

    def test_child_of_a_raw_clone(self):
        """A cloned child's losses are counted, because its death could not be seen."""
        for traced, printed in self.both("cloned"):
            self.assertRegex(printed[-1], r" ([\d,]+) lost \(no_slot \1\), ")
            self.assertEqual(traced.calls()["strtol"], CALLS)

    def test_programs_that_can_not_join(self):
        """The programs are executed untraced, and the recorder says so."""
        for way, path in (("executes", "/bin/echo"), ("searches", "/usr/bin/echo")):
            for _, printed in self.both(way):
                self.assertEqual(printed[:-1], [
                    f"arctrace: warning: can't trace {path}: it is confined by a seccomp filter"])
                self.assertRegex(printed[-1], r" 0 lost, 1 process, ")

    def test_program_that_is_not_there(self):
        """The filter permits no check whether the program is there: only a wild path is distinguished."""
        for _, printed in self.both("nowhere"):
            self.assertEqual(printed[:-1], [
                "arctrace: warning: can't trace /nowhere: it is confined by a seccomp filter"])


class WildEnvironment(PlainTest):
    def test_execute_and_spawn(self):
        for compiler in COMPILERS:
            traced = self.compare_modes("./wild_environment", compiler=compiler)
            self.assertEqual(traced.stdout.count("Bad address"), 13)
            self.assertTrue(traced.stdout.endswith("whole\n"))


if __name__ == "__main__":
    cases.main()
