"""end_left.py COMMAND...: runs a test, and when it has ended, ends the processes that it has left running.
A program that a failed test has left running would keep tools/run-tests waiting for the end of the test's output,
which the program has open, or use a CPU beside all later tests. The exit status is the command's, or 128 and the
number of the signal that ended it. Processes that were ended are named on standard error.
"""

import ctypes
import os
import signal
import sys

PR_SET_CHILD_SUBREAPER = 36


def children():
    """{pid: name} of this process's children, among which are those whose parents have ended."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue  # the process has ended
        name, _, rest = text.partition("(")[2].rpartition(")")
        if int(rest.split()[1]) == os.getpid():
            found[int(entry)] = name
    return found


def status_of(wait_status):
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


def end_children():
    """Ends the children until there are none. The children of one that ends become this process's own."""
    while left := children():
        for pid, name in left.items():
            print(f"left by the test, and ended: {name} ({pid})", file=sys.stderr)
            os.kill(pid, signal.SIGKILL)
        for pid in left:
            os.waitpid(pid, 0)


def main():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    test = os.fork()
    if test == 0:
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these
            signal.signal(ignored, signal.SIG_DFL)
        os.execvp(sys.argv[1], sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the signal is meant for the test
    while True:
        pid, wait_status = os.waitpid(-1, 0)
        if pid == test:
            break
    end_children()
    sys.exit(status_of(wait_status))


main()
