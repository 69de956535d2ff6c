"""The Python module reads what the command reads, and its examples run."""

import collections
import json
import os
import pathlib
import subprocess

import cases
from command import read_dump, read_info, read_report
from tracing import TracedTest

PYTHON = os.environ["ARCTRACE_PYTHON"]
PACKAGE = os.environ["ARCTRACE_PYTHON_PACKAGE"]
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/python"

# The interpreter that the module is made for runs it, which need not be this test's.
PROGRAM = """
import json, sys
import arctrace
trace = arctrace.open(sys.argv[1])
with trace.calls() as calls:
    objects = [(c.name, c.start_ns, c.end_ns, c.self_ns, c.thread, c.depth, c.flags, calls.stack(c.path)) for c in calls]
with trace.calls(values=False) as calls:
    columns = []
    for batch in calls.batches(1000):
        assert batch.size and all(column.size == batch.size for column in batch)
        columns += zip(map(calls.name, batch.function.tolist()), batch.start_ns.tolist(), batch.end_ns.tolist(),
                       batch.self_ns.tolist(), batch.thread.tolist(), batch.depth.tolist(), batch.flags.tolist(),
                       map(calls.stack, batch.path.tolist()))
# A reading that ends early, and one that begins while another one is open.
first = trace.calls()
next(first)
try:
    trace.records()
    raise SystemExit("two at a time")
except RuntimeError:
    first.close()
records = [(r.time_ns, r.type, r.fields) for r in trace.records()]
middle = records[len(records) // 2][0]
cut = [r.time_ns for r in trace.records(from_ns=middle, fields=False)]
(group,) = trace.profile()
for wrong, error in (("/nonexistent", FileNotFoundError), (__file__, ValueError)):
    try:
        arctrace.open(wrong)
        raise SystemExit("opened " + wrong)
    except error:
        pass
print(json.dumps({"objects": objects, "columns": columns, "records": records, "middle": middle, "cut": cut,
                  "functions": group.functions, "facts": trace.facts, "pids": [p.pid for p in trace.processes]}))
"""


class Python(TracedTest):
    def setUp(self):
        super().setUp()
        self.trace = self.record("sh", "-c", "cat /proc/self/comm; ls / >/dev/null", options=["-a"]).trace

    def python(self, *arguments):
        done = subprocess.run([PYTHON, "-B", *arguments], env={**os.environ, "PYTHONPATH": PACKAGE},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_reads_what_the_command_reads(self):
        program = self.directory / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        found = json.loads(self.python(program, self.trace))
        self.assertEqual(found["objects"], found["columns"])
        self.assertGreater(len(found["objects"]), 1000)
        functions = read_report(self.trace, "flat")["functions"]
        self.assertEqual(found["functions"], [
            [f["name"], f["module"] or ""] + [f[key] for key in (
                "calls", "base_ns", "cum_ns", "avg_ns", "min_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns")] + [None, None, ""]
            for f in functions])
        info = read_info(self.trace)
        self.assertEqual(found["facts"]["records"], info["summary"]["records"])
        self.assertEqual(found["pids"], [p["pid"] for p in info["processes"]])
        dumped = [r for r in read_dump(self.trace) if r["type"] != "GAP"]
        self.assertEqual([(time, kind) for time, kind, _ in found["records"]],
                         [(r["time_ns"], r["type"]) for r in dumped])
        self.assertEqual(found["cut"], [r["time_ns"] for r in dumped if r["time_ns"] >= found["middle"]])

    def test_functions_of_which_calls_were_left_out(self):
        trace = self.record("ls", "/", options=["-t", "1ns"], trace="filtered.data").trace
        program = self.directory / "program.py"
        program.write_text("import sys, arctrace\n"
                           "for f in arctrace.open(sys.argv[1]).profile()[0].functions:\n"
                           "    if not f.name.startswith('['): print(f.until_ns, f.partly, f.left_out_by)\n", encoding="utf-8")
        lines = self.python(program, trace).splitlines()
        self.assertGreater(len(lines), 5)
        self.assertEqual(set(lines), {"None (None, None) -t 1ns"})

    def self_times(self):
        """Self time by thread and function. Nodes such as [loader] are no calls, so the module does not have them."""
        sums = collections.Counter()

        def add(thread, node):
            if not node["name"].startswith("["):
                sums[f"{thread['name']}/{thread['tid']}", node["name"]] += node["base_ns"]
            for child in node["children"]:
                add(thread, child)

        for thread in read_report(self.trace, "tree")["threads"]:
            for child in thread["root"]["children"]:
                add(thread, child)
        return sums

    def test_examples(self):
        functions = read_report(self.trace, "flat")["functions"]
        longest = max(functions, key=lambda f: f["base_ns"])["name"]
        self.assertIn(longest, self.python(EXAMPLES / "functions.py", self.trace))
        ((thread, function), self_ns), = self.self_times().most_common(1)
        self.assertIn(f"{self_ns} ns  {thread}  {function}\n", self.python(EXAMPLES / "columns.py", self.trace))
        # Only functions with an ended call count: if a process waited long as it executed another program, that call is
        # the longest and has no end.
        ended = [f for f in functions if f["p50_ns"] is not None and not f["name"].startswith("[")]
        function = max(ended, key=lambda f: f["base_ns"])["name"]
        self.assertIn("ns at", self.python(EXAMPLES / "slow_calls.py", self.trace, function))

    def test_names_are_documented_and_typed(self):
        self.python("-c", "import arctrace, inspect\n"
                          "for name in arctrace.__all__:\n"
                          "    assert inspect.getdoc(getattr(arctrace, name)), name\n"
                          "for name, method in inspect.getmembers(arctrace.Trace, inspect.isfunction):\n"
                          "    assert name == '__init__' or 'return' in method.__annotations__, name\n")


if __name__ == "__main__":
    cases.main()
