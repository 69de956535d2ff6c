"""written + lost + overwritten = attempted, for each thread and in the session, when the buffer is
much too small: in every mode and scope, and by cause."""

import re
import sys

import cases
import support
from command import read, read_dump, read_info, read_report
from tracing import TracedTest

# Argument: records of each of three threads. Each prints its name and what it lost.
PROGRAM = support.API + """
lost = (ctypes.c_uint64 * 8)()
api.arctrace_lost.restype = ctypes.c_uint64
ring, event = name("ring"), api.arctrace_define_event(b"big", 0, None, 0)
big = bytes(5000)
printing = threading.Lock()
def work(which):
    api.arctrace_thread_name(b"thread%d" % which)
    for i in range(int(sys.argv[1])):
        if i % 100 == 7: api.arctrace_write(event, big, len(big))
        else: api.arctrace_instant(ring)
    with printing: print(f"thread{which}", api.arctrace_lost(None), flush=True)
threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for t in threads: t.start()
for t in threads: t.join()
"""

# Processes each need definitions of their own. All of the children live at once, so that their blocks are not freed.
FORKS = support.API + """
ring = name("ring")
ready, end = os.pipe(), os.pipe()
children = []
for _ in range(60):
    children.append(os.fork())
    if children[-1] == 0:
        os.close(end[1])
        for _ in range(300): api.arctrace_instant(ring)
        os.write(ready[1], b"r")
        os.read(end[0], 1)
        os._exit(0)
for _ in children: os.read(ready[0], 1)
os.close(end[1])
for child in children: os.waitpid(child, 0)
"""

ATTEMPTED = 20000  # each thread's
TOO_BIG = ATTEMPTED // 100  # each thread's


