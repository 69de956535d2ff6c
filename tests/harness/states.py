"""Waiting for a state, in tests that must hold on a machine that does other work."""

import time

PATIENCE_S = 120  # what is waited for takes seconds at most; a machine may be twenty times slower
POLL_S = 0.02


def wait_until(condition, what, patience_s=PATIENCE_S):
    """Calls `condition` until what it returns is true, and returns that. AssertionError if that
    takes longer than `patience_s`: `what` says what was waited for, and may be a function that
    returns that."""
    end = time.monotonic() + patience_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not so after {patience_s} s: {what() if callable(what) else what}")
        time.sleep(POLL_S)
    return found
