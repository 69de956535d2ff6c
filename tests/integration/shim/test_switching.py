"""Functions with hooks, switched off and on in a live program."""

import collections
import json
import os
import subprocess

from harness import ARCTRACE, ShimTest, both_compilers, plain_name, unittest
from trace_checks import read

CALLS = 100  # fixtures/switched.c


class Switching(ShimTest):
    def arctrace(self, *arguments):
        done = subprocess.run([ARCTRACE, *arguments], check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def session(self, compiler):
        name = f"switching-{os.getpid()}-{compiler}"
        self.arctrace("create", name, "--mode=overwrite", "-b", "64M", "--start")
        self.addCleanup(self.arctrace, "destroy", name)
        return name

    @staticmethod
    def say(program, word, answer):
        program.stdin.write(f"{word}\n")
        program.stdin.flush()
        said = program.stdout.readline()
        assert said == f"{answer}\n", said

    def functions(self, trace):
        """{function: calls} of the first thread."""
        tree = json.loads(read("report", trace, "--view=tree", "--format=json"))
        calls = collections.Counter()
        thread = next(t for t in tree["threads"] if t["pid"] == t["tid"])
        nodes = [thread["root"]]
        while nodes:
            node = nodes.pop()
            nodes += node["children"]
            for child in node["children"]:
                calls[plain_name(child["name"])] += child["calls"]
        return calls

    @both_compilers
    def test_on_and_off(self, compiler):
        name = self.session(compiler)
        folder = self.place("switched", compiler)
        program = subprocess.Popen(
            [ARCTRACE, "record", "--no-libcall", f"--session={name}", "--", "./switched"],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.kill)
        self.addCleanup(program.stdout.close)
        self.assertEqual(program.stdout.readline(), "ready\n")
        self.say(program, "go", "done")
        self.arctrace("ctl", name, "--off=functions")
        self.say(program, "go", "done")
        self.arctrace("ctl", name, "--on=functions")
        # Off while a function waits, and back on.
        self.say(program, "hold", "held")
        self.arctrace("ctl", name, "--off=functions")
        self.say(program, "go", "done")
        self.say(program, "hold", "held")
        self.arctrace("ctl", name, "--on=functions")
        self.say(program, "go", "done")
        self.arctrace("stop", name)
        for _ in range(20):  # the other thread never rests
            self.arctrace("ctl", name, "--on=functions")
            self.arctrace("ctl", name, "--off=functions")
        program.stdin.close()
        self.assertEqual(program.wait(60), 3)
        trace = folder / "arctrace.data"
        self.arctrace("snapshot", name, "-o", str(trace))
        calls = self.functions(trace)
        self.assertEqual(calls["outer"], 2 * CALLS)
        self.assertEqual(calls["inner"], 2 * CALLS)
        self.assertEqual(calls["held"], 1)
        flat = json.loads(read("report", trace, "--view=flat", "--format=json"))
        self.assertEqual(flat["summary"]["orphans"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
