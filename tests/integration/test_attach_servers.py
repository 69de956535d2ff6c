"""Servers under load are joined, released and joined again at random moments, also by recorders that are killed: each
request is answered as always."""

import http.client
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import cases
import servers
from command import read, start_arctrace
from states import wait_until
from tracing import TracedTest

NGINX = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
LONG = bool(os.environ.get("ARCTRACE_TEST_LONG"))
JOINS = 60 if LONG else 6
TIMEOUT = 600
OPTIONS = [[], ["-F", "read*"], ["-N", "write"], ["--auto-args"], ["--nest-libcall"], ["--depth=2"], ["-t", "1us"],
           ["-P", "."], ["-P", ".", "-Z", "1"], ["-P", ".", "-P", "lib:*", "--auto-args"]]
CONFIGURATION = """
USER daemon off; worker_processes WORKERS; pid nginx.pid; error_log error.log;
events { worker_connections 64; }
http {
  access_log access.log;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server { listen unix:server.socket; root pages; }
}
"""
WORKERS = 2  # as in the configuration
PAGE = "0123456789" * 500


class AttachServers(TracedTest):
    def setUp(self):
        super().setUp()
        self.wrong = []  # wrong answers
        self.answers = 0
        self.is_over = False

    def connect(self):
        """A connection to the server's socket, as soon as it accepts connections."""
        def connected():
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(TIMEOUT)
            if client.connect_ex(str(self.directory / "server.socket")) == 0:
                return client
            client.close()
            return None

        return wait_until(connected, "the server takes connections", TIMEOUT)

    def note(self, answer, expected):
        self.answers += 1
        if answer != expected:
            self.wrong.append(answer)

    def ask_redis(self):
        """Sends requests until the test is over."""
        number = 0
        with self.connect() as client, client.makefile("rwb") as stream:
            while not self.is_over:
                number += 1
                key, value = f"key:{number % 100}:{threading.get_ident()}", f"value:{number}"
                stream.write(f"SET {key} {value}\r\nGET {key}\r\n".encode())
                stream.flush()
                self.note([stream.readline() for _ in range(3)],
                          [b"+OK\r\n", f"${len(value)}\r\n".encode(), f"{value}\r\n".encode()])

    def ask_nginx(self):
        while not self.is_over:
            connection = http.client.HTTPConnection("localhost", timeout=TIMEOUT)
            connection.sock = self.connect()
            for _ in range(20):
                connection.request("GET", "/page.txt")
                response = connection.getresponse()
                self.note((response.status, response.read().decode()), (200, PAGE))
            connection.close()

    def ask(self, request):
        try:
            request()
        except (OSError, AssertionError, http.client.HTTPException) as error:
            self.wrong.append(error)

    def join_once(self, pids, buffers):
        """True: the recorder ended by itself, and has joined."""
        with start_arctrace("record", "-p", ",".join(map(str, pids)), "-o", self.directory / "joined.data", "-b", "8M",
                            f"--buffer-dir={buffers}", *random.choice(OPTIONS),
                            f"--duration={random.randint(1, 60)}ms", text=True, stderr=subprocess.PIPE) as recorder:
            self.addCleanup(recorder.kill)
            is_killed = random.random() < 0.3
            if is_killed:
                time.sleep(random.random() * 0.3)
                recorder.kill()
            errors = recorder.communicate(timeout=TIMEOUT)[1]
        if is_killed and recorder.returncode == -signal.SIGKILL:
            for file in self.directory.glob("joined.data*"):
                file.unlink()
            return False
        if recorder.returncode == 2 and "; try again" in errors:
            return False  # none of its threads could be borrowed, or stopped
        self.assertEqual(recorder.returncode, 0, errors)
        read("check", self.directory / "joined.data")
        return True

    def check_server(self, command, request, pids_of):
        buffers = tempfile.mkdtemp(dir="/dev/shm")
        self.addCleanup(shutil.rmtree, buffers)
        server = subprocess.Popen(command, cwd=self.directory, stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.connect().close()
        clients = [threading.Thread(target=self.ask, args=[request]) for _ in range(3)]
        for client in clients:
            client.start()
        try:
            pids = pids_of(server.pid)
            joined = [self.join_once(random.choice([pids, pids[:1]]), buffers) for _ in range(JOINS)]
            before = self.answers
            wait_until(lambda: self.answers >= before + 100 or self.wrong or server.poll() is not None,
                       "a hundred answers more", TIMEOUT)
        finally:
            self.is_over = True
            for client in clients:
                client.join()
        self.assertEqual(self.wrong, [])
        self.assertEqual(pids_of(server.pid), pids)
        self.assertTrue(any(joined) or not LONG)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(timeout=TIMEOUT), 0)

    @unittest.skipUnless(servers.has_redis(), "needs redis-tools")
    def test_redis(self):
        for threads in (1, 4):
            with self.subTest(io_threads=threads):
                self.is_over = False
                (self.directory / "server.socket").unlink(missing_ok=True)
                self.check_server([servers.redis_server(self.directory), "--port", "0", "--unixsocket", "server.socket", "--save", "", "--io-threads",
                                   str(threads)], self.ask_redis, lambda pid: [pid])

    @unittest.skipUnless(NGINX, "needs nginx")
    def test_nginx(self):
        (self.directory / "pages").mkdir()
        (self.directory / "pages/page.txt").write_text(PAGE, encoding="utf-8")
        (self.directory / "nginx.conf").write_text(
            # A recorder that root runs cannot record other users' processes.
            CONFIGURATION.replace("USER", "user root;" if os.geteuid() == 0 else "").replace("WORKERS", str(WORKERS)),
            encoding="utf-8")

        def workers(pid):
            """All worker processes: the first answers before the others are started."""
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
            wait_until(lambda: len(children.read_text(encoding="ascii").split()) >= WORKERS, f"{WORKERS} workers", TIMEOUT)
            return [int(child) for child in children.read_text(encoding="ascii").split()]

        self.check_server([NGINX, "-p", self.directory, "-c", self.directory / "nginx.conf"], self.ask_nginx, workers)


if __name__ == "__main__":
    cases.main()
