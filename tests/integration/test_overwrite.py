"""record --mode=overwrite: the newest records, whole, named and with their first frames; overwritten ones are counted;
snapshots while recording goes on."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import cases
import support
from command import arctrace, read, read_dump, read_info, read_report, run, start_arctrace
from states import PATIENCE_S, wait_until
from tracing import TracedTest

# Python itself makes library calls; only records that the programs here write are counted.
RING = ("--mode=overwrite", "--no-libcall")
SMALL = (*RING, "-b", "256k", "--block-size", "4k")

# Argument: how often the innermost of five frames rings.
NESTED = support.API + """
keys = [key(f"level{i}") for i in range(5)]
ring = name("ring")
for k in keys: api.arctrace_enter(k)
for i in range(int(sys.argv[1])): api.arctrace_instant(ring)
for k in reversed(keys): api.arctrace_exit(k)
"""

# Argument: records of each of two threads, while a third has written one and idles.
THREADS = support.API + """
ring = name("ring")
done, has_rung = threading.Event(), threading.Event()
def idle():
    api.arctrace_thread_name(b"idle")
    api.arctrace_instant(ring)
    has_rung.set()
    done.wait()
def busy(which):
    api.arctrace_thread_name(b"busy%d" % which)
    for i in range(int(sys.argv[1])): api.arctrace_instant(ring)
