"""A Python program's own functions, by `python3 -m arctrace_python`: each call is counted, stands where it was made,
and the program does what it does without it; with each interpreter that is here and new enough."""

import collections
import os
import pathlib
import shutil
import subprocess
import unittest

import cases
from command import program_lines, run
from tracing import TracedTest

MODULE = pathlib.Path(__file__).resolve().parents[2] / "src/api/python"

# It counts the calls of its own functions, generators by each time that they run.
PROGRAM = """
import collections, os, sys, threading
counts = collections.defaultdict(int)
def read_file(path):
    counts["read_file"] += 1
    with open(path, "rb", buffering=0) as file:
        return file.read(100)
def squares(n):
    counts["squares"] += 1
    for i in range(n):
        yield i * i
        counts["squares"] += 1
class Adder:
    def add(self, values):
        counts["Adder.add"] += 1
        return sum(values)
def fail():
    counts["fail"] += 1
    raise ValueError
def catch():
    counts["catch"] += 1
    try: fail()
    except ValueError: pass
def thrown_into():
    counts["thrown_into"] += 1
    try: yield 1
    except ValueError:
        counts["thrown_into"] += 1
        yield 2
        counts["thrown_into"] += 1
async def task():
    counts["task"] += 1
def fib(n):
    counts["fib"] += 1
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def main(path):
    counts["main"] += 1
    read_file(path)
    Adder().add(squares(3))
    for _ in range(10): catch()
    generator = thrown_into()
    next(generator)
    generator.throw(ValueError)
    next(generator, None)
    try: task().send(None)
    except StopIteration: pass
    fib(12)
    threads = []
    for _ in range(3):
        threads.append(threading.Thread(target=read_file, args=(path,)))
        threads[-1].start()
    for thread in threads: thread.join()
main(sys.argv[1])
print(*(f"{name} {count}" for name, count in counts.items()), sep="\\n")
print(sys.argv, __name__, __file__, os.path.basename(sys.path[0]), sys.modules["__main__"].counts is counts)
sys.exit(int(sys.argv[2]))
"""
RECURSION = """
import sys
def deep(n): return deep(n + 1)
def after(): return 1
def main():
    for _ in range(3):
        try: deep(0)
        except RecursionError: print("reached")
    after()
main()
"""


def interpreters():
    """{(major, minor): path} of Python 3.11 and later, pyenv's among them."""
    found = {}
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    for name in ("/usr/bin/python3", "python3", "python3.12", "python3.13", "python3.14",
                 *sorted(pyenv.glob("versions/*/bin/python3"))):
        path = shutil.which(name)
        done = path and subprocess.run(
            [path, "-c", "import sys; print(*sys.version_info[:2], sys.executable)"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, check=False)
        if done and done.returncode == 0:
            major, minor, executable = done.stdout.split()
            if (int(major), int(minor)) >= (3, 11):
                found.setdefault((int(major), int(minor)), executable)
    return found


INTERPRETERS = interpreters()
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(MODULE), "PYTHONDONTWRITEBYTECODE": "1"}