class LossTest(TracedTest):
    def overload(self, mode, scope):
        recorded = self.record(
            sys.executable, "-c", PROGRAM, str(ATTEMPTED),
            options=("--no-libcall", f"--mode={mode}", f"--scope={scope}", "-b", "128k", "--block-size", "4k",
                     "--high-water=0"))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        return recorded

    def test_nothing_is_unaccounted_for(self):
        for mode in ("drop", "stop", "overwrite"):
            for scope in ("adaptive", "thread", "shared"):
                with self.subTest(mode=mode, scope=scope):
                    self.check_sums(self.overload(mode, scope), mode)

    def check_sums(self, recorded, mode):
        info = read_info(recorded.trace)
        summary = info["summary"]
        self.assertEqual(summary["findings"], 0)
        self.assertEqual(summary["records"] + summary["lost"] + summary["overwritten"],
                         3 * ATTEMPTED)
        self.assertEqual(summary["lost"], sum(summary["lost_by_cause"].values()))
        self.assertEqual(list(summary["lost_by_cause"]), ["full", "too_big", "nested", "no_slot", "kernel", "file",
                                                          "identity", "definitions", "removed"])
        self.assertEqual(summary["lost_by_cause"]["too_big"], 3 * TOO_BIG)
        if mode == "stop":
            self.assertGreater(summary["lost_by_cause"]["full"], 0)
            self.check_last_gaps(recorded.trace)
        if mode == "overwrite":
            self.assertEqual(summary["lost_by_cause"]["full"], 0)
            self.assertGreater(summary["overwritten"], 0)
        else:
            self.assertEqual(summary["overwritten"], 0)

        printed = dict(line.split() for line in recorded.stdout.splitlines())
        threads = {t["name"]: t for t in info["threads"]}
        for which in ("thread0", "thread1", "thread2"):
            thread = threads[which]
            if mode == "overwrite":
                # Its LOST records may be overwritten; what it wrote is counted.
                self.assertEqual(thread["records"] + thread["overwritten"], ATTEMPTED - TOO_BIG)
                self.assertEqual(int(printed[which]), TOO_BIG)
            else:
                self.assertEqual(thread["records"] + thread["lost"], ATTEMPTED)
                self.assertEqual(thread["lost"], int(printed[which]))

        # The line that ends the recording, and the reports, have the same numbers.
        line = recorded.stderr.splitlines()[-1]
        self.assertIn(f"{summary['records']:,} records, {summary['lost']:,} lost (", line)
        for cause, count in summary["lost_by_cause"].items():
            found = re.search(rf"{cause} ([\d,]*\d)", line)
            self.assertEqual(found[1] if found else "0", f"{count:,}", line)
        if mode == "overwrite":
            self.assertIn(f" {summary['overwritten']:,} overwritten,", line)
        report = read_report(recorded.trace, "flat")["summary"]
        for member in ("records", "lost", "lost_by_cause", "overwritten"):
            self.assertEqual(report[member], summary[member])

    def check_last_gaps(self, trace):
        """Records that found no space, when none is freed, came after the thread's last record."""
        last_ns = {r["tid"]: r["time_ns"] for r in read_dump(trace, "--type", "EVENT,INSTANT")}
        gaps = [gap for gap in read_report(trace, "flat")["gaps"]
                if gap["reason"] == "lost: full" and gap["tid"] is not None]
        self.assertNotEqual(gaps, [])
        for gap in gaps:
            self.assertGreaterEqual(gap["from_ns"], last_ns.get(gap["tid"], 0))

    def test_definitions_without_room(self):
        """A record whose meaning nobody could know is lost, not written."""
        recorded = self.record(
            sys.executable, "-c", FORKS,
            options=("--no-libcall", "-b", "256k", "--block-size", "8k", "--high-water=0"))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        summary = read_info(recorded.trace)["summary"]
        self.assertEqual(summary["findings"], 0)
        self.assertGreater(summary["lost_by_cause"]["full"], 0)

    def test_processes_are_counted_alike(self):
        """The sums are right also for processes whose definitions never fitted, so that they are only counted."""
        many = FORKS.replace("range(60)", "range(200)").replace("range(300)", "range(3000)")
        recorded = self.record(
            sys.executable, "-c", many,
            options=("--no-libcall", "-b", "128k", "--block-size", "4k", "--high-water=0"))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        info = read_info(recorded.trace)
        counts = {kind: info["summary"][kind] for kind in ("processes", "threads")}
        self.assertEqual(counts["processes"], 201)
        undefined = sum(p["origin"] == "not known" for p in info["processes"])
        self.assertGreater(undefined, 0)
        self.assertEqual(len(info["processes"]), 201)
        self.assertEqual({k: info["session"]["identities"][k] for k in counts}, counts)
        for view in ("summary", "flat", "tree"):
            summary = read_report(recorded.trace, view)["summary"]
            self.assertEqual({k: summary[k] for k in counts}, counts, view)
        text = {command: read(*command.split(), recorded.trace)
                for command in ("report", "report --view=flat", "info")}
        self.assertIn(f", 201 processes, {counts['threads']} threads\n", text["report"])
        self.assertIn(f" of 201 processes, {counts['threads']} threads", text["report --view=flat"])
        self.assertIn(f"201 processes, {undefined} of them without definitions",
                      text["info"])
        self.assertIn(f" 201 processes, {counts['threads']} threads, ", recorded.stderr)

    def test_each_of_many_processes_has_its_losses(self):
        """Processes for whose definitions there was no space have a number, and no time that counts as not known."""
        for mode in ("drop", "stop", "overwrite"):
            with self.subTest(mode=mode):
                program = FORKS.replace("range(60)", "range(200)").replace(
                    "children.append(os.fork())", "children.append(os.fork()); os.write(1, b'%d\\n' % children[-1])")
                recorded = self.record(
                    sys.executable, "-c", program,
                    options=("--no-libcall", f"--mode={mode}", "-b", "128k", "--block-size", "4k", "--high-water=0"))
                self.assertEqual(recorded.status, 0, recorded.stderr)
                info = read_info(recorded.trace)
                summary = info["summary"]
                self.assertEqual(summary["findings"], 0)
                self.assertGreater(sum(p["origin"] == "not known" for p in info["processes"]), 0)
                pids = {int(line) for line in recorded.stdout.split()} - {0}
                self.assertEqual(len(pids), 200)
                self.assertEqual(sum(p["pid"] in pids for p in info["processes"]), 200)
                self.check_each_loss(info, mode, pids)

    def test_time_of_processes_that_only_have_losses_is_not_known(self):
        """In stop mode slots are reaped at the end, long after their owners' ends."""
        recorded = self.record(
            "/bin/bash", "-c", "for i in {1..60}; do /bin/true; done; true",
            options=("--mode=stop", "-b", "128k", "--block-size", "4k"))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        processes = read_info(recorded.trace)["processes"]
        self.assertEqual(len(processes), 121)
        # A forked child and the program that it then executed have one pid.
        undefined = ({p["pid"] for p in processes if p["origin"] == "not known"} -
                     {p["pid"] for p in processes if p["origin"] != "not known"})
        threads = read_report(recorded.trace, "tree")["threads"]
        shown = [t["root"]["cum_ns"] for t in threads if t["pid"] in undefined]
        self.assertNotEqual(shown, [])
        self.assertEqual(set(shown), {0})

    def check_each_loss(self, info, mode, pids):
        summary = info["summary"]
        children = [t for t in info["threads"] if t["pid"] in pids]
        self.assertEqual(len(children), 200)
        for thread in children:
            if mode == "overwrite":
                self.assertEqual(thread["records"] + thread["overwritten"], 300)
            else:
                self.assertEqual(thread["records"] + thread["lost"], 300)
        # In overwrite mode this includes threads whose LOST records are overwritten.
        self.assertEqual(sum(t["lost"] for t in info["threads"]), summary["lost"])

    def test_torn_in_every_scope(self):
        """A record that its dead writer did not commit is torn, in the thread's own block and in a shared one."""
        program = support.API + """
api.arctrace_reserve.restype = ctypes.c_void_p
event = api.arctrace_define_event(b"event", 0, None, 0)
api.arctrace_write(event, None, 0)
api.arctrace_reserve(event, 0)
os.kill(os.getpid(), 9)
"""
        for mode in ("drop", "overwrite"):
            for scope in ("thread", "shared"):
                with self.subTest(mode=mode, scope=scope):
                    trace = self.record(sys.executable, "-c", program, options=(
                        "--no-libcall", f"--mode={mode}", f"--scope={scope}")).trace
                    summary = read_info(trace)["summary"]
                    self.assertEqual((summary["records"], summary["torn"], summary["unfinished"]),
                                     (1, 1, 0))


if __name__ == "__main__":
    cases.main()
