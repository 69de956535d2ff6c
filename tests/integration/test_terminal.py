"""Output of readers on a terminal: no line is wider than it, a pager shows it, Ctrl-C ends it."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios

import cases
import support
from command import ARCTRACE, arctrace, read
from tracing import TracedTest

# Names that are wide in each way (parameters, template arguments, the name itself), and deep calls.
PROGRAM = support.API + """
names = ["f(" + "std::string const&, " * 10 + "int)", "shop::find<" + "std::string, " * 10 + "int>()",
         "a_name_" * 20 + "end"]
keys = [key(name) for name in names]
deep = key("deep")
for _ in range(50):
    for k in keys:
        api.arctrace_enter(k)
        api.arctrace_exit(k)
for _ in range(100): api.arctrace_enter(deep)
for k in keys: api.arctrace_enter(k)
"""
COLOR = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(*arguments, columns=80, **variables):
    """What a command prints on a terminal of so many columns, and its exit status."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", **variables}
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(ARCTRACE, [ARCTRACE, *map(str, arguments)], environment)
    output = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        output += piece
    os.close(terminal)
    status = os.waitpid(pid, 0)[1]
    return output.decode().replace("\r\n", "\n"), os.waitstatus_to_exitcode(status)


class TerminalTest(TracedTest):
    def recorded(self):
        done = self.record(sys.executable, "-c", PROGRAM, options=("--no-libcall",))
        self.assertEqual(done.status, 0, done.stderr)
        return done.trace

    def shown(self, trace):
        """Commands that print text about a trace."""
        for view in ("summary", "tree", "flat", "arcs", "kinds", "flow", "invocations"):
            yield "report", f"--view={view}", trace
        columns = "calls,self,total,avg,min,p50,p90,p99,p99.9,max"
        yield "report", "--view=flat", f"--columns={columns}", trace
        for view in ("histogram", "slowest", "graph"):
            yield "report", f"--view={view}", "-F", "*", trace
        yield "graph", "deep", trace
        yield "diff", trace, trace
        yield "dump", trace
        yield "info", trace
        yield "check", trace

    def test_no_line_is_too_wide(self):
        trace = self.recorded()
        for columns in (80, 60, 160):
            for arguments in self.shown(trace):
                text, status = on_terminal(*arguments, "--no-pager", columns=columns)
                self.assertEqual(status, 0, text)
                widest = max((COLOR.sub("", line) for line in text.split("\n")), key=len)
                self.assertLessEqual(len(widest), columns, (arguments, widest))
        wide, _ = on_terminal("report", "--view=flat", "--wide", "--no-pager", trace)
        self.assertIn("a_name_" * 20 + "end", wide)
        self.assertIn("%Self", wide)

    def test_help_goes_on_in_the_next_line(self):
        for command in ((), ("record",), ("report",)):
            text, status = on_terminal(*command, "--help")
            self.assertEqual(status, 0, text)
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 80)
            piped = read(*command, "--help")
            self.assertEqual("".join(text.split()), "".join(piped.split()))

    def test_unknown_options(self):
        for arguments, hint in ((("record", "--durtion=3", "true"), 'did you mean "--duration"?'),
                                (("record", "-d", "3", "true"), "try arctrace record --help")):
            done = arctrace(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertIn(hint, done.stderr)

    def test_what_is_cut(self):
        text, _ = on_terminal("report", "--view=flat", "--no-pager", self.recorded())
        text = COLOR.sub("", text)
        self.assertRegex(text, r"(?m)  f\(std.*…\)( \[open\])?$")
        self.assertRegex(text, r"(?m)  shop::find<std.*…>\(\)( \[open\])?$")
        self.assertRegex(text, r"(?m)  a_name_.*….*end( \[open\])?$")
        self.assertNotIn("%Self", text)  # the names need its space
        many, _ = on_terminal("report", "--view=flat", "--no-pager",
                              "--columns=calls,self,total,avg,p99,p99.9", self.recorded())
        self.assertIn("(no room for p99.9, avg, p99: --wide shows all)", many)

    def test_noise_is_told_at_any_width(self):
        """The columns after the names in `diff` are dropped in order, module and calls first."""
        runs = []
        for i in range(4):
            runs.append(self.directory / f"run{i}.data")
            self.recorded().rename(runs[-1])
        counts = {on_terminal("diff", "--no-pager", *runs[:2], "--", *runs[2:],
                              columns=columns)[0].count("noise]")
                  for columns in (80, 100, 250)}
        self.assertEqual(len(counts), 1, counts)
        self.assertGreater(counts.pop(), 0)

    def test_ascii(self):
        for arguments in self.shown(self.recorded()):
            text, _ = on_terminal(*arguments, "--no-pager", LC_ALL="C")
            self.assertTrue(text.isascii(), text)

    def test_pager(self):
        trace = self.recorded()
        environment = {"ARCTRACE_PAGER": "sed s/^/paged:/", "PAGER": "sed s/^/other:/"}
        for arguments in self.shown(trace):
            text, status = on_terminal(*arguments, **environment)
            self.assertEqual(status, 0)
            lines = text.rstrip("\n").split("\n")
            self.assertEqual([line for line in lines if not line.startswith("paged:")], [])
            plain, _ = on_terminal(*arguments, "--no-pager", **environment)
            self.assertEqual([line.removeprefix("paged:") for line in lines],
                             plain.rstrip("\n").split("\n"))
        text, _ = on_terminal("graph", "deep", trace, PAGER="sed s/^/other:/")
        self.assertTrue(text.startswith("other:"), text)
        for pager in ("", "cat"):
            text, _ = on_terminal("graph", "deep", trace, ARCTRACE_PAGER=pager, PAGER="false")
            self.assertIn("deep", text)
        text, _ = on_terminal("report", trace, PAGER="echo LESS is $LESS; cat > /dev/null")
        self.assertEqual(text, "LESS is FRX\n")

    def test_no_pager_but_on_a_terminal(self):
        trace = self.recorded()
        for arguments in (("report", "--view=flat", trace), ("diff", trace, trace)):
            done = arctrace(*arguments, env={**os.environ, "PAGER": "sed s/^/paged:/"}, check=True)
            self.assertNotIn("paged:", done.stdout)

    def test_errors_come_after_the_pager(self):
        text, status = on_terminal("graph", "nothing", self.recorded(), PAGER="sed s/^/paged:/")
        self.assertEqual(status, 2)
        self.assertTrue(text.startswith("arctrace: no function of the trace matches"), text)

    def test_a_pager_that_is_left(self):
        """The pager ends before all is written: no message, and the command does not hang."""
        text, status = on_terminal("report", "--view=flow", self.recorded(), PAGER="head -n 1")
        self.assertEqual(text.count("\n"), 1, text)
        self.assertIn(status, (0, -13))


if __name__ == "__main__":
    cases.main()
