"""Programs that others talk to, untraced and traced: a server under load, an editor in a terminal,
a build of hundreds of processes."""

import os
import pathlib
import pty
import re
import shutil
import subprocess
import time
import unittest

import cases
import plain
import servers
from command import run
from tracing import FIXTURES

TIMEOUT = 600
EDITOR = shutil.which("vim.tiny") or shutil.which("vim")


class Interactive(plain.PlainTest):
    def untraced_and_traced(self, work):
        bare, _ = self.compare_work(work, "-b", "32M")
        self.assertEqual(bare[0], 0, bare)

    @unittest.skipUnless(servers.has_redis(), "no redis-tools")
    def test_server_under_load(self):
        def work(prefix, directory):
            servers.redis_server(directory)
            socket = directory / "socket"
            with open(directory / "log", "wb") as log:
                server = subprocess.Popen(
                    [*prefix, "./redis-server", "--port", "0", "--unixsocket", socket, "--save", ""],
                    cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self.addCleanup(server.kill)

            def client(*words):
                return run("redis-cli", "-s", socket, *words, stderr=subprocess.STDOUT).stdout

            end = time.monotonic() + TIMEOUT
            while client("ping") != "PONG\n" and time.monotonic() < end:
                time.sleep(0.05)
            load = run("redis-benchmark", "-s", socket, "-q", "-n", "3000", "-c", "20", "-t", "set,get,lpush,sadd,zadd")
            printed = [client(*words.split()) for words in (
                "set key value", "get key", "llen mylist", "type mylist", "eval return{1,2} 0",
                "nonsense", "bgsave", "shutdown nosave")]
            return load.returncode, printed, server.wait(TIMEOUT)

        self.untraced_and_traced(work)

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_debugger_attached(self):
        """A debugger attaches while library functions are called, sees their callers, and detaches."""
        fixture = FIXTURES / "gcc/attached"

        def work(prefix, directory):
            program = subprocess.Popen([*prefix, fixture], cwd=directory, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True)
            self.addCleanup(program.kill)
            self.addCleanup(program.stdout.close)
            self.assertEqual(program.stdout.readline(), "ready\n")
            pid = program.pid
            if prefix:  # the command under the prefix is its child
                pid = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
            program.stdin.write("x")
            program.stdin.flush()
            debugger = run("gdb", "-q", "-nx", "-batch", "-p", pid, "-ex", "bt", "-ex", "break compare",
                           "-ex", "continue", "-ex", "bt", "-ex", "finish", "-ex", "delete", "-ex", "detach",
                           stderr=subprocess.STDOUT)
            frames = re.findall(r"^#\d+ .*\b(compare|sort|main) \(", debugger.stdout, re.M)
            program.stdin.close()  # the program sorts until then
            printed = program.stdout.readline()
            self.assertEqual(frames[-3:], ["compare", "sort", "main"], debugger.stdout)
            return 9 - program.wait(TIMEOUT), printed

        self.untraced_and_traced(work)

    @unittest.skipUnless(EDITOR, "no vim")
    def test_editor_in_a_terminal(self):
        keys = [b"ione\rtwo\x1b", b"yyp", b":%s/o/0/g\r", b"Gothree\x1bu", b":wq\r"]

        def work(prefix, directory):
            command = [*prefix, EDITOR, "-u", "NONE", "-i", "NONE", "-n", "text"]
            child, terminal = pty.fork()
            if child == 0:
                os.chdir(directory)
                os.environ["TERM"] = "vt100"
                os.execvp(command[0], command)
            try:
                self.read_until(terminal, rb"New")
                for key in keys:
                    os.write(terminal, key)
                self.read_until(terminal, None)
            finally:
                os.close(terminal)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            return status, (directory / "text").read_text()

        self.untraced_and_traced(work)

    @staticmethod
    def read_until(terminal, pattern):
        """Reads until the program has shown `pattern`; None: until the program ends."""
        shown = b""
        while pattern is None or not re.search(pattern, shown):
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # the program has ended
                return

    def test_build_of_many_processes(self):
        targets = " ".join(f"t{i}" for i in range(150))
        makefile = (f"all: {targets}\n\t@cat $^ | sort | cksum\n{targets}:\n"
                    "\t@sed 's/tcp/'$@'/' /etc/services | head -3 > $@; test -s $@\n")

        def work(prefix, directory):
            (directory / "Makefile").write_text(makefile)
            done = run(*prefix, "make", "-s", "-j4", cwd=directory)
            return done.returncode, done.stdout

        self.untraced_and_traced(work)


if __name__ == "__main__":
    cases.main()
