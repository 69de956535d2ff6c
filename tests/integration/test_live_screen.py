"""The screen of arctrace live, in tmux: at three sizes, its keys, ways to quit, what it refuses."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import cases
import support
from command import ARCTRACE, arctrace, read, run, start_arctrace
from states import wait_until
from test_kernel import NO_KERNEL
from tmux_terminal import Terminal
from tracing import TracedTest

# Spends its time in inner, within outer, for ever, and less in a function whose name is as long as a name can be, turns
# the direction of text, and has characters of two columns.
PROGRAM = support.API + r"""
outer, inner = key("outer\x1b[31m"), key("inner")
hostile = key("\u202e\x9bhostile\u4e2d\u4e2d" + "\u4e2d" * 1_000_000)
print("kept until the end", flush=True)
api.arctrace_enter(outer)
while True:
    api.arctrace_enter(inner)
    time.sleep(0.01)
    api.arctrace_exit(inner)
    api.arctrace_enter(hostile)
    time.sleep(0.002)
    api.arctrace_exit(hostile)
"""
# One thread runs in spin, another one sleeps in sleep. They are in two processes, because in one they would share
# Python's lock.
STATES = support.API + r"""
if os.fork():
    spin = key("spin")
    api.arctrace_enter(spin)
    while True: pass
doze = key("doze")
api.arctrace_enter(doze)
time.sleep(1000)
"""


# Marks the session's time line now and then, and is in a function meanwhile.
MARKS = support.API + r"""
inner = key("inner")
for turn in range(1_000_000):
    api.arctrace_enter(inner)
    time.sleep(0.02)
    api.arctrace_exit(inner)
    if turn % 10 == 0: api.arctrace_mark(b"turn\x1b[2J of ten")
