"""Programs as people run them, with and without the kernel's records: they do what they do untraced, all their threads
are there, and the CPU time of each process is what the kernel counts. A server of another user is recorded by a
session that is shared with its group."""

import collections
import glob
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import unittest

import cases
import servers
from command import ARCTRACE, arctrace, read, read_report, run, start_arctrace
from kernel_programs import ATTEMPTS, NO_KERNEL, SOURCES
from states import wait_until
from tracing import TracedTest

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# The time that a process still takes after it has noted how long it had a CPU, because its memory is freed.
ENDING_NS = 20_000_000

HASHES = """
import hashlib, threading
data = bytes(16 << 20)
def work(times):
    for _ in range(times): hashlib.sha256(data).digest()
threads = [threading.Thread(target=work, args=(3 + i,)) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print("hashed")
"""
NUMBERS = """
CREATE TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT i, i * 7 % 1009 AS r FROM n;
CREATE INDEX by_r ON numbers (r);
SELECT count(*), sum(i) FROM numbers WHERE r = 5;
SELECT r, count(*) FROM numbers GROUP BY r ORDER BY 2 DESC, 1 LIMIT 3;
"""
KEYS = """
const crypto = require("crypto");
let sum = 0;
for (let i = 0; i < 1e7; ++i) sum = (sum + i * 7) % 1000003;
let left = 4;
for (let i = 0; i < 4; ++i) crypto.pbkdf2("a", "b" + i, 20000, 64, "sha512", () => { if (--left == 0) console.log(sum); });
"""
PIPES = """
for i in 1 2 3; do seq 10000 | sed s/1/x/ | sort -r | head -n 3; done
for word in a b c d; do echo $word | tr a-z A-Z; done
"""
REDIS_UNDER_LOAD = """
./redis-server --port 0 --unixsocket socket --save "" >server.log 2>&1 &
until redis-cli -s socket ping 2>/dev/null | grep -q PONG; do sleep 0.05; done
redis-benchmark -s socket -q -n 20000 -c 20 -t set,get,lpush >/dev/null
redis-cli -s socket llen mylist
redis-cli -s socket shutdown nosave
wait $!
echo $?
"""
POSTGRES = next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))), None)


