"""record and attach with --size-limit: a ring of files, each whole in itself; with --duration: a
recording that ends before its command does."""

import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import cases
import states
import support
from command import SANITIZED, arctrace, read, read_dump, read_info, read_report, start_arctrace
from trace_checks import assert_indexed
from tracing import TracedTest

# Threads write instants under names of their own; one begins early and writes seldom. Argument 1: how many each
# of the busy ones writes.
PROGRAM = support.API + """
times = int(sys.argv[1])
done = False
rung = threading.Event()
def seldom():
    ring = name("seldom")
    api.arctrace_thread_name(b"seldom")
    while not done:
        api.arctrace_instant(ring)
        rung.set()
        time.sleep(0.002)
def busy(which):
    api.arctrace_thread_name(b"busy%d" % which)
    ring = name("ring%d" % which)
    frames = [key(f"frame{which}.{i}") for i in range(3)]
    for frame in frames: api.arctrace_enter(frame)
    for i in range(times): api.arctrace_instant(ring)
    for frame in reversed(frames): api.arctrace_exit(frame)
first = threading.Thread(target=seldom)
first.start()
rung.wait()
for which in range(3):
    threads = [threading.Thread(target=busy, args=(which * 2 + i,)) for i in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
    if os.fork() == 0:
        busy(100 + which)
        os._exit(0)
    os.wait()
done = True
first.join()
"""
TIMES = 10_000 if SANITIZED else 30_000
RINGS = 9 * TIMES  # instants of the busy threads and processes
LIMIT = (2 << 20) * TIMES // 30_000  # bytes, fewer than they write


