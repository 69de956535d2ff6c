"""Waiting for states in tests, which must pass on a machine that does other work, too."""

import pathlib
import re
import time

PATIENCE_S = 120  # what is waited for takes seconds at most; a machine may be twenty times slower
POLL_S = 0.02


def wait_until(condition, what, patience_s=PATIENCE_S):
    """Calls `condition` until it returns something true, and returns that. AssertionError if that takes longer
    than `patience_s`: `what` says what was waited for, and may be a function that returns that."""
    end = time.monotonic() + patience_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not so after {patience_s} s: {what() if callable(what) else what}")
        time.sleep(POLL_S)
    return found


def command_of(recorder):
    """The process ID of the command that `arctrace record`, with this process ID, has started."""
    found = []
    for thread in pathlib.Path(f"/proc/{recorder}/task").iterdir():
        found += (thread / "children").read_text(encoding="ascii").split()
    command, = map(int, found)
    return command


def is_stopped(pid):
    """Whether all threads of the process are stopped by SIGSTOP."""
    return all((thread / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0] == "T"
               for thread in pathlib.Path(f"/proc/{pid}/task").iterdir())


def sleeps(pid):
    """How often each thread of a process has gone to sleep."""
    found = {}
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        status = (thread / "status").read_text(encoding="ascii", errors="replace")
        found[thread.name] = int(re.search(r"(?m)^voluntary_ctxt_switches:\s*([0-9]+)$", status)[1])
    return found


def wait_for_rounds(pid, rounds=5):
    """Waits until a thread of the process has slept, and worked again, so many times. A thread that works in
    passes, as a recorder's does, has then seen everything that was there before."""
    before = sleeps(pid)
    wait_until(lambda: any(count >= before.get(thread, 0) + rounds for thread, count in sleeps(pid).items()),
               f"{rounds} rounds of process {pid}")