threads = [threading.Thread(target=busy, args=(i,)) for i in range(2)]
still = threading.Thread(target=idle)
still.start()
has_rung.wait()
for t in threads: t.start()
for t in threads: t.join()
done.set()
still.join()
"""

# Calls functions until its timer's handler has jumped out of what it had interrupted as often as the argument says.
JUMPS = """
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
static sigjmp_buf before;
static volatile sig_atomic_t may_jump;
static void jump(int number) {
  (void)number;
  if (!may_jump) return;
  may_jump = 0;
  siglongjmp(before, 1);
}
__attribute__((noinline)) static int leaf(int value) { return value * 7 + 1; }
__attribute__((noinline)) static int work(int value) {
  for (int i = 0; i < 50; ++i) value += leaf(value);
  return value;
}
int main(int count, char** arguments) {
  const struct sigaction action = {.sa_handler = jump};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, NULL);
  static volatile int left, sum;
  left = atoi(arguments[count - 1]);
  if (sigsetjmp(before, 1) != 0) --left;
  may_jump = 1;
  while (left > 0) sum += work(sum);
  may_jump = 0;
  return 0;
}
"""


class OverwriteTest(TracedTest):
    def python(self, program, *arguments, options=SMALL):
        recorded = self.record(sys.executable, "-c", program, *map(str, arguments), options=options)
        self.assertEqual(recorded.status, 0, recorded.stderr)
        return recorded

    @cases.in_gate
    def test_what_the_buffer_holds_is_said(self):
        done = self.record(sys.executable, "-c", NESTED, "100000", options=("--keep=1h", *SMALL[1:]))
        self.assertEqual(done.status, 0, done.stderr)
        self.assertRegex(done.stderr, r"the records of all threads are there for the last [\d.]+ [mun]?s, from [\d.]+ s on\n")
        self.assertRegex(done.stderr, r"warning: the buffer did not hold the last 3,600 s for which --keep asks")
        info = read_info(done.trace)
        thread, = [t for t in info["threads"] if t["overwritten"]]
        self.assertEqual(info["kept"]["from_ns"], thread["whole_from_ns"])
        first = min(r["time_ns"] for r in read_dump(done.trace) if r["type"] == "INSTANT")
        self.assertLessEqual(thread["whole_from_ns"], first)
        self.assertGreater(info["kept"]["until_ns"], first)
        done = self.record(sys.executable, "-c", NESTED, "10", options=("--keep=1s", "--no-libcall"))
        self.assertNotIn("the records of all threads", done.stderr)
        self.assertIsNone(read_info(done.trace)["kept"])
        self.assertEqual(read_info(done.trace)["session"]["mode"], "overwrite")
        refused = arctrace("record", "--keep=1s", "--mode=stop", "true")
        self.assertEqual((refused.returncode, refused.stderr),
                         (2, "arctrace: record: --keep needs --mode=overwrite, the flight recorder\n"))

    @cases.in_gate
    def test_snapshot_signal_at_any_moment(self):
        """SIGUSR2 does not end a recorder that does not handle it yet, or any more; the program has the signal as
        without us."""
        status = "grep SigIgn /proc/self/status; exit 7"
        ignored = run("sh", "-c", status).stdout
        for number in range(20):
            recorder = start_arctrace("record", *SMALL, "-o", self.directory / "asked.data", "--", "sh", "-c", status,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(recorder.communicate)
            began = time.monotonic()
            # The recorder ignores it from when its main file's code runs: it can't change what the loader does before.
            wait_until(lambda: recorder.poll() is not None or self.ignores(recorder.pid, signal.SIGUSR2), "it ignores SIGUSR2")
            while recorder.poll() is None:
                recorder.send_signal(signal.SIGUSR2)
                time.sleep(0.0002 * number)
            output = recorder.stdout.read()
            self.assertEqual((recorder.returncode, output), (7, ignored), (number, time.monotonic() - began))
            for file in self.directory.glob("asked.data*"):
                file.unlink()

    @staticmethod
    def ignores(pid, number):
        try:
            text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        except OSError:
            return False
        return int(re.search(r"(?m)^SigIgn:\s*([0-9a-f]+)$", text)[1], 16) >> (number - 1) & 1 != 0

    @cases.in_gate
    def test_handlers_that_jump(self):
        """A state that a jump leaves unfinished, such as a block that is being taken, is taken over, and costs no
        record."""
        (self.directory / "jumps.c").write_text(JUMPS, encoding="utf-8")
        run("gcc", "-O1", "-finstrument-functions", "jumps.c", "-o", "jumps", cwd=self.directory, check=True)
        for scope in cases.shortened(("thread", "adaptive", "shared")):
            with self.subTest(scope=scope):
                recorded = self.record("./jumps", 500, options=(*SMALL, f"--scope={scope}"))
                summary = recorded.report("flat")["summary"]
                self.assertGreater(summary["overwritten"], 10 * summary["records"])
                self.assertEqual(summary["lost"], 0, summary)
                kept = [record["time_ns"] for record in recorded.records() if record["type"] in ("ENTER", "EXIT")]
                ends = [process["end_ns"] for process in recorded.info()["processes"]]
                self.assertGreater(min(kept), max(ends) / 2)
                read("check", recorded.trace)  # frames that handlers entered in overwritten blocks are known

    @cases.in_gate
    def test_the_newest_records_with_their_first_frames(self):
        for scope in ("thread", "shared"):
            with self.subTest(scope=scope):
                trace = self.python(NESTED, 60000, options=(*SMALL, f"--scope={scope}")).trace
                read("check", trace)
                records = read_dump(trace, "--type", "STACK,INSTANT,EXIT")
                self.assertEqual(records[0]["type"], "STACK")
                self.assertEqual(records[0]["frames"], [f"level{i}" for i in range(5)])
                self.assertEqual([r["function"] for r in records[-5:]],
                                 [f"level{i}" for i in reversed(range(5))])
                ringing = [r for r in records if r["type"] == "INSTANT"]
                self.assertTrue(all(r["name"] == "ring" for r in ringing))
                summary = read_info(trace)["summary"]
                self.assertEqual(summary["lost"], 0)
                self.assertEqual(summary["records"] + summary["overwritten"], 60010)
                # Data still take most of the buffer.
                self.assertGreater(len(ringing), 5000)

    def test_nothing_is_overwritten_while_there_is_room(self):
        trace = self.python(NESTED, 100, options=RING).trace
        summary = read_info(trace)["summary"]
        self.assertEqual((summary["records"], summary["overwritten"], summary["lost"]), (110, 0, 0))

    def test_idle_threads_keep_their_block(self):
        for scope in ("thread", "shared"):
            with self.subTest(scope=scope):
                trace = self.python(THREADS, 30000, options=(*SMALL, f"--scope={scope}")).trace
                read("check", trace)
                threads = {t["name"]: t for t in read_info(trace)["threads"]}
                for which in ("busy0", "busy1"):
                    self.assertEqual(threads[which]["records"] + threads[which]["overwritten"],
                                     30000)
                    self.assertGreater(threads[which]["overwritten"], 0)
                if scope == "thread":
                    self.assertEqual((threads["idle"]["records"],
                                      threads["idle"]["overwritten"]), (1, 0))

    def test_many_processes_come_and_go(self):
        """Definitions of dead processes are overwritten; the remaining records have names."""
        child = support.API + """
