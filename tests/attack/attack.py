"""Shared code of the attacks: the command, and running all tests of a file again as a user."""

import os
import subprocess
import sys
import unittest

import cases

NOBODY = 65534


def is_root():
    return os.geteuid() == 0


needs_root = unittest.skipUnless(is_root(), "needs root")


def become(user):
    """Makes this process, or a child before exec (preexec_fn), that user for good."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def readable(python):
    try:
        return subprocess.run([python, "-c", "import json, unittest"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def main():
    """Runs the tests; with -as-user as a user without rights, if they were begun by root."""
    if "-as-user" in sys.argv:
        sys.argv.remove("-as-user")
        if not is_root():
            sys.exit(cases.SKIPPED)  # the other run is one of a user already
        script = os.path.abspath(sys.argv[0])
        os.chdir("/")
        become(NOBODY)
        os.environ.update(HOME="/nonexistent", USER="nobody")
        # A user may not be able to read root's Python.
        python = next((p for p in (sys.executable, "/usr/bin/python3") if readable(p)), None)
        if python is None:
            sys.exit(cases.SKIPPED)
        os.execv(python, [python, "-B", script, *sys.argv[1:]])
    cases.main()
