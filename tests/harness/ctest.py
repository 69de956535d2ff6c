"""Tests as ctest knows them, and the outcomes of their cases: for tools/run-tests and tools/soak."""

import json
import pathlib
import re
import subprocess
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOGS = ROOT / "build/logs"


class Test:
    """A test as ctest would run it."""

    def __init__(self, shown):
        properties = {p["name"]: p["value"] for p in shown.get("properties", [])}
        self.name = shown["name"]
        self.command = shown.get("command", [])
        self.timeout = float(properties.get("TIMEOUT", 1800))
        self.directory = properties["WORKING_DIRECTORY"]
        self.environment = dict(text.split("=", 1) for text in properties.get("ENVIRONMENT", []))

    def of_case(self, case):
        """The command that runs this case alone; the whole test for None."""
        if case is None:
            return self.command
        if any(word.endswith(".py") for word in self.command):
            return [*self.command, f"--only={case}"]
        # doctest divides its filters at commas, and knows * and ?.
        return [*self.command, "--test-case=" + re.sub(r'[,\\"*]', "?", case)]


def ctest_tests(preset, arguments):
    """{name: Test} of the tests that ctest would run with these arguments."""
    shown = subprocess.run(["ctest", "--preset", preset, "--show-only=json-v1", *arguments], cwd=ROOT,
                           stdout=subprocess.PIPE, text=True, check=True)
    return {test["name"]: Test(test) for test in json.loads(shown.stdout)["tests"]}


def ctest_outcomes(path):
    """{test: (passed, failed or skipped; seconds; output)} by ctest's JUnit file."""
    outcomes = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        state = {"run": "passed", "fail": "failed"}.get(case.get("status"), "skipped")
        if state == "skipped" and case.find("skipped") is None:
            state = "failed"  # the test's program does not exist
        outcomes[case.get("name")] = (state, float(case.get("time") or 0), output)
    return outcomes


class Cases:
    """The outcomes of cases that a test has written."""

    def __init__(self, path):
        self.states = {}  # the last state of each
        self.reasons = {}
        self.seconds = {}
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        for line in lines:
            state, seconds, name, why = (line.split("\t") + ["", "", ""])[:4]
            if self.states.get(name) != "failed" or state == "failed":
                self.states[name] = state
                self.reasons[name] = why
                self.seconds[name] = seconds

    def named(self, state):
        return [name for name, found in self.states.items() if found == state]

    def failed(self):
        """The cases to run again, or [None] for the whole test, if its program ended within a case or
        failed outside of all."""
        return [None] if self.named("begun") else self.named("failed") or [None]


def title(test, case):
    return f"{test}: {case}" if case else test


def file_name(text):
    return re.sub(r"[^\w.-]+", "_", text)[:150]
