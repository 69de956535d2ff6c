"""Programs that load the shim themselves, by dlopen, when they already have other threads."""

import os

import cases
from command import arctrace, read, run
from hooked import SHIM, ShimTest, both_compilers
from tracing import Recorded


class Joins(ShimTest):
    def run_alone(self, compiler, *arguments, **variables):
        """The program's output, after it has run in a directory with these variables."""
        directory = self.place("joins", compiler)
        done = run("./joins", SHIM, *arguments, cwd=directory, env={**os.environ, **variables})
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        return done.stdout

    def run_joining(self, compiler, *arguments):
        """The same in a session; returns the output, and the session's trace."""
        session = f"joins-{os.getpid()}"
        read("create", session, "-b", "64M", "--start")
        self.addCleanup(arctrace, "destroy", session, "--force")
        printed = read("env", session)
        variables = dict(line.replace("'", "").removeprefix("export ").split("=", 1) for line in printed.splitlines())
        del variables["LD_PRELOAD"]
        output = self.run_alone(compiler, *arguments, **variables)
        trace = self.directory / "joins.data"
        read("snapshot", session, "-o", trace)
        read("destroy", session, "--force")
        return output, Recorded(self.directory, trace, 3, output, "")

    def assert_joined(self, compiler, *arguments):
        bare = self.run_alone(compiler, *arguments)
        output, traced = self.run_joining(compiler, *arguments)
        self.assertEqual(output, bare)
        threads = {}
        for thread in traced.report("tree")["threads"]:
            threads.setdefault(thread["name"], []).append(
                {node["name"]: node["calls"] for node in thread["root"]["children"]})
        (old,), (new,) = threads["old-one"], threads["new-one"]
        self.assertEqual(old["getpgrp"], 50)
        self.assertEqual(new["getuid"], 100)
        self.assertTrue(any("fwrite_unlocked" in calls or "fputs_unlocked" in calls for calls in threads["echo"]),
                        "the child that executes a program is not recorded")
        self.assertNotIn("twice", traced.calls())
        return traced

    @both_compilers
    def test_from_main(self, compiler):
        self.assert_joined(compiler)

    @both_compilers
    def test_from_a_thread(self, compiler):
        self.assert_joined(compiler, "thread")

    @both_compilers
    def test_without_a_session(self, compiler):
        """Without a session the shim does nothing."""
        self.assertEqual(self.run_alone(compiler), self.run_alone(compiler, ARCTRACE_SESSION=""))


if __name__ == "__main__":
    cases.main()
