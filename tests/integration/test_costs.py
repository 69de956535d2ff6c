"""The cost of recording itself: `report --corrected` against programs' own measurements without a recorder, and
the sums of reports against sums over the records that `dump` has."""

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
from unittest import mock

import cases
from command import ARCTRACE, LIBRARY, arctrace, read, read_dump, read_report, run
from trace_checks import walk
from tracing import TracedTest

# Calls functions that take next to nothing, tens and hundreds of ns, and one that calls the short ones, and
# prints how long a call of each takes by its own clock, which is right only without a recorder.
FUNCTIONS = """
#include <stdint.h>
CALLED void nothing(void);
CALLED void some(void);
CALLED void more(void);
CALLED void all(void);
#ifdef DEFINED
#ifdef __x86_64__
#define LONG __asm__ volatile(".nops 64");  // so that -P patches it without -Z, which is a filter
#else
#define LONG
#endif
#define WORK(turns) for (int i = 0; i < turns; ++i) __asm__ volatile("nop" ::: "memory");
DEFINED void nothing(void) { BEGIN(0) WORK(8) END(0) LONG }
DEFINED void some(void) { BEGIN(1) WORK(100) END(1) LONG }
DEFINED void more(void) { BEGIN(2) WORK(1000) END(2) LONG }
DEFINED void all(void) {
  BEGIN(3) WORK(8)
  nothing(); nothing(); some(); nothing(); nothing(); nothing(); some(); nothing(); nothing(); nothing();
  END(3) LONG
}
#endif
"""
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define PLAIN __attribute__((no_instrument_function))
static inline PLAIN double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}
enum { ROUNDS = 101, CALLS = 40 };
static PLAIN int compare(const void* a, const void* b) {
  const double difference = *(const double*)a - *(const double*)b;
  return difference < 0 ? -1 : difference > 0;
}
static PLAIN void tell(const char* name, double* times) {
  qsort(times, ROUNDS, sizeof *times, compare);
  printf("\\"%s\\": %f, ", name, times[ROUNDS / 2] / CALLS);
}
#define MEASURE(name) { \
  double times[ROUNDS]; \
  for (int round = 0; round < ROUNDS; ++round) { \
    const double start = now_ns(); \
    for (int i = 0; i < CALLS; ++i) name(); \
    times[round] = now_ns() - start; \
  } \
  tell(#name, times); }
PLAIN int main(void) {
  DEFINE_NAMES
  for (int i = 0; i < 100; ++i) all();
  printf("{");
  MEASURE(nothing) MEASURE(some) MEASURE(more) MEASURE(all)
  printf("\\"end\\": 0}");
  return 0;
}
"""
NAMES = ["nothing", "some", "more", "all"]
API_HEAD = """
#include <arctrace/arctrace.h>
static uint32_t names[4];
#define BEGIN(i) arctrace_enter(arctrace_name_key(names[i]));
#define END(i) arctrace_exit(arctrace_name_key(names[i]));
#define DEFINE_NAMES \\
  names[0] = arctrace_define_name("nothing"); names[1] = arctrace_define_name("some"); \\
  names[2] = arctrace_define_name("more"); names[3] = arctrace_define_name("all");
"""
PLAIN_HEAD = """
#define BEGIN(i)
#define END(i)
#define DEFINE_NAMES
"""
HERE = "#define CALLED\n#define DEFINED\n" + FUNCTIONS
THERE = "#define CALLED extern\n" + FUNCTIONS
INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
# clang would duplicate a call into many places, and of calls from many places fewer are known.
COMMON = ["-O2", "-fno-inline", "-fno-optimize-sibling-calls", "-fno-unroll-loops"]
HOOKS = {"-finstrument-functions": ["-finstrument-functions"],
         "-pg": ["-pg"],
         "-mfentry": ["-pg", "-mfentry"],
         "patchable": ["-fpatchable-function-entry=5"],
         "-minstrument-return": ["-pg", "-mfentry", "-minstrument-return=call", "-x", "none",
                                 LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}"],
         "XRay": ["-fxray-instrument", "-fxray-instruction-threshold=1"]}
RUNS = 5
ATTEMPTS = 4
QUIET = 1.05  # the longest of a program's times divided by the shortest, on a quiet machine
STARTED_REALTIME_OFFSET = 136  # of start_realtime_ns in the header of a buffer
# Recording costs more than was measured while others use the processor, and in nested calls.
CLOSER = 1.2


def record_costs(records):
    """{kind of call: {"inside": ps, "outside": ps}} of an entry or an exit; for arguments, of one record."""
    costs = [record for record in records if record["type"] == "HOOK_COSTS"][0]
    found = {}
    for kind in ("library_call", "function", "patched", "api", "arguments", "xray", "return"):
        share = 1 if kind == "arguments" else 2
        found[kind] = {side: costs.get(f"{kind}_{side}_ps", 0) // share
                       for side in ("inside", "outside")}
    return found


def sums_of(records, costs, kind):
    """Own times in ns and recording's part of them in ps, both by path, and calls by name, as the format defines
    them; `kind` is the kind of the functions of NAMES."""
    stacks = collections.defaultdict(list)
    now = {}
    base_ns, overhead_ps, calls = (collections.Counter() for _ in range(3))

    def charge(stack, ps):
        if stack:
            overhead_ps[tuple(stack)] += ps

    for record in records:
        if record["type"] not in ("ENTER", "EXIT", "ARGUMENTS", "RESULT"):
            continue
        stack = stacks[record["tid"]]
        if stack:
            base_ns[tuple(stack)] += record["time_ns"] - now[record["tid"]]
        now[record["tid"]] = record["time_ns"]
        if record["type"] in ("ARGUMENTS", "RESULT"):
            charge(stack, costs["arguments"]["inside"])
            charge(stack[:-1], costs["arguments"]["outside"])
            continue
        if record["type"] == "ENTER":
            name = record["function"]
            calls[name] += 1
        else:
            name = stack[-1]
        cost = costs[kind if name in NAMES else "library_call"]
        if record["type"] == "ENTER":
            charge(stack, cost["outside"])
            stack.append(name)
            charge(stack, cost["inside"])
        else:
            charge(stack, cost["inside"])
            stack.pop()
            charge(stack, cost["outside"])
    return base_ns, overhead_ps, calls


class CostsTest(TracedTest):
    def build(self, name, source, *options, compiler="gcc"):
        program = self.directory / name
        subprocess.run([compiler, "-x", "c", "-", *COMMON, *options, "-o", program], input=source,
                       text=True, check=True)
        return program

    def hooked_programs(self):
        """{the kind of hook: (the program, options of record)}"""
        source = PLAIN_HEAD + HERE + PROGRAM
        found = {}
        for kind, options in HOOKS.items():
            if kind != "-finstrument-functions" and os.uname().machine != "x86_64":
                continue
            compiler = "gcc"
            if kind == "XRay":  # gcc has no such hooks
                compiler = shutil.which("clang-14") or shutil.which("clang")
                if compiler is None:
                    continue
            found[kind] = (self.build(f"hooked{kind}", source, *options, compiler=compiler), ())
        if os.uname().machine == "x86_64":
            found["-P"] = (self.build("patched", source),
                           ("-P", "re:^(nothing|some|more|all)$"))
        return found

    def other_programs(self):
        library = self.build("libcalled.so", PLAIN_HEAD + HERE, "-shared", "-fPIC")
        caller = self.build("caller", PLAIN_HEAD + THERE + PROGRAM, "-x", "none", library,
                            f"-Wl,-rpath,{self.directory}")
        named = self.build("named", API_HEAD + HERE + PROGRAM, f"-I{INCLUDE}", "-x", "none",
                           LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}")
        # All of the library's functions call each other through its PLT.
        return {"a library call": (caller, ("--nest-libcall",)), "the API": (named, ())}

    def times_of(self, trace, *options):
        """{function: median ns of a call} of a report, because averages depend on how busy the machine is."""
        rows = read_report(trace, "flat", *options)["functions"]
        return {row["name"]: row["p50_ns"] for row in rows if row["name"] in NAMES}

    def least_times(self, program, options):
        """The least median times of a call of each function: as the program itself measures them without a
        recorder, as recorded, and corrected, which take turns. And whether the machine was quiet meanwhile, so
        that the program always measured the same."""
        ways = [collections.defaultdict(lambda: float("inf")) for _ in range(3)]
        measured = []
        for _ in range(RUNS):
            untraced = run(program, check=True)
            recorded = self.record(program, options=options)
            self.assertEqual(recorded.status, 0, recorded.stderr)
            self.assertRegex(recorded.stderr, r" 0 lost,")
            measured.append(json.loads(untraced.stdout)["all"])
            for way, times in zip(ways, (json.loads(untraced.stdout),
                                         self.times_of(recorded.trace),
                                         self.times_of(recorded.trace, "--corrected"))):
                for name in NAMES:
                    way[name] = min(way[name], times[name])
        return *ways, max(measured) < QUIET * min(measured)

    def check_kind(self, kind, program, options):
        """Repeats until the corrected times are closer, which other programs may prevent."""
        was_quiet = False
        for attempt in range(ATTEMPTS):
            # Each attempt has its own cache, because costs of hooks are stored also if others used the processor
            # while they were measured.
            cache = str(self.directory / f"cache{kind}{attempt}")
            with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": cache}):
                untraced, recorded, corrected, is_quiet = self.least_times(program, options)
            text = "".join(f"{name}: {untraced[name]:.1f} ns untraced, {recorded[name]:.1f} recorded, "
                           f"{corrected[name]:.1f} corrected\n" for name in NAMES)
            print(f"{kind}, {'quiet' if is_quiet else 'busy'}\n{text}")
            was_quiet |= is_quiet
            for name in NAMES:
                with self.subTest(kind=kind, function=name):
                    self.assertLessEqual(corrected[name], recorded[name], text)
            # Calls of the API take time without a recorder, too, which the corrected times lack. For a single
            # short call the clock's steps are larger than the difference.
            error = abs(recorded["all"] - untraced["all"])
            if kind == "the API" or CLOSER * abs(corrected["all"] - untraced["all"]) < error:
                return
        with self.subTest(kind=kind):
            if not was_quiet:
                self.skipTest(f"{kind}: the program measures other times in each run, so busy is the machine")
            self.fail(f"corrected times are no closer to those without a recorder\n{text}")

    def test_corrected_times_are_closer_to_untraced_ones(self):
        programs = self.hooked_programs() | self.other_programs()
        for kind, (program, options) in programs.items():
            self.check_kind(kind, program, options)
        for kind in sorted(set(HOOKS) - set(programs)):
            with self.subTest(kind=kind):
                self.skipTest(f"{kind}: no compiler makes these hooks here")

    def check_sums(self, trace, kind, *options):
        """Compares costs and corrected times of a report with those of the records."""
        records = read_dump(trace)
        costs = record_costs(records)
        self.assertGreater(costs[kind]["inside"] + costs[kind]["outside"], 0)
        base_ns, overhead_ps, calls = sums_of(records, costs, kind)
        for corrected in ((), ("--corrected",)):
            report = read_report(trace, "flat", *corrected, *options)
            self.assertEqual(report.get("corrected", False), bool(corrected))
            rows = {row["name"]: row for row in report["functions"]}
            for name in NAMES:
                paths = [path for path in base_ns if path[-1] == name]
                expected = sum(base_ns[path] - (min(base_ns[path], overhead_ps[path] // 1000)
                                                if corrected else 0) for path in paths)
                self.assertEqual(rows[name]["calls"], calls[name])
                self.assertEqual(rows[name]["overhead_ns"],
                                 sum(overhead_ps[path] for path in paths) // 1000)
                self.assertEqual(rows[name]["base_ns"], expected)
        # A callee's time is part of its caller's, also without the cost.
        for thread in read_report(trace, "tree", "--corrected")["threads"]:
            for node, _ in walk(thread["root"]):
                self.assertEqual(node["cum_ns"], node["base_ns"] +
                                 sum(child["cum_ns"] for child in node["children"]))

    def test_costs_and_corrected_times_are_those_of_the_records(self):
        programs = self.other_programs()
        program, options = programs["a library call"]
        trace = self.record(program, options=options).trace
        self.check_sums(trace, "library_call")
        args = ("-A", "nothing@arg1/i32", "-R", "nothing@retval/i32")
        trace = self.record(program, options=(*options, *args)).trace
        self.assertGreater(record_costs(read_dump(trace))["arguments"]["outside"], 0)
        self.check_sums(trace, "library_call")
        trace = self.record(programs["the API"][0]).trace
        self.check_sums(trace, "api")
        summary = json.loads(arctrace("report", trace, "--format=json").stdout)
        text = arctrace("report", trace).stdout
        self.assertGreater(summary["overhead_ns"], 0)
        self.assertRegex(text, r"recording cost (about .* ns a call|less than 1 % of the threads' time)")
        # For calls that a filter hides the costs are known, but not the number.
        filtered = arctrace("report", trace, "-t", "1h").stdout
        self.assertNotIn("ns a call", filtered)
        rows = [line for line in text.splitlines() if line.endswith("nothing [recording]")]
        self.assertEqual(len(rows), 1, text)
        self.assertRegex(text, r"\n  \[recording\]: recording is half or more")
        flat = arctrace("report", trace, "--view=flat").stdout
        self.assertRegex(flat, r" nothing \[recording\]\n")
        self.assertRegex(flat, r"\n  \[recording\]: half or more")
        self.assertNotRegex(flat, r" more \[recording\]")
        tree = arctrace("report", trace, "--view=tree", "--corrected").stdout
        self.assertIn("Times are corrected", tree)

    def test_hooks_of_a_kind_of_their_own(self):
        programs = self.hooked_programs()
        kinds = {"-finstrument-functions": "function"}
        if os.uname().machine == "x86_64":
            kinds |= {"-mfentry": "function", "-minstrument-return": "return", "XRay": "xray"}
        for hooks, kind in kinds.items():
            with self.subTest(hooks=hooks):
                if hooks not in programs:
                    self.skipTest("XRay's hooks need clang")
                program, options = programs[hooks]
                trace = self.record(program, options=options).trace
                records = read_dump(trace)
                told = [record["kind"] for record in records if record["type"] == "HOOKED"]
                self.assertEqual(told, [] if kind == "function" else [kind])
                self.check_sums(trace, kind)

    def check_refused(self, done, what):
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(what, done.stderr)

    def test_locks_that_recording_dominates(self):
        program = self.build("locker", """
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, passing = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
  for (int i = 0; i < 10000; ++i) {
    pthread_mutex_lock(&passing);
    pthread_mutex_unlock(&passing);
  }
  for (int i = 0; i < 10; ++i) {
    pthread_mutex_lock(&held);
    usleep(1000);
    pthread_mutex_unlock(&held);
  }
  return 0;
}
""", "-pthread")
        trace = self.record(program).trace
        outside_ps = 2 * record_costs(read_dump(trace))["library_call"]["outside"]
        locks = read_report(trace, "locks")["locks"]
        self.assertEqual({row["name"]: row["overhead_ns"] for row in locks},
                         {"passing in locker": 10000 * outside_ps // 1000,
                          "held in locker": 10 * outside_ps // 1000})
        text = arctrace("report", trace, "--view=locks").stdout
        marked = [row["name"] for row in locks if row["held_ns"] <= 2 * row["overhead_ns"]]
        self.assertNotIn("held in locker", marked)
        self.assertEqual(re.findall(r"mutex (.*) \[recording\]", text), marked)
        self.assertEqual("[recording]: half or more of the time that it was held" in text,
                         bool(marked))

    @contextlib.contextmanager
    def session(self, name, *options, environment=None):
        """The path of a session with the calls of ls."""
        name = f"costs-{name}-{os.getpid()}"
        path = read("create", name, "-b", "1M", "--start", *options, env=environment).strip()
        try:
            read("record", "--session", name, "ls", "/", env=environment)
            yield path
        finally:
            read("destroy", name)

    def snapshot(self, session, *options, command="snapshot", environment=None):
        trace = self.directory / f"{command}.data"
        read(command, session, "-o", trace, *options, env=environment)
        return trace

    def check_corrected(self, trace):
        rows = read_report(trace, "flat", "--corrected")["functions"]
        self.assertTrue([row for row in rows if row["overhead_ns"] > 0])

    def test_snapshots_and_buffers_have_the_costs(self):
        # Costs that another build has stored do not apply to this one.
        cache = mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.directory / "cache")})
        cache.start()
        self.addCleanup(cache.stop)
        expected = record_costs(read_dump(self.record("true").trace))
        with self.session("drop") as session:
            trace = self.snapshot(session)
            self.assertEqual(record_costs(read_dump(trace)), expected)
            self.check_corrected(trace)
            self.check_corrected(session)
            # With an empty cache the snapshot measures the costs, because that disturbs nothing there.
            another = {**os.environ, "XDG_CACHE_HOME": str(self.directory / "another")}
            trace = self.snapshot(session, environment=another)
            self.assertGreater(record_costs(read_dump(trace))["library_call"]["inside"], 0)
            copy = self.directory / "copy"
            shutil.copyfile(session, copy)
            self.assertEqual(record_costs(read_dump(self.snapshot(copy, command="recover"))),
                             expected)
            # The costs of another machine are not known.
            with open(copy, "r+b") as file:
                file.seek(STARTED_REALTIME_OFFSET)
                started = int.from_bytes(file.read(8), "little")
                file.seek(STARTED_REALTIME_OFFSET)
                file.write((started - 3600 * 10**9).to_bytes(8, "little"))
            recovered = self.snapshot(copy, command="recover")
            self.assertFalse([record for record in read_dump(recovered)
                              if record["type"] == "HOOK_COSTS"])
            self.check_refused(arctrace("report", copy, "--corrected"),
                               "does not say what recording cost")
        third = {**os.environ, "XDG_CACHE_HOME": str(self.directory / "third")}
        with self.session("overwrite", "--mode=overwrite", environment=third) as session:
            self.check_corrected(self.snapshot(session, environment=third))

    def test_what_cannot_be_corrected_is_refused(self):
        trace = self.record("true").trace
        self.check_refused(arctrace("report", trace, "--corrected", "--view=slowest", "-F", "x"),
                           "--corrected does not apply to --view=slowest")
        nowhere = {**os.environ, "XDG_CACHE_HOME": "/dev/null/nowhere"}
        with self.session("refused", environment=nowhere) as session:
            unknown = self.snapshot(session, environment=nowhere)
        self.check_refused(arctrace("report", unknown, "--corrected"),
                           "does not say what recording cost")
        rows = read_report(unknown, "flat")["functions"]
        self.assertTrue(rows)
        # The row [arctrace] is the recorder's own work, which was timed and needs no hook cost.
        self.assertFalse([row for row in rows if "overhead_ns" in row and row["name"] != "[arctrace]"])
        self.assertNotIn("recording cost", arctrace("report", unknown).stdout)

    def test_costs_are_measured_once_for_a_boot_and_a_build(self):
        cache = self.directory / "cache"
        kept = cache / "arctrace" / "hook-costs"
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}

        def recorded_costs():
            trace = self.directory / "once.data"
            read("record", "-o", trace, "true", env=environment)
            return record_costs(read_dump(trace))

        first = recorded_costs()
        self.assertGreater(first["library_call"]["inside"], 0)
        text = kept.read_text()
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        self.assertTrue(text.startswith(boot + " "), text)
        marked = text.replace("\n1 ", "\n1 1", 1)
        kept.write_text(marked)
        self.assertNotEqual(recorded_costs(), first)  # they were read from the cache
        for damaged in (marked.replace(boot, "another-boot"), marked[:-4] + "x", "", "1 2 3\n"):
            kept.write_text(damaged)
            self.assertGreater(recorded_costs()["library_call"]["inside"], 0)
            self.assertTrue(kept.read_text().startswith(boot + " "))
            self.assertNotEqual(kept.read_text(), damaged)
        kept.chmod(0o666)  # anybody could have written the file
        kept.write_text(marked)
        recorded_costs()
        self.assertNotEqual(kept.read_text(), marked)

    def test_builds_in_turn_measure_once_each(self):
        cache = self.directory / "cache"
        kept = cache / "arctrace" / "hook-costs"
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        built = pathlib.Path(ARCTRACE).resolve().parent.parent
        programs = [pathlib.Path(ARCTRACE)]
        for name in ("one", "two"):  # each has its own shim
            other = self.directory / name
            for part in ("bin", "lib"):
                (other / part).mkdir(parents=True)
            shutil.copy(ARCTRACE, other / "bin")
            for file in ("libarctrace-shim.so", "libarctrace.so.0"):
                shutil.copy(built / "lib" / file, other / "lib")
            for file in (built / "lib").glob("arctrace-cost-probe-*"):
                shutil.copy(file, other / "lib")
            programs.append(other / "bin" / "arctrace")

        def record_with(program):
            run(program, "record", "-o", self.directory / "turn.data", "true", env=environment, check=True)
            return kept.read_text()

        for program in programs:
            text = record_with(program)
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        self.assertEqual(text.count(boot), len(programs), text)
        for program in programs:
            self.assertEqual(record_with(program), text)
        # Costs of another boot are invalid, and the number of builds is bounded.
        many = [f"{boot} {number} 2 3.4" for number in range(20)]
        kept.write_text("\n".join(["of-another-boot 1 2 3.4", *many, ""]))
        lines = record_with(programs[0]).splitlines()
        self.assertEqual([line for line in lines if len(line.split()) == 4][1:], many[:7])


if __name__ == "__main__":
    cases.main()
