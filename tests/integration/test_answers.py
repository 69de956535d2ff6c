"""Compares what reports say of single functions with sums over the calls that `dump` has: distributions, histograms,
the slowest calls, graphs, differences."""

import collections
import json
import math
import re
import subprocess
import sys
import unittest

import cases
import support
from command import SANITIZED, arctrace, read, read_dump, read_report, refused
from kernel_programs import NO_KERNEL
from trace_checks import walk
from tracing import TracedTest

# Three threads make nested calls, of times that differ by factors of thousands.
PROGRAM = support.API + """
import random
names = ["outer", "middle", "inner", "leaf", "again"]
outer, middle, inner, leaf, again = [key(text) for text in names]
def spin(turns):
    for _ in range(turns): pass
def call(key, body):
    api.arctrace_enter(key)
    body()
    api.arctrace_exit(key)
def recurse(depth):
    spin(depth)
    if depth > 0: call(again, lambda: recurse(depth - 1))
def work(seed):
    rng = random.Random(seed)
    def few(): call(inner, lambda: spin(int(rng.paretovariate(0.5)) % 20000))
    def one_leaf(): call(leaf, lambda: None)
    def body():
        for _ in range(rng.randrange(4)): few()
        one_leaf()
    for turn in range(seed):
        call(outer, lambda: call(middle, body))
        call(middle, body)
        if turn % 50 == 0: call(again, lambda: recurse(rng.randrange(4)))
threads = [threading.Thread(target=work, args=(turns,)) for turns in (40, 150, 1200)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

Call = collections.namedtuple("Call", "name thread start_ns stop_ns self_ns path args")


def calls_of(records):
    """All calls that ended, in the order of their ends."""
    stacks = collections.defaultdict(list)
    now = {}
    calls = []
    for record in records:
        if record["type"] not in ("ENTER", "EXIT", "ARGUMENTS"):
            continue
        thread = record["pid"], record["tid"]
        stack = stacks[thread]
        if record["type"] == "ARGUMENTS":
            stack[-1]["args"] = record["args"]
            continue
        if stack:
            stack[-1]["base_ns"] += record["time_ns"] - now[thread]
        now[thread] = record["time_ns"]
        if record["type"] == "ENTER":
            stack.append({"name": record["function"], "start_ns": record["time_ns"], "base_ns": 0,
                          "args": None})
        elif stack:
            path = tuple(frame["name"] for frame in stack)
            frame = stack.pop()
            calls.append(Call(frame["name"], thread, frame["start_ns"], record["time_ns"],
                              frame["base_ns"], path, frame["args"]))
    return calls


def times_below(records, name):
    """For each call of the function that ended, in the order of their ends: its duration, and the time in each path
    below it."""
    stacks = collections.defaultdict(list)
    now = {}
    calls = []
    for record in records:
        if record["type"] not in ("ENTER", "EXIT"):
            continue
        thread = record["pid"], record["tid"]
        stack = stacks[thread]
        for i, (function, _, times) in enumerate(stack):
            if function == name:
                path = tuple(frame[0] for frame in stack[i + 1:])
                times[path] += record["time_ns"] - now[thread]
        now[thread] = record["time_ns"]
        if record["type"] == "ENTER":
            stack.append((record["function"], record["time_ns"], collections.Counter()))
        elif stack:
            function, start_ns, times = stack.pop()
            if function == name:
                calls.append((record["time_ns"] - start_ns, times))
    return calls


def bucket_of(duration_ns):
    """The histogram's bucket of a duration: there are 32 of equal width for each power of two."""
    shift = max(duration_ns.bit_length() - 6, 0)
    return shift, duration_ns >> shift


def duration(call):
    return call.stop_ns - call.start_ns


# main calls work() TIMES times, which calls a function of a library.
TWO_FUNCTIONS = """
#include <stdlib.h>
volatile long number = -1;
__attribute__((noinline, noclone)) long work(long n) { return labs(number) + n * 3 - (n >> 2) + (n ^ number); }
int main(void) {
  for (int i = 0; i < TIMES; ++i) number = -work(i);
  return 0;
}
"""

