"""Which events, and which processes' and threads' records, a session records: set by the options of record and create,
and by ctl while programs run."""

import collections
import os
import subprocess
import sys

import cases
import support
from command import ARCTRACE, arctrace, read, read_dump, read_info, read_report, refused, start_arctrace
from states import wait_until
from trace_checks import walk
from tracing import TracedTest

# Events of three names and levels, copied and in place; the last one is defined after some records.
EVENTS = support.API + """
api.arctrace_reserve.restype = ctypes.c_void_p
ring, f = name("ring"), key("f")
query = api.arctrace_define_event(b"db.query", 1, None, 0)
row = api.arctrace_define_event(b"db.row", 5, None, 0)
api.arctrace_write(query, None, 0)
frame = api.arctrace_define_event(b"ui.frame", 3, None, 0)
for i in range(10):
    for event in (query, row, frame):
        api.arctrace_write(event, None, 0)
        held = api.arctrace_reserve(event, 0)
        if held: api.arctrace_commit(ctypes.c_void_p(held))
    api.arctrace_instant(ring)
    api.arctrace_enter(f)
    api.arctrace_exit(f)
"""
ALL_EVENTS = {"db.query": 21, "db.row": 20, "ui.frame": 20}

# Instants and counters of three names, one of which is defined after some records, and records without a name.
INSTANTS = support.API + """
length, full = name("queue.length"), name("queue.full")
event = api.arctrace_define_event(b"tick", 0, None, 0)
api.arctrace_instant(full)
tick = name("tick")
"""
INSTANTS_ROUND = """
for i in range(10):
    api.arctrace_counter(length, ctypes.c_int64(i))
    api.arctrace_instant(full)
    api.arctrace_instant(tick)
    api.arctrace_text(b"text")
    api.arctrace_mark(b"mark")
    api.arctrace_write(event, None, 0)
"""
ALL_INSTANTS = {"queue.length": 10, "queue.full": 11, "tick": 10}

TYPED_EVENTS = os.environ.get("ARCTRACE_TYPED_EVENTS", "")

# Two threads and a child that has two, each of which loops in a function of its own. Prints their numbers; ends when
# its input does.
THREADS = support.API + """
libc = ctypes.CDLL(None)
event = api.arctrace_define_event(b"round", 0, None, 0)
ring = name("ring")
end = False
def work(what, numbers):
    outer, inner = key(what), key(what + ".inner")
    numbers.append(threading.get_native_id())
    api.arctrace_enter(outer)
    while not end:
        api.arctrace_enter(inner)
        api.arctrace_write(event, None, 0)
        api.arctrace_instant(ring)
        time.sleep(0.001)
        api.arctrace_exit(inner)
    api.arctrace_exit(outer)
def begin(names):
    numbers = []
    threads = [threading.Thread(target=work, args=(what, numbers)) for what in names]
    for thread in threads: thread.start()
    while len(numbers) < len(names): time.sleep(0.001)
    os.write(1, (" ".join(map(str, [names[0], os.getpid(), *numbers])) + os.linesep).encode())
    sys.stdin.read()
    global end
    end = True
    for thread in threads: thread.join()
child = os.fork()
begin(["c1", "c2"] if child == 0 else ["p1", "p2"])
if child != 0: os.waitpid(child, 0)
"""


class RecordFilterTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.name = f"filter-{os.getpid()}-{self.id().rsplit('.', 1)[1]}"[:64]

    def ctl(self, *options):
        done = arctrace("ctl", self.name, *options)
        self.assertEqual(done.returncode, 0, done.stderr)

    def create(self, *options):
        done = arctrace("create", self.name, "-b", "4M", "--block-size", "8k", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(arctrace, "destroy", "--force", self.name)

    def events(self, *options):
        """How often each event was recorded by EVENTS, after checking that nothing else is different."""
        recorded = self.record(sys.executable, "-c", EVENTS,
                               options=("--no-libcall", *options))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        self.assertIn(" 0 lost", recorded.stderr)
        records = read_dump(recorded.trace)
        types = collections.Counter(r["type"] for r in records)
        self.assertEqual([types[t] for t in ("INSTANT", "ENTER", "EXIT")], [10, 10, 10])
        return dict(collections.Counter(r["event"] for r in records if r["type"] == "EVENT"))

    @cases.in_gate
    def test_events_by_name_and_level(self):
        self.assertEqual(self.events(), ALL_EVENTS)
        self.assertEqual(self.events("--event=db.*"), {"db.query": 21, "db.row": 20})
        self.assertEqual(self.events("--event=db.*", "--event=ui.*"), ALL_EVENTS)
        self.assertEqual(self.events("--no-event=*row"), {"db.query": 21, "ui.frame": 20})
        self.assertEqual(self.events("--event=db.*", "--no-event=*row"), {"db.query": 21})
        self.assertEqual(self.events("--level=3"), {"db.query": 21, "ui.frame": 20})
        self.assertEqual(self.events("--level=0"), {})
        self.assertEqual(self.events("--event=ui.frame", "--level=3"), {"ui.frame": 20})
        self.assertEqual(self.events("--event=nothing"), {})
        self.assertEqual(self.events("--event=db.*", "--scope=shared"),
                         {"db.query": 21, "db.row": 20})

    @cases.in_gate
    def test_events_of_the_class_by_level(self):
        """arctrace::Level before the fields of an arctrace::Event; without it, the level is 0."""
        recorded = self.record(TYPED_EVENTS, options=("--no-libcall",))
        self.assertEqual({r["name"]: r["level"] for r in recorded.records("--type=EVENT_LAYOUT")},
                         {"db.query": 1, "db.row": 5, "ui.frame": 0})
        for level, names in ((5, ["db.query", "db.row", "ui.frame"]), (4, ["db.query", "ui.frame"]),
                             (1, ["db.query", "ui.frame"]), (0, ["ui.frame"])):
            recorded = self.record(TYPED_EVENTS, options=("--no-libcall", f"--level={level}"))
            events = collections.Counter(r["event"] for r in recorded.records("--type=EVENT"))
            self.assertEqual(events, dict.fromkeys(names, 10), level)
            self.assertIn(" 0 lost", recorded.stderr)

    def recording(self, *options, source=EVENTS):
        """Returns what record prints on standard error, and the trace."""
        recorded = self.record(sys.executable, "-c", source, options=("--no-libcall", *options))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        return recorded.stderr, recorded.trace

    def test_what_matches_no_event_is_said(self):
        said, _ = self.recording("--event=db.qeury")
        self.assertIn('no event matches --event db.qeury; did you mean "db.query"?', said)
        said, _ = self.recording("--no-event=uiframe", "--mode=overwrite")
        self.assertIn('no event matches --no-event uiframe; did you mean "ui.frame"?', said)
        said, _ = self.recording("--level=0")
        self.assertIn("no event has level 0 or less: the lowest that programs have defined is 1", said)
        said, _ = self.recording("--event=db.row", "--level=3")
        self.assertIn("together admit none of the events", said)
        said, _ = self.recording("--event=db.*", source="pass")
        self.assertIn("no event matches --event db.*: programs have defined none", said)
        for options in ([], ["--event=db.*"], ["--no-event=*row"], ["--level=1"]):
            said, _ = self.recording(*options)
            self.assertNotIn("warning", said)

    def instants(self, *options, source=INSTANTS + INSTANTS_ROUND, rounds=1):
        """How often instants and counters of each name were recorded, after checking that nothing else is
        different."""
        said, trace = self.recording(*options, source=source)
        self.assertIn(" 0 lost", said)
        records = read_dump(trace)
        types = collections.Counter(r["type"] for r in records)
        self.assertEqual([types[of] for of in ("EVENT", "TEXT", "MARK")], [10 * rounds] * 3)
        return dict(collections.Counter(r["name"] for r in records if r["type"] in ("INSTANT", "COUNTER")))

    @cases.in_gate
    def test_instants_and_counters_by_name(self):
        self.assertEqual(self.instants(), ALL_INSTANTS)
        self.assertEqual(self.instants("--mark=queue.*"), {"queue.length": 10, "queue.full": 11})
        self.assertEqual(self.instants("--mark=tick", "--mark=*length"), {"queue.length": 10, "tick": 10})
        self.assertEqual(self.instants("--no-mark=*full"), {"queue.length": 10, "tick": 10})
        self.assertEqual(self.instants("--mark=queue.*", "--no-mark=*full"), {"queue.length": 10})
        self.assertEqual(self.instants("--mark=nothing"), {})
        self.assertEqual(self.instants("--mark=queue.*", "--scope=shared"), {"queue.length": 10, "queue.full": 11})
        self.assertEqual(self.instants("--level=0", "--event=tick"), ALL_INSTANTS)

    @cases.in_gate
    def test_instants_and_counters_by_name_while_a_program_runs(self):
        def ctl(*options):
            return f"subprocess.run([{ARCTRACE!r}, 'ctl', os.environ['ARCTRACE_SESSION'], *{options!r}], check=True)\n"
        source = (f"{INSTANTS}\nimport subprocess\n{INSTANTS_ROUND}{ctl('--mark=tick')}{INSTANTS_ROUND}"
                  f"{ctl('--no-mark=tick')}{INSTANTS_ROUND}{ctl('--record-all')}{INSTANTS_ROUND}")
        self.assertEqual(self.instants(source=source, rounds=4), {"queue.length": 30, "queue.full": 31, "tick": 30})

    def test_what_matches_no_instant_or_counter_is_said(self):
        def said(*options, source=INSTANTS + INSTANTS_ROUND):
            return self.recording(*options, source=source)[0]
        self.assertIn('no instant or counter matches --mark qeue.full; did you mean "queue.full"?',
                      said("--mark=qeue.full"))
        self.assertIn("no instant or counter matches --no-mark tock", said("--no-mark=tock"))
        self.assertIn("no instant or counter matches --mark a*: programs have defined none",
                      said("--mark=a*", source="pass"))
        self.assertIn("--mark and --no-mark together admit none", said("--mark=tick", "--no-mark=t*"))
        for options in (["--mark=queue.*"], ["--no-mark=tick"]):
            self.assertNotIn("warning", said(*options))

    @cases.in_gate
    def test_classes_that_are_off_at_first(self):
        again = EVENTS[EVENTS.index("for i in"):]
        source = (f"{EVENTS}\nimport subprocess\nsubprocess.run([{ARCTRACE!r}, 'ctl', os.environ['ARCTRACE_SESSION'],"
                  f" '--on=events,marks'], check=True)\n{again}")

        def types(*options):
            said, trace = self.recording(*options, source=source)
            self.assertIn(" 0 lost", said)
            counts = collections.Counter(record["type"] for record in read_dump(trace))
            gaps = [gap["reason"] for gap in read_report(trace, "summary")["gaps"]]
            return [counts[of] for of in ("EVENT", "INSTANT", "ENTER")], gaps

        self.assertEqual(types(), ([121, 20, 20], []))
        self.assertEqual(types("--off=events"), ([60, 20, 20], ["events off"]))
        self.assertEqual(types("--off=events,marks"), ([60, 10, 20], ["events, marks off"]))
        self.assertEqual(types("--off=functions"), ([121, 20, 0], ["functions off"]))
        self.assertEqual(types("--off=all"), ([60, 10, 0], ["recording off", "functions, kernel off"]))
        refused("record", "--off=everything", "--", "true")

    @cases.in_gate
    def test_info_of_a_file_has_the_filter(self):
        _, trace = self.recording("--event=db.*", "--level=3")
        enabled = read_info(trace)["enabled"]
        self.assertEqual([(e["recorded"], e["live_filter"], e["record_filter"]) for e in enabled[:1]],
                         [("all", [], ["event:db.*", "level:3"])])
        self.assertIn("s on: all; record filter: event:db.* level:3\n", arctrace("info", trace).stdout)
        _, trace = self.recording()
        self.assertEqual(read_info(trace)["enabled"][0]["record_filter"], [])
        self.assertNotIn("recorded from", arctrace("info", trace).stdout)

    def test_filters_that_the_buffer_does_not_have_any_more(self):
        """Each change is listed, without a claim which of the two filters it was."""
        self.create()
        self.assertEqual(arctrace("start", self.name).returncode, 0)
        for options in (["--level=3"], ["--event=x"], ["--event=y"]):
            self.assertEqual(arctrace("ctl", self.name, *options).returncode, 0)
        enabled = read_info(self.name)["enabled"]
        self.assertEqual([(e["live_filter"], e["record_filter"]) for e in enabled[-3:]],
                         [(["?"], ["?"]), (["?"], ["?"]), ([], ["event:y"])])
        text = arctrace("info", self.name).stdout
        self.assertEqual(text.count("; filters: not known any more\n"), 2, text)

    def test_the_hint_about_functions_knows_of_filters(self):
        def hint(*options):
            recorded = self.record("/bin/true", options=options)
            text = arctrace("report", recorded.trace).stdout
            return text[text.index("functions of true itself"):].splitlines()[0]
        self.assertIn("record it with -P ., or compile it with", hint())
        for options in (["-F", "nothing"], ["--notrace=*"], ["-D1"], ["-t", "1s"]):
            self.assertIn("switched off or filtered out", hint(*options), options)

    @cases.in_gate
    def test_what_cannot_be_a_filter_is_refused(self):
        self.create()
        long_names = [f"--event=name_{i:04}*" for i in range(40)]
        for options in (long_names, ["--level=8"], ["--event=a["], ["--pid=-1"], ["--tid=x"],
                        ["--pid=1", "--record-all"]):
            done = arctrace("ctl", self.name, *options)
            self.assertEqual(done.returncode, 2, options)
            self.assertNotEqual(done.stderr, "")
        self.assertEqual(read_info(self.name)["buffer"]["record_filter"], [])

    def start(self):
        """Starts THREADS; returns the process, pid and tids of the parent and of the child."""
        process = start_arctrace("record", "--no-libcall", f"--session={self.name}", "--", sys.executable, "-c",
                                 THREADS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        lines = sorted(process.stdout.readline().split() for _ in range(2))
        child, parent = [[int(n) for n in numbers] for _, *numbers in lines]
        return process, parent, child

    def end(self, process):
        process.stdin.close()
        self.assertEqual(process.wait(timeout=300), 0)

    def written(self, tids):
        """The number of records of each of these threads; 0 of one that has written none yet."""
        slots = read_info(self.name)["buffer"]["slots"]
        return collections.Counter({s["tid"]: s["written"] for s in slots if s["tid"] in tids})

    def wait_until_written(self, tids, count):
        """Waits until each of these threads has written so many records more."""
        before = self.written(tids)

        def have_written():
            after = self.written(tids)
            return all(after[tid] >= before[tid] + count for tid in tids)

        wait_until(have_written, lambda: f"{count} records more than {before}: {self.written(tids)}")

    def assert_moving(self, tids, expected):
        """Checks that these of the threads write and the others do not. The writing threads set the pace, so that
        delays of a busy machine do not matter."""
        self.wait_until_written(expected, 20)  # records that had been begun are written
        before = self.written(tids)
        self.wait_until_written(expected, 20)
        after = self.written(tids)
        # A thread that got no CPU since may have been in a record, or behind its gate, when the filter changed.
        self.assertEqual({tid for tid in tids if after[tid] > before[tid] + 1}, set(expected))

    def newest(self):
        """By type, when the last EVENT and INSTANT of the buffer were written; the buffer has space for a few seconds,
        so that older ones may be gone."""
        return {r["type"]: r["time_ns"] for r in read_dump(self.name, "--type", "EVENT,INSTANT")}

    def test_processes_and_threads_while_they_run(self):
        self.create("--start", "--mode=overwrite")
        process, parent, child = self.start()
        tids = parent[1:] + child[1:]
        self.assert_moving(tids, tids)
        self.ctl(f"--pid={parent[0]}")
        self.assert_moving(tids, parent[1:])
        self.ctl(f"--tid={parent[1]},{child[2]}")
        self.assert_moving(tids, {parent[1], child[2]})
        self.ctl(f"--pid={child[0]}", f"--tid={parent[1]}")
        self.assert_moving(tids, {parent[1], *child[1:]})
        for option, said in ((f"--pid={2**31 - 1}", "no process 2147483647 writes into the session"),
                             (f"--tid={2**31 - 1}", "no thread 2147483647 writes into the session"),
                             ("--event=ruond", 'no event matches --event ruond; did you mean "round"?')):
            self.assertIn(said, arctrace("ctl", self.name, option).stderr)
        self.assertEqual(arctrace("ctl", self.name, f"--pid={child[0]}", f"--tid={parent[1]}").stderr, "")
        self.ctl("--event=none")  # it replaces the other filter, and does not filter functions and marks
        self.assert_moving(tids, tids)
        self.assertEqual(read_info(self.name)["buffer"]["record_filter"], ["event:none"])
        self.assertIn("record filter: event:none", arctrace("info", self.name).stdout)
        before = self.newest()
        self.wait_until_written(tids, 20)
        after = self.newest()
        # The newest one may have been overwritten, while an older one in another thread's block remains.
        self.assertLessEqual(after.get("EVENT", 0), before.get("EVENT", 0))
        self.assertGreater(after["INSTANT"], before["INSTANT"])
        self.ctl("--record-all")
        self.assert_moving(tids, tids)
        self.assertGreater(self.newest()["EVENT"], after["INSTANT"])
        self.assertEqual(arctrace("stop", self.name).returncode, 0)
        self.end(process)
        read("check", self.name)
        self.assertEqual(read_info(self.name)["summary"]["lost"], 0)

    @cases.in_gate
    def test_the_trace_says_what_was_recorded_when(self):
        """Time in which a thread was filtered out belongs to none of its functions."""
        self.create("--start")
        trace = self.directory / "trace"
        collector = start_arctrace("attach", self.name, "-o", trace, stderr=subprocess.PIPE, text=True)
        self.addCleanup(collector.stderr.close)
        self.addCleanup(collector.kill)
        self.assertIn("collecting", collector.stderr.readline())
        process, parent, child = self.start()
        tids = parent[1:] + child[1:]
        self.wait_until_written(tids, 20)  # all threads are in their functions
        filters = [[f"pid:{parent[0]}"], ["level:2"], []]
        self.ctl(f"--pid={parent[0]}")
        self.wait_until_written(parent[1:], 200)
        self.ctl("--level=2")
        self.wait_until_written(tids, 100)
        self.ctl("--record-all")
        self.wait_until_written(tids, 100)
        self.end(process)
        self.assertEqual(arctrace("destroy", "--force", self.name).returncode, 0)
        self.assertEqual(collector.wait(timeout=300), 0)
        read("check", trace)
        enabled = read_dump(trace, "--type", "ENABLED")
        found = [r["filter"] for r in enabled if r["filter"]]
        self.assertEqual(found[:2], filters[:2])
        self.assertEqual(enabled[[r["filter"] for r in enabled].index(filters[1]) + 1]["filter"], [])
        gaps = read_report(trace, "summary")["gaps"]
        filtered = [g for g in gaps if g["reason"] == "other threads filtered out"]
        self.assertEqual(len(filtered), 1, gaps)
        out_ns = filtered[0]["to_ns"] - filtered[0]["from_ns"]
        self.assertGreater(out_ns, 0)
        functions = {f["name"]: f for f in read_report(trace, "flat")["functions"]}
        # The child's functions were filtered out during one of their calls.
        for thread in read_report(trace, "tree")["threads"]:
            nodes = [node for node, _ in walk(thread["root"])]
            of_child = any(node["name"] in ("c1", "c2") for node in nodes)
            out = sum(node["base_ns"] for node in nodes if node["name"] == "[filtered out]")
            if any(node["name"] in ("p1", "p2", "c1", "c2") for node in nodes):
                self.assertEqual(out > 0, of_child, thread)
                self.assertLessEqual(out, out_ns)
        for thread in ("c1", "c2"):
            inner, outer = functions[f"{thread}.inner"], functions[thread]
            self.assertGreater(outer["cum_ns"], out_ns)
            self.assertLess(inner["base_ns"], outer["cum_ns"] - out_ns)


if __name__ == "__main__":
    cases.main()
