"""How a Python test file of the project is run: all its cases, or those that are named.

A file ends with `cases.main()`. What became of each case is appended, a line each, to the file of
the test's name (ARCTRACE_TEST) in the directory ARCTRACE_CASES, so that tools/run-tests can run
those that failed again, alone:

    STATE <tab> SECONDS <tab> CASE <tab> WHY

STATE is begun, passed, failed or skipped; WHY is the reason of a skipped case, else empty. A case
that is begun and nothing else was the one that ran when the process ended. Exit status: 0 if
no case failed, 77 if there was none to run but skipped ones, 1 if one failed.
"""

import os
import pathlib
import random
import re
import shutil
import sys
import time
import unittest

SKIPPED = 77  # what ctest is told to take for a skipped test (SKIP_RETURN_CODE)
KEPT_BYTES_MAX = 256 << 20  # of a failed case's directory
IS_GATE = bool(os.environ.get("ARCTRACE_GATE"))  # the short form of the tests
# The seed of all random choices: tools/run-tests sets one for a whole run, and the same one when it
# repeats what failed.
SEED = int(os.environ.get("ARCTRACE_TEST_SEED") or random.SystemRandom().randrange(1 << 32))


def shortened(variants):
    """All of these; in the gate only the first."""
    return list(variants)[:1] if IS_GATE else list(variants)


def in_gate(case):
    """Decorator of a case, or of a class of cases, for the gate. If a file has cases with it, the gate
    runs only these, else all that are not not_in_gate()."""
    case.is_in_gate = True
    return case


def not_in_gate(case):
    """Decorator of a case that takes too long for the gate, in a file whose others do not."""
    case.is_in_gate = False
    return case


class GateLoader(unittest.TestLoader):
    """Finds the cases of the gate only."""

    def __init__(self, module):
        super().__init__()
        self.unmarked = True  # whether cases without a mark are in the gate
        classes = [found for found in vars(module).values()
                   if isinstance(found, type) and issubclass(found, unittest.TestCase)]
        self.unmarked = not any(self.mark(found, name) for found in classes
                                for name in super(GateLoader, self).getTestCaseNames(found))

    @staticmethod
    def mark(found, name):
        """True or False for what is marked, else None."""
        return getattr(getattr(found, name), "is_in_gate", getattr(found, "is_in_gate", None))

    def getTestCaseNames(self, testCaseClass):
        marks = {name: self.mark(testCaseClass, name)
                 for name in super().getTestCaseNames(testCaseClass)}
        return [name for name, mark in marks.items() if (self.unmarked if mark is None else mark)]


def case_name(test):
    """Class.method, as the command line of unittest takes it; Class for what fails in setUpClass. The
    class may be one that this module has imported."""
    name = test.id()
    if "(" in name:  # setUpClass (__main__.Class)
        return name.partition("(")[2].rstrip(")").rpartition(".")[2]
    return ".".join(name.split(".")[-2:])


def log_path():
    """The file for the outcomes of cases, or None."""
    directory, test = os.environ.get("ARCTRACE_CASES"), os.environ.get("ARCTRACE_TEST")
    return pathlib.Path(directory, f"{test}.tsv") if directory and test else None


def keep(case):
    """Copies what a failed case has in its directory to the directory ARCTRACE_KEPT."""
    kept, source = os.environ.get("ARCTRACE_KEPT"), getattr(case, "directory", None)
    if not kept or not isinstance(source, pathlib.Path):
        return
    name = re.sub(r"[^\w.-]+", "_", f"{os.environ.get('ARCTRACE_TEST')}: {case_name(case)}")[:150]
    files = [path for path in source.rglob("*") if path.is_file() and not path.is_symlink()]
    if sum(path.stat().st_size for path in files) > KEPT_BYTES_MAX:
        return
    for path in files:
        target = pathlib.Path(kept, name, path.relative_to(source))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        except OSError:  # another user's file, or one that is gone meanwhile
            continue


class Result(unittest.TextTestResult):
    """A result that also writes each case's outcome to the file of ARCTRACE_CASES."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.path = log_path()
        self.failed = set()
        self.began = 0.0

    def note(self, state, test, why=""):
        if not self.path:
            return
        seconds = 0.0 if state == "begun" else time.monotonic() - self.began
        with open(self.path, "a", encoding="utf-8") as file:
            why = " ".join(str(why).split())
            file.write(f"{state}\t{seconds:.3f}\t{case_name(test)}\t{why}\n")

    def startTest(self, test):
        self.began = time.monotonic()
        self.note("begun", test)
        super().startTest(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note("skipped", getattr(test, "test_case", test), reason)

    def fail(self, test):
        case = getattr(test, "test_case", test)  # a subtest has its case as test_case
        self.failed.add(case_name(case))
        keep(case)
        if not isinstance(case, unittest.TestCase):  # a failure in setUpClass does not call stopTest()
            self.note("failed", case)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.fail(test)

    def addError(self, test, err):
        super().addError(test, err)
        self.fail(test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.fail(test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.fail(test)

    def stopTest(self, test):
        super().stopTest(test)
        skipped = any(test is getattr(case, "test_case", case) for case, _ in self.skipped)
        if case_name(test) in self.failed:
            self.note("failed", test)
        elif not skipped:
            self.note("passed", test)


def main(arguments=None):
    """Runs the cases of __main__ that `arguments` name (sys.argv[1:] by default): all if there is
    none. `--only=CASE`, which may be repeated, takes the place of the others."""
    arguments = sys.argv[1:] if arguments is None else arguments
    only = [text.removeprefix("--only=") for text in arguments if text.startswith("--only=")]
    print(f"ARCTRACE_TEST_SEED={SEED}", flush=True)
    random.seed(SEED)
    loader = unittest.TestLoader()
    if IS_GATE and not only:
        loader = GateLoader(sys.modules["__main__"])
    program = unittest.main(module="__main__", argv=[sys.argv[0], *(only or arguments)], exit=False,
                            testLoader=loader,
                            testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=2))
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    is_nothing_run = result.skipped and len(result.skipped) >= result.testsRun
    sys.exit(SKIPPED if is_nothing_run else 0)