"""


class LiveScreenTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.program = self.directory / "program.py"
        self.program.write_text(PROGRAM)

    def terminal(self, columns=80, lines=24):
        terminal = Terminal(columns, lines)
        self.addCleanup(terminal.close)
        return terminal

    def live(self, terminal, prefix="", status="status"):
        terminal.type(f"{prefix}{ARCTRACE} live --no-libcall -- {sys.executable} "
                      f"{self.program}; echo {status}=$?")

    def interrupt(self, terminal):
        """Ctrl-C is for the command, which ends by it; quitting live ends the command, too."""
        terminal.press("C-c")
        terminal.wait_for("the session is over")
        terminal.press("q")
        terminal.wait_for("kept until the end", gone=("records/s",))
        terminal.type("echo then=$?; stty -a")
        terminal.wait_for("then=130", " icanon ", " echo ")

    def test_three_sizes_and_a_fourth(self):
        terminal = self.terminal()
        self.live(terminal)
        for columns, lines in ((80, 24), (120, 40), (200, 60)):
            terminal.run("resize-window", "-x", columns, "-y", lines)
            terminal.wait_until(lambda shown: (
                len(shown) == lines and "records/s" in shown[1] and "none lost" in shown[1]
                and "function, by self" in shown[2] and "q leave" in shown[-1]
                # If there is space, the stack is beside the table, and the table has more columns.
                and ("thread 1 of 1" in shown[2]) == (columns >= 120)
                and ("average" in shown[2]) == (columns >= 200)))
            # Hostile names are escaped.
            terminal.wait_for("inner", "thread 1 of 1", r"outer\x1b[31m", r"\u{202e}\u{9b}")
            terminal.press("k")
            terminal.wait_for("inner", "q leave", gone=("thread 1 of",))
            terminal.press("k")
        terminal.run("resize-window", "-x", 30, "-y", 6)
        terminal.wait_for("40x8 at least", gone=("records/s",))
        terminal.run("resize-window", "-x", 80, "-y", 24)
        terminal.wait_for("records/s", "inner")
        self.interrupt(terminal)

    def test_whole_names(self):
        """Functions have short names, or with --full-names whole ones."""
        program = self.directory / "templates"
        run("g++", "-O0", "-finstrument-functions", "-x", "c++", "-", "-o", program, check=True, input=(
            "#include <unistd.h>\ntemplate <class T> long slow_sort(T n) { usleep(n); return n; }"
            "int main() { for (;;) slow_sort<long>(1000); }"))
        for options, shown in (("", r" slow_sort *$"), ("--full-names", r" long slow_sort<long>\(long\)")):
            terminal = self.terminal(120, 24)
            terminal.type(f"{ARCTRACE} live --no-libcall {options} -- {program}")
            terminal.wait_until(lambda lines, shown=shown: any(re.search(shown, line.split("│")[0].rstrip()) for line in lines))
            terminal.press("C-c")
            terminal.wait_for("the session is over")
            terminal.press("q")

    @cases.in_gate
    def test_what_is_drawn(self):
        """A picture draws only what differs from the one before it: nothing is erased first."""
        terminal = self.terminal()
        self.live(terminal)
        terminal.wait_for("records/s", "inner")
        raw = self.directory / "raw"
        raw.touch()
        begin = time.monotonic()
        terminal.run("pipe-pane", f"cat >{raw}")
        before = terminal.shown()
        for _ in range(3):
            before = terminal.wait_for_another(before)
        wait_until(lambda: raw.stat().st_size > 0, "pictures are written into a file")
        terminal.run("pipe-pane")
        pictures = 2 * (time.monotonic() - begin) + 1  # at most: two a second
        drawn = raw.read_bytes()
        for erasing in (b"\x1b[2J", b"\x1b[J", b"\x1bc"):
            self.assertNotIn(erasing, drawn)
        self.assertLess(len(drawn), 80 * 24 * pictures)

    @cases.in_gate
    def test_keys(self):
        terminal = self.terminal(120, 30)
        self.live(terminal)
        terminal.wait_for("function, by self", "inner", "thread 1 of 1")
        terminal.press("k")
        terminal.wait_for("inner", gone=("thread 1 of",))
        for by in ("total", "calls", "name", "self"):
            terminal.press("s")
            terminal.wait_for(f"function, by {by}")
        terminal.press("v")
        terminal.wait_for("path, by self", r"outer\x1b[31m > inner")
        terminal.press("v")
        terminal.wait_for("function, by self")
        terminal.press("Down")
        terminal.wait_for("\n>", "inner")
        terminal.press("Enter")
        terminal.wait_for("path through inner, by self", r"outer\x1b[31m > inner", "Esc back",
                          gone=("hostile",))
        terminal.press("Escape")
        terminal.wait_for("function, by self", "hostile", gone=("through inner",))
        terminal.press("/")
        terminal.wait_for("show only names with:")
        terminal.press("O", "U", "t")
        terminal.wait_for("OUt_")
        terminal.press("Enter")
        terminal.wait_for("with OUt", "outer")
        terminal.press("p")
        terminal.wait_for("PAUSED")
        terminal.press("p")
        terminal.wait_for("records/s", gone=("PAUSED",))
        terminal.press("C-z")
        terminal.wait_for("Stopped")
        terminal.type("fg")
        terminal.wait_for("records/s", "function, by self")
        self.interrupt(terminal)

    def wait_for_cpu(self, terminal, function, state, holds):
        """Waits until a picture has the thread that is in that function in that state, and `holds` is true of the share
        of its time on the CPU, in percent, and of the words of the function's row in the table."""
        for _ in range(2):
            shown = terminal.wait_for("thread ", " of 2", "on CPU ").splitlines()
            head = next(i for i, line in enumerate(shown) if line.startswith("thread "))
            if any(line.endswith(function) for line in shown[head:]):
                break
            terminal.press("t")
            terminal.wait_until(lambda now: any(line.startswith("thread ") and line != shown[head]
                                                for line in now))

        def is_so(shown):
            share = re.match(r"on CPU +([0-9.]+) %", shown[head + 2])
            row = next((line for line in shown[:head] if line.endswith(" " + function)), None)
            return (shown[head].startswith("thread ") and shown[head + 1].startswith(state)
                    and share and row and holds(float(share[1]), row.split()))

        terminal.wait_until(is_so)

    def watch_states(self, *options):
        self.program.write_text(STATES)
        terminal = self.terminal(100, 24)
        terminal.type(f"{ARCTRACE} live {' '.join(options)} --no-libcall -- {sys.executable} "
                      f"{self.program}")
        terminal.wait_for(" spin", " doze", "2 writers", "thread ")
        return terminal

    def leave_states(self, terminal):
        terminal.press("C-c")
        terminal.wait_for("the session is over")
        terminal.press("q")
        terminal.wait_for("bash-", gone=("the session is over",))
        terminal.type("echo then=$?")
        terminal.wait_for("then=130")

    def test_on_and_off_the_cpu_by_proc(self):
        terminal = self.watch_states()
        self.assertNotIn(" on CPU", terminal.shown().splitlines()[2])
        # Each share is right once the window is full of present states. How much spin gets is up to the scheduler.
        self.wait_for_cpu(terminal, "spin", "/proc: running or ready", lambda share, _: share > 1)
        self.wait_for_cpu(terminal, "doze", "/proc: sleeps", lambda share, _: share < 0.1)
        self.leave_states(terminal)

    @unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
    def test_on_and_off_the_cpu_by_the_kernel(self):
        terminal = self.watch_states("--kernel")
        self.assertIn(" on CPU", terminal.shown().splitlines()[2])
        # The functions' wall-clock time is all of the window, and each thread is in one function all the time. "kernel:
        # r" is running, or ready after it was preempted.
        self.wait_for_cpu(terminal, "spin", "kernel: r", lambda share, row: (
            share > 1 and float(row[0]) > 90 and abs(float(row[1]) - share) < share / 5))
        self.wait_for_cpu(terminal, "doze", "kernel: blocked: sleeps", lambda share, row: (
            share < 0.1 and float(row[0]) > 90 and float(row[1]) < 0.1))
        terminal.press("s")
        terminal.wait_until(lambda shown: "function, by on CPU" in shown[2] and shown[3].endswith(" spin"))
        self.leave_states(terminal)

    @unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
    def test_a_thread_stays_in_the_kernel(self):
        """The kernel records once that a thread is in a call, which lasts for many ticks."""
        terminal = self.terminal(100, 24)
        terminal.type(f"{ARCTRACE} live --kernel --syscalls -- sleep 1000")
        shown = terminal.wait_for("nanosleep", "K:clock_nanosleep", "kernel: blocked")
        for _ in range(10):
            shown = terminal.wait_for_another(shown)
            self.assertIn("K:clock_nanosleep", shown)
        self.leave_states(terminal)

    def test_a_session_of_others(self):
        name = f"screen-{os.getpid()}"
        read("create", name, "-b", "1M", "--block-size", "8k", "--start")
        self.addCleanup(arctrace, "destroy", "--force", name)
        program = start_arctrace("record", "--no-libcall", f"--session={name}", "--", sys.executable, self.program,
                                 stdout=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.terminate)
        terminal = self.terminal()
        terminal.type(f"cd {self.directory}; {ARCTRACE} live {name}; echo status=$?")
        terminal.wait_for("records/s", "inner")
        terminal.press("S")
        terminal.wait_for("snapshot: arctrace.live.1")
        read("check", self.directory / "arctrace.live.1")
        terminal.press("C-c")
        terminal.wait_for("status=130", gone=("records/s",))
        terminal.type("stty -a")
        terminal.wait_for(" icanon ", " echo ")

    @cases.in_gate
    def test_what_is_left_out_and_marks(self):
        name = f"marks-{os.getpid()}"
        read("create", name, "-b", "1M", "--block-size", "8k", "--start")
        self.addCleanup(arctrace, "destroy", "--force", name)
        self.program.write_text(MARKS)
        program = start_arctrace("record", "--no-libcall", f"--session={name}", "--", sys.executable, self.program)
        self.addCleanup(program.wait)
        self.addCleanup(program.terminate)
        terminal = self.terminal(120, 24)
        terminal.type(f"{ARCTRACE} live {name}; echo status=$?")
        # The newest mark is the first, and its age never grows to that of the one before it.
        shown = terminal.wait_for("inner", "marks (", r"turn\x1b[2J of ten, ", " ago; ", gone=("off: ", "filter: "))
        self.assertIn("marks (", shown.splitlines()[2])
        self.assertIn("function, by self", shown.splitlines()[3])
        for options, said in ((["-N", "no_such"], "live filter: -N no_such"),
                              (["--event=none"], "live filter: -N no_such; record filter: event:none"),
                              (["--off=kernel,marks"],
                               "off: marks, kernel; live filter: -N no_such; record filter: event:none")):
            arctrace("ctl", name, *options, check=True)
            shown = terminal.wait_for(said, "marks (", "inner")
            self.assertEqual(shown.splitlines()[2].rstrip(), said)
        read("stop", name)
        terminal.wait_for("recording is off", gone=("off: ", "filter: "))
        read("ctl", name, "--on=all", "--trace-all", "--record-all")
        terminal.wait_for("marks (", gone=("off: ", "filter: ", "recording is off"))
        terminal.press("q")
        terminal.wait_for("status=0", gone=("records/s",))

    def processes(self):
        """Processes that have the program in their arguments: arctrace, and the program itself."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                arguments = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:  # the process has ended
                continue
            if str(self.program).encode() in arguments:
                found.append(int(process.name))
        return found

    def kill_processes(self):
        for process in self.processes():
            os.kill(process, signal.SIGKILL)

    def test_a_terminal_that_goes_away(self):
        """Both end when the terminal does: nobody can quit on a screen that is not there."""
        terminal = self.terminal()
        self.live(terminal)
        terminal.wait_for("records/s", "inner")
        wait_until(lambda: len(self.processes()) == 2, "the program runs")
        self.addCleanup(self.kill_processes)
        terminal.run("kill-server")
        wait_until(lambda: not self.processes(), "both end without a terminal")

    def test_what_is_no_terminal_for_it(self):
        done = arctrace("live", "--", "true", stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--plain", done.stderr)
        terminal = self.terminal()
        for kind, said in (("no-such-terminal", "is not known"), ("dumb", "cannot show a screen")):
            self.live(terminal, f"TERM={kind} ", f"of-{kind}")
            terminal.wait_for(f"TERM={kind}", said, "--plain prints lines instead", f"of-{kind}=2",
                              shown_by=Terminal.said)
        # Without UTF-8 all is ASCII.
        self.live(terminal, "LC_ALL=C ")
        shown = terminal.wait_for("records/s", "inner", r"\u{9b}host")
        self.assertTrue(shown.isascii(), shown)
        self.interrupt(terminal)


if __name__ == "__main__":
    cases.main()