r = name("r" + sys.argv[1])
for i in range(3000): api.arctrace_instant(r)
"""
        program = ("import subprocess, sys\n"
                   "for i in range(40): subprocess.run([sys.executable, '-c', sys.argv[1], str(i)])")
        recorded = self.record(sys.executable, "-c", program, child,
                               options=(*RING, "-b", "320k", "--block-size", "8k"))
        read("check", recorded.trace)
        info = read_info(recorded.trace)
        self.assertEqual(info["summary"]["lost"], 0)
        written = info["summary"]["records"] + info["summary"]["overwritten"]
        self.assertIn(written - 40 * 3000, (0, 2 * 40))  # vfork adds records of its begin and end
        names = {r["name"] for r in read_dump(recorded.trace, "--type", "INSTANT")}
        self.assertIn("r39", names)
        self.assertNotIn("r0", names)
        self.assertEqual(len(info["processes"]), 41)
        self.assertLess(sum(p["origin"] != "not known" for p in info["processes"]), 40)

    def start(self, program, *arguments, options=SMALL):
        """A recorder whose program has printed that it is ready."""
        trace = self.directory / "arctrace.data"
        recorder = start_arctrace("record", "-o", trace, *options, "--", sys.executable, "-c", program, *arguments,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.stderr.close)
        self.addCleanup(recorder.stdout.close)
        self.addCleanup(recorder.kill)
        self.addCleanup(recorder.stdin.close)
        self.assertEqual(recorder.stdout.readline(), "ready\n")
        return recorder, trace

    @cases.in_gate
    def test_snapshots_by_signal(self):
        program = support.API + """
ring = name("ring")
end = False
begun = threading.Event()
def busy():
    for _ in range(2000): api.arctrace_instant(ring)
    begun.set()
    while not end:
        # Slowly: a busy machine's recorder could not copy a block before it is overwritten.
        api.arctrace_instant(ring)
        time.sleep(0.001)
    api.arctrace_instant(ring)  # after the last snapshot