# A library whose constructor begins a thread, before main and before anything can be patched.
EARLY_THREAD = """
#include <pthread.h>
#include <unistd.h>
static void *wait_for_ever(void *nothing) { pause(); return nothing; }
__attribute__((constructor)) static void begin(void) { pthread_t thread; pthread_create(&thread, 0, wait_for_ever, 0); }
"""

QUANTILES = {"p50_ns": 500, "p90_ns": 900, "p99_ns": 990, "p999_ns": 999}


class AnswersTest(TracedTest):
    def recorded(self):
        done = self.record(sys.executable, "-c", PROGRAM, options=("--no-libcall",))
        self.assertEqual(done.status, 0, done.stderr)
        calls = calls_of(read_dump(done.trace))
        self.assertGreater(len(calls), 5000)
        return done.trace, calls

    def check_distribution(self, row, durations):
        """Compares a function's row with its calls."""
        durations = sorted(durations)
        count = len(durations)
        self.assertEqual(row["min_ns"], durations[0])
        self.assertEqual(row["max_ns"], durations[-1])
        self.assertEqual(row["avg_ns"], sum(durations) // count)
        for name, per_mille in QUANTILES.items():
            if count * (1000 - per_mille) < 1000:
                self.assertIsNone(row[name], (row["name"], name, count))
                continue
            exact = durations[math.ceil(count * per_mille / 1000) - 1]
            self.assertLessEqual(abs(row[name] - exact), exact * 0.03, (row["name"], name))

    def test_distributions(self):
        trace, calls = self.recorded()
        by_function = collections.defaultdict(list)
        by_thread = collections.defaultdict(list)
        for call in calls:
            by_function[call.name].append(duration(call))
            by_thread[call.thread, call.name].append(duration(call))
        rows = [row for row in read_report(trace, "flat")["functions"] if row["name"][0] != "["]
        self.assertEqual({row["name"] for row in rows}, set(by_function))
        for row in rows:
            self.assertEqual(row["calls"], len(by_function[row["name"]]))
            self.check_distribution(row, by_function[row["name"]])
        checked = 0
        for thread in read_report(trace, "flat", "--per=thread")["threads"]:
            for row in thread["functions"]:
                durations = by_thread.get(((thread["pid"], thread["tid"]), row["name"]))
                if durations:
                    checked += 1
                    self.check_distribution(row, durations)
        self.assertEqual(checked, len(by_thread))

    def test_columns(self):
        trace, _ = self.recorded()
        text = read("report", "--view=flat", "--columns=p99,calls,p99.9", "-F", "outer", "--no-header", trace)
        lines = text.splitlines()
        self.assertEqual(lines[2].split(), ["p99", "Calls", "p99.9", "Ind", "Name"])
        row = next(r for r in read_report(trace, "flat")["functions"] if r["name"] == "outer")
        # "1.234 us 1390 2.345 us 1 outer"
        self.assertEqual(next(line for line in lines if line.endswith(" outer")).split()[2],
                         f"{row['calls']:,}")
        self.assertIn('"p98" is not calls, self%, ',
                      refused("report", "--view=flat", "--columns=p98", trace))
        self.assertIn("--view=tree has no column p99",
                      refused("report", "--view=tree", "--columns=p99", trace))
        self.assertIn("--columns does not apply",
                      refused("report", "--view=flow", "--columns=calls", trace))
        self.assertIn("no records of the kernel",
                      refused("report", "--view=flat", "--columns=on-cpu", trace))

    @cases.in_gate
    def test_histogram(self):
        trace, calls = self.recorded()
        histograms = read_report(trace, "histogram", "-F", "inner", "-F", "out*")["histograms"]
        self.assertEqual({row["name"] for row in histograms}, {"inner", "outer"})
        for row in histograms:
            durations = [duration(call) for call in calls if call.name == row["name"]]
            self.check_distribution(row, durations)
            counts = collections.Counter(d.bit_length() for d in durations)
            self.assertEqual(
                {bucket["until_ns"]: bucket["calls"] for bucket in row["buckets"]
                 if bucket["calls"]}, {1 << bits: count for bits, count in counts.items()})
            for bucket in row["buckets"]:
                self.assertEqual(bucket["from_ns"], bucket["until_ns"] // 2)
        self.assertIn("needs -F FUNCTION", refused("report", "--view=histogram", trace))
        self.assertIn('did you mean "inner"?',
                      refused("report", "--view=histogram", "-F", "iner", trace))

    @cases.in_gate
    def test_slowest(self):
        trace, calls = self.recorded()
        for name, limit in (("inner", 10), ("middle", 25), ("again", 1000)):
            found = read_report(trace, "slowest", "-F", name, f"--limit={limit}")
            expected = [call for call in calls if call.name == name]
            self.assertEqual(found["calls"], len(expected))
            expected.sort(key=lambda call: -duration(call))
            self.assertEqual(
                [(row["delta_ns"], row["start_ns"], row["base_ns"], (row["pid"], row["tid"]),
                  tuple(row["path"])) for row in found["slowest"]],
                [(duration(call), call.start_ns, call.self_ns, call.thread, call.path)
                 for call in expected[:limit]])
        self.assertEqual(len(read_report(trace, "slowest", "-F", "inner")["slowest"]), 10)
        refused("report", "--view=slowest", "-F", "nothing", trace)

    def test_why_calls_are_slow(self):
        trace, calls = self.recorded()
        records = read_dump(trace)
        why = read_report(trace, "slowest", "-F", "middle", "-F", "outer", "-F", "again")["why"]
        self.assertEqual({row["name"] for row in why}, {"middle", "outer", "again"})
        averages = [row["slow_ns"] / row["slow_calls"] for row in why]
        self.assertEqual(averages, sorted(averages, reverse=True))
        for row in why:
            below = times_below(records, row["name"])
            self.assertEqual(row["calls"], len(below))
            slow = sorted(below, key=lambda call: -call[0])[:math.ceil(len(below) / 100)]
            slow = [call for call in slow if call[0] >= slow[0][0] // 2]
            middle = sorted(call[0] for call in below)[(len(below) + 1) // 2 - 1]
            median = [call for call in below if bucket_of(call[0]) == bucket_of(middle)]
            for side, group in (("slow", slow), ("median", median)):
                self.assertEqual(row[f"{side}_calls"], len(group))
                self.assertEqual(row[f"{side}_ns"], sum(call[0] for call in group))
                expected = sum((call[1] for call in group), collections.Counter())
                self.assertEqual(
                    {tuple(cause["path"]): cause[f"{side}_ns"] for cause in row["causes"]
                     if cause[f"{side}_ns"]}, {path: ns for path, ns in expected.items() if ns})
            for cause in row["causes"]:
                self.assertIsNone(cause["state"])
                self.assertLessEqual(abs(cause["more_ns"] - cause["slow_ns"] / len(slow)
                                         + cause["median_ns"] / len(median)), 0.51)
            more = [cause["more_ns"] for cause in row["causes"]]
            self.assertEqual(more, sorted(more, reverse=True))

    def test_what_slow_calls_wait_in(self):
        done = self.record(sys.executable, "-c", support.API + """
f, quick, slow = [key(text) for text in ("f", "quick", "slow")]
longest_ns = 10**8
for turn in range(200):
    begin = time.monotonic_ns()
    api.arctrace_enter(f)
    inner = slow if turn >= 198 else quick
    api.arctrace_enter(inner)
    if inner is slow: time.sleep(2e-9 * longest_ns)  # than any quick one was on this machine
    api.arctrace_exit(inner)
    api.arctrace_exit(f)
    if inner is quick: longest_ns = max(longest_ns, time.monotonic_ns() - begin)
print(longest_ns)
""", options=("--no-libcall",))
        why, = read_report(done.trace, "slowest", "-F", "f")["why"]
        self.assertEqual((why["name"], why["calls"], why["slow_calls"]), ("f", 200, 2))
        self.assertEqual(why["causes"][0]["path"], ["slow"])
        self.assertEqual(why["causes"][0]["median_ns"], 0)
        self.assertGreater(why["causes"][0]["more_ns"], 1.99 * int(done.stdout))
        text = read("report", "--view=slowest", "-F", "f", done.trace)
        self.assertRegex(text, r"(?m)^Why f is slow: the slowest 2 calls of 200, by wall-clock ")
        self.assertRegex(text, r"(?m)^ +More  Path in it\n +\+ [0-9.]+ m?s  slow$")

    @cases.in_gate
    def test_ranges_from_the_end(self):
        """Plain numbers are seconds, and negative ends count from the end of the trace."""
        trace = self.record("sleep", "0.2").trace

        def time_in(*options):
            [thread] = read_report(trace, "tree", *options)["threads"]
            return thread["root"]["cum_ns"]

        whole_ns = time_in()
        part_ns = whole_ns // 4
        for option in (f"-{part_ns}ns~", f"-{part_ns / 1e9:.9f}~"):
            self.assertLess(abs(time_in("-r", option) - part_ns), part_ns // 4, option)
        self.assertEqual(time_in("-r", f"~-{part_ns}ns") + time_in("-r", f"-{part_ns}ns~"), whole_ns)

    def test_filters_that_match_nothing(self):
        trace, _ = self.recorded()

        def warning(*arguments):
            done = arctrace(*arguments, check=True)
            return done.stderr

        for view in ("summary", "tree", "flat", "flow"):
            self.assertEqual(
                warning("report", f"--view={view}", "-F", "midle", trace),
                'arctrace: warning: no call passes the filters: no function of the trace '
                'matches "midle"; did you mean "middle"?\n')
        self.assertEqual(warning("report", "-F", "outer", "-F", "midle", trace),
                         'arctrace: warning: no function of the trace matches "midle"; did you '
                         'mean "middle"?\n')
        self.assertEqual(warning("report", "-F", "middle", trace), "")
        self.assertEqual(warning("report", "-F", "inner", "-N", "*", trace),
                         "arctrace: warning: no call passes the filters\n")
        for option in ("-t 1h", "-D 0"):
            self.assertEqual(warning("report", *option.split(), trace),
                             "arctrace: warning: no call passes the filters\n")
        self.assertRegex(warning("report", "-r", "1h~", trace),
                         r"^arctrace: warning: no thread has time in --time-range; the trace lasts "
                         r"from \d\.\d+ s to \d+\.\d+ s\n$")
        self.assertRegex(warning("report", "--pid", "1", trace),
                         r"^arctrace: warning: no thread passes --pid, --tid and --process; the "
                         r"trace has \d+ python[0-9.]*\n$")
        self.assertIn('did you mean "middle"?', warning("diff", "-F", "midle", trace, trace))

    def test_slowest_with_arguments(self):
        done = self.record("sh", "-c", "for i in 1 2 3 4 5 6; do test -e /tmp/none$i; done",
                           options=("-a",))
        calls = [call for call in calls_of(read_dump(done.trace)) if call.args]
        name = calls[-1].name
        expected = sorted((call for call in calls if call.name == name), key=lambda c: -duration(c))
        found = read_report(done.trace, "slowest", "-F", name, "--limit=3")["slowest"]
        self.assertEqual([(row["delta_ns"], row["args"]) for row in found],
                         [(duration(call), call.args) for call in expected[:3]])

    @cases.in_gate
    def test_graph(self):
        trace, calls = self.recorded()
        for name in ("middle", "again", "leaf"):
            graph = json.loads(read("graph", name, trace, "--format=json"))["graphs"]
            self.assertEqual([row["name"] for row in graph], [name])
            outermost = [call for call in calls if call.name == name and call.path.count(name) == 1]
            paths = collections.defaultdict(lambda: [0, 0, 0])
            for call in outermost:
                sums = paths[call.path]
                sums[0] += 1
                sums[1] += call.self_ns
                sums[2] += duration(call)
            self.assertEqual({tuple(row["path"]): [row["calls"], row["base_ns"], row["cum_ns"]]
                              for row in graph[0]["paths"]}, paths)
            self.assertEqual(graph[0]["cum_ns"], sum(duration(call) for call in outermost))
            below = collections.defaultdict(lambda: [0, 0])
            for call in calls:
                if name in call.path:
                    sums = below[call.path[call.path.index(name):]]
                    sums[0] += 1
                    sums[1] += call.self_ns
            found = {}
            def add(node, path):
                path += (node["name"],)
                found[path] = [node["calls"], node["base_ns"]]
                for child in node["children"]:
                    add(child, path)
            add(graph[0]["below"], ())
            self.assertEqual(found, below)
            for node, _ in walk(graph[0]["below"]):
                self.assertEqual(node["cum_ns"], node["base_ns"]
                                 + sum(child["cum_ns"] for child in node["children"]))
        self.assertIn('"outr"; did you mean "outer"?', refused("graph", "outr", trace))
        self.assertIn("PATTERN is required", refused("graph"))

    def sums_of(self, trace):
        """(calls, self_ns, total_ns) of each function; recursion counts once."""
        sums = collections.defaultdict(lambda: [0, 0, 0])
        for call in calls_of(read_dump(trace)):
            row = sums[call.name]
            row[0] += 1
            row[1] += call.self_ns
            if call.path.count(call.name) == 1:
                row[2] += duration(call)
        return sums

    def run_program(self, name, program):
        done = self.record(sys.executable, "-c", program, options=("--no-libcall",))
        self.assertEqual(done.status, 0, done.stderr)
        return done.trace.rename(self.directory / name)

    def diff(self, *arguments):
        return json.loads(read("diff", "--format=json", *arguments))

    @cases.in_gate
    def test_diff(self):
        before = [self.run_program(f"a{i}", PROGRAM) for i in range(2)]
        after = [self.run_program(f"b{i}", PROGRAM.replace("(40, 150, 1200)", "(40, 150, 300)")
                                  .replace('"leaf"', '"renamed"')) for i in range(2)]
        sums = {trace: self.sums_of(trace) for trace in before + after}

        def mean(traces, name, part):
            return sum(sums[trace][name][part] for trace in traces) / len(traces)

        def check(rows, sides):
            rows = [row for row in rows if row["name"][0] != "["]
            self.assertEqual({row["name"] for row in rows},
                             {"outer", "middle", "inner", "again", "leaf", "renamed"})
            for row in rows:
                for side, traces in zip("ab", sides):
                    for part, key in enumerate(("calls", "base_ns", "cum_ns")):
                        self.assertLessEqual(
                            abs(row[f"{key}_{side}"] - mean(traces, row["name"], part)), 0.5,
                            (row["name"], key, side))
            changes = [abs(row["base_ns_a"] - row["base_ns_b"]) for row in rows]
            self.assertEqual(changes, sorted(changes, reverse=True))

        one = self.diff(before[0], after[0])
        check(one["functions"], (before[:1], after[:1]))
        self.assertFalse(one["noise_known"])
        self.assertEqual({row["base_noise_ns"] for row in one["functions"]}, {None})
        for arguments in ((*before, "--", *after), (*before, "--after", *after)):
            several = self.diff(*arguments)
            check(several["functions"], (before, after))
            self.assertTrue(several["noise_known"])
            row = next(row for row in several["functions"] if row["name"] == "outer")
            values = [[sums[trace]["outer"][1] for trace in side] for side in (before, after)]
            # Each side has two values: t is 4.303, and squares are half of the difference's.
            variance = sum((a - b) ** 2 / 2 for a, b in values) / 2
            self.assertAlmostEqual(row["base_noise_ns"], 4.303 * math.sqrt(variance), delta=1)
        # The time of a run is its summary's.
        for runs, traces in (("runs_a", before), ("runs_b", after)):
            self.assertEqual([run["wall_ns"] for run in several[runs]],
                             [read_report(trace, "summary")["wall_ns"] for trace in traces])
        text = read("diff", before[0], after[0])
        pair = json.loads(read("diff", "--format=json", before[0], after[0]))
        walls = [support.duration_text(run["wall_ns"] - run["arctrace_wall_ns"])
                 for run in (*pair["runs_a"], *pair["runs_b"])]
        self.assertIn(f"\nwall:   {walls[0]} -> {walls[1]}, ", text)
        self.assertIn("noise not known", text)
        self.assertRegex(text, r"(?m) new .* renamed$")
        self.assertRegex(text, r"(?m) gone .* leaf$")
        only = self.diff(before[0], after[0], "-F", "in*", "--limit=5")["functions"]
        self.assertEqual([row["name"] for row in only], ["inner"])
        for wrong in ((before[0],), (*before, after[0]), ("--", *after), (before[0], "nothing")):
            refused("diff", *wrong)

    def test_diff_of_programs_with_other_names(self):
        """The functions of ./old and ./new are compared, which a line says; ./old with ./old needs none."""
        traces = {}
        for name, times in (("old", 300), ("new", 100)):
            program = self.directory / name
            subprocess.run(["gcc", "-O1", "-finstrument-functions", f"-DTIMES={times}", "-x", "c", "-", "-o", program],
                           input=TWO_FUNCTIONS, text=True, check=True)
            done = self.record(program)
            self.assertEqual(done.status, 0, done.stderr)
            traces[name] = done.trace.rename(self.directory / f"{name}.data")
        found = self.diff(traces["old"], traces["new"])
        self.assertEqual(found["paired_programs"], ["old", "new"])
        rows = {row["name"]: row for row in found["functions"] if row["module"].endswith(("/old", "/new"))}
        self.assertEqual({name: (row["calls_a"], row["calls_b"]) for name, row in rows.items()},
                         {"main": (1, 1), "work": (300, 100)})
        line = "functions of old are compared with those of new"

        def text(*names):
            return read("diff", *(traces[name] for name in names))

        self.assertIn(f"\n{line}\n", text("old", "new"))
        self.assertNotIn("are compared", text("old", "old"))
        self.assertEqual(self.diff(traces["new"], traces["new"])["paired_programs"], [])

    def test_own_functions_that_are_not_recorded(self):
        """The slowest calls of a plain program come with this hint, also if a function is asked for that is not in the
        trace."""
        program = self.directory / "plain"
        subprocess.run(["gcc", "-O1", "-fno-builtin", "-DTIMES=10", "-x", "c", "-", "-o", program],
                       input=TWO_FUNCTIONS, text=True, check=True)
        done = self.record(program)
        self.assertEqual(done.status, 0, done.stderr)
        hint = "functions of plain itself are not recorded: record it with -P ."
        self.assertIn(f"\n{hint}", read("report", "--view=slowest", done.trace, "-F", "labs"))
        self.assertIn(hint, refused("report", "--view=slowest", "-F", "work", done.trace))

    def test_own_functions_that_a_thread_kept_from_being_patched(self):
        """The report says why -P patched nothing, as the recorder does."""
        library, program = self.directory / "libearly.so", self.directory / "early"
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=EARLY_THREAD, text=True,
                       check=True)
        subprocess.run(["gcc", "-O1", "-DTIMES=10", "-Wl,--no-as-needed", library, "-x", "c", "-", "-o", program],
                       input=TWO_FUNCTIONS, text=True, check=True)
        done = self.record(program, options=("-P", ".", "-Z", "1"))
        why = "patched for -P: it had other threads before its own code ran"
        self.assertIn(why, done.stderr)
        self.assertIn(f"functions of early itself are not recorded: nothing was {why}; record -p PID -P .",
                      refused("report", "--view=slowest", "-F", "work", done.trace))

    @unittest.skipIf(SANITIZED, "the call of main() is not recorded by a sanitized shim")
    def test_own_functions_of_which_some_are_recorded(self):
        program = self.directory / "plain"
        subprocess.run(["gcc", "-O1", "-fno-builtin", "-DTIMES=10", "-x", "c", "-", "-o", program],
                       input=TWO_FUNCTIONS, text=True, check=True)
        done = self.record(program, options=("-P", "main", "-Z", "1"))
        self.assertEqual(done.status, 0, done.stderr)
        self.assertNotIn("itself are not recorded", read("report", "--view=slowest", done.trace, "-F", "labs"))
        self.assertIn("arctrace info --verbose", refused("report", "--view=slowest", "-F", "work", done.trace))

    @cases.in_gate
    @unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
    def test_own_work_is_not_the_programs(self):
        """While it patches, arctrace waits in the program's thread, and makes system calls. Neither is in any sum, nor
        on the critical path; it is told once."""
        program = self.directory / "plain"
        subprocess.run(["gcc", "-O1", "-DTIMES=10", "-x", "c", "-", "-o", program], input=TWO_FUNCTIONS, text=True,
                       check=True)
        done = self.record(program, options=("-P", "main", "-Z", "1", "--kernel=bpf", "--syscalls"))
        self.assertEqual(done.status, 0, done.stderr)

        def nodes(*options):
            [thread] = read_report(done.trace, "tree", *options)["threads"]
            return {node["name"]: node for node, _ in walk(thread["root"])}

        for options in ((), ("--corrected",)):
            own = nodes(*options)["[arctrace]"]
            self.assertEqual([own[part] for part in ("base_ns", "cum_ns", "cpu_ns", "off_cpu_ns")], [0, 0, 0, 0])
            self.assertEqual(own["children"], [])
            # The shim starts a process, which reads a program.
            self.assertGreater(own["overhead_ns"], 300_000)
        summary = read_report(done.trace, "summary")
        self.assertEqual(summary["arctrace_ns"], own["overhead_ns"])
        self.assertLess(summary["thread_ns"], summary["wall_ns"] - 0.9 * summary["arctrace_ns"])
        self.assertNotIn("K:wait4", {row["name"] for row in read_report(done.trace, "flat")["functions"]})
        path = read_report(done.trace, "critical-path")["critical_path"]
        [row] = [row for row in path if row["state"] == "arctrace"]
        self.assertEqual(row["path"][-1], "[arctrace]")
        self.assertGreater(row["ns"], 0.9 * own["overhead_ns"])
        text = read("report", done.trace)
        self.assertIn("\narctrace itself took ", text)
        self.assertEqual(text.count("[arctrace]"), 1)
        for view in ("tree", "flat"):
            self.assertRegex(read("report", f"--view={view}", done.trace),
                             r"\[arctrace\] \[[0-9.]+ [mu]?s, in no sum\]\n")
        self.assertRegex(read("diff", done.trace, done.trace), r"\n        and .* -> .* of arctrace's own work\n")

    def summary(self, *command, options=(), status=0):
        """A recording's report: the text, and the JSON, which are checked for what always holds."""
        done = self.record(*command, options=options)
        self.assertEqual(done.status, status, done.stderr)
        text = read("report", done.trace)
        self.assertLessEqual(text.count("\n"), 40, text)
        report = json.loads(read("report", done.trace, "--format=json"))
        self.assertLessEqual({"records", "lost", "lost_by_cause", "torn", "orphans", "processes",
                              "threads", "duration_ns"}, set(report["summary"]))
        self.assertEqual(report["threads"], read_report(done.trace, "tree")["threads"])
        self.assertEqual(report["functions"], read_report(done.trace, "flat")["functions"])
        self.assertEqual(sum(part["base_ns"] for part in report["parts"]), report["thread_ns"])
        self.assertEqual(sum(thread["root"]["cum_ns"] for thread in report["threads"]),
                         report["thread_ns"])
        return text, report

    @cases.in_gate
    def test_summary(self):
        text, report = self.summary(sys.executable, "-c", PROGRAM, options=("--no-libcall",))
        self.assertEqual(report["command"], [sys.executable, "-c", PROGRAM])
        self.assertRegex(text, r"(?m)^exit 0, .*, 1 process, 4 threads$")
        self.assertIn(", 0 lost\n", text)
        paths = collections.Counter()
        for call in calls_of(read_dump(self.directory / "arctrace.data")):
            paths[call.path] += call.self_ns
        path, self_ns = max((row for row in paths.items() if len(row[0]) > 1),
                            key=lambda row: row[1])
        if self_ns > report["thread_ns"] * 0.02:
            self.assertRegex(text, rf"(?m)  {' > '.join(path)}$")
        hottest = [row["name"] for row in sorted(report["functions"], key=lambda r: -r["base_ns"])]
        listed = text.split("Hottest functions\n")[1].split("\n\n")[0].splitlines()
        listed = [line for line in listed if not re.search(r"  others \(\d+\)$", line)]
        self.assertEqual([re.sub(r" \[up to [^]]+\]$", "", line).split()[-1] for line in listed], hottest[:len(listed)])
        flat = {row["name"]: row for row in report["functions"]}
        self.assertGreater(flat["outer"]["p99_ns"], 0)

    def test_summary_of_a_crash(self):
        program = support.API + """
import signal
main_loop, earlier, bad = key("main_loop"), key("earlier"), key("bad")
api.arctrace_enter(main_loop)
api.arctrace_enter(earlier)
api.arctrace_exit(earlier)
api.arctrace_enter(bad)
os.kill(os.getpid(), signal.SIGSEGV)
time.sleep(5)
"""
        text, _ = self.summary(sys.executable, "-c", program, options=("--no-libcall",), status=-11)
        self.assertIn("killed by signal 11 (Segmentation fault)", text)
        self.assertRegex(text, r"main_loop > bad; last call: earlier, ended .* before")
        self.assertIn("record --kernel --signals does", text)

    def test_summary_of_many_processes(self):
        text, report = self.summary("sh", "-c", "for i in $(seq 40); do env true; done")
        # The shell, seq, and processes that execute env and then true.
        self.assertEqual(report["summary"]["processes"], 42)
        self.assertRegex(text, r"(?m) 40  env  ")
        self.assertRegex(text, r"(?m) 40  true  ")

    def test_summary_of_losses(self):
        program = support.API + "f = key('f')\nfor i in range(20000):\n api.arctrace_enter(f)\n" \
            " api.arctrace_exit(f)"
        text, report = self.summary(sys.executable, "-c", program, options=(
            "--no-libcall", "--mode=stop", "-b", "64k", "--block-size", "1k"))
        self.assertIn(f"{report['summary']['lost']:,} lost (", text)
        self.assertIn("records are missing", text)
        self.assertRegex(text, r"(?m)^  the longest gap: [0-9.]+ [mun]?s at [0-9.]+ s, thread ")
        self.assertRegex(text, r"(?m)^  the buffer of .* was full: record with -b 4M$")

    def test_summary_of_few_calls(self):
        program = support.API + "f = key('f')\napi.arctrace_enter(f)\napi.arctrace_exit(f)"
        text, _ = self.summary(sys.executable, "-c", program, options=("--no-libcall",))
        self.assertRegex(text, r"(?m)^1 call: too few for shares\n  f [0-9.]+ [mun]?s\n"
                               r"  the rest: .*not in recorded functions [0-9.]+ m?s")
        self.assertNotIn("Hottest", text)

    @unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
    def test_signals_are_no_calls(self):
        program = support.API + "import signal\nf = key('f')\napi.arctrace_enter(f)\n" \
            "os.kill(os.getpid(), signal.SIGSEGV)"
        text, _ = self.summary(sys.executable, "-c", program, status=-11,
                               options=("--no-libcall", "--kernel=bpf", "--signals"))
        self.assertRegex(text, r"Segmentation fault\), (no core file|core dumped), ")
        for view in ("tree", "arcs"):
            text = read("report", f"--view={view}", "--no-header", self.directory / "arctrace.data")
            self.assertNotRegex(text, r"(?m)^child.*K:signal")
            if view == "tree":
                self.assertRegex(text, r"(?m) f \[open\] \[signal 11\]$")
                self.assertNotIn("K:signal", text)

    def test_summary_of_next_to_nothing(self):
        text, _ = self.summary("true")
        self.assertRegex(text, r"^true\nexit 0, ")
        self.assertIn("[loader]", text)


if __name__ == "__main__":
    cases.main()
