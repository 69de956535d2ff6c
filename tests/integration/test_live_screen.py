"""The screen of arctrace live, in tmux: at three sizes, its keys, how it is left, what it refuses."""

import os
import subprocess
import sys
import time
import unittest

import support

# Spends its time in inner, within outer, for ever.
PROGRAM = support.API + r"""
outer, inner = key("outer\x1b[31m"), key("inner")
print("kept until the end", flush=True)
api.arctrace_enter(outer)
while True:
    api.arctrace_enter(inner)
    time.sleep(0.01)
    api.arctrace_exit(inner)
"""
PATIENCE = 120  # seconds; what is waited for takes one or two


class Terminal:
    """A shell in a tmux of our own."""

    def __init__(self, columns, lines):
        self.socket = f"arctrace-test-{os.getpid()}"
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "PS1": "$ "}
        self.run("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines,
                 "env -u TMUX bash --norc --noprofile", env=environment)

    def run(self, *arguments, **options):
        return subprocess.run(["tmux", "-L", self.socket, *map(str, arguments)], check=True,
                              stdout=subprocess.PIPE, text=True, **options).stdout

    def type(self, text):
        self.run("send-keys", "-l", text)
        self.run("send-keys", "Enter")

    def press(self, *keys):
        self.run("send-keys", *keys)

    def shown(self):
        return self.run("capture-pane", "-p")

    def wait_for(self, *texts, gone=()):
        end = time.monotonic() + PATIENCE
        while True:
            shown = self.shown()
            if all(text in shown for text in texts) and not any(text in shown for text in gone):
                return shown
            if time.monotonic() > end:
                raise AssertionError(f"not {texts} without {gone} in:\n{shown}")
            time.sleep(0.1)

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], check=False,
                       stderr=subprocess.DEVNULL)


class LiveScreenTest(support.TraceTest):
    def setUp(self):
        super().setUp()
        self.program = self.directory / "program.py"
        self.program.write_text(PROGRAM)

    def terminal(self, columns=80, lines=24):
        terminal = Terminal(columns, lines)
        self.addCleanup(terminal.close)
        return terminal

    def live(self, terminal, prefix=""):
        terminal.type(f"{prefix}{support.ARCTRACE} live --no-libcall -- {sys.executable} "
                      f"{self.program}; echo status=$?")

    def test_three_sizes_and_a_fourth(self):
        terminal = self.terminal()
        self.live(terminal)
        for columns, lines in ((80, 24), (140, 50), (44, 12)):
            terminal.run("resize-window", "-x", columns, "-y", lines)
            shown = terminal.wait_for("records/s", "self %", "inner", "thread 1 of 1", "q leave")
            self.assertEqual(len(shown.splitlines()), lines)
            terminal.press("k")
            terminal.wait_for("inner", "q leave", gone=("thread 1 of",))
            terminal.press("k")
            # Hostile names are escaped.
            terminal.wait_for(r"outer\x1b[31m")
        terminal.run("resize-window", "-x", 30, "-y", 6)
        terminal.wait_for("40x8 at least", gone=("records/s",))
        terminal.run("resize-window", "-x", 80, "-y", 24)
        terminal.wait_for("records/s", "inner")
        terminal.press("C-c")  # for the command, which ends by it
        terminal.wait_for("the session is over")
        terminal.press("q")
        terminal.wait_for("status=130", "kept until the end", gone=("records/s",))

    def test_keys(self):
        terminal = self.terminal(120, 30)
        self.live(terminal)
        terminal.wait_for("function, by self", "inner")
        for by in ("total", "calls", "name", "self"):
            terminal.press("s")
            terminal.wait_for(f"function, by {by}")
        terminal.press("v")
        terminal.wait_for("path, by self", r"outer\x1b[31m > inner")
        terminal.press("v")
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
        terminal.press("C-c")
        terminal.wait_for("the session is over")
        terminal.press("q")
        terminal.wait_for("status=130")
        terminal.type("stty -a")
        terminal.wait_for(" echo ", " icanon ")

    def test_a_session_of_others(self):
        name = f"screen-{os.getpid()}"
        subprocess.run([support.ARCTRACE, "create", name, "-b", "1M", "--block-size", "8k", "--start"],
                       check=True, stdout=subprocess.DEVNULL)
        self.addCleanup(subprocess.run, [support.ARCTRACE, "destroy", "--force", name], check=False,
                        stderr=subprocess.DEVNULL)
        program = subprocess.Popen([support.ARCTRACE, "record", "--no-libcall", f"--session={name}", "--",
                                    sys.executable, self.program], stdout=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.terminate)
        terminal = self.terminal()
        terminal.type(f"cd {self.directory}; {support.ARCTRACE} live {name}; echo status=$?")
        terminal.wait_for("records/s", "inner")
        terminal.press("S")
        terminal.wait_for("snapshot: arctrace.live.1")
        self.check_clean(self.directory / "arctrace.live.1")
        terminal.press("C-c")
        terminal.wait_for("status=130")

    def test_what_is_no_terminal_for_it(self):
        done = subprocess.run([support.ARCTRACE, "live", "--", "true"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--plain", done.stderr)
        terminal = self.terminal()
        self.live(terminal, "TERM=no-such-terminal ")
        terminal.wait_for("TERM=no-such-terminal, is not known", "status=2")


if __name__ == "__main__":
    unittest.main()
