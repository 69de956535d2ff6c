"""Interrupts that come upon recorded threads are as many as the kernel counts, are nobody's own time, and are shown
for each CPU."""

import collections
import json
import os
import platform
import sys
import unittest

import cases
from command import arctrace, read_dump, read_report
from kernel_programs import NO_KERNEL, whole
from support import API
from tracing import TracedTest

# One thread computes on one CPU until that has had 40 interrupts of its timer, and another one sleeps there most of
# the time. Prints the numbers of both, and what the kernel counted on this CPU meanwhile, and around that.
BUSY_AND_ASLEEP = API + """
import json
cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})

def counts():
    found = {}
    for path in ("/proc/interrupts", "/proc/softirqs"):
        with open(path) as lines:
            column = next(lines).split().index(f"CPU{cpu}")
            for line in lines:
                what, *numbers = line.split()
                if len(numbers) > column and numbers[column].isdigit():
                    found[what.rstrip(":")] = int(numbers[column])
    return found

is_over = False
tids = []
def sleep():
    tids.append(threading.get_native_id())
    while not is_over: time.sleep(0.02)

sleeper = threading.Thread(target=sleep)
sleeper.start()
before = counts()
api.arctrace_instant(name("begin"))
inner = counts()
while counts()["LOC"] - inner["LOC"] < 40:
    end = time.monotonic() + 0.05
    while time.monotonic() < end: pass
api.arctrace_instant(name("end"))
after = counts()
is_over = True
sleeper.join()
print(json.dumps({"cpu": cpu, "busy": threading.get_native_id(), "asleep": tids[0],
                  "counted": {what: after[what] - before.get(what, 0) for what in after}}))
"""

# /proc/softirqs has other words.
SOFTIRQS = {"hi": "HI", "timer": "TIMER", "net-tx": "NET_TX", "net-rx": "NET_RX", "block": "BLOCK",
            "irq-poll": "IRQ_POLL", "tasklet": "TASKLET", "sched": "SCHED", "hrtimer": "HRTIMER", "rcu": "RCU"}
CPU_INTERRUPTS = {"timer interrupt": "LOC", "reschedule interrupt": "RES", "call interrupt": "CAL",
                  "work interrupt": "IWI"}


def covered_ns(records):
    """How much time the interrupts of one CPU took, counting nested ones once."""
    covered, until = 0, 0
    for record in sorted(records, key=lambda r: r["time_ns"]):
        end = record["time_ns"] + record["duration_ns"]
        covered += max(end - max(record["time_ns"], until), 0)
        until = max(until, end)
    return covered


