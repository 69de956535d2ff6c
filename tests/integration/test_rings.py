"""record and attach with --size-limit: a ring of files, each whole in itself; with --duration: a
recording that ends before its command does."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import cases
import support
from command import SANITIZED, arctrace, read, read_dump, read_info, read_report, start_arctrace
from trace_checks import assert_indexed
from tracing import TracedTest

# Threads that ring under names of their own; one begins early and rings seldom. Argument 1: how
# often each of the busy ones rings.
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
RINGS = 9 * TIMES  # of the busy threads and processes
LIMIT = (2 << 20) * TIMES // 30_000  # of bytes, less than they write


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
        """No call goes on after its thread's last record: what came then is in the next file."""
        last = {}
        for record in read_dump(file, "--type", "INSTANT,STACK,ENTER,EXIT"):
            last[record["tid"]] = max(last.get(record["tid"], 0), record["time_ns"])
        ended = {t["tid"] for t in read_info(file)["threads"] if t["end_ns"] is not None}
        for call in read_report(file, "invocations")["invocations"]:
            if call["tid"] not in ended:
                self.assertLessEqual(call["stop_ns"], last[call["tid"]], (file, call))

    def check_each(self, files):
        """Each is clean by itself, with all its names. Returns the records of the busy ones, by
        name."""
        rings = {}
        newest = {}  # by thread
        for file in files:
            read("check", file)
            assert_indexed(self, file)
            # The time before its first records is in an earlier file.
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
            # A thread's records go on where those in the files before end.
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
        # An open block's copy, the collector's records: little.
        self.assertLess(sum(f.stat().st_size for f in files), LIMIT * 1.1)
        self.check_each(files)
        # The newest stay; the very last file may have no more than what rang last.
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


class DurationTest(TracedTest):
    # Goes on when it sees that nothing is recorded any more.
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
