"""Measures what recording costs servers of the distribution: redis, nginx and PostgreSQL under load.

Of each server one process (with its children) runs for each way of recording. They take turns under
the same load, so that a slow phase of the machine disturbs them alike. The ways tell apart where the
time goes: hooks alone (recording switched off), records written but not read (overwrite mode), and
records with a collector, which takes a CPU too.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import time

from harness import CannotRun

REDIS = "redis-check-rdb"  # the multi-call program that redis-server is
POSTGRES = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
LOAD_SECONDS = 4
SETS = 60000
STOP_SECONDS = 20
USER = "postgres"  # PostgreSQL does not run as root


@contextlib.contextmanager
def ways(bench, runs_as):
    """{way: the words before a server's command}"""
    def control(*arguments):
        subprocess.run([*runs_as, str(bench.program("arctrace")), *arguments], check=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def record(programs, *options):
        return [*runs_as, str(programs / "arctrace"), "record", *options, "--"]

    session = f"bench-{os.getpid()}"
    control("create", session)  # not started: nothing is recorded
    try:
        every = {"untraced": list(runs_as),
                 "hooks only": record(bench.programs, f"--session={session}"),
                 "overwrite mode": record(bench.programs, "-o", "/dev/null", "--mode=overwrite"),
                 "recorded": record(bench.programs, "-o", "/dev/null")}
        if bench.before is not None:
            every["recorded, before"] = record(bench.before, "-o", "/dev/null")
        yield every
    finally:
        control("destroy", session)


@contextlib.contextmanager
def running(command, is_ready, directory):
    """A server's process; ended by SIGINT to it and, if that does not do, by SIGKILL."""
    with open(directory / "stderr", "wb") as errors:
        process = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
    try:
        deadline = time.monotonic() + STOP_SECONDS
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise CannotRun(f"{command[-1]} did not start: "
                                f"{(directory / 'stderr').read_text(errors='replace')[-300:]}")
            time.sleep(0.05)
        yield process
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def cpu_times(root):
    """Seconds of CPU time that a process and its descendants have used: (programs', recorders')."""
    children, stats = {}, {}
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (directory / "stat").read_text()
            name, fields = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
            own, ended = (sum(map(int, fields[at:at + 2])) for at in (11, 13))  # ended: children that it waited for
            stats[int(directory.name)] = (name == "arctrace", own, ended)
            children.setdefault(int(fields[1]), []).append(int(directory.name))
    programs = recorders = 0
    left = [root]
    while left:
        pid = left.pop()
        left += children.get(pid, [])
        is_recorder, own, ended = stats.get(pid, (False, 0, 0))
        recorders += own if is_recorder else 0
        programs += ended if is_recorder else own + ended
    tick = os.sysconf("SC_CLK_TCK")
    return programs / tick, recorders / tick


def rate_in(pattern, command):
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return float(re.search(pattern, done.stdout)[1])


class Redis:
    """20 clients that set a key, over a socket of the file system. rate(): requests per second; seconds_of(rate):
    how long it was measured."""

    title = "redis-server (SET, 20 clients)"
    needs = (REDIS, "redis-benchmark")
    runs_as = ()

    def __init__(self, directory):
        self.socket = directory / "socket"
        (directory / "redis-server").symlink_to(shutil.which(REDIS))
        self.command = [str(directory / "redis-server"), "--port", "0", "--unixsocket", str(self.socket),
                        "--save", ""]

    def is_ready(self):
        return self.socket.exists()

    @staticmethod
    def seconds_of(rate):
        return SETS / rate

    def rate(self):
        return rate_in(r'"SET","([\d.]+)"',
                       ["redis-benchmark", "-s", str(self.socket), "--csv", "-n", str(SETS), "-c", "20", "-t",
                        "set"])


class Nginx:
    """16 connections that ask for a file of 4 KB, one worker process."""

    title = "nginx (a file of 4 KB, 16 connections)"
    needs = ("nginx", "wrk")
    runs_as = ()
    port = 18080

    def __init__(self, directory):
        self.port = Nginx.port = Nginx.port + 1
        (directory / "file").write_bytes(b"x" * 4096)
        (directory / "conf").write_text(
            f"daemon off; master_process on; worker_processes 1; user root; pid {directory}/pid;\n"
            f"error_log {directory}/log; events {{}}\n"
            f"http {{ access_log off; server {{ listen 127.0.0.1:{self.port}; root {directory}; }} }}\n")
        self.pid = directory / "pid"
        self.command = ["nginx", "-c", str(directory / "conf"), "-p", str(directory)]

    @staticmethod
    def seconds_of(_):
        return LOAD_SECONDS

    def is_ready(self):
        return self.pid.exists()

    def rate(self):
        return rate_in(r"Requests/sec:\s+([\d.]+)",
                       ["wrk", "-t1", "-c16", f"-d{LOAD_SECONDS}s", f"http://127.0.0.1:{self.port}/file"])


class Postgres:
    """pgbench's own transactions (TPC-B like), 8 clients, nothing forced to a disk."""

    title = "PostgreSQL (pgbench -c 8)"
    needs = ("runuser", "pgbench")
    runs_as = ("runuser", "-u", USER, "--")

    def __init__(self, directory):
        if not POSTGRES:
            raise CannotRun("PostgreSQL is not installed")
        shutil.chown(directory, USER)
        self.directory, self.data = directory, directory / "data"
        self.program = POSTGRES[-1]
        self.run("initdb", "-A", "trust", "-D", str(self.data))
        self.options = ["-c", "listen_addresses=", "-c", "fsync=off", "-c",
                        f"unix_socket_directories={directory}"]
        self.command = [str(self.program / "postgres"), "-D", str(self.data), *self.options]
        self.is_filled = False

    def run(self, name, *arguments):
        return subprocess.run([*self.runs_as, str(self.program / name), *arguments], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout

    @staticmethod
    def seconds_of(_):
        return LOAD_SECONDS

    def is_ready(self):
        return subprocess.run([str(self.program / "pg_isready"), "-q", "-h", str(self.directory)],
                              check=False).returncode == 0

    def rate(self):
        where = ["-h", str(self.directory), "-U", USER]
        if not self.is_filled:
            self.run("createdb", *where, "bench")
            self.run("pgbench", *where, "-i", "-q", "-s", "10", "bench")
            self.is_filled = True
        out = self.run("pgbench", *where, "-c", "8", "-T", str(LOAD_SECONDS), "bench")
        return float(re.search(r"tps = ([\d.]+)", out)[1])


def measure(kind, bench, report, directory, goal):
    """Prints a row for each way: requests per second, the median of what is lost against the untraced ones of the
    same turn, and the microseconds of CPU time that a request costs the server and the recorder."""
    report.section(kind.title, f"{'per s':>10}{'lost':>8}{'CPU us':>9}{'recorder':>9}")
    for program in kind.needs:
        if shutil.which(program) is None:
            report.cannot(kind.title, f"no {program}")
            return
    with contextlib.ExitStack() as stack:
        prefixes = stack.enter_context(ways(bench, kind.runs_as))
        servers, processes = {}, {}
        for number, (way, prefix) in enumerate(prefixes.items()):
            own = directory / f"{kind.__name__}-{number}"
            own.mkdir()
            own.chmod(0o755)
            servers[way] = kind(own)
            processes[way] = stack.enter_context(
                running([*prefix, *servers[way].command], servers[way].is_ready, own))
            servers[way].rate()  # work that is done only once
        rates, costs = {way: [] for way in servers}, {way: [] for way in servers}
        for _ in range(max(3, bench.repetitions // 3)):
            for way, one in servers.items():
                before = cpu_times(processes[way].pid)
                rates[way].append(one.rate())
                count = rates[way][-1] * one.seconds_of(rates[way][-1])
                costs[way].append([(end - begin) * 1e6 / count
                                   for begin, end in zip(before, cpu_times(processes[way].pid))])
    for way, all_of in rates.items():
        cells = "".join(f"{statistics.median(part):9.1f}" for part in zip(*costs[way]))
        lost = statistics.median(1 - rate / untraced for rate, untraced in zip(all_of, rates["untraced"]))
        wanted = goal if way == "recorded" else None
        report.row(way, f"{statistics.median(all_of):10.0f}{lost:8.1%}{cells}", f"<= {wanted:.0%}" if wanted else "",
                   lost <= wanted if wanted else None)


def servers(bench, report, directory):
    """Requests per second of each server, by how it is recorded."""
    for kind, goal in ((Redis, 0.05), (Nginx, None), (Postgres, None)):
        try:
            measure(kind, bench, report, directory, goal)
        except subprocess.CalledProcessError as error:
            report.cannot(kind.title, f"{error}: {error.stderr[-300:]}")