t = threading.Thread(target=busy)
t.start()
begun.wait()
print("ready", flush=True)
sys.stdin.read()
end = True
t.join()
"""
        recorder, trace = self.start(program)
        for number in (1, 2, 3):
            recorder.send_signal(signal.SIGUSR2)
            line = recorder.stderr.readline()
            snapshot = f"{trace}.{number}"
            self.assertEqual(line, f"arctrace: snapshot: {snapshot}\n")
            read("check", snapshot)
            self.assertGreater(read_info(snapshot)["summary"]["records"], 1000)
        recorder.stdin.close()
        self.assertEqual(recorder.wait(PATIENCE_S), 0)
        read("check", trace)
        last = read_dump(trace, "--type", "INSTANT")[-1]["time_ns"]
        self.assertGreater(last, read_dump(snapshot, "--type", "INSTANT")[-1]["time_ns"])

    @staticmethod
    def has_ended(pid):
        """Whether a process that is not our child has ended; nobody may have waited for it yet."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                return stat.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    def wait_for_snapshots(self, trace, what, wanted):
        """Waits until the numbers of the snapshots that are there are as wanted, which `what` says."""
        def wanted_files():
            numbers = sorted(int(file.rsplit(".", 1)[1]) for file in os.listdir(self.directory)
                             if file.startswith(trace.name + ".") and ".new-" not in file)
            return wanted(numbers) and [self.directory / f"{trace.name}.{number}" for number in numbers]

        return wait_until(wanted_files, lambda: f"{os.listdir(self.directory)} instead of {what}")

    def wait_for_files(self, trace, *numbers):
        """Waits until these snapshots, and no others, are there."""
        return self.wait_for_snapshots(trace, numbers, lambda found: found == list(numbers))

    def test_snapshot_that_the_program_asks_for_with_what_comes_after(self):
        program = support.API + """
before, after = name("before"), name("after")
print("ready", flush=True)
for _ in sys.stdin:
    api.arctrace_instant(before)
    begin = time.monotonic()
    assert api.arctrace_snapshot(1000) == 0
    api.arctrace_instant(after)
    print(time.monotonic() - begin, flush=True)
"""
        recorder, trace = self.start(program)
        for number in range(1, 11):
            recorder.stdin.write("go\n")
            recorder.stdin.flush()
            passed = float(recorder.stdout.readline())
            snapshot = self.wait_for_files(trace, *range(1, number + 1))[-1]
            read("check", snapshot)
            names = [r["name"] for r in read_dump(snapshot, "--type", "INSTANT")]
            if passed < 0.9:
                break  # else the program got no CPU before the snapshot, which may lack its last record
        self.assertEqual(names, ["before", "after"] * number)
        recorder.stdin.close()
        self.assertEqual(recorder.wait(PATIENCE_S), 0)

    def test_snapshot_asked_of_nobody(self):
        program = support.API + "print(api.arctrace_snapshot(0))"
        self.assertEqual(self.python(program, options=()).stdout, "-3\n")  # -ESRCH
        alone = run(sys.executable, "-c", program, check=True)
        self.assertEqual(alone.stdout, "-2\n")  # -ENOENT

    def test_snapshot_on_crash_of_a_child(self):
        child = support.API + """
try: os.execv("/nowhere", ["x"])
except OSError: pass
api.arctrace_instant(name("last words")); os.abort()"""
        program = ("import subprocess, sys\nprint('ready', flush=True)\n"
                   "subprocess.run(['sh', '-c', 'exec sleep 0.5'])\n"
                   f"subprocess.run([sys.executable, '-c', {child!r}])\n"
                   "subprocess.run(['true'])\nsys.stdin.read()")
        recorder, trace = self.start(program, options=(*SMALL, "--snapshot-on-crash"))
        snapshot, = self.wait_for_files(trace, 1)
        read("check", snapshot)
        self.assertEqual([r["name"] for r in read_dump(snapshot, "--type", "INSTANT")],
                         ["last words"])
        recorder.stdin.close()
        recorder.wait(PATIENCE_S)
        self.wait_for_files(trace, 1)  # processes that ended well, or executed another program, caused no snapshot

    def test_ring_of_snapshots_is_bounded(self):
        recorder, trace = self.start(
            "import sys; print('ready', flush=True); sys.stdin.read()",
            options=(*SMALL, "--snapshots=2"))
        for _ in range(4):
            recorder.send_signal(signal.SIGUSR2)
            recorder.stderr.readline()
        self.wait_for_files(trace, 3, 4)
        recorder.stdin.close()
        recorder.wait(PATIENCE_S)

    def test_periodic_snapshots_within_a_size(self):
        recorder, trace = self.start(
            "import sys; print('ready', flush=True); sys.stdin.read()",
            options=(*SMALL, "--snapshot-every=100ms", "--size-limit=1k"))
        # Only the newest snapshot remains, which is larger than that; another one may come before we check.
        self.wait_for_snapshots(trace, "one after the second",
                                lambda found: len(found) == 1 and found[0] > 2)
        recorder.stdin.close()
        recorder.wait(PATIENCE_S)
        for options in (("--snapshot-every=soon",), ("--snapshot-every=0s",), ("--snapshots=x",)):
            done = arctrace("record", *options, "true")
            self.assertEqual(done.returncode, 2, done.stderr)

    def test_snapshot_signal_in_another_mode_is_refused_and_harms_nothing(self):
        recorder, trace = self.start("print('ready', flush=True); input()", options=())
        recorder.send_signal(signal.SIGUSR2)
        self.assertIn("--mode=overwrite", recorder.stderr.readline())
        recorder.stdin.close()
        recorder.wait(PATIENCE_S)
        self.assertEqual(sorted(os.listdir(self.directory)), [trace.name])

    def test_without_a_recorder_the_ring_goes_on(self):
        """The recorder is killed: its program continues to write, and the buffer's file can be read."""
        program = NESTED.replace("for i in range(int(sys.argv[1]))",
                                 "print(os.environ['ARCTRACE_SESSION'], flush=True)\n"
                                 "print('ready', flush=True)\nsys.stdin.readline()\n"
                                 "for i in range(int(sys.argv[1]))") + "\nprint('done', flush=True)\n"
        program = program.replace("print(os.environ['ARCTRACE_SESSION'], flush=True)\n", "")
        recorder, trace = self.start(program + "sys.stdin.readline()\n", 60000)
        child = int(subprocess.run(["pgrep", "-P", str(recorder.pid)], check=True,
                                   stdout=subprocess.PIPE, text=True).stdout)
        with open(f"/proc/{child}/environ", "rb") as environ:
            session = next(v for v in environ.read().split(b"\0")
                           if v.startswith(b"ARCTRACE_SESSION=")).split(b"=", 1)[1].decode()
        self.addCleanup(os.unlink, session)
        self.addCleanup(trace.unlink)  # the file is cut off
        recorder.kill()
        recorder.wait()
        recorder.stdin.write("go\n")
        recorder.stdin.flush()
        self.assertEqual(recorder.stdout.readline(), "done\n")
        read("check", session)
        summary = read_info(session)["summary"]
        self.assertEqual(summary["records"] + summary["overwritten"], 60010)
        self.assertEqual(read_dump(session, "--type", "STACK")[0]["frames"],
                         [f"level{i}" for i in range(5)])
        recorder.stdin.write("end\n")
        recorder.stdin.flush()
        wait_until(lambda: self.has_ended(child), "the program ends")


if __name__ == "__main__":
    cases.main()