@unittest.skipUnless(INTERPRETERS, "no Python 3.11 or later")
class PythonFunctions(TracedTest):
    def setUp(self):
        super().setUp()
        self.program = self.directory / "program.py"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.json = self.directory / "list.json"
        self.json.write_text("[1, 2]", encoding="utf-8")
        self.deep = self.directory / "deep.py"
        self.deep.write_text(RECURSION, encoding="utf-8")

    def record_program(self, python, *arguments, options, trace):
        return self.record(python, "-m", "arctrace_python", *arguments, options=options, trace=trace, env=ENVIRONMENT)

    def test_counts_and_what_the_program_does(self):
        for (_, minor), python in INTERPRETERS.items():
            with self.subTest(minor=minor):
                arguments = (self.program, "/etc/hostname", "3")
                bare = run(python, *arguments, cwd=self.directory)
                unrecorded = run(python, "-m", "arctrace_python", *arguments, cwd=self.directory, env=ENVIRONMENT)
                recorded = self.record_program(python, *arguments, options=("--no-libcall",), trace=f"{minor}.data")
                for done in (bare, unrecorded):
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (3, bare.stdout, ""))
                self.assertEqual((recorded.status, recorded.stdout, recorded.errors), (3, bare.stdout, ""))
                counted = {f"py:__main__.{line.split()[0]}": int(line.split()[1])
                           for line in bare.stdout.splitlines() if line.count(" ") == 1}
                self.assertEqual(counted["py:__main__.fib"], 465)
                calls = recorded.calls()
                self.assertEqual({name: calls[name] for name in counted}, counted)
                # Every frame that was entered has ended, and every exit has an entry.
                self.assertEqual(recorded.report("tree")["summary"]["orphans"], 0)

    def test_functions_stand_where_they_were_called(self):
        for (_, minor), python in INTERPRETERS.items():
            with self.subTest(minor=minor):
                recorded = self.record_program(python, self.program, "/etc/hostname", "0", trace=f"{minor}.data",
                                               options=("--nest-libcall", "-L", "libc.so*"))
                pairs = collections.Counter()

                def walk(node):
                    for child in node["children"]:
                        pairs[node["name"], child["name"]] += child["calls"]
                        walk(child)

                for thread in recorded.report("tree")["threads"]:
                    walk(thread["root"])
                at = "py:__main__."
                self.assertEqual(pairs[f"{at}main", f"{at}read_file"], 1)
                self.assertEqual(pairs["py:threading.Thread.run", f"{at}read_file"], 3)
                self.assertEqual(pairs[f"{at}Adder.add", f"{at}squares"], 4)
                self.assertEqual(pairs[f"{at}catch", f"{at}fail"], 10)
                self.assertEqual(pairs[f"{at}main", f"{at}fib"], 1)
                self.assertEqual(pairs[f"{at}read_file", "read"], 4)

    def test_filter(self):
        for (_, minor), python in INTERPRETERS.items():
            with self.subTest(minor=minor):
                recorded = self.record_program(python, self.program, "/etc/hostname", "0", trace=f"{minor}.data",
                                               options=("--no-libcall", "-F", "py:__main__.main", "-D", "2"))
                calls = {name: count for name, count in recorded.calls().items() if name.startswith("py:__main__.")}
                at = "py:__main__."
                self.assertEqual(calls, {f"{at}main": 1, f"{at}read_file": 1, f"{at}Adder.add": 1,
                                         f"{at}catch": 10, f"{at}thrown_into": 3, f"{at}task": 1, f"{at}fib": 1})

    def test_module_and_usage(self):
        for (_, minor), python in INTERPRETERS.items():
            with self.subTest(minor=minor):
                recorded = self.record_program(python, "-m", "json.tool", "--compact", self.json,
                                               options=("--no-libcall",), trace=f"{minor}.data")
                self.assertEqual((recorded.status, recorded.stdout, recorded.errors), (0, "[1,2]\n", ""))
                self.assertEqual(recorded.calls()["py:__main__.main"], 1)
                self.assertEqual(recorded.calls()["py:json.loads"] + recorded.calls()["py:json.load"], 2)
                done = run(python, "-m", "arctrace_python", env=ENVIRONMENT)
                self.assertEqual(done.returncode, 1)
                self.assertIn("usage: ", done.stderr)

    def test_limit_of_recursion(self):
        """The program reaches it as it does untraced. Before Python 3.12 the main thread's functions are missing from
        then on, which a line says."""
        for (_, minor), python in INTERPRETERS.items():
            with self.subTest(minor=minor):
                recorded = self.record_program(python, self.deep, options=("--no-libcall",), trace=f"{minor}.data")
                self.assertEqual((recorded.status, recorded.stdout), (0, "reached\n" * 3), recorded.stderr)
                self.assertGreater(recorded.calls()["py:__main__.deep"], 900)
                lines = program_lines(recorded.stderr).splitlines()
                if minor == 11:
                    self.assertEqual(len(lines), 1)
                    self.assertIn("are missing after", lines[0])
                else:
                    self.assertEqual(lines, [])
                    self.assertEqual(recorded.calls()["py:__main__.after"], 1)


if __name__ == "__main__":
    cases.main()
