"""arctrace live --plain: records as they come, as dump has them; of a session with and without a
collector, and of a command; how it ends; hostile names."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import cases
import support
from command import ARCTRACE, arctrace, read, refused, run, start_arctrace
from tracing import TracedTest

# Enters and leaves functions, a step for each line of its input.
STEPS = support.API + """
outer, inner, mark = key("outer"), key("inner"), name("happened")
print("ready", flush=True)
for line in sys.stdin:
    api.arctrace_enter(outer)
    api.arctrace_enter(inner)
    api.arctrace_instant(mark)
    sys.stdin.readline()
    api.arctrace_exit(inner)
    api.arctrace_exit(outer)
"""
HOSTILE = support.API + r"""
evil = name("\x1b[2J\x07evil\nEND\x9b31m")
api.arctrace_instant(evil)
api.arctrace_enter(1 << 63 | evil)
api.arctrace_exit(1 << 63 | evil)
"""
PATIENCE = 120  # seconds; what tests wait for takes a fraction of one


def dumped(path):
    return arctrace("dump", path, "--no-header").stdout.splitlines()


class Following:
    """A running `arctrace live --plain`, and the lines that it has printed."""

    def __init__(self, *arguments):
        self.process = start_arctrace("live", "--plain", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True)
        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, text, count=1):
        end = time.monotonic() + PATIENCE
        while sum(text in line for line in self.lines[:]) < count:
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(f"no {count} lines with {text!r} in {self.lines}")
            time.sleep(0.02)

    def end(self):
        """The status of live and what it wrote to standard error, once it has ended by itself."""
        errors = self.process.stderr.read()
        status = self.process.wait(PATIENCE)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return status, errors


class LiveTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.name = f"live-{os.getpid()}-{self.id().rsplit('.', 1)[1]}"[:64]
        done = arctrace("create", self.name, "-b", "1M", "--block-size", "8k", "--start")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(arctrace, "destroy", "--force", self.name)

    def follow(self, *arguments):
        following = Following(*arguments)
        self.addCleanup(following.process.kill)
        return following

    def stepping(self):
        process = start_arctrace("record", "--no-libcall", f"--session={self.name}", "--", sys.executable, "-c",
                                 STEPS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def go_through_steps(self, following):
        """Each step is seen before the next one begins, although its block stays open."""
        program = self.stepping()
        for step in range(1, 4):
            for _ in range(2):
                program.stdin.write("\n")
                program.stdin.flush()
                following.wait_for("happened", step)
            following.wait_for(" EXIT ", 2 * step)
        program.stdin.close()
        self.assertEqual(program.wait(PATIENCE), 0)

    def assert_same(self, lines, wanted):
        self.assertEqual(sorted(lines), sorted(wanted))
        # Definitions have the time of what they define, and may be written later.
        times = [float(line.split()[0]) for line in lines
                 if re.search(" (ENTER|EXIT|INSTANT) ", line)]
        self.assertEqual(times, sorted(times))
        exits = [line.split()[-1] for line in lines if " EXIT " in line]
        self.assertEqual(exits, ["inner", "outer"] * 3)

    def test_a_session_without_a_collector(self):
        following = self.follow(self.name)
        self.go_through_steps(following)
        wanted = dumped(self.name)
        following.process.send_signal(signal.SIGINT)
        status, errors = following.end()
        self.assertEqual((status, errors), (130, ""))
        self.assert_same(following.lines, wanted)
        # The session has not changed.
        self.assertEqual(dumped(self.name), wanted)

    def test_a_session_that_is_collected(self):
        trace = self.directory / "collected.data"
        with start_arctrace("attach", self.name, "-o", trace, stderr=subprocess.DEVNULL) as collector:
            end = time.monotonic() + PATIENCE
            while not trace.exists() and time.monotonic() < end:
                time.sleep(0.02)
            following = self.follow(self.name)
            self.go_through_steps(following)
            collector.send_signal(signal.SIGINT)
        self.assertEqual(arctrace("destroy", self.name).returncode, 0)
        self.assertEqual(following.end(), (0, ""))
        # The collector compares the clocks again and again, so later lines have more exact times.
        without_time = [line.split(maxsplit=1)[1] for line in dumped(trace)]
        self.assertEqual(sorted(line.split(maxsplit=1)[1] for line in following.lines),
                         sorted(without_time))
        read("check", trace)

    def test_filters_in_force_and_marks_as_json(self):
        """The session's present state comes first; then each change, and each mark."""
        for options in (["-N", "no_such"], ["--event=none", "--no-mark=nothing"], ["--off=kernel"]):
            arctrace("ctl", self.name, *options, check=True)
        following = self.follow("--format=json", self.name)
        program = start_arctrace("record", "--no-libcall", f"--session={self.name}", "--", sys.executable, "-c",
                                 support.API + "api.arctrace_mark(b'begin')")
        self.assertEqual(program.wait(PATIENCE), 0)
        following.wait_for('"type":"MARK"')
        arctrace("ctl", self.name, "--off=all", check=True)
        following.wait_for('"gate":"nothing"')
        following.process.send_signal(signal.SIGINT)
        self.assertEqual(following.end(), (130, ""))
        lines = [json.loads(line) for line in following.lines]
        filters = ["-no_such", "event:none", "notmark:nothing"]
        self.assertEqual([(line["gate"], line["filter"]) for line in lines if line["type"] == "ENABLED"],
                         [("all", []), ("all", filters[:1]), ("all", filters), ("functions, events, marks", filters),
                          ("nothing", filters)])
        types = [line["type"] for line in lines]
        self.assertEqual(types.index("MARK"), len(types) - 1 - types[::-1].index("MARK"))
        self.assertEqual(lines[types.index("MARK")]["text"], "begin")
        self.assertEqual(types[:4], ["ENABLED"] * 4)

    def test_events_by_their_fields(self):
        def live(*options):
            return arctrace("live", "--plain", "--no-libcall", *options, "--", os.environ["ARCTRACE_TYPED_EVENTS"])
        where = ("--where", "id >= 3", "--where", "seconds < 1.5")
        done = live(*where)
        self.assertEqual((done.returncode, done.stderr),
                         (0, "arctrace: 27 events left out by --where 'id >= 3' --where 'seconds < 1.5'\n"))
        self.assertEqual([re.search(r" id=(\d+) ", line)[1] for line in done.stdout.splitlines() if " EVENT " in line],
                         ["3", "4", "5"])
        done = live("--format=json", *where)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([line["fields"]["id"] for line in lines if line["type"] == "EVENT"], [3, 4, 5])
        self.assertEqual((lines[-1]["type"], lines[-1]["events_left_out"], lines[-1]["where"]),
                         ("LEFT_OUT", 27, ["id >= 3", "seconds < 1.5"]))
        # A program may define its events at any time; at the end live says that none has the field.
        done = live("--where", "idd = 1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("30 events left out by --where 'idd = 1'\n", done.stderr)
        self.assertIn("warning: --where 'idd = 1': no event has a field \"idd\"", done.stderr)
        self.assertIn("about the lines of --plain", refused("live", "--where", "id = 1", self.name))

    def test_a_command_of_its_own(self):
        for script, status in (("exit 7", 7), ("kill -TERM $$", -signal.SIGTERM), ("true", 0)):
            done = arctrace("live", "--plain", "--", "sh", "-c", f"echo said; {script}")
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn("PROCESS", done.stdout)
            self.assertEqual(done.stderr, "said\n")
        done = arctrace("live", "--plain", "--", "/does/not/exist")
        self.assertEqual((done.returncode, done.stdout), (127, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_reader_that_goes_away(self):
        script = f"{ARCTRACE} live --plain -- sh -c 'sleep 0.5; exit 7' | head -n 1; echo $PIPESTATUS"
        done = run("bash", "-c", f"set -o pipefail; {script}")
        self.assertEqual(done.stdout.splitlines()[-1], "7", done.stderr)
        self.assertEqual(done.stderr, "")

    def test_hostile_names(self):
        done = arctrace("live", "--plain", "--no-libcall", "--", sys.executable, "-c", HOSTILE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout), [])
        self.assertIn(r"evil\nEND", done.stdout)

    def test_what_cannot_be_followed(self):
        trace = self.record("true").trace
        for arguments in (["no-such-session"], [trace], [self.name, "--", "ls"], ["--"],
                          [self.name, "other"], ["-F", "x", self.name]):
            done = arctrace("live", "--plain", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    cases.main()
