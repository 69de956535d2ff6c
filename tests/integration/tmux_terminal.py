"""A terminal for tests: a shell in a tmux of its own."""

import os
import subprocess
import time

PATIENCE = 120  # seconds; what tests wait for takes one or two


class Terminal:
    """A shell in a tmux of our own."""

    count = 0

    def __init__(self, columns, lines):
        Terminal.count += 1  # the socket of an ended server may exist for a while
        self.socket = f"arctrace-test-{os.getpid()}-{Terminal.count}"
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
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

    def said(self):
        """The picture, with lines that were too long in one."""
        return self.run("capture-pane", "-p", "-J")

    def wait_for(self, *texts, gone=(), shown_by=shown):
        """The picture with these texts, once it is complete: a busy machine may show a part of it for a
        while."""
        end = time.monotonic() + PATIENCE
        before = None
        while True:
            shown = shown_by(self)
            if all(text in shown for text in texts) and not any(text in shown for text in gone):
                if shown == before:
                    return shown
                before = shown
                time.sleep(0.05)
                continue
            if time.monotonic() > end:
                raise AssertionError(f"not {texts} without {gone} in:\n{shown}")
            time.sleep(0.1)

    def wait_until(self, check):
        end = time.monotonic() + PATIENCE
        while not check((shown := self.shown()).splitlines()):
            if time.monotonic() > end:
                raise AssertionError(f"still not so:\n{shown}")
            time.sleep(0.1)

    def wait_for_another(self, before):
        """The picture, once it has changed."""
        end = time.monotonic() + PATIENCE
        while (shown := self.shown()) == before:
            if time.monotonic() > end:
                raise AssertionError(f"stays as it is:\n{shown}")
            time.sleep(0.1)
        return shown

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], check=False,
                       stderr=subprocess.DEVNULL)
