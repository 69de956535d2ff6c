"""Programs that wait for work in the summary, and programs that wait for something else."""
import os
import shutil
import signal
import socket
import subprocess
import unittest

import cases
import servers
import serving_programs
import states
from command import read, read_report, start_arctrace
from kernel_programs import NO_KERNEL, SOURCES
from tracing import TracedTest


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class ServingTest(TracedTest):
    def compiled(self, name):
        """A program of serving_programs."""
        (self.directory / "program.c").write_text(getattr(serving_programs, name))
        subprocess.run(["gcc", "-O1", "-pthread", f"-I{SOURCES}", "program.c", "-o", name.lower()],
                       cwd=self.directory, check=True)
        return self.directory / name.lower()

    def begin(self, *command):
        """Starts a recording: the recorder, and the trace that it writes."""
        trace = self.directory / "served.data"
        recorder = start_arctrace("record", "--kernel=bpf", "-b", "64M", "-o", trace, "--", *command,
                                  cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(recorder.stdout.close)
        self.addCleanup(recorder.kill)
        return recorder, trace

    def end(self, recorder, number):
        """Sends the signal to the command, and waits for both."""
        os.kill(states.command_of(recorder.pid), number)
        recorder.wait()

    def wait_for(self, port):
        def connected():
            try:
                return socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                return None
        return states.wait_until(connected, "the server begins")

    def answers(self, trace):
        """The summary as JSON, and as text."""
        text = read("report", trace)
        self.assertLessEqual(text.count("\n"), 40, text)
        return read_report(trace, "summary"), text

    def check_server(self, trace, call):
        report, text = self.answers(trace)
        self.assertTrue(report["is_server"], report["work_loops"])
        loop = report["work_loops"][0]
        self.assertEqual((loop["path"][-1], loop["from_outside"]), (call, True))
        self.assertGreater(loop["no_work_ns"], 0)
        self.assertGreater(loop["works"], 20)
        self.assertIn("No work, in loops", text)
        self.assertRegex(text, rf"(?m)^ .* {call} of .*: from outside$")
        self.assertRegex(text, r"(?m)^  [0-9,]+ times work.* p50 ")
        self.assertNotIn("depended on", text)
        return report, text

    def check_no_server(self, trace, loops=False):
        report, text = self.answers(trace)
        self.assertFalse(report["is_server"], report["work_loops"])
        if not loops:
            self.assertEqual(report["work_loops"], [])
            self.assertNotIn("No work", text)
        return report, text

    def check_is_none(self, *command):
        done = self.record(*command, options=("--kernel=bpf", "-b", "64M"))
        self.assertEqual(done.status, 0, done.stderr)
        return self.check_no_server(done.trace)

    def test_epoll_server_and_its_client(self):
        recorder, trace = self.begin(self.compiled("EPOLL_SERVER"))
        port = recorder.stdout.readline().strip()
        self.check_is_none(self.compiled("CLIENT"), port, "300", str(states.command_of(recorder.pid)))
        self.end(recorder, signal.SIGTERM)
        self.check_server(trace, "epoll_wait")

    def test_a_server_that_always_has_work(self):
        """A busy server hardly waits."""
        recorder, trace = self.begin(self.compiled("EPOLL_SERVER"))
        port = recorder.stdout.readline().strip()
        subprocess.run([self.compiled("FLOOD"), port, "5000"], check=True)
        self.end(recorder, signal.SIGTERM)
        report, text = self.answers(trace)
        self.assertTrue(report["is_server"], report["work_loops"])
        loop = report["work_loops"][0]
        self.assertEqual((loop["path"][-1], loop["from_outside"]), ("epoll_wait", True))
        self.assertGreater(loop["calls"], 4900)
        self.assertIn("No work, in loops", text)
        self.assertRegex(text, r"(?m)^  [0-9,]+ calls of it did not wait$")

    def test_copies_of_files_and_pipes(self):
        """A copier loops as a server does that always has work."""
        copier = self.compiled("COPIER")
        files = [self.directory / f"file{i}" for i in range(8)]
        for file in files:
            file.write_bytes(bytes(6400))
        self.check_is_none(copier, *files)
        trace = self.directory / "pipe.data"
        with subprocess.Popen(["sh", "-c", "sleep 0.3; head -c 60000 /dev/zero"],
                              stdout=subprocess.PIPE) as source:
            read("record", "--kernel=bpf", "-o", trace, "--", copier, stdin=source.stdout)
        self.check_no_server(trace)

    @unittest.skipUnless(servers.has_redis(), "redis is not installed")
    def test_redis(self):
        port = free_port()
        program = servers.redis_server(self.directory)
        recorder, trace = self.begin(program, "--port", str(port), "--save", "")
        self.wait_for(port).close()
        ask = ["redis-benchmark", "-p", str(port), "-t", "set", "-n", "3000", "-c", "8", "-q"]
        subprocess.run(ask, stdout=subprocess.DEVNULL, check=True)
        self.end(recorder, signal.SIGTERM)
        _, text = self.check_server(trace, "epoll_wait")
        # The hottest functions exclude waiting.
        self.assertNotIn("pthread_cond_wait", text.split("Hottest functions")[1].split("\n\n")[0])
        # A client that gets answers waits for these.
        server = subprocess.Popen([program, "--port", str(port), "--save", ""],
                                  stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.wait_for(port).close()
        self.check_is_none(*ask)

    @unittest.skipUnless(shutil.which("nginx") and shutil.which("wrk"), "nginx or wrk is not installed")
    def test_nginx(self):
        port = free_port()
        (self.directory / "logs").mkdir()
        (self.directory / "nginx.conf").write_text(
            "worker_processes 2; pid ng.pid; error_log stderr; daemon off; events {}\n"
            f"http {{ access_log off; server {{ listen 127.0.0.1:{port}; "
            'location / { return 200 "hello"; } } }\n')
        recorder, trace = self.begin("nginx", "-p", self.directory, "-c",
                                     self.directory / "nginx.conf")
        self.wait_for(port).close()
        # A client whose end is timed.
        self.check_is_none("wrk", "-t1", "-c4", "-d2", f"http://127.0.0.1:{port}/")
        self.end(recorder, signal.SIGTERM)
        _, text = self.check_server(trace, "epoll_wait")
        # The process that only made the workers has no part in their work.
        self.assertRegex(text, r"(?m)^  1 thread slept throughout: nginx$")
        self.assertNotIn("sigsuspend", text.split("Hottest functions")[1].split("\n\n")[0])

    def test_pool(self):
        done = self.record(self.compiled("THREADS"), "pool",
                           options=("--kernel=bpf",))
        self.assertEqual(done.status, 0, done.stderr)
        report, text = self.check_no_server(done.trace, loops=True)
        self.assertGreaterEqual(len(report["work_loops"]), 2)
        for loop in report["work_loops"]:
            self.assertEqual((loop["path"][-1], loop["from_outside"]),
                             ("pthread_cond_wait", False))
        self.assertRegex(text, r"(?m)^ .* pthread_cond_wait of .*threads: from other threads$")

    def test_threads_that_need_one_another(self):
        program = self.compiled("THREADS")
        for shape in ("convoy", "semaphore", "turns"):
            with self.subTest(shape):
                self.check_is_none(program, shape)

    def test_programs_that_end_by_themselves(self):
        (self.directory / "Makefile").write_text(
            "all: " + " ".join(f"t{i}" for i in range(40)) + "\n" + "".join(
                f"t{i}:\n\t@echo {i} | cat >/dev/null\n" for i in range(40)))
        for command in (("gcc", "-O2", "-c", "program.c"),
                        ("sh", "-c", "for i in $(seq 40); do sleep 0.01; done"),
                        ("sh", "-c", "seq 100000 | grep 7 | wc -l"),
                        ("make", "-j2")):
            (self.directory / "program.c").write_text(serving_programs.THREADS)
            with self.subTest(command[0]):
                self.check_is_none(*command)


if __name__ == "__main__":
    cases.main()