class RingTest(TracedTest):
    def ring_of(self, trace):
        """The files of a ring, the oldest first."""
        numbers = sorted(int(p.suffix[1:]) for p in trace.parent.glob(trace.name + ".[0-9]*"))
        return [pathlib.Path(f"{trace}.{n}") for n in numbers] + [trace]

    def record_ring(self, *options, times=TIMES):
        recorded = self.record(sys.executable, "-c", PROGRAM, str(times),
                               options=("--no-libcall", "-b", "64M", "--block-size", "8k", *options))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        return recorded

    def check_ends_with_records(self, file):
        """No call continues after its thread's last record: records after that are in the next file."""
        last = {}
        for record in read_dump(file, "--type", "INSTANT,STACK,ENTER,EXIT"):
            last[record["tid"]] = max(last.get(record["tid"], 0), record["time_ns"])
        ended = {t["tid"] for t in read_info(file)["threads"] if t["end_ns"] is not None}
        for call in read_report(file, "invocations")["invocations"]:
            if call["tid"] not in ended:
                self.assertLessEqual(call["stop_ns"], last[call["tid"]], (file, call))

    def check_each(self, files):
        """Checks that each file is valid by itself, with all its names. Returns the records of the busy threads,
        by name."""
        rings = {}
        newest = {}  # by thread
        for file in files:
            read("check", file)
            assert_indexed(self, file)
            # The time before the file's first records is in an earlier file.
            if file != files[0]:
                names = {f["name"] for f in read_report(file, "flat")["functions"]}
                self.assertFalse(names & {"[loader]", "[constructors]", "[before recording]"}, names)
            if file != files[-1]:
                self.check_ends_with_records(file)
            records = read_dump(file, "--type", "INSTANT,STACK")
            times = [r["time_ns"] for r in records if r["type"] == "INSTANT"]
            self.assertTrue(times)
            for record in records:
                if record["type"] == "INSTANT":
                    rings[record["name"]] = rings.get(record["name"], 0) + 1
                else:
                    for frame in record["frames"]:
                        self.assertTrue(frame.startswith("frame"), frame)
            # A thread's records continue where those in the files before end.
            for record in records:
                if record["type"] == "INSTANT":
                    self.assertGreaterEqual(record["time_ns"], newest.get(record["tid"], 0), file)
            newest.update({r["tid"]: r["time_ns"] for r in records if r["type"] == "INSTANT"})
            names = {t["name"] for t in read_info(file)["threads"]}
            self.assertTrue(names & {"seldom", *(f"busy{i}" for i in range(6))} or
                            any(n.startswith("busy10") for n in names), names)
        self.assertTrue(all(n == "seldom" or n.startswith("ring") for n in rings), rings)
        rings.pop("seldom", None)
        return rings

    @cases.in_gate
    def test_files_are_whole_and_nothing_is_missing_or_doubled(self):
        for scope in ("thread", "shared"):
            with self.subTest(scope=scope):
                recorded = self.record_ring(f"--size-limit={32 * LIMIT}", "--snapshots=40",
                                            f"--scope={scope}")
                files = self.ring_of(recorded.trace)
                self.assertGreater(len(files), 2)
                self.assertIn(f"and {len(files) - 1} files before it", recorded.stderr)
                rings = self.check_each(files)
                lost = read_info(files[-1])["summary"]["lost"]
                self.assertEqual(lost, 0, recorded.stderr)
                self.assertEqual(sum(rings.values()), RINGS)
                self.assertEqual(set(rings.values()), {TIMES})
                for file in files:
                    file.unlink()

    def test_all_together_keep_the_limit(self):
        recorded = self.record_ring(f"--size-limit={LIMIT}")
        files = self.ring_of(recorded.trace)
        self.assertGreater(len(files), 3)
        self.assertFalse((recorded.trace.parent / f"{recorded.trace.name}.1").exists())
        # The copy of an open block and the collector's records take little more.
        self.assertLess(sum(f.stat().st_size for f in files), LIMIT * 1.1)
        self.check_each(files)
        # The newest records stay; the very last file may have only the last few.
        self.assertIn("ring102", {r["name"] for file in files[-2:] for r in read_dump(file, "--type", "INSTANT")})

    def test_attach(self):
        name = f"test-ring-{os.getpid()}"
        done = arctrace("create", name, "-b", "64M", "--block-size", "8k", "--start")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(arctrace, "destroy", "--force", name)
        trace = self.directory / "trace"
        with start_arctrace("attach", name, "-o", trace, f"--size-limit={LIMIT}", stderr=subprocess.PIPE,
                            text=True) as collector:
            self.assertIn("collecting", collector.stderr.readline())
            written = arctrace("record", "--no-libcall", f"--session={name}", "--", sys.executable, "-c",
                               PROGRAM, str(TIMES))
            self.assertEqual(written.returncode, 0, written.stderr)
            collector.send_signal(signal.SIGINT)
            self.assertEqual(collector.wait(timeout=300), 0)
        files = self.ring_of(trace)
        self.assertGreater(len(files), 3)
        self.check_each(files)

    def test_what_cannot_be_cut(self):
        for output in ("-", "/dev/null"):
            done = arctrace("record", "--size-limit=1M", "-o", output, "--", "true")
            self.assertEqual(done.returncode, 2)
            self.assertIn("needs a regular file", done.stderr.splitlines()[-1])
        self.assertTrue(os.path.exists("/dev/null"))


