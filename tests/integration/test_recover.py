"""arctrace recover: reads the buffer of a recorder that was killed, and a core."""

import os
import resource
import signal
import subprocess
import sys
import time

import cases
import support
from command import arctrace, read, read_dump, read_info, read_report, start_arctrace
from served_trace import Server
from trace_checks import assert_indexed
from tracing import TracedTest

# Writes argument 1 records inside two frames, prints so, and waits, or dies (argument 2).
PROGRAM = support.API + """
ring = name("ring")
for text in ("outer", "inner"): api.arctrace_enter(key(text))
for i in range(int(sys.argv[1])): api.arctrace_instant(ring)
print(os.environ["ARCTRACE_SESSION"], flush=True)
if sys.argv[2] == "abort":
    os.abort()
sys.stdin.read()
"""


class RecoverTest(TracedTest):
    def left_behind(self, *options, has_written=False):
        """The buffer of a recorder that was killed with its command; `has_written`: killed once its file had
        records."""
        recorder = start_arctrace("record", "--no-libcall", "-o", self.directory / "cut", *options, "--",
                                  sys.executable, "-c", PROGRAM, "1000", "wait", stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(recorder.stdout.close)
        # A trace that is cut would not pass the check at the end of each test.
        self.addCleanup((self.directory / "cut").unlink, missing_ok=True)
        session = recorder.stdout.readline().rstrip()
        self.addCleanup(lambda: os.path.exists(session) and os.unlink(session))
        deadline = time.monotonic() + 300
        while has_written and read_info(self.directory / "cut")["summary"]["records"] == 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        recorder.kill()
        recorder.wait()
        recorder.stdin.close()  # the command ends
        for _ in range(15_000):
            if not any(s["alive"] for s in read_info(session)["buffer"]["slots"]):
                break
            time.sleep(0.02)
        return session

    def test_killed_recorder(self):
        for mode in ("drop", "overwrite", "stop"):
            with self.subTest(mode=mode):
                session = self.left_behind(f"--mode={mode}", "-b", "1M")
                self.assertIn(f"{session} ", arctrace("list").stdout)
                self.assertIn("left behind", arctrace("list").stdout)
                trace = self.directory / f"{mode}.data"
                done = arctrace("recover", session, "-o", trace)
                self.assertEqual(done.returncode, 0, done.stderr)
                read("check", trace)
                assert_indexed(self, trace)
                info = read_info(trace)
                self.assertEqual(info["summary"]["records"], 1002)
                self.assertEqual((info["summary"]["lost"], info["summary"]["overwritten"]), (0, 0))
                self.assertEqual({r["name"] for r in read_dump(trace, "--type", "INSTANT")},
                                 {"ring"})
                self.assertEqual([r["function"] for r in read_dump(trace, "--type", "ENTER")],
                                 ["outer", "inner"])
                self.assertEqual(arctrace("destroy", session).returncode, 0)
                self.assertFalse(os.path.exists(session))

    def test_names_that_the_recorder_took_with_it(self):
        """Full blocks of definitions are in the recorder's file, not in the buffer any more."""
        session = self.left_behind("-b", "256k", "--block-size", "384")
        trace = self.directory / "trace"
        other = self.record("true").trace
        for definitions, word in ((other, "another session"), (sys.executable, "not an arctrace"),
                                  (self.directory, "not an arctrace"),
                                  ("/nowhere", "No such file")):
            done = arctrace("recover", session, "-o", trace, "--definitions", definitions)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn(word, done.stderr)
        self.assertEqual(arctrace("recover", session, "-o", trace).returncode, 0)
        self.assertFalse(any(p["executable"] for p in read_info(trace)["processes"]))  # as it would be
        trace.unlink()
        done = arctrace("recover", session, "-o", trace, "--definitions", self.directory / "cut")
        self.assertEqual(done.returncode, 0, done.stderr)
        info = read_info(trace)
        self.assertEqual([len(info["processes"]), len(info["threads"])], [1, 1])
        self.assertTrue(info["processes"][0]["modules"])
        self.assertEqual({r["name"] for r in read_dump(trace, "--type", "INSTANT")}, {"ring"})
        self.assertIn("outer", {row["name"] for row in read_report(trace, "flat")["functions"]})
        trace.unlink()  # records that only the recorder's file has are missing, so serials have a gap

    def test_whole_recording(self):
        """The merged trace has what the recorder wrote until it was killed, and what remains in the buffer."""
        session = self.left_behind("-b", "256k", "--block-size", "384")
        cut = self.directory / "cut"
        report = arctrace("report", cut)
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn(f"arctrace recover {session} -m {cut}", report.stderr)
        # recover does the same, if it is given the file in the buffer's place.
        refused = arctrace("recover", cut, "-o", self.directory / "merged")
        self.assertEqual(refused.returncode, 2)
        self.assertIn(f"arctrace recover {session} -m {cut}", refused.stderr)
        trace = self.directory / "merged"
        done = arctrace("recover", session, "-o", trace, "--merge", cut)
        self.assertEqual(done.returncode, 0, done.stderr)
        read("check", trace)
        assert_indexed(self, trace)
        self.assertEqual(read_info(trace)["summary"]["records"], 1002)
        self.assertNotIn("warning", arctrace("report", trace).stderr)
        self.check_read_as_one(cut, trace)
        if os.geteuid() == 0:
            # Anybody can make a file there that has the session's id, so the owner counts.
            os.chown(session, 65534, -1)
            self.assertLess(read_report(cut, "flat")["summary"]["records"], 1002)
            os.chown(session, 0, -1)
        # Without the buffer only the file's records can be read.
        os.unlink(session)
        alone = read_report(cut, "flat")
        self.assertLess(alone["summary"]["records"], 1002)
        cut.unlink()

    def test_what_only_the_recorder_has(self):
        """A recovery without the recorder's file says which records only that has: how many, of which thread, and
        since when."""
        for scope in ("shared", "thread"):
            with self.subTest(scope=scope):
                session = self.left_behind("-b", "256k", "--block-size", "384", "--high-water=1",
                                           f"--scope={scope}", has_written=True)
                trace = self.directory / "trace"
                done = arctrace("recover", session, "-o", trace, "--definitions", self.directory / "cut")
                self.assertIn("-m FILE adds that", done.stderr)
                report = read_report(trace, "flat")
                missing = 1002 - report["summary"]["records"]
                self.assertGreater(missing, 0)
                self.assertEqual(report["summary"]["elsewhere"], missing)
                self.assertEqual(read_info(trace)["summary"]["elsewhere"], missing)
                self.assertIn(f"{missing:,} in another file", arctrace("report", trace).stdout)
                self.assertIn(f"{missing} in another file", arctrace("check", trace).stdout)
                gap, = report["gaps"]
                thread, = read_info(trace)["threads"]
                self.assertEqual((gap["reason"], gap["tid"]), ("missing", thread["tid"]))
                self.assertLess(gap["from_ns"], gap["to_ns"])
                self.assertEqual(gap["records"], missing if scope == "shared" else None)
                merged = self.directory / "merged"
                done = arctrace("recover", session, "-o", merged, "--merge", self.directory / "cut")
                self.assertNotIn("-m FILE", done.stderr)
                self.assertEqual(read_info(merged)["summary"]["elsewhere"], 0)
                for path in (trace, merged, self.directory / "cut", session):
                    os.unlink(path)

    def test_snapshots_of_a_buffer_that_nobody_drains(self):
        """Recoveries of a live session have all its records, also while the program continues."""
        session = f"recover-{os.getpid()}"
        arctrace("create", session, "-b", "1M", "--start", "--scope=shared")
        self.addCleanup(arctrace, "destroy", "--force", session)
        with start_arctrace("record", "--no-libcall", f"--session={session}", "--", sys.executable, "-c",
                            support.API + """
ring = name("ring")
print(flush=True)
while True: api.arctrace_instant(ring)
""", stdout=subprocess.PIPE, text=True) as program:
            try:
                self.assertEqual(program.stdout.readline(), "\n")
                for i in range(5):
                    trace = self.directory / f"snapshot{i}"
                    arctrace("snapshot", session, "-o", trace)
                    self.assertEqual(read_info(trace)["summary"]["elsewhere"], 0)
            finally:
                program.terminate()

    def test_an_empty_file_of_a_killed_flight_recorder(self):
        """Commands that get the empty file say where its records are."""
        session = self.left_behind("--mode=overwrite", "-b", "1M")
        cut = self.directory / "cut"
        self.assertEqual(cut.stat().st_size, 0)
        for command in (("report", cut), ("dump", cut), ("info", cut),
                        ("export", "--to=csv", cut, "-o", self.directory / "out"),
                        ("graph", "f", cut), ("view", cut)):
            done = arctrace(*command)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn("an empty file", done.stderr)
            self.assertIn(session, done.stderr)
            self.assertIn("arctrace recover", done.stderr)
        self.assertEqual(arctrace("destroy", session).returncode, 0)
        self.assertNotIn(session, arctrace("report", cut).stderr)

    def check_read_as_one(self, cut, merged):
        """The cut file is read together with the buffer, with the same result as what recover writes of both."""
        found, expected = (read_report(trace, "flat") for trace in (cut, merged))
        for key in ("records", "lost", "lost_by_cause", "threads"):
            self.assertEqual(found["summary"][key], expected["summary"][key])
        self.assertEqual({row["name"]: row["calls"] for row in found["functions"]},
                         {row["name"]: row["calls"] for row in expected["functions"]})
        records = [[(r["tid"], r["time_ns"], r["type"]) for r in read_dump(trace)
                    if r["type"] in ("ENTER", "EXIT", "INSTANT")] for trace in (cut, merged)]
        self.assertTrue(records[0])
        self.assertEqual(*records)
        found, expected = (read_info(trace) for trace in (cut, merged))
        for key in ("records", "lost", "torn", "own_blocks"):
            self.assertEqual(found["summary"][key], expected["summary"][key])
        server = Server(cut)  # needs no --partial, because nothing is missing
        try:
            server.wait_whole()
            self.assertEqual(server.api("summary")["records"], expected["summary"]["records"])
        finally:
            status, errors = server.close()
        self.assertIn("is read from", errors, status)

    def test_losses_in_both(self):
        """Losses that the recorder had counted in LOST records when it was killed, and others, are all counted."""
        recorder = start_arctrace("record", "--no-libcall", "-o", self.directory / "cut", "-b", "64k", "--block-size",
                                  "384", "--", "sh", "-c",
                                  'for i in 1 2 3 4; do "$@" </dev/null; done; read line; "$@"', "sh", sys.executable,
                                  "-c", PROGRAM, "5000", "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(recorder.stdout.close)
        session = [recorder.stdout.readline().rstrip() for _ in range(4)][0]
        self.addCleanup(lambda: os.path.exists(session) and os.unlink(session))
        cut = self.directory / "cut"
        self.addCleanup(cut.unlink)  # the check of traces would not take it
        for _ in range(15_000):  # until the collector has reaped the dead writers
            if not any(s["written"] and not s["alive"] and s["writer"]
                       for s in read_info(session)["buffer"]["slots"]):
                break
            time.sleep(0.02)
        recorder.kill()
        recorder.wait()
        recorder.stdin.write("\n")
        recorder.stdin.close()
        self.assertEqual(recorder.stdout.readline().rstrip(), session)
        for _ in range(15_000):
            if not any(s["alive"] for s in read_info(session)["buffer"]["slots"]):
                break
            time.sleep(0.02)
        trace = self.directory / "merged"
        done = arctrace("recover", session, "-o", trace, "--merge", cut)
        self.assertEqual(done.returncode, 0, done.stderr)
        read("check", trace)
        summary = read_info(trace)["summary"]
        self.assertGreater(summary["lost"], 0)
        # The shell's records are two for each vfork.
        self.assertEqual(summary["records"] + summary["lost"], 5 * (5002 + 2))
        self.assertIn(f"{summary['records']:,} records", done.stdout + done.stderr)
        self.check_read_as_one(cut, trace)

    def test_core(self):
        with open("/proc/sys/kernel/core_pattern", encoding="ascii") as pattern:
            if pattern.read().strip() != "core":
                self.skipTest("cores do not go to the working directory here")
        with open("/proc/sys/kernel/core_uses_pid", encoding="ascii") as uses_pid:
            if uses_pid.read().strip() != "0":
                self.skipTest("cores have a pid in their name here")

        def allow_core():
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
            with open("/proc/self/coredump_filter", "w", encoding="ascii") as dumped:
                dumped.write("0x3b")

        done = arctrace("record", "--no-libcall", "-b", "1M", "-o", self.directory / "whole", "--", sys.executable,
                        "-c", PROGRAM, "1000", "abort", cwd=self.directory, preexec_fn=allow_core)
        self.assertEqual(done.returncode, -signal.SIGABRT)
        core = self.directory / "core"
        if not core.exists():
            self.skipTest("no core was written")
        trace = self.directory / "recovered"
        recovered = arctrace("recover", core, "-o", trace)
        self.assertEqual(recovered.returncode, 0, recovered.stderr)
        self.check_core_trace(trace)

    def check_core_trace(self, trace):
        check = arctrace("check", trace)
        self.assertLess(check.returncode, 2, check.stderr)
        records = read_dump(trace, "--type", "INSTANT")
        self.assertGreater(len(records), 500)
        self.assertEqual({r["name"] for r in records}, {"ring"})

    def test_what_cannot_be_recovered(self):
        trace = self.record("true").trace
        empty = self.directory / "empty"
        empty.touch()
        cut = self.directory / "header"
        cut.write_bytes(b"ARCTRACE" + bytes(100))
        for path, word in ((trace, "trace file"), (sys.executable, "core"), (empty, "core"),
                           (cut, ""), ("/dev/null", "")):
            done = arctrace("recover", path, "-o", self.directory / "out")
            self.assertEqual(done.returncode, 2, path)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(word, done.stderr)
        self.assertFalse((self.directory / "out").exists())

    def test_damaged_buffers_are_recovered_as_far_as_they_go(self):
        session = self.left_behind("-b", "256k", "--block-size", "4k", "--mode=overwrite")
        with open(session, "rb") as file:
            whole = file.read()
        for name in ("out", "out.old"):
            self.addCleanup((self.directory / name).unlink, missing_ok=True)
        for size in (len(whole) // 2, 8192, 4096):
            damaged = self.directory / "damaged"
            damaged.write_bytes(whole[:size])
            done = arctrace("recover", damaged, "-o", self.directory / "out")
            self.assertIn(done.returncode, (0, 2), done.stderr)
            if done.returncode == 0:
                self.assertLess(arctrace("check", self.directory / "out").returncode, 2)
        for offset in range(4096, len(whole), len(whole) // 40):
            damaged = self.directory / "damaged"
            damaged.write_bytes(whole[:offset] + bytes(range(1, 65)) + whole[offset + 64:])
            done = arctrace("recover", damaged, "-o", self.directory / "out")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(arctrace("check", self.directory / "out").returncode, 2)


if __name__ == "__main__":
    cases.main()
