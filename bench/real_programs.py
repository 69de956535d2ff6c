"""What tracing costs: the start of programs of the distribution, a compiler's run, servers (real_servers.py).

Untraced and traced runs take turns, and the median of each is shown. Starts and compilations are measured in
CPU time of the program and its children, which excludes the recorder's, so that other work on the machine
disturbs little.

"""

import contextlib
import os
import pathlib
import resource
import shutil
import signal
import statistics
import subprocess
import tempfile

import real_servers

MODES = {"untraced": None, "--no-libcall": "--no-libcall", "--libcall": "--libcall",
         "--nest-libcall": "--nest-libcall"}
STARTS = {"python3": ["/usr/bin/python3", "-c", "pass"],
          "python3, modules": ["/usr/bin/python3", "-c", "import json, re, ssl, subprocess"],
          "git": ["git", "--version"],
          "gdb": ["gdb", "-q", "-nx", "-batch"]}


class Session:
    """Sessions with a collector, as `arctrace record` has one; programs may join in all modes."""

    def __init__(self, arctrace, directory):
        self.arctrace = str(arctrace)
        self.directory = directory
        self.name = f"bench-{os.getpid()}"
        self.collector = None

    def __enter__(self):
        self.control("create", self.name, "--start")
        self.collector = subprocess.Popen(
            ["taskset", "-c", "0", self.arctrace, "attach", self.name, "--size-limit=64M", "-o",
             str(self.directory / "arctrace.data")], stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.collector.send_signal(signal.SIGINT)
        self.collector.wait()
        self.control("destroy", self.name)

    def control(self, *arguments):
        return subprocess.run([self.arctrace, *arguments], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True).stdout

    def environment(self, mode):
        """The environment of a program that is recorded in `mode`; None: untraced."""
        variables = dict(os.environ)
        if mode is None:
            return variables
        for line in self.control("env", self.name, mode).splitlines():
            name, _, value = line.partition("=")
            variables[name] = value.strip("'")
        return variables


def cpu_ms(command, environment, directory):
    """CPU time in ms of one run of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, cwd=directory, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def in_turns(command, environments, repetitions, directory):
    """{mode: median of ms}"""
    figures = {mode: [] for mode in environments}
    for mode in environments:
        cpu_ms(command, environments[mode], directory)  # reads the program's files from disk once
    for _ in range(repetitions):
        for mode in environments:
            figures[mode].append(cpu_ms(command, environments[mode], directory))
    return {mode: statistics.median(figures[mode]) for mode in figures}


def starts(session, report, repetitions, directory):
    report.section("Starting programs (all of a run)", f"{'ms':>8}{'more':>8}")
    environments = {mode: session.environment(option) for mode, option in MODES.items()}
    for name, command in STARTS.items():
        if shutil.which(command[0]) is None:
            report.cannot(name, f"no {command[0]}")
            continue
        figures = in_turns(command, environments, repetitions, directory)
        for mode, ms in figures.items():
            more = ms - figures["untraced"]
            goal = name == "python3" and mode == "--nest-libcall"
            report.row(f"{name} {mode}", f"{ms:8.2f}{more:8.2f}", "< 5 ms" if goal else "",
                       more < 5 if goal else None)


def compilation(session, report, repetitions, directory):
    report.section("A compiler (C++, -O2, one file)", f"{'ms':>8}{'more':>8}")
    source = directory / "source.cpp"
    source.write_text("#include <map>\n#include <regex>\n#include <string>\n"
                      "bool found(const std::string& text, std::map<std::string, int>& seen) {\n"
                      "  ++seen[text];\n"
                      "  return std::regex_search(text, std::regex(\"a+b\"));\n}\n")
    command = ["g++", "-O2", "-c", "-o", "source.o", str(source)]
    environments = {mode: session.environment(MODES[mode]) for mode in ("untraced", "--libcall")}
    figures = in_turns(command, environments, max(3, repetitions // 4), directory)
    for mode, ms in figures.items():
        more = ms / figures["untraced"] - 1
        goal = mode == "--libcall"
        report.row(f"g++ {mode}", f"{ms:8.0f}{more:8.1%}", "<= 10 %" if goal else "",
                   more <= 0.10 if goal else None)


def programs(bench, report):
    arctrace = bench.program("arctrace")
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        session = stack.enter_context(Session(arctrace, directory))
        for part in (starts, compilation):
            part(session, report, bench.repetitions, directory)
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)  # for the server that does not run as root
        real_servers.servers(bench, report, pathlib.Path(directory))
