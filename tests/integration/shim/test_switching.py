"""Functions with hooks, switched off and on, and filtered by name, in a live program."""

import collections
import json
import os
import re
import subprocess
import sys

import cases
from command import arctrace, read, start_arctrace
from hooked import ANY_COMPILER, ShimTest, both_compilers, options_of_kind, plain_name

CALLS = 100  # calls of fixtures/switched.c at each word
sys.setrecursionlimit(20000)  # json needs it for a deep tree


class Switching(ShimTest):
    def session(self, compiler):
        name = f"switching-{os.getpid()}-{compiler}"
        read("create", name, "--mode=overwrite", "-b", "64M", "--start")
        self.addCleanup(read, "destroy", name)
        return name

    @staticmethod
    def ask(program, word, answer):
        program.stdin.write(f"{word}\n")
        program.stdin.flush()
        line = program.stdout.readline()
        assert line == f"{answer}\n", line

    def functions(self, trace):
        """{function: calls} of the first thread."""
        tree = json.loads(read("report", trace, "--view=tree", "--format=json"))
        calls = collections.Counter()
        nodes = [thread["root"] for thread in tree["threads"] if thread["pid"] == thread["tid"]]
        while nodes:
            node = nodes.pop()
            nodes += node["children"]
            for child in node["children"]:
                if child["name"].startswith("["):
                    continue  # a phase of the process
                calls[plain_name(child["name"])] += child["calls"]
        for thread in tree["threads"]:
            if thread["pid"] == thread["tid"]:
                for row in thread.get("deeper", []):
                    calls[plain_name(row["name"])] += row["calls"]
        return calls

    def program(self, directory, session, *command, options=("--no-libcall",)):
        """Runs the program, which waits for words."""
        program = start_arctrace("record", *options_of_kind(options), *options, f"--session={session}", "--",
                                 *command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.kill)
        self.addCleanup(program.stdout.close)
        self.assertEqual(program.stdout.readline(), "ready\n")
        return program

    def end(self, program, session, directory, status):
        """Ends the program; returns its calls."""
        program.stdin.close()
        self.assertEqual(program.wait(600), status)
        trace = directory / "arctrace.data"
        read("snapshot", session, "-o", str(trace))
        flat = json.loads(read("report", trace, "--view=flat", "--format=json"))
        self.assertEqual(flat["summary"]["orphans"], 0)
        return self.functions(trace)

    def test_many_names_as_people_write_them(self):
        """The filter is longer than the control page has space for, which stores linker's names."""
        name = self.session(ANY_COMPILER)
        directory = self.place("many", ANY_COMPILER)
        count = 200
        classes = {"Some": "method_of_a_long_name", "Other": "work_of_another_name"}
        code = "".join(f"struct {owner} {{" + "".join(
            f"__attribute__((noinline)) void {method}_{i}() {{ asm(\"\"); }}\n" for i in range(count)) + "};\n"
                       for owner, method in classes.items())
        calls = "".join(f"{owner}().{method}_{i}();\n" for owner, method in classes.items() for i in range(count))
        (directory / "many.cpp").write_text(
            f"#include <cstdio>\n{code} int main() {{ char word[16]; setvbuf(stdout, nullptr, _IOLBF, 0);"
            f"std::puts(\"ready\"); while (std::fgets(word, sizeof word, stdin)) {{ {calls} std::puts(\"done\"); }} }}")
        subprocess.run(["g++", "-O1", "-pg", "-mfentry", "many.cpp", "-o", "many"],
                       cwd=directory, check=True)
        program = self.program(directory, name, "./many")
        self.assertEqual(read("ctl", name, "-F", "Some::*"), "")
        self.ask(program, "go", "done")
        read("ctl", name, "-F", "Some::*", "-N", "re:_1[0-9]{2}$")
        self.ask(program, "go", "done")
        self.assertEqual(read("ctl", name, "-F", "re:^Other::.*name_.$"), "")
        self.ask(program, "go", "done")
        found = self.end(program, name, directory, 0)
        found.pop("main", None)
        expected = {f"{classes['Some']}_{i}": 1 + (i < 100) for i in range(count)}
        expected |= {f"{classes['Other']}_{i}": 1 for i in range(10)}
        self.assertEqual(dict(found), expected)

    @both_compilers
    def test_on_and_off(self, compiler):
        name = self.session(compiler)
        directory = self.place("switched", compiler)
        program = self.program(directory, name, "./switched")
        self.ask(program, "go", "done")
        read("ctl", name, "--off=functions")
        self.ask(program, "go", "done")
        read("ctl", name, "--on=functions")
        # Functions are switched off while a function waits, and on again.
        self.ask(program, "hold", "held")
        read("ctl", name, "--off=functions")
        self.ask(program, "go", "done")
        self.ask(program, "hold", "held")
        read("ctl", name, "--on=functions")
        self.ask(program, "go", "done")
        read("stop", name)
        for _ in range(20):  # the other thread calls meanwhile
            self.ask(program, "go", "done")
            read("ctl", name, "--on=functions")
            read("ctl", name, "--off=functions")
        calls = self.end(program, name, directory, 3)
        self.assertEqual(calls["outer"], 2 * CALLS)
        self.assertEqual(calls["inner"], 2 * CALLS)
        self.assertEqual(calls["held"], 1)

    @both_compilers
    def test_on_again_inside_a_function(self, compiler):
        """The exit of a call that was entered while functions were off is not recorded."""
        name = self.session(compiler)
        directory = self.place("switched", compiler)
        program = self.program(directory, name, "./switched")
        read("ctl", name, "--off=functions")
        self.ask(program, "hold", "held")
        read("ctl", name, "--on=functions")
        self.ask(program, "go", "done")
        calls = self.end(program, name, directory, 3)
        self.assertEqual((calls["main"], calls["held"], calls["outer"]), (1, 0, CALLS))

    @both_compilers
    def test_filtered_anew(self, compiler):
        """Functions are filtered by name, again and again, while another thread calls them."""
        name = self.session(compiler)
        directory = self.place("filtered", compiler)
        program = self.program(directory, name, "./switched")
        self.ask(program, "go", "done")
        calls = collections.Counter(outer=CALLS, inner=CALLS)
        for options, outer, inner in ((["-F", "inner"], 0, 1), (["-N", "inner"], 1, 0),
                                      (["-F", "re:^out"], 1, 1),
                                      (["--trace", "*uter", "--no-trace", "i*"], 1, 0),
                                      (["-F", "nobody"], 0, 0), (["-F", "re:^no"], 0, 0),
                                      (["--trace-all"], 1, 1)):
            read("ctl", name, *options)
            self.ask(program, "go", "done")
            calls.update(outer=outer * CALLS, inner=inner * CALLS)
        recorded = self.end(program, name, directory, 3)
        self.assertEqual({function: recorded[function] for function in calls}, dict(calls))

    @both_compilers
    def test_filtered_in_deep_recursion(self, compiler):
        """Calls that were recorded have their exits, also beyond the frames that a writer remembers."""
        name = self.session(compiler)
        directory = self.place("deep", compiler)
        program = self.program(directory, name, "./switched")
        self.ask(program, "deep", "held")
        read("ctl", name, "-F", "inner")
        self.ask(program, "deep", "done")  # the deep calls end
        self.ask(program, "deep", "held")
        self.ask(program, "go", "done")
        calls = self.end(program, name, directory, 3)
        self.assertEqual(calls["deep"], 1500)
        self.assertEqual(calls["inner"], 2 * CALLS)
        tree = json.loads(read("report", directory / "arctrace.data", "--view=invocations",
                               "--format=json"))
        self.assertEqual([row for row in tree["invocations"] if plain_name(row["name"]) == "deep"
                          and (row.get("stop_ns") is None or row.get("flags"))], [])

    @both_compilers
    def test_chosen_by_cpp_names(self, compiler):
        name = self.session(compiler)
        directory = self.place("named", compiler)
        program = self.program(directory, name, "./named")
        expected = collections.Counter()
        for pattern, matched in (("shapes::Circle::draw", ("Circle", "Circle")),
                                ("shapes::*::draw(int)", ("Circle", "Square")),
                                ("re:Square::draw\\(", ("Square",)), ("*6Circle4draw*d", ("Circle",))):
            read("ctl", name, "-F", pattern)
            self.ask(program, "go", "done")
            expected.update(matched)
        self.end(program, name, directory, 0)
        flat = json.loads(read("report", directory / "arctrace.data", "--view=flat",
                               "--format=json"))
        recorded = collections.Counter()
        for function in flat["functions"]:
            found = re.match(r"shapes::(\w+)::draw", function["name"])
            if found:
                recorded[found[1]] += function["calls"]
        self.assertEqual(recorded, expected)

    @both_compilers
    def test_library_calls_chosen_anew(self, compiler):
        name = self.session(compiler)
        directory = self.place("library", compiler)
        program = self.program(directory, name, "./switched", options=("--libcall",))
        read("ctl", name, "-F", "put?")
        self.ask(program, "go", "done")
        read("ctl", name, "-F", "fflush", "-F", "fgets", "-N", "fgets")
        self.ask(program, "go", "done")
        read("ctl", name, "-F", "nobody")
        calls = self.end(program, name, directory, 3)
        self.assertEqual([calls[called] for called in ("puts", "fflush", "fgets")], [2, 2, 1])

    def test_names_that_nothing_has(self):
        name = self.session(ANY_COMPILER)
        directory = self.place("names", ANY_COMPILER)
        self.assertIn("no process has joined", arctrace("ctl", name, "-F", "inne", check=True).stderr)
        program = self.program(directory, name, "./switched")
        self.assertRegex(arctrace("ctl", name, "-F", "inne", "-F", "outer", check=True).stderr,
                         '^arctrace: warning: no function or scope matches -F inne; did you mean .*"inner".*\\n$')
        self.assertEqual(arctrace("ctl", name, "-F", "oute?", check=True).stderr, "")
        done = arctrace("ctl", name, "-N", "re:(")
        self.assertEqual(done.returncode, 2)
        self.assertIn('-N "re:("', done.stderr)
        done = arctrace("ctl", name, "-F", "re:e")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"-F re:e matches \d+ functions and scopes, whose names take more")
        self.end(program, name, directory, 3)


if __name__ == "__main__":
    cases.main()
