"""Time of which records are missing is shown as such, and belongs to no function: functions that were off,
overwritten records, losses."""

import os
import subprocess
import sys
import time

import cases
import support
from command import arctrace, read, read_dump, read_info, read_report, start_arctrace
from tracing import TracedTest

# Calls tick() for ever, each time for some milliseconds; for each line of its input prints when it has made
# three more calls; ends when its input does.
TICKS = support.API + """
main, tick = key("main_loop"), key("tick")
count, wanted, end = 0, 3, False
def wait_for_input():
    global wanted, end
    for line in sys.stdin: wanted = count + 4  # the one under way may have begun before
    end = True
threading.Thread(target=wait_for_input).start()
api.arctrace_enter(main)
while not end:
    api.arctrace_enter(tick)
    time.sleep(0.002)
    api.arctrace_exit(tick)
    count += 1
    if wanted is not None and count >= wanted:
        wanted = None
        print("ticked", flush=True)
api.arctrace_exit(main)
"""
# Writes far more records than fit into the buffer.
FLOOD = support.API + """
f = key("f")
for i in range(20000):
    api.arctrace_enter(f)
    api.arctrace_exit(f)
"""
# Three threads that alternate: some write little, and some enough for blocks of their own.
THREADS = support.API + """
f, g = key("f"), key("g")
def work(times):
    for i in range(20):
        api.arctrace_enter(f)
        for j in range(times):
            api.arctrace_enter(g)
            api.arctrace_exit(g)
        time.sleep(0.002)
        api.arctrace_exit(f)
threads = [threading.Thread(target=work, args=(times,)) for times in (1, 20, 500)]
for thread in threads: thread.start()
for thread in threads: thread.join()
work(3)
"""


def nodes(node):
    yield node
    for child in node["children"]:
        yield from nodes(child)


