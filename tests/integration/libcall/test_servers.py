"""Servers of the distribution under load on this machine, untraced and traced, give the same answers
and end cleanly."""

import concurrent.futures
import glob
import http.client
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import unittest

import cases
import plain
from command import read_report, run
from states import wait_until

TIMEOUT = 600
NGINX = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
POSTGRES = next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))), None)
# The user of a server that refuses to run as root.
SERVER_USER = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
AS_USER = {"user": SERVER_USER.pw_uid, "group": SERVER_USER.pw_gid,
           "extra_groups": []} if os.geteuid() == 0 else {}

CONFIGURATION = """
daemon off; worker_processes 2; pid nginx.pid; error_log error.log;
events { worker_connections 64; }
http {
  access_log access.log; gzip on; gzip_min_length 100; gzip_types text/plain;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server {
    listen unix:web.socket;
    root pages;
    location /moved { return 301 /page.txt; }
    location /through { proxy_pass http://unix:web.socket:/page.txt; }
  }
}
"""
STATEMENTS = """
create table shape(id serial primary key, name text unique, area float8);
insert into shape(name, area) select 'shape ' || i, sqrt(i) from generate_series(1, 2000) i;
select count(*), round(sum(area)::numeric, 6) from shape where name like '%7%';
explain (costs off) select * from shape where name = 'shape 9';
begin; delete from shape; rollback;
insert into shape(name) values ('shape 1');
select md5(string_agg(name, ',' order by area desc)) from shape;
create function twice(n int) returns int language plpgsql as 'begin return 2 * n; end';
select sum(twice(id)) from shape;
select 1 / 0;
vacuum analyze shape;
select pg_size_pretty(1048576::bigint), to_tsvector('english', 'The traced programs') @@ 'program';
"""


def listens(path):
    """Whether a server accepts connections at its socket file, which exists before that."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


class Connection(http.client.HTTPConnection):
    """A connection to a server's socket file."""

    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(self.path)


class Servers(plain.PlainTest):
    def untraced_and_traced(self, work):
        _, traces = self.compare_work(work, "-b", "64M", place=self.own_directory)
        for trace in traces:
            functions = {row["name"] for row in read_report(trace, "flat")["functions"]}
            self.assertGreater(len([name for name in functions if not name.startswith("[")]), 50)

    def own_directory(self):
        self.directory.chmod(0o755)  # the servers' user must pass through it
        directory = self.place("program")
        os.chown(directory, SERVER_USER.pw_uid, SERVER_USER.pw_gid)
        return directory

    def start(self, command, directory):
        with open(directory / "printed", "wb") as printed:
            server = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL,
                                      stdout=printed, stderr=printed, **AS_USER)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return server

    @unittest.skipUnless(NGINX, "no nginx")
    def test_nginx(self):
        def work(prefix, directory):
            (directory / "nginx.conf").write_text(CONFIGURATION)
            (directory / "pages").mkdir()
            (directory / "pages/page.txt").write_text("a line of text\n" * 500)
            (directory / "pages/index.html").write_text("<p>index</p>")
            server = self.start([*prefix, NGINX, "-p", f"{directory}/", "-c", "nginx.conf"],
                                directory)
            path = os.path.relpath(directory / "web.socket")
            wait_until(lambda: listens(path), "nginx takes connections", TIMEOUT)

            def ask(worker, requests=10):
                """Sends so many requests on each connection."""
                answers = []
                connection = Connection(path)
                for i in range(100):
                    page = ("/", "/page.txt", "/nothing", "/moved", "/through")[(worker + i) % 5]
                    headers = {"Accept-Encoding": "gzip"} if i % 2 else {}
                    connection.request("GET" if i % 7 else "HEAD", page, headers=headers)
                    answer = connection.getresponse()
                    answers.append((answer.status, answer.read()))
                    if i % requests == requests - 1:
                        connection.close()
                connection.close()
                return answers

            with concurrent.futures.ThreadPoolExecutor(8) as clients:
                answers = list(clients.map(ask, range(8)))
            pid = int((directory / "nginx.pid").read_text())
            os.kill(pid, signal.SIGHUP)  # new workers replace the old ones
            answers.append(ask(0, requests=1))
            os.kill(pid, signal.SIGQUIT)
            status = server.wait(TIMEOUT)
            lines = (directory / "access.log").read_text().splitlines()
            errors = [line for line in (directory / "error.log").read_text().splitlines()
                      if "No such file" not in line]
            return status, answers, len(lines), errors

        self.untraced_and_traced(work)

    @cases.not_in_gate
    @unittest.skipUnless(POSTGRES, "no PostgreSQL")
    def test_postgresql(self):
        programs = pathlib.Path(POSTGRES).parent
        cluster = self.own_directory() / "cluster"
        subprocess.run([programs / "initdb", "-D", cluster, "-U", "tester", "-A", "trust", "-N",
                        "--locale=C", "-E", "UTF8"], check=True, stdout=subprocess.DEVNULL,
                       cwd=cluster.parent, **AS_USER)

        def work(prefix, directory):
            shutil.copytree(cluster, directory / "cluster")
            subprocess.run(["chown", "-R", f"{SERVER_USER.pw_uid}:{SERVER_USER.pw_gid}",
                            directory / "cluster"], check=True)
            server = self.start([*prefix, POSTGRES, "-D", directory / "cluster", "-k", directory,
                                 "-h", "", "-c", "fsync=off", "-c", "max_connections=20"],
                                directory)
            client = ["-h", str(directory), "-U", "tester"]

            def execute(*command):
                done = run(*command, stderr=subprocess.STDOUT, cwd=directory)
                return done.returncode, done.stdout

            wait_until(lambda: execute("pg_isready", *client)[0] == 0, "the server is ready", TIMEOUT)
            printed = [execute("psql", *client, "-X", "-d", "postgres", "-c", statement)
                    for statement in STATEMENTS.strip().splitlines()]
            printed.append(execute("pgbench", *client, "-i", "-q", "-s", "1", "postgres")[0])
            load = execute("pgbench", *client, "-c", "4", "-t", "50", "postgres")
            printed.append((load[0], re.findall(r"actually processed: (\S+)", load[1])))
            printed.append(execute("psql", *client, "-X", "-d", "postgres", "-c",
                            "select count(*) from pgbench_history"))
            pid = int((directory / "cluster/postmaster.pid").read_text().splitlines()[0])
            os.kill(pid, signal.SIGINT)  # "fast": ends all sessions, then writes everything
            status = server.wait(TIMEOUT)
            log = (directory / "printed").read_text()
            ended = re.findall(r"database system is shut down|PANIC|terminated by signal", log)
            return status, printed, ended

        self.untraced_and_traced(work)


if __name__ == "__main__":
    cases.main()
