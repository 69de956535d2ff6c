"""Compares reports and exports of a trace with forks, threads, gaps, losses and calls that do not end with our own
count over what `dump` has of each record."""

import collections
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys

import cases
import states
import support
from command import arctrace, read, read_dump, read_info, read_report, start_arctrace
from kernel_programs import whole
from trace_checks import walk
from tracing import TracedTest

NAMES = ("main_loop", "outer", "inner", "leaf", "endless")
# Threads, then forked children inside frames of their parent, one of which ends one; calls that do not end. After
# each part the program prints so and waits.
PROGRAM = support.API + """
import random
main, outer, inner, leaf, endless = [key(text) for text in ("main_loop", "outer", "inner", "leaf", "endless")]
turns = int(sys.argv[1])
def work(seed, turns):
    rng = random.Random(seed)
    for _ in range(turns):
        api.arctrace_enter(outer)
        for _ in range(rng.randrange(4)):
            api.arctrace_enter(inner)
            for _ in range(rng.randrange(4)):
                api.arctrace_enter(leaf)
                api.arctrace_exit(leaf)
            api.arctrace_exit(inner)
        api.arctrace_exit(outer)
def part():
    print("part", flush=True)
    sys.stdin.readline()
threads = [threading.Thread(target=work, args=(i, turns)) for i in range(2)]
api.arctrace_enter(main)
for thread in threads: thread.start()
for thread in threads: thread.join()
part()
work(3, 20)
part()
for i in range(3):
    if os.fork() == 0:
        if i == 1: api.arctrace_exit(main)
        work(10 + i, turns // 2)
        api.arctrace_enter(endless)
        work(20 + i, 3)
        os._exit(0)
    os.wait()
api.arctrace_enter(endless)
work(5, 10)
"""


