"""arctrace tui in tmux: its views at three sizes against the report, its keys, ways to quit, what it refuses."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import cases
import support
from command import ARCTRACE, arctrace, read, read_report, start_arctrace
from served_trace import record_program
from tmux_terminal import PATIENCE, Terminal
from tracing import TracedTest

# main calls work three times and a hostile function once; work calls inner twice; a child process
# has calls of its own; and last never ends. main lasts twice as long as the process has taken to begin, so that
# it has a great part of the time on a machine that does other work, too.
PROGRAM = support.API + r"""
def age_s():
    start = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - start
main, work, inner, last = key("main"), key("work"), key("inner"), key("last")
hostile = key("\x1b[31m\u202e\x9bhostile\u4e2d" + "\u4e2d" * 100_000)
api.arctrace_enter(main)
time.sleep(2 * age_s())
for _ in range(3):
    api.arctrace_enter(work)
    for _ in range(2):
        api.arctrace_enter(inner)
        time.sleep(0.002)
        api.arctrace_exit(inner)
    api.arctrace_exit(work)
api.arctrace_enter(hostile)
api.arctrace_exit(hostile)
child = os.fork()
if child == 0:
    api.arctrace_enter(inner)
    api.arctrace_exit(inner)
    os._exit(3)
os.waitpid(child, 0)
api.arctrace_enter(last)
"""
VALUE = re.compile(r"\s*(-(?=\s)|[\d,]+(?:\.\d+)? (?:ns|us|ms|s)(?=\s)|<?[\d,]+(?:\.\d+)?(?=\s))")


def duration(time_ns):
    """A duration as arctrace shows it, with three digits."""
    return "-" if time_ns is None else support.duration_text(time_ns)


def rows_of(shown, head):
    """The rows of the table with this head, each a dictionary of its columns, and of the name."""
    lines = shown.splitlines()
    at = next(i for i, line in enumerate(lines) if line.rstrip().endswith(head))
    heads = re.findall(r"\S+(?: \S+)*", lines[at].partition(head)[0])
    rows = []
    for line in lines[at + 1:-1]:
        if not line.strip():
            break
        row, rest = {}, line[1:]
        for name in " ".join(heads).replace("On CPU", "On_CPU").replace("Off CPU", "Off_CPU").split():
            found = VALUE.match(rest)
            row[name], rest = (found[1], rest[found.end():]) if found else ("", rest)
        rows.append({**row, "name": rest.strip()})
    return rows


class Tui(TracedTest):
    def setUp(self):
        super().setUp()
        program = self.directory / "program.py"
        program.write_text(PROGRAM)
        recorded = self.record(sys.executable, program, options=("--no-libcall",))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        self.trace = recorded.trace

    def terminal(self, columns=200, lines=50):
        terminal = Terminal(columns, lines)
        self.addCleanup(terminal.close)
        return terminal

    def tui(self, *options, prefix="", trace=None, columns=200, lines=50, has="Hottest functions"):
        terminal = self.terminal(columns, lines)
        words = " ".join(map(str, options))
        terminal.type(f"clear; {prefix}{ARCTRACE} tui {words} {trace or self.trace}; echo status=$?")
        terminal.wait_for(*([has] if has else []))
        return terminal

    def leave(self, terminal, status=0):
        """Quits; the terminal is as it was before."""
        terminal.press("q")
        self.left(terminal, status)

    @staticmethod
    def left(terminal, status):
        terminal.wait_for(f"status={status}", gone=("[1 Summary]", "leave"))
        terminal.type("stty -a")
        terminal.wait_for(" icanon ", " echo ")

    @staticmethod
    def wait_for_column(terminal, title, column, wanted):
        """Waits until the table has these values: the head of a picture is drawn before its rows."""
        terminal.wait_until(lambda lines: [row[column] for row in rows_of("\n".join(lines), title)] == wanted)

    def test_views_at_three_sizes(self):
        terminal = self.tui(columns=40, lines=10, has="Summary")
        heads = {"1": ("exit 0", "Spent on"), "2": ("by Total", "main"), "3": ("by Total", "python3"),
                 "4": ("by Wall", "python3"), "5": ("No lock call",), "6": ("record with",)}
        names = ("Summary", "Functions", "Tree", "Threads", "Locks", "Critical path")
        for columns, lines in ((40, 10), (80, 24), (160, 50)):
            terminal.run("resize-window", "-x", columns, "-y", lines)
            for (key, texts), name in zip(heads.items(), names):
                terminal.press(key)
                wanted = [f"[{key} {name}]", "leave"]
                if (columns, key) not in ((40, "1"), (40, "3")):
                    wanted += texts
                shown = terminal.wait_for(*wanted)
                self.assertEqual(len(shown.splitlines()), lines)
                # If there is space, there are more columns.
                if key == "2":
                    terminal.wait_until(lambda shown: ("Calls" in shown[2]) == (columns >= 80)  # pylint: disable=W0640
                                        and ("Max" in shown[2]) == (columns >= 160))  # pylint: disable=W0640
        terminal.run("resize-window", "-x", 39, "-y", 24)
        terminal.wait_for("40x10 at least", gone=("Summary",))
        terminal.run("resize-window", "-x", 80, "-y", 9)
        terminal.wait_for("40x10 at least", gone=("Summary",))
        terminal.run("resize-window", "-x", 80, "-y", 24)
        terminal.wait_for("[6 Critical path]")
        terminal.press("?")
        terminal.wait_for("Backspace, Esc: back", "> Help")
        terminal.press("Escape")
        terminal.wait_for("[6 Critical path]", gone=("> Help",))
        terminal.press("Tab")
        terminal.wait_for("[1 Summary]")
        terminal.press("BTab")
        terminal.wait_for("[6 Critical path]")
        self.leave(terminal)

    def check_function(self, row, facts):
        self.assertEqual(row["Calls"], str(facts["calls"]))
        for column, key in (("Self", "base_ns"), ("Total", "cum_ns"), ("Avg", "avg_ns"), ("Min", "min_ns"),
                            ("p50", "p50_ns"), ("p90", "p90_ns"), ("p99", "p99_ns"), ("Max", "max_ns")):
            self.assertEqual(row[column], duration(facts[key]), (column, facts))

    def test_functions(self):
        """All numbers are those of the report, in each of the orders."""
        report = read_report(self.trace, "flat")
        facts = {function["name"]: function for function in report["functions"]}
        terminal = self.tui()
        terminal.press("2")
        rows = rows_of(terminal.wait_for("Function, by Total"), "Function, by Total")
        self.assertEqual(len(rows), len(facts))
        plain = ["main", "work", "inner"]
        for row in rows:
            name = row["name"].split(" ")[0]
            if name in plain:
                self.check_function(row, facts[name])
        self.assertIn("[open]", next(row["name"] for row in rows if row["name"].startswith("last")))
        self.assertEqual([row["Total"] for row in rows], [duration(row["cum_ns"]) for row in report["functions"]])
        for head, key in (("Avg", "avg_ns"), ("Min", "min_ns"), ("p50", "p50_ns"), ("p90", "p90_ns"),
                          ("p99", "p99_ns"), ("p99.9", "p999_ns"), ("Max", "max_ns"), ("name", None),
                          ("Calls", "calls"), ("Self", "base_ns"), ("Total", "cum_ns")):
            terminal.press("s")
            title = f"Function, by {head}"
            terminal.wait_for(title + "\n")
            if key in ("calls", "base_ns", "cum_ns"):
                by = {"calls": "calls", "base_ns": "self", "cum_ns": "total"}[key]
                in_order = read_report(self.trace, "flat", "--sort", by)["functions"]
                text = str if key == "calls" else duration
                self.wait_for_column(terminal, title, head, [text(row[key]) for row in in_order])
            elif key:
                values = sorted((row[key] for row in facts.values() if row[key] is not None), reverse=True)
                values = [duration(value) for value in values]
                self.wait_for_column(terminal, title, head, values + ["-"] * (len(rows) - len(values)))
            else:
                names = sorted(name for name in facts if name.isascii())
                terminal.wait_until(lambda lines: [row["name"].split()[0] for row in rows_of(
                    "\n".join(lines), title)][1:] == names)  # pylint: disable=W0640
        terminal.press("r")
        terminal.wait_for("by Total ascending")
        self.wait_for_column(terminal, "Function, by Total ascending", "Total", [row["Total"] for row in rows][::-1])
        terminal.press("<")
        terminal.wait_for("Function, by Self\n")
        self.leave(terminal)

    def walk(self, node, level=0):
        yield node["name"], node["calls"], duration(node["base_ns"]), duration(node["cum_ns"])
        for child in node["children"]:
            yield from self.walk(child, level + 1)

    def test_tree(self):
        report = read_report(self.trace, "tree", "--per", "process")
        wanted = []
        for process in sorted(report["processes"], key=lambda group: -group["root"]["cum_ns"]):
            wanted += list(self.walk(process["root"]))
        terminal = self.tui()
        terminal.press("3")
        terminal.wait_for("Calls of each thread, by Total")
        terminal.press("p")
        shown = terminal.wait_for("Calls of each process, by Total", "▾", "▸ main")
        # The largest tree is unfolded, down to its first calls.
        self.assertEqual(len(rows_of(shown, "Calls of each process, by Total")),
                         2 + len(max((group["root"] for group in report["processes"]),
                                     key=lambda root: root["cum_ns"])["children"]))
        terminal.press("e", "G", "e")
        rows = rows_of(terminal.wait_for("▾ main", gone=("▸",)), "Calls of each process, by Total")
        self.assertEqual([(int(row["Calls"]), row["Self"], row["Total"]) for row in rows],
                         [row[1:] for row in wanted])
        for row, (name, *_) in zip(rows, wanted):
            self.assertIn(name if name.isascii() else "hostile", row["name"])
        # Home, then fold; a search finds folded rows.
        terminal.press("g", "c", "Down", "c")
        terminal.wait_for(gone=("main",))
        terminal.press("Home")
        terminal.press("/")
        terminal.wait_for("/_")
        terminal.press("i", "n", "N", "Enter")
        shown = terminal.wait_for("▾ main", "▾ work", "inner")
        self.assertRegex(shown, r"(?m)^>.*inner$")
        terminal.press("Left")
        terminal.wait_until(lambda shown: any(re.match(">.*▾ work", line) for line in shown))
        terminal.press("Left")
        terminal.wait_until(lambda shown: any(re.match(">.*▸ work", line) for line in shown))
        terminal.press("Space")
        terminal.wait_for("▾ work")
        self.leave(terminal)

    def test_a_function(self):
        """The screen of a function goes to its callee and back; callers, callees and slowest calls are those of the
        report."""
        arcs = {row["name"]: row for row in read_report(self.trace, "arcs")["arcs"]}
        slowest = read_report(self.trace, "slowest", "-F", "work", "--limit", "20")
        terminal = self.tui()
        terminal.press("2")
        terminal.wait_for("Function, by Total")
        terminal.press("/")
        terminal.wait_for("/_")
        terminal.press("w", "o", "r", "k", "Enter")
        terminal.wait_until(lambda shown: any(re.match(">.*work", line) for line in shown))
        terminal.press("Enter")
        shown = terminal.wait_for("> work\n", "Slowest calls, by Duration", "Callees, by Total")
        for head, key in (("Callers, by Total", "parents"), ("Callees, by Total", "children")):
            self.assertEqual([(int(row["Calls"]), row["Self"], row["Total"], row["name"])
                              for row in rows_of(shown, head)],
                             [(row["calls"], duration(row["base_ns"]), duration(row["cum_ns"]), row["name"])
                              for row in arcs["work"][key]])
        rows = [row for row in shown.partition("Slowest calls")[2].splitlines() if re.match(r"[ >] +\d", row)]
        self.assertEqual(len(rows), 3)
        for row, call in zip(rows, slowest["slowest"]):
            self.assertIn(f" {duration(call['delta_ns'])} ", row)
            self.assertIn(f" {call['start_ns'] / 1e9:.9f} ", row)
            self.assertIn(f" {call['pid']}/{call['tid']} ", row)
        self.assertIn(f"Calls 3, %Self {shown.partition('Calls 3, %Self ')[2]}", shown)
        self.assertIn(f"Total {duration(arcs['work']['cum_ns'])}", shown)
        # The first caller is chosen at first, and after Down the callee.
        terminal.press("Down", "Enter")
        terminal.wait_for("> work > inner\n")
        terminal.press("BSpace")
        terminal.wait_for("> work\n", gone=("> inner",))
        terminal.wait_until(lambda shown: any(re.match(">.*inner", line) for line in shown))
        terminal.press("Left")
        terminal.wait_for("Function, by Total", gone=("> work",))
        terminal.wait_until(lambda shown: any(re.match(">.*work", line) for line in shown))
        self.leave(terminal)

    def test_arguments_locks_and_threads(self):
        source = self.directory / "words"
        source.write_text("b\na\n")
        trace = self.record("sort", "--parallel=2", source, options=("-a",)).trace
        locks = read_report(trace, "locks")["locks"]
        terminal = self.tui(trace=trace)
        terminal.press("5")
        shown = terminal.wait_for("Locks inside libraries")
        for lock in locks:
            self.assertRegex(shown, rf"{re.escape(lock['kind'])} {re.escape(lock['name'])} of {lock['pid']}")
        self.assertEqual(len(locks), shown.count(f" of {locks[0]['pid']}\n") if locks else 0)
        terminal.press("4")
        rows = rows_of(terminal.wait_for("Process/thread"), "Process/thread, by Wall")
        commands = read_report(trace, "processes")["processes"]
        self.assertEqual((rows[0]["Wall"], rows[0]["Exit"]), (duration(commands[0]["wall_ns"]), "0"))
        self.assertIn(f"sort {commands[0]['pid']}: sort --parallel=2", rows[0]["name"])
        self.leave(terminal)
        terminal = self.tui("-F open", trace=trace)
        terminal.press("2")
        terminal.wait_for("Function, by Total")
        terminal.press("/")
        terminal.wait_for("/_")
        terminal.press("o", "p", "e", "n", "Enter")
        terminal.wait_until(lambda shown: any(re.match(">.*open", line) for line in shown))
        terminal.press("Enter")
        terminal.wait_for("Slowest calls", "\"" + str(self.directory)[:10])
        self.leave(terminal)

    def test_filters(self):
        terminal = self.tui("-N inner")
        terminal.press("2")
        rows = rows_of(terminal.wait_for("Function, by Total"), "Function, by Total")
        report = read_report(self.trace, "flat", "-N", "inner")["functions"]
        self.assertEqual([(int(row["Calls"]), row["Self"]) for row in rows],
                         [(row["calls"], duration(row["base_ns"])) for row in report])
        self.leave(terminal)
        terminal = self.tui("--pid 1", has="Nothing to show")
        terminal.press("3", "Enter", "s", "r", "e", "G")
        terminal.wait_for("[3 Tree]", "Nothing to show")
        terminal.press("q")
        terminal.wait_for("no thread passes --pid", "status=0")
        shown = read_report(self.trace, "flat", "-F", "work")["functions"]
        terminal = self.tui("-F work")
        terminal.press("2")
        rows = rows_of(terminal.wait_for("Function, by Total"), "Function, by Total")
        self.assertEqual([(int(row["Calls"]), row["Self"]) for row in rows],
                         [(row["calls"], duration(row["base_ns"])) for row in shown])
        self.leave(terminal)

    def choose_range(self, terminal, text):
        terminal.press("t")
        terminal.wait_for("time range, START~STOP: _")
        terminal.press(*text, "Enter")

    def test_a_range(self):
        def inner(*options):
            flat = read_report(self.trace, "flat", *options)["functions"]
            return duration(next(row["cum_ns"] for row in flat if row["name"] == "inner"))
        terminal = self.tui()
        terminal.press("2")
        terminal.wait_for("[2 Functions]", inner())
        self.choose_range(terminal, "x~")
        terminal.wait_for("START~STOP: x~_")
        terminal.press("Escape")
        terminal.wait_for("/ search", gone=("START~STOP",))
        calls = read_report(self.trace, "invocations", "-F", "inner")["invocations"]
        end = calls[3]["start_ns"]
        self.assertNotEqual(inner("-r", f"~{end}ns"), inner())
        self.choose_range(terminal, f"~{end}ns")
        terminal.wait_for("[1 Summary]", f"arctrace.data ~{end}ns")
        terminal.press("2")
        terminal.wait_for(inner("-r", f"~{end}ns"))
        self.choose_range(terminal, "")
        terminal.wait_for("[2 Functions]", inner(), gone=(f"~{end}ns",))
        self.leave(terminal)

    def slow_tui(self, trace):
        """Opens the trace with a thirtieth of a CPU, and returns what ends that: so tui reads for a while, however
        fast the machine is. The other program runs in the same shell, because the scheduler shares CPUs by sessions
        first."""
        pid = pathlib.Path(trace).with_suffix(".pid")
        pid.unlink(missing_ok=True)
        processor = f"taskset -c {min(os.sched_getaffinity(0))} "
        busy = f"{processor} timeout 600 sh -c 'echo $$ >{pid}; while :; do :; done'"
        terminal = self.tui(trace=trace, has=None, prefix=f"{busy} & {processor} nice -n 15 ")

        def go_on():
            if pid.exists():
                os.kill(int(pid.read_text(encoding="ascii")), signal.SIGKILL)
                pid.unlink()
        self.addCleanup(go_on)
        return terminal, go_on

    @cases.not_in_gate
    def test_while_it_reads(self):
        """A trace of ten million calls: known facts are shown at once, and a range before all of it has been read."""
        with tempfile.TemporaryDirectory() as directory:
            trace = record_program(pathlib.Path(directory), 310_000)
            early = ("not known before the trace has been read", "Threads, by what they wrote", "s left")
            terminal, go_on = self.slow_tui(trace)
            terminal.wait_for(*early, gone=("[1 Summary]",))
            self.choose_range(terminal, "500ms~501ms")
            terminal.wait_for("[1 Summary]", "500000000ns~501000000ns")
            self.choose_range(terminal, "")
            terminal.wait_for(*early, gone=("[1 Summary]",))
            terminal.press("C-c")
            terminal.wait_for("status=130")
            go_on()
            terminal, go_on = self.slow_tui(trace)
            terminal.wait_for(*early)
            go_on()
            terminal.wait_for("[1 Summary]", "0 lost", gone=("not known",))
            self.leave(terminal)

    def test_colors_and_characters(self):
        def colored(terminal):
            return terminal.run("capture-pane", "-p", "-e")
        for prefix, has_color in (("TERM=screen-256color ", True), ("NO_COLOR=1 TERM=screen-256color ", False),
                                  ("TERM=vt100 ", False)):
            terminal = self.tui(prefix=prefix)
            terminal.press("2")
            terminal.wait_for("Function, by Total", r"\x1b[31m\u{202e}\u{9b}hostile")
            terminal.press("Down")  # now main, which has most of the time, is not the chosen row
            if has_color:
                terminal.wait_for("\x1b[31m", shown_by=colored)
            else:
                self.assertNotIn("\x1b[31m", colored(terminal), prefix)
            self.leave(terminal)
        terminal = self.tui(prefix="LC_ALL=C ")
        for key in "123456":
            terminal.press(key)
            shown = terminal.wait_for(f"[{key} ")
            self.assertTrue(shown.isascii(), shown)
        self.leave(terminal)

    def arctrace_process(self):
        """The process that shows the trace."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    arguments = (process / "cmdline").read_bytes().split(b"\0")
                except OSError:  # the process has ended
                    continue
                if arguments[1:2] == [b"tui"] and str(self.trace).encode() in arguments:
                    return int(process.name)
            time.sleep(0.1)
        return self.fail("there is none")

    def test_ends(self):
        terminal = self.tui()
        terminal.press("C-c")
        self.left(terminal, 130)
        terminal = self.tui()
        os.kill(self.arctrace_process(), signal.SIGTERM)
        self.left(terminal, 143)
        terminal = self.tui()
        terminal.press("C-z")
        terminal.wait_for("Stopped")
        terminal.type("fg")
        terminal.wait_for("Hottest functions")
        process = self.arctrace_process()
        terminal.run("kill-server")
        end = time.monotonic() + PATIENCE
        while pathlib.Path(f"/proc/{process}").exists():
            if time.monotonic() > end:
                os.kill(process, signal.SIGKILL)
                self.fail("it goes on without a terminal")
            time.sleep(0.1)

    def test_what_it_refuses(self):
        done = arctrace("tui", self.trace, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "arctrace: tui: standard input and output are no terminal; "
                                      f"arctrace report {self.trace} prints what it would show\n")
        garbage, empty = self.directory / "garbage", self.directory / "empty"
        garbage.write_bytes(b"not a trace" * 1000)
        empty.touch()
        name = f"tui-{os.getpid()}"
        read("create", name, "-b", "1M", "--block-size", "8k")
        self.addCleanup(arctrace, "destroy", "--force", name)
        for path, said in ((garbage, "arctrace: "), (empty, "arctrace: "), (self.directory / "missing", "missing"),
                           (self.directory, "arctrace: "), (name, "is a session's buffer, not a trace file")):
            done = arctrace("tui", path, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        terminal = self.terminal(160, 24)
        for kind, said in (("no-such-terminal", "is not known"), ("dumb", "cannot show a screen")):
            terminal.type(f"TERM={kind} {ARCTRACE} tui {self.trace}; echo of-{kind}=$?")
            terminal.wait_for(said, "arctrace report", f"of-{kind}=2", shown_by=Terminal.said)

    def test_a_trace_that_was_cut_off(self):
        cut = self.directory / "cut"
        whole = self.trace.read_bytes()
        cut.write_bytes(whole[:len(whole) // 2])  # names and an index come last
        terminal = self.tui(trace=cut, has="the recording was cut off")
        self.assertTrue(terminal.shown().splitlines()[1].startswith("! "))
        self.leave(terminal)
        cut.unlink()

    def test_what_a_dead_recorder_left(self):
        """The file is read together with the buffer, which has nearly all of it."""
        cut, calls = self.directory / "dead", 1000
        program = support.API + f"""
called = key("called" + "_here")
for _ in range({calls}):
    api.arctrace_enter(called)
    api.arctrace_exit(called)
print(os.environ["ARCTRACE_SESSION"], flush=True)
sys.stdin.read()
"""
        recorder = start_arctrace("record", "--no-libcall", "-o", cut, "--", sys.executable, "-c", program,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(recorder.stdout.close)
        self.addCleanup(cut.unlink)
        self.addCleanup(os.unlink, recorder.stdout.readline().rstrip())
        recorder.kill()
        recorder.wait()
        recorder.stdin.close()  # ends the command
        terminal = self.tui(trace=cut, has="called_here")
        self.assertNotIn("cut off", terminal.shown())
        self.leave(terminal)


if __name__ == "__main__":
    cases.main()