class GapsTest(TracedTest):
    def wait_for_ticks(self, program):
        program.stdin.write("\n")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), "ticked\n")

    def record_with_functions_off(self, seconds):
        """The trace, and how long functions were off at least."""
        name = f"gaps-{self.id().rsplit('.', 1)[1]}-{time.monotonic_ns()}"
        trace = self.directory / "ticks.data"
        read("create", name, "--start")
        self.addCleanup(arctrace, "destroy", "--force", name)
        with start_arctrace("attach", name, "-o", trace, stderr=subprocess.PIPE, text=True) as collector:
            collector.stderr.readline()
            with start_arctrace("record", "--no-libcall", f"--session={name}", "--", sys.executable, "-c", TICKS,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
                self.assertEqual(program.stdout.readline(), "ticked\n")
                read("ctl", name, "--off=functions")
                begin = time.monotonic()
                time.sleep(seconds)
                off = time.monotonic() - begin
                read("ctl", name, "--on=functions")
                self.wait_for_ticks(program)
                program.stdin.close()
                self.assertEqual(program.wait(), 0)
            collector.terminate()
            self.assertEqual(collector.wait(), 0)
        return trace, off

    @cases.in_gate
    def test_functions_off(self):
        trace, off = self.record_with_functions_off(1)
        tree = read_report(trace, "tree")
        gaps = [gap for gap in tree["gaps"] if gap["reason"] == "functions off"]
        self.assertEqual(len(gaps), 1, tree["gaps"])
        self.assertGreaterEqual(gaps[0]["to_ns"] - gaps[0]["from_ns"], off * 1e9)
        self.assertIsNone(gaps[0]["tid"])
        threads = [t for t in tree["threads"]
                   if any(n["name"] == "tick" for n in nodes(t["root"]))]
        self.assertEqual(len(threads), 1)
        base = {}
        for node in nodes(threads[0]["root"]):
            base[node["name"]] = base.get(node["name"], 0) + node["base_ns"]
        self.assertGreaterEqual(base["[functions off]"], off * 0.99e9)
        # The ticks were recorded for far less time than the gap has.
        self.assertLess(base["tick"], threads[0]["root"]["cum_ns"] - off * 0.99e9)
        for view in ("flat", "flow", "invocations", "kinds", "log-rt"):
            self.assertEqual(read_report(trace, view)["gaps"], tree["gaps"], view)
        lines = [r for r in read_dump(trace) if r["type"] == "GAP"]
        self.assertIn("functions off", [r["reason"] for r in lines])
        enabled = [r["gate"] for r in read_dump(trace) if r["type"] == "ENABLED"]
        self.assertEqual(enabled, ["all", "events, marks, kernel", "all"])

    def test_a_buffer_that_is_read_as_it_is(self):
        """A snapshot has no records of the recorder, but its control page has the same facts."""
        session = f"gaps-{os.getpid()}"
        read("create", session, "-b", "1M", "--block-size", "8k", "--start", "--mode=overwrite")
        self.addCleanup(arctrace, "destroy", "--force", session)
        with start_arctrace("record", "--no-libcall", f"--session={session}", "--", sys.executable, "-c", TICKS,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            self.assertEqual(program.stdout.readline(), "ticked\n")
            read("ctl", session, "--off=functions")
            time.sleep(0.5)
            read("ctl", session, "--on=functions")
            self.wait_for_ticks(program)
            program.stdin.close()
        snapshot = self.directory / "snapshot"
        read("snapshot", session, "-o", snapshot)
        for path in (session, snapshot):
            functions = {f["name"]: f for f in read_report(path, "flat")["functions"]}
            self.assertGreaterEqual(functions["[functions off]"]["cum_ns"], 500_000_000)
            self.assertIn("[loader]", functions)  # record has noted the exec
            off, = [g for g in read_report(path, "summary")["gaps"] if g["reason"] == "functions off"]
            length = off["to_ns"] - off["from_ns"]
            self.assertGreaterEqual(length, 500_000_000)
            # The gap lasts to the thread's end, however long that is on a busy machine.
            life, = [t["root"]["cum_ns"] for t in read_report(path, "tree")["threads"]
                     if any(n["name"] == "tick" for n in nodes(t["root"]))]
            self.assertLess(functions["tick"]["base_ns"], life - 0.99 * length)
        kinds = [[(r["type"], r["gate"]) for r in read_dump(path, "--type", "ENABLED")]
                 for path in (session, snapshot)]
        self.assertEqual(*kinds)
        self.assertEqual([gate for _, gate in kinds[0]], ["all", "events, marks, kernel", "all"])

    def test_overwritten(self):
        done = self.record(sys.executable, "-c", FLOOD,
                           options=("--no-libcall", "--mode=overwrite", "-b", "64k",
                                    "--block-size", "1k"))
        self.assertEqual(done.status, 0, done.stderr)
        report = read_report(done.trace, "flat")
        gaps = [g for g in report["gaps"] if g["reason"] == "overwritten"]
        self.assertTrue(gaps, report["gaps"])
        self.assertTrue(all(g["tid"] and g["from_ns"] < g["to_ns"] for g in gaps), gaps)
        lines = [r for r in read_dump(done.trace) if r["type"] == "GAP"]
        self.assertEqual(len(lines), len(report["gaps"]))
        text = read("dump", done.trace)
        self.assertIn(" GAP          overwritten of=thread ", text)

    def test_nothing_is_overwritten(self):
        """The buffer is large enough: no gap is invented, in blocks of whatever scope."""
        for scope in ("adaptive", "thread", "shared"):
            with self.subTest(scope=scope):
                done = self.record(sys.executable, "-c", THREADS,
                                   options=("--no-libcall", "--mode=overwrite", "-b", "8M",
                                            f"--scope={scope}"))
                self.assertEqual(done.status, 0, done.stderr)
                tree = read_report(done.trace, "tree")
                self.assertEqual(tree["summary"]["overwritten"], 0)
                self.assertEqual(tree["gaps"], [])
                names = {n["name"] for t in tree["threads"] for n in nodes(t["root"])}
                self.assertIn("f", names)
                self.assertNotIn("[overwritten]", names)
                self.assertNotIn("GAP", {r["type"] for r in read_dump(done.trace)})

    def test_names_in_a_full_buffer(self):
        """Processes that begin when there is no space for records any more have their names."""
        for scope in ("thread", "shared", "adaptive"):
            done = self.record("sh", "-c", '"$@"; for i in 1 2 3 4 5; do /bin/true; done', "sh",
                               sys.executable, "-c", FLOOD,
                               options=("--no-libcall", "--mode=stop", "-b", "384k",
                                        "--block-size", "4k", f"--scope={scope}"))
            info = read_info(done.trace)
            self.assertGreater(info["summary"]["lost_by_cause"]["full"], 1000)
            self.assertEqual(len(info["processes"]), info["summary"]["processes"], scope)
            programs = [p["executable"].rsplit("/", 1)[-1] for p in info["processes"]]
            self.assertEqual(programs.count("true"), 5)

    def test_losses(self):
        done = self.record(sys.executable, "-c", FLOOD,
                           options=("--no-libcall", "--mode=stop", "-b", "64k",
                                    "--block-size", "1k"))
        report = read_report(done.trace, "flat")
        lost = report["summary"]["lost"]
        self.assertGreater(lost, 0)
        self.assertEqual(sum(g["records"] for g in report["gaps"]), lost)
        self.assertEqual({g["reason"] for g in report["gaps"]}, {"lost: full"})
        gaps = [record for record in done.records() if record["type"] == "GAP"]
        self.assertEqual(sum(gap["records"] for gap in gaps), lost)
        self.assertEqual(done.records("--type", "GAP"), gaps)
        self.assertEqual([record["type"] for record in done.records("--type", "GAP,PROCESS")
                          if record["type"] != "GAP"], ["PROCESS"])


if __name__ == "__main__":
    cases.main()