@unittest.skipUnless(sys.platform == "linux" and shutil.which("gcc"), "needs gcc")
class WorkloadsTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.noter = self.directory / "used.so"
        run("gcc", "-O1", "-shared", "-fPIC", SOURCES / "used.c", "-o", self.noter, check=True)
        self.notes = self.directory / "used"

    def needs(self, *programs):
        for program in programs:
            if shutil.which(program) is None:
                self.skipTest(f"no {program}")

    def check(self, *command, prepare=lambda directory: None, threads=None, options=(), **run_options):
        """`prepare` puts into a directory what the command needs there. `threads`: (name of a process, how many threads
        it has)."""
        def run_in(name, run_it):
            directory = self.place(name)
            prepare(directory)
            return run_it(directory)

        bare = run_in("bare", lambda directory: run(*command, cwd=directory, **run_options))
        for kernel in ((), *([("--kernel=bpf",)] if NO_KERNEL is None else [])):
            with self.subTest(options=kernel):
                tried = []
                for _ in range(ATTEMPTS if kernel else 1):
                    traced, used = run_in("traced", lambda directory: self.record_noted(
                        command, directory, (*kernel, *options), run_options))
                    self.assert_same(bare, traced)
                    read("check", traced.trace)
                    if not kernel:
                        break
                    tried.append(self.compare_times(traced.trace, used, threads))
                    if not tried[-1]:
                        break
                else:
                    self.fail(f"(pid, by the trace, by the kernel): {tried}")

    def record_noted(self, command, directory, options, run_options):
        """The program's result, and how long each process had a CPU, by its pid."""
        self.notes.write_text("", encoding="ascii")
        environment = {**os.environ, "LD_PRELOAD": str(self.noter), "USED_NOTES": str(self.notes)}
        traced = self.record(*command, options=options, directory=directory, env=environment, **run_options)
        return traced, self.noted()

    def noted(self):
        """How long each process had a CPU, by its pid."""
        used = {}
        for line in self.notes.read_text(encoding="ascii").splitlines():
            pid, ns, name = line.split(" ", 2)
            if name != "arctrace":
                used[int(pid)] = max(int(ns), used.get(int(pid), 0))
        self.assertTrue(used)
        return used

    def compare_times(self, trace, used, threads):
        """The processes whose CPU time is not what the kernel counts. All other checks must pass in each recording."""
        on_cpu, running, names = collections.Counter(), collections.Counter(), {}
        tids = collections.defaultdict(set)
        for thread in read_report(trace, "threads")["threads"]:
            on_cpu[thread["pid"]] += thread["running_ns"]
            running[thread["tid"]] += thread["running_ns"]
            tids[thread["pid"]].add(thread["tid"])
            names[thread["pid"]] = thread["name"] if thread["tid"] == thread["pid"] else names.get(thread["pid"])
        for pid in used:
            self.assertIn(pid, on_cpu)
        path = collections.Counter()
        for row in read_report(trace, "critical-path")["critical_path"]:
            if row["state"] == "running":
                path[row["tid"]] += row["ns"]
        for tid, ns in path.items():
            self.assertLessEqual(ns, running[tid], tid)
        if threads is not None:
            name, count = threads
            self.assertIn(count, [len(tids[pid]) for pid, one in names.items() if one == name], names)
        return [(pid, names[pid], on_cpu[pid], ns) for pid, ns in used.items()
                if not 0.97 * ns - TICK_NS <= on_cpu[pid] <= 1.03 * ns + ENDING_NS]

    def test_make(self):
        self.needs("make")

        def prepare(directory):
            rules = ["all: " + " ".join(f"{i}.o" for i in range(6))]
            for i in range(6):
                (directory / f"{i}.c").write_text("#include <stdio.h>\n#include <stdlib.h>\n" + "".join(
                    f"int f{i}_{n}(int a) {{ for (int i = 0; i < a; ++i) a ^= i * {n}; return a; }}\n" for n in range(20)))
                rules.append(f"{i}.o: {i}.c\n\tgcc -O1 -c {i}.c -o {i}.o")
            (directory / "Makefile").write_text("\n".join(rules) + "\n")
        self.check("make", "-s", "-j2", prepare=prepare)

    def test_git_clone(self):
        self.needs("git")
        there = self.directory / "repository"
        for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
            if command[0] == "add":
                for i in range(60):
                    (there / f"file{i}").write_text("".join(f"{i * n}\n" for n in range(4000)))
            there.mkdir(exist_ok=True)
            run("git", "-c", "user.name=a", "-c", "user.email=a@b", *command, cwd=there, check=True)
        self.check("git", "clone", "-q", "--no-local", there, "copy")

    def test_python_with_threads(self):
        self.check(sys.executable, "-c", HASHES, threads=(os.path.basename(sys.executable)[:15], 5))

    def test_sqlite(self):
        self.needs("sqlite3")
        self.check("sqlite3", "numbers.db", input=NUMBERS)

    def test_gcc(self):
        def prepare(directory):
            (directory / "big.c").write_text("".join(
                f"int f{n}(int a) {{ for (int i = 0; i < a; ++i) a ^= i * {n}; return a; }}\n" for n in range(80)))
        self.check("gcc", "-O2", "-c", "big.c", "-o", "big.o", prepare=prepare)

    def test_xz(self):
        self.needs("xz")

        def prepare(directory):
            (directory / "data").write_text("".join(f"{i * 7919 % 1000003} line\n" for i in range(400000)))
        self.check("xz", "-T2", "-2", "--block-size=1MiB", "data", prepare=prepare, threads=("xz", 3))

    def test_node(self):
        self.needs("node")
        self.check("node", "-e", KEYS)

    @unittest.skipUnless(servers.has_redis(), "no redis-tools")
    def test_redis_under_load(self):
        self.check("sh", "-c", REDIS_UNDER_LOAD, prepare=servers.redis_server)

    @unittest.skipUnless(POSTGRES and os.geteuid() == 0 and NO_KERNEL is None, "needs PostgreSQL, and root's rights")
    def test_postgres_under_pgbench(self):
        """PostgreSQL refuses to run as root, so another user's processes record into a session of root's."""
        user = pwd.getpwnam("nobody")
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        programs = pathlib.Path(POSTGRES).parent
        self.directory.chmod(0o711)
        cluster = self.place("cluster")
        os.chown(cluster, user.pw_uid, user.pw_gid)
        subprocess.run([programs / "initdb", "-D", cluster / "data", "-U", "tester", "-A", "trust", "-N", "--locale=C"],
                       check=True, stdout=subprocess.DEVNULL, cwd=cluster, **as_user)
        name = f"workload-{os.getpid()}"
        path = read("create", name, "--kernel=bpf", "--group", "nogroup", "--start", "-b", "64M").strip()
        self.addCleanup(arctrace, "destroy", "--force", name)

        def load(prefix, environment):
            """The results that clients get."""
            client = ["-h", cluster, "-U", "tester"]
            with open(cluster / "log", "wb") as log:
                server = subprocess.Popen([*prefix, POSTGRES, "-D", cluster / "data", "-k", cluster, "-h", "", "-c", "fsync=off"],
                                          stdout=log, stderr=log, cwd=cluster, env=environment, **as_user)
            self.addCleanup(server.kill)
            wait_until(lambda: run("pg_isready", *client).returncode == 0, "the server is ready")
            run("pgbench", *client, "-i", "-q", "-s", "1", "postgres", check=True, stderr=subprocess.DEVNULL)
            loaded = run("pgbench", *client, "-c", "4", "-j", "2", "-t", "200", "postgres", check=True)
            server.send_signal(signal.SIGINT)  # "fast": ends all sessions, then writes everything
            return server.wait(), re.findall(r"actually processed: (\S+)", loaded.stdout)

        bare = load([], dict(os.environ))
        self.assertEqual(bare[0], 0)
        tried = []
        for i in range(ATTEMPTS):
            self.notes.write_text("", encoding="ascii")
            self.notes.chmod(0o666)
            trace = self.directory / f"server{i}.data"
            collector = start_arctrace("attach", name, "-o", trace, stderr=subprocess.PIPE, text=True)
            self.addCleanup(collector.kill)
            self.assertIn("collecting", collector.stderr.readline())
            # `record` starts the server, so it is recorded from its first instruction on.
            traced = load([ARCTRACE, "record", f"--session={path}", "--"],
                          {**os.environ, "LD_PRELOAD": str(self.noter), "USED_NOTES": str(self.notes)})
            collector.send_signal(signal.SIGINT)
            _, printed = collector.communicate()
            self.assertEqual(collector.returncode, 0, printed)
            self.assertEqual(traced, bare)
            read("check", trace)
            tried.append(self.compare_times(trace, self.noted(), None))
            if not tried[-1]:
                return
        self.fail(f"(pid, by the trace, by the kernel): {tried}")

    def test_bash_with_pipes(self):
        self.check("bash", "-c", PIPES)


if __name__ == "__main__":
    cases.main()