# Threads that sleep, wait for one another, and compute.
NAPS = """
lock = threading.Lock()
def nap(times):
    for i in range(times):
        time.sleep(0.001)
        with lock: sum(range(3000))
threads = [threading.Thread(target=nap, args=(10 * i,)) for i in range(1, 4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


class Frame:
    def __init__(self, name, start_ns, is_call):
        self.name, self.start_ns, self.is_call = name, start_ns, is_call
        self.self_ns = 0


class Thread:
    """The stack of a thread, by the rules READ-3 and READ-9 of the specification."""

    def __init__(self, counts, frames, time_ns):
        self.counts = counts
        self.now_ns = time_ns
        self.stack = [Frame(name, time_ns, False) for name in frames]
        self.inherited = len(self.stack)

    def run(self, time_ns, gaps):
        """Charges the time up to then, except gaps, to the innermost frame."""
        now_ns, own_ns = self.now_ns, 0
        for start, stop in sorted(gaps):  # gaps may overlap
            own_ns += max(0, min(start, time_ns) - now_ns)
            now_ns = min(max(now_ns, stop), time_ns)
        if self.stack:
            self.stack[-1].self_ns += own_ns + time_ns - now_ns
        self.now_ns = time_ns

    def leave(self, time_ns, is_open=False):
        frame = self.stack.pop()
        self.inherited = min(self.inherited, len(self.stack))
        self.counts.add(frame, time_ns, is_open)

    def enter(self, name, time_ns, is_call=True):
        self.stack.append(Frame(name, time_ns, is_call))

    def own(self):
        return [frame.name for frame in self.stack[self.inherited:]]


class Counts:
    """Calls and times of each function."""

    def __init__(self):
        self.calls, self.self_ns, self.total_ns = (collections.Counter() for _ in range(3))
        self.open, self.ended_ns = collections.Counter(), collections.Counter()  # ended_ns: of calls that have ended

    def add(self, frame, time_ns, is_open):
        self.calls[frame.name] += frame.is_call
        self.self_ns[frame.name] += frame.self_ns
        self.total_ns[frame.name] += time_ns - frame.start_ns
        self.open[frame.name] += is_open
        self.ended_ns[frame.name] += 0 if is_open else time_ns - frame.start_ns

    def values(self):
        return {name: (self.calls[name], self.self_ns[name], self.total_ns[name]) for name in self.total_ns}


def off_stretches(records):
    """The stretches from each ENABLED without functions to the next one with them."""
    stretches, since = [], None
    for record in records:
        if record["type"] != "ENABLED":
            continue
        is_on = record["gate"] == "all" or "functions" in record["gate"]
        if since is None and not is_on:
            since = record["time_ns"]
        elif since is not None and is_on:
            stretches.append((since, record["time_ns"]))
            since = None
    return stretches


def recount(records, forked_ns):
    """forked_ns: by pid."""
    counts = Counts()
    off = off_stretches(records)
    inherited = {r["process"]: r["frames"] for r in records if r["type"] == "INHERITED"}
    process_of = {r["pid"]: r["process"] for r in records if r["type"] == "PROCESS"}
    writers = {r["writer"]: (r["pid"], r["tid"]) for r in records if r["type"] == "THREAD"}
    thread_ends = {writers.get(r["writer"]): r["time_ns"] for r in records if r["type"] == "WRITER_END"}
    thread_ends.update({writers.get(r["writer"]): r["time_ns"] for r in records
                        if r["type"] == "PHASE" and r["phase"] == "thread_end"})
    # Both are by process. After its main function has returned, time is nobody's, but open frames stay open.
    exits = {r["process"]: r["time_ns"] for r in records if r["type"] == "PHASE" and r["phase"] == "exit"}
    ends = {r["process"]: r["time_ns"] for r in records if r["type"] == "PROCESS_END"}
    threads, lost = {}, {}
    for record in records:
        kind, key, now = record["type"], (record["pid"], record["tid"]), record["time_ns"]
        if kind not in ("ENTER", "EXIT", "EXIT_NAMED", "STACK", "UNWIND", "LOST") or record["pid"] is None:
            continue
        process = process_of[record["pid"]]
        if key not in threads:
            frames = inherited.get(process, []) if record["pid"] == record["tid"] else []
            threads[key] = Thread(counts, frames, forked_ns[record["pid"]] if frames else now)
        thread = threads[key]
        gaps = list(off)
        if kind == "LOST":
            lost[key] = max(record["since_ns"], thread.now_ns), max(now, thread.now_ns)
            thread.run(lost[key][0], gaps)
            continue
        if key in lost:
            gaps.append(lost[key])
        if kind == "STACK":
            known = thread.own()
            # The STACK may have the innermost frames only.
            frames = known[:record["depth"] - len(record["frames"])] + record["frames"]
            same = 0
            while same < min(len(known), len(frames)) and known[same] == frames[same]:
                same += 1
            # Frames that are not open any more ended when the gap began.
            begin = min([now] + [start for start, stop in gaps if stop > thread.now_ns])
            thread.run(max(begin, thread.now_ns), gaps)
            while len(thread.own()) > same:
                thread.leave(thread.now_ns)
            thread.run(now, gaps)
            for name in frames[same:]:
                thread.enter(name, now)
            lost.pop(key, None)
            continue
        thread.run(now, gaps)
        if kind == "ENTER":
            thread.enter(record["function"], now)
        elif kind == "EXIT" or thread.own():
            thread.leave(now)
        elif kind == "EXIT_NAMED":
            while thread.stack and thread.stack[-1].name != record["function"]:
                thread.leave(now)
            if thread.stack:
                thread.leave(now)
    for key, thread in threads.items():
        process = process_of[key[0]]
        end = min(ends[process], thread_ends[key])
        gaps = off + [lost[key]] if key in lost else off
        thread.run(end, gaps + [(exits[process], end)] if process in exits else gaps)
        while thread.stack:
            thread.leave(end, True)
    return counts


class RecountTest(TracedTest):
    def record_program(self, turns, *options, stands_still=False):
        """Records in a session whose functions are off between two parts. With `stands_still`, the collector is
        stopped in the first one."""
        name = f"recount-{os.getpid()}-{turns}"
        trace = self.directory / "trace.data"
        read("create", name, "--start", *options)
        self.addCleanup(arctrace, "destroy", "--force", name)
        with start_arctrace("attach", name, "-o", trace, stderr=subprocess.PIPE, text=True) as collector:
            try:
                collector.stderr.readline()
                if stands_still:
                    collector.send_signal(signal.SIGSTOP)
                    states.wait_until(lambda: states.is_stopped(collector.pid), "the collector stands still")
                with start_arctrace("record", "--no-libcall", f"--session={name}", "--", sys.executable, "-c",
                                    PROGRAM, turns, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True) as program:
                    for change in ("--off=functions", "--on=functions"):
                        self.assertEqual(program.stdout.readline(), "part\n")
                        collector.send_signal(signal.SIGCONT)
                        read("ctl", name, change)
                        program.stdin.write("\n")
                        program.stdin.flush()
                    program.stdin.close()
                    self.assertEqual(program.wait(), 0)
                collector.terminate()
                self.assertEqual(collector.wait(), 0)
            finally:
                collector.kill()
        return trace

    def export(self, trace, form, *options):
        output = self.directory / f"out.{form}"
        read("export", "-o", output, f"--to={form}", "--force", *options, trace)
        return output.read_text()

    def test_without_losses(self):
        trace = self.record_program(100)
        self.assertEqual(read_info(trace)["summary"]["lost"], 0)
        self.check(trace)

    def test_with_losses(self):
        trace = self.record_program(3000, "-b", "64k", "--block-size=4k", stands_still=True)
        self.assertGreater(read_info(trace)["summary"]["lost"], 0)
        self.check(trace)

    def check(self, trace):
        processes = read_info(trace)["processes"]
        expected = recount(read_dump(trace), {p["pid"]: p["start_ns"] for p in processes})
        self.assertLessEqual(set(NAMES), set(expected.values()))
        self.check_reports(trace, expected)
        self.check_csv(trace, expected)
        self.check_folded(trace, expected)
        self.check_chrome(trace, expected)

    def check_reports(self, trace, expected):
        rows = read_report(trace, "flat")["functions"]
        found = {r["name"]: (r["calls"], r["base_ns"], r["cum_ns"]) for r in rows if r["name"] in NAMES}
        self.assertEqual(found, expected.values())
        found = collections.Counter()
        for thread in read_report(trace, "tree")["threads"]:
            for node, _ in walk(thread["root"]):
                found[node["name"]] += node["base_ns"]
        self.assertEqual({name: found[name] for name in NAMES}, {name: expected.self_ns[name] for name in NAMES})

    def check_csv(self, trace, expected):
        calls, own_ns, still_open = (collections.Counter() for _ in range(3))
        for row in csv.DictReader(io.StringIO(self.export(trace, "csv"))):
            if row["type"] in ("call", "frame") and row["name"] in NAMES:
                calls[row["name"]] += row["type"] == "call"
                own_ns[row["name"]] += int(row["self_ns"])
                still_open[row["name"]] += "open at the end" in row["flags"]
        self.assertEqual((calls, own_ns, still_open), (expected.calls, expected.self_ns, expected.open))

    def check_folded(self, trace, expected):
        for weight, sums in (("wall", expected.self_ns), ("count", expected.calls)):
            found = collections.Counter()
            for line in self.export(trace, "folded", f"--weight={weight}").splitlines():
                stack, number = re.fullmatch(r"(.*) ([0-9]+)", line).groups()
                found[stack.split(";")[-1]] += int(number)
            self.assertEqual({name: found[name] for name in NAMES}, {name: sums[name] for name in NAMES}, weight)

    def check_chrome(self, trace, expected):
        """The times of calls that ended, and how many did not."""
        ended_ns, begun = collections.Counter(), collections.defaultdict(list)
        for event in json.loads(self.export(trace, "chrome"))["traceEvents"]:
            # A mark distinguishes the frames of a fork's child.
            shown = event["name"].removesuffix(" [inherited by fork]")
            if event["ph"] == "X":
                ended_ns[shown] += round(event["dur"] * 1000)
            elif event["ph"] == "B":
                begun[event["pid"], event["tid"]].append((shown, event["ts"]))
            elif event["ph"] == "E":
                name, begin = begun[event["pid"], event["tid"]].pop()
                self.assertEqual(name, shown)
                ended_ns[name] += round(event["ts"] * 1000) - round(begin * 1000)
        still_open = collections.Counter(name for lane in begun.values() for name, _ in lane)
        for name in NAMES:
            self.assertEqual((ended_ns[name], still_open[name]), (expected.ended_ns[name], expected.open[name]), name)

    def test_kernel_records(self):
        """Compares the views threads and log-rt with SWITCH and WAKING."""
        done = whole(self, lambda: self.record(sys.executable, "-c", support.API + NAPS,
                                               options=("--kernel", "--no-libcall")))
        records = read_dump(done.trace)
        if not any(r["type"] == "WAKING" for r in records):
            self.skipTest("recorded without the kernel, or by perf events")
        threads = read_report(done.trace, "threads")["threads"]
        self.assertGreaterEqual(len(threads), 3)
        self.check_log_rt(done.trace, records, {
            t["tid"]: (t["states"][0]["start_ns"], t["states"][-1]["start_ns"] + t["states"][-1]["duration_ns"])
            for t in threads})
        for thread in threads:
            states = thread["states"]
            now, state = states[0]["start_ns"], states[0]["state"]
            until = states[-1]["start_ns"] + states[-1]["duration_ns"]
            found = collections.Counter()
            for record in records:
                if record["type"] not in ("SWITCH", "WAKING") or record["time_ns"] <= now:
                    continue
                if record["type"] == "WAKING" and record["woken_tid"] == thread["tid"]:
                    after = "ready" if state == "blocked" else state
                elif record["type"] == "SWITCH" and record["next_tid"] == thread["tid"]:
                    after = "running"
                elif record["type"] == "SWITCH" and record["tid"] == thread["tid"]:
                    after = "ready" if record["state"] == "ready" else "blocked"
                else:
                    continue
                time_ns = min(record["time_ns"], until)
                found[state] += time_ns - now
                now, state = time_ns, after
                if time_ns == until:
                    break
            found[state] += until - now
            self.assertEqual(dict(found + collections.Counter()),
                             {s: thread[f"{s}_ns"] for s in ("running", "ready", "blocked") if thread[f"{s}_ns"]},
                             f"thread {thread['tid']}")

    def check_log_rt(self, trace, records, lives):
        """lives: from when to when each thread was there, by tid."""
        found, tid = collections.defaultdict(lambda: [0, 0]), None
        for row in read_report(trace, "log-rt")["log_rt"]:
            if row["lv"] == 0:
                tid = int(re.search(r"/([0-9]+)", row["name"])[1])
            found[tid][0] += row["ds"]
            found[tid][1] += row["in"]
        expected = collections.defaultdict(lambda: [0, 0])
        for record in records:
            begin, end = lives.get(record["tid"], (0, 0))
            if begin < record["time_ns"] <= end:
                expected[record["tid"]][0] += record["type"] == "SWITCH"
                expected[record["tid"]][1] += record["type"] == "WAKING" and record["context"] != "thread"
        self.assertEqual(found, expected)
        self.assertTrue(all(switches for switches, _ in found.values()))


if __name__ == "__main__":
    cases.main()