class RemovedTest(TracedTest):
    """Each view says what was removed with which file, whoever removed it."""
    RECORDS = 60_000
    PROGRAM = support.API + f"""
ring = name("ring")
for _ in range({RECORDS}): api.arctrace_instant(ring)
print("done", flush=True)
sys.stdin.read()
"""
    OPTIONS = ("--no-libcall", "-b", "8M", "--block-size", "4k", "--size-limit=250k")

    def files(self, trace):
        return RingTest.ring_of(self, trace)

    def summary_of(self, *files):
        info = read_info(*files)
        summary = info["summary"]
        self.assertEqual(summary["lost"], sum(summary["lost_by_cause"].values()))
        return summary, info["session"]["files"]

    def gaps_of(self, *files):
        """How many records each gap of the session lacks, by its reason."""
        gaps = json.loads(read("report", *files, "--view=flat", "--format=json"))["gaps"]
        self.assertEqual([(g["reason"], g["records"]) for g in gaps],
                         [(g["reason"], g["records"]) for g in read_dump(*files, "--type", "GAP")])
        return {g["reason"]: g["records"] for g in gaps if g["tid"] is None and g["reason"] != "recording off"}

    @cases.in_gate
    def test_removed_records_are_counted(self):
        recorded = self.record(sys.executable, "-c", self.PROGRAM, options=self.OPTIONS)
        self.assertEqual(recorded.status, 0, recorded.stderr)
        files = self.files(recorded.trace)
        self.assertGreater(len(files), 3)
        summary, seen = self.summary_of(*files)
        there, removed = summary["records"], summary["lost_by_cause"]["removed"]
        self.assertGreater(removed, self.RECORDS // 10)
        self.assertEqual((there + removed, summary["lost"], summary["elsewhere"]), (self.RECORDS, removed, 0))
        number = int(files[0].suffix[1:])
        last = number + len(files) - 1
        self.assertEqual(seen, {"given": len(files), "first": number, "last": last, "removed": number - 1,
                                "goes_on": False})
        self.assertIn(f"{there:,} records, {removed:,} lost (removed {removed:,} with {number - 1} files)",
                      recorded.stderr)
        self.assertEqual(self.gaps_of(*files), {"removed": removed})

        with self.subTest("in each view"):
            line = f"{there:,} records, {removed:,} lost (removed {removed:,})"
            for command in (["report"], ["report", "--view=summary"], ["info"], ["dump", "--type=GAP"]):
                self.assertIn(line, read(*command, *files), command)
            self.assertIn(f"{number - 1} files were removed", read("info", *files))
            self.assertIn("no findings", read("check", *files))
            self.assertIn(f"{removed:,} lost, {removed:,} of them removed", read("check", *files))
            strict = arctrace("check", "--strict", *files)
            self.assertEqual((strict.returncode, strict.stdout.splitlines()[0]),
                             (1, f"strict: {removed:,} removed records"))
            types = [r["type"] for r in read_dump(*files)]
            self.assertLess(types.index("GAP"), types.index("INSTANT"))
            out = self.directory / "out"
            done = arctrace("export", "--to=ndjson", "-o", out, *files)
            self.assertIn(f"{removed:,} lost (removed {removed:,})", done.stderr)
            gaps = [row for row in map(json.loads, out.read_text().splitlines()) if row["type"] == "gap"]
            self.assertIn("removed", {gap["name"] for gap in gaps})
            for to in ("pprof", "callgrind", "speedscope"):  # these do not show times
                read("export", "--force", f"--to={to}", "-o", out, *files)
                content = out.read_bytes()
                content = gzip.decompress(content) if to == "pprof" else content
                self.assertIn(f"records missing: {removed:,} lost (removed {removed:,})".encode(), content)

        with self.subTest("of the newest file alone"):
            summary, seen = self.summary_of(files[-1])
            self.assertEqual(summary["lost_by_cause"]["removed"], removed)
            self.assertEqual(summary["records"] + removed + summary["elsewhere"], self.RECORDS)
            self.assertEqual(self.gaps_of(files[-1]), {"removed": removed, "missing": summary["elsewhere"]})
            self.assertEqual((seen["first"], seen["removed"]), (last, number - 1))

        with self.subTest("removed by hand"):
            old = self.summary_of(files[0])[0]["records"]
            middle = self.summary_of(files[2])[0]["records"]
            files[0].unlink()
            summary, _ = self.summary_of(*files[1:])
            self.assertEqual((summary["records"], summary["elsewhere"]), (there - old, old))
            self.assertEqual(self.gaps_of(*files[1:]), {"removed": removed, "missing": old})
            summary, _ = self.summary_of(files[1], *files[3:])
            self.assertEqual((summary["records"], summary["elsewhere"]), (there - old - middle, old + middle))
            summary, seen = self.summary_of(*files[1:-1])
            self.assertTrue(seen["goes_on"])
            self.assertIn("it goes on in another file", read("info", *files[1:-1]))

    @cases.in_gate
    def test_recorder_that_was_killed(self):
        trace = self.directory / "killed"
        with start_arctrace("record", *self.OPTIONS, "-o", trace, "--", sys.executable, "-c", self.PROGRAM,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
            self.assertEqual(recorder.stdout.readline(), b"done\n")
            seen = []

            def is_all_written():
                """Whether the last file is there, and no other one has come for many checks."""
                seen.append(sorted(os.listdir(self.directory)))
                return trace.exists() and len(seen) > 30 and all(names == seen[-1] for names in seen[-30:])

            states.wait_until(is_all_written, "all is written")
            recorder.kill()
            recorder.wait()
            recorder.stdin.close()
            recorder.stdout.read()  # reads until the program ends
        files = self.files(trace)
        done = arctrace("info", *files, "--format=json")
        self.assertEqual(done.returncode, 0, done.stderr)
        info = json.loads(done.stdout)
        read("destroy", re.search(r"arctrace recover (\S+) -m", done.stderr)[1])
        removed = info["summary"]["lost_by_cause"]["removed"]
        self.assertGreater(removed, 0)
        self.assertEqual((info["session"]["finished"], info["session"]["files"]["removed"]),
                         (False, int(files[0].suffix[1:]) - 1))
        begin = [r for r in read_dump(files[-1], "--type", "FILES") if r["what"] == "begin"]
        before = self.summary_of(*files[:-1])[0]["records"]
        self.assertEqual(begin[0]["records"], before + removed)
        for file in files:  # a cut-off file is a finding
            file.unlink()


class DurationTest(TracedTest):
    # Continues when it sees that nothing is recorded any more.
    PROGRAM = support.API + """
gate = ctypes.POINTER(ctypes.c_uint32).in_dll(api, "arctrace_gate")
ring = name("ring")
while gate.contents.value != 0:
    api.arctrace_instant(ring)
    time.sleep(0.001)
for _ in range(100): api.arctrace_instant(ring)
print("done")
sys.exit(7)
"""

    def test_recording_ends_and_the_command_goes_on(self):
        for mode in ("drop", "overwrite", "stop"):
            # On a busy machine the recording may end before Python has started.
            for factor in (1, 4, 16, 64):
                with self.subTest(mode=mode, factor=factor):
                    recorded = self.record(sys.executable, "-c", self.PROGRAM,
                                           options=("--no-libcall", "-b", "8M", f"--mode={mode}",
                                                    f"--duration={700 * factor}ms"))
                    self.assertEqual((recorded.status, recorded.stdout), (7, "done\n"))
                    read("check", recorded.trace)
                    summary = read_info(recorded.trace)["summary"]
                    if summary["records"] == 0 and factor != 64:
                        continue
                    self.assertGreater(summary["records"], 0)
                    self.assertEqual(len(recorded.stderr.splitlines()), 1, recorded.stderr)
                    break

    def test_a_command_that_ends_before(self):
        recorded = self.record("true", options=("--duration=1h",))
        self.assertEqual(recorded.status, 0)
        read("check", recorded.trace)

    def test_attach(self):
        name = f"test-duration-{os.getpid()}"
        self.assertEqual(arctrace("create", name, "-b", "1M", "--start").returncode, 0)
        self.addCleanup(arctrace, "destroy", "--force", name)
        trace = self.directory / "trace"
        begin = time.monotonic()
        done = arctrace("attach", name, "-o", trace, "--duration=500ms")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(time.monotonic() - begin, 0.5)
        read("check", trace)
        self.assertNotEqual(read_info(name)["buffer"]["gate"], 0)  # the session goes on

    @cases.in_gate
    def test_refusals(self):
        for options in (["--duration=0"], ["--duration=soon"], ["--duration=-1s"],
                        *(["--session=any", own] for own in (
                            "--duration=1s", "-b1M", "--mode=stop", "--kernel=bpf",
                            "--syscalls", f"-o{self.directory}/trace"))):
            done = arctrace("record", *options, "--", "true")
            self.assertEqual(done.returncode, 2, options)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    cases.main()