class OptionsTest(TracedTest):
    @cases.in_gate
    def test_perf_events_have_no_interrupts(self):
        done = arctrace("record", "--kernel=perf,irq", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn('--kernel: "perf,irq": interrupts are recorded by BPF alone', done.stderr)


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
@unittest.skipUnless(platform.machine() == "x86_64", "the processor's own interrupts are told on x86-64 only")
class InterruptsTest(TracedTest):
    @cases.in_gate
    def test_as_many_as_the_kernel_counts(self):
        done = whole(self, lambda: self.record(sys.executable, "-c", BUSY_AND_ASLEEP,
                                               options=("--kernel=bpf,irq", "--no-libcall")))
        self.assertEqual(done.status, 0, done.stderr)
        told = json.loads(done.stdout)
        records = read_dump(done.trace, "--type", "INTERRUPT")
        self.check_counts(done.trace, told, records)
        self.check_who_was_interrupted(done.trace, told, records)
        self.check_times(done.trace, records)

    def check_counts(self, trace, told, records):
        begin, end = (r["time_ns"] for r in read_dump(trace, "--type", "INSTANT") if r["tid"] == told["busy"])
        found = collections.Counter()
        for record in records:
            if record["cpu"] != told["cpu"] or not begin <= record["time_ns"] <= end:
                continue
            word = record["interrupt"].removeprefix("softirq ")
            found[(SOFTIRQS if record["kind"] == "softirq" else CPU_INTERRUPTS).get(word, record["name"])] += 1
        for what, count in found.items():
            if what in told["counted"]:  # devices have other names there
                self.assertLessEqual(count, told["counted"][what], what)
        # Timers end while the thread computes, and the kernel's deferred work comes after them.
        share = self.share_of_cpu(trace, told["busy"], begin, end)
        self.assertGreaterEqual(found["LOC"], 40 * share / 2, (found, share))
        self.assertGreater(sum(found[what] for what in SOFTIRQS.values()), 0, found)
        in_rows = sum(row["in"] for row in read_report(trace, "log-rt")["log_rt"])
        self.assertGreaterEqual(in_rows, sum(found.values()))

    def share_of_cpu(self, trace, tid, begin, end):
        thread, = (t for t in read_report(trace, "threads")["threads"] if t["tid"] == tid)
        on_cpu = sum(max(min(s["start_ns"] + s["duration_ns"], end) - max(s["start_ns"], begin), 0)
                     for s in thread["states"]
                     if s["state"] == "running" or s.get("reason") == "interrupted")
        return on_cpu / (end - begin)

    def check_who_was_interrupted(self, trace, told, records):
        """A thread without a CPU has no interrupt: one that ends a sleep comes upon the thread that runs then."""
        switches = read_dump(trace, "--type", "SWITCH")
        for tid in (told["busy"], told["asleep"]):
            begun = [r["time_ns"] for r in records if r["tid"] == tid]
            off_ns, since = 0, None
            for switch in switches:
                if switch["tid"] == tid:
                    since = switch["time_ns"]
                elif switch["next_tid"] == tid and since is not None:
                    off_ns += switch["time_ns"] - since
                    self.assertEqual([t for t in begun if since < t < switch["time_ns"]], [], switch)
                    since = None
            self.assertGreater(off_ns, 0, tid)
        self.assertTrue(any(r["tid"] == told["busy"] for r in records))

    def check_times(self, trace, records):
        """The time of interrupts is the same in all views, and in none the interrupted thread's own."""
        threads = read_report(trace, "threads")["threads"]
        for thread in threads:
            states = collections.Counter()
            for state in thread["states"]:
                states[state.get("reason") if state["state"] == "ready" else state["state"]] += state["duration_ns"]
            self.assertEqual(states["interrupted"], thread.get("interrupted_ns", 0))
            self.assertEqual(states["running"], thread["running_ns"])
            self.assertEqual(states["interrupted"] + states["preempted"] + states["woken"], thread["ready_ns"])
        interrupted_ns = sum(t.get("interrupted_ns", 0) for t in threads)
        self.assertGreater(interrupted_ns, 0)
        rows = {row["name"]: row for row in read_report(trace, "flat")["functions"]}
        self.assertEqual(rows["[interrupts]"]["base_ns"], interrupted_ns)
        rows = {row["name"]: row for row in read_report(trace, "flat", "--clock=cpu")["functions"]}
        self.assertEqual(rows["[interrupts]"]["base_ns"], 0)
        by_cpu = collections.defaultdict(list)
        for record in records:
            by_cpu[record["cpu"]].append(record)
        trees = {t["name"]: t["root"] for t in read_report(trace, "tree")["threads"]
                 if t["name"].startswith("Interrupt CPU ")}
        self.assertEqual(set(trees), {f"Interrupt CPU {cpu}" for cpu in by_cpu})
        for cpu, of_cpu in by_cpu.items():
            root = trees[f"Interrupt CPU {cpu}"]
            self.assertEqual(root["base_ns"], 0)
            # The last one may have lasted longer than the recording.
            self.assertAlmostEqual(root["cum_ns"] / covered_ns(of_cpu), 1, delta=0.01)

    def test_exports_have_a_lane_for_each_cpu(self):
        done = self.record(sys.executable, "-c", BUSY_AND_ASLEEP, options=("--kernel=bpf,irq", "--no-libcall"))
        path = self.directory / "out.json"
        self.assertEqual(arctrace("export", "--to=chrome", "-o", path, done.trace).returncode, 0)
        events = json.loads(path.read_text())["traceEvents"]
        lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == 0}
        self.assertIn(f"Interrupt CPU {json.loads(done.stdout)['cpu']}", lanes.values())
        self.assertIn("K:timer interrupt", {e["name"] for e in events if e["pid"] == 0})
        self.assertIn("ready: interrupted", {e["name"] for e in events})

    def test_off_by_default(self):
        done = self.record("true", options=("--kernel=bpf", "--no-libcall"))
        self.assertEqual(read_dump(done.trace, "--type", "INTERRUPT"), [])


if __name__ == "__main__":
    cases.main()
