"""Shared code of the tests of the page of arctrace view: the trace that it shows, and its server."""

import http.client
import json
import pathlib
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from command import LIBRARY, read, start_arctrace
from test_kernel import NO_KERNEL
from tracing import TracedTest

SECONDS = 300  # how long to wait for what hangs; a busy machine is slow
HOSTILE = "a\"b'\\<script>document.title='owned'</script><img src=x onerror=alert(1)>\x1b[2J\u202e\n\t end"

HERE = pathlib.Path(__file__).resolve().parent


def record_program(directory, turns=None, options=("--buffer-size=1G",)):
    """The trace of view/program.c, with the kernel's records where these are possible; or of many turns, without kernel
    records and with these options."""
    program, trace = directory / "program", directory / "arctrace.data"
    subprocess.run(["gcc", "-O0", "-g", "-pthread", "-finstrument-functions", f"-I{HERE.parents[1] / 'include'}",
                    HERE / "view/program.c", "-o", program, LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}"],
                   check=True)
    options = ["--kernel=no", *options] if turns else ["-a"] if NO_KERNEL else ["-a", "--kernel=bpf"]
    read("record", *options, "-o", trace, "--", program, HOSTILE, *([str(turns)] if turns else []), cwd=directory)
    return trace


class Server:
    """arctrace view with these files, and options, until close()."""

    def __init__(self, *arguments):
        self.process = start_arctrace("view", "--no-open", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise AssertionError(self.process.communicate(timeout=SECONDS)[1])

    def get(self, path, **values):
        query = "?" + urllib.parse.urlencode(values) if values else ""
        with urllib.request.urlopen(self.url + path + query, timeout=SECONDS) as answer:
            return answer.read()

    def api(self, name, **values):
        return json.loads(self.get("api/" + name, **values))

    def wait_whole(self):
        """Waits until the whole trace has been read."""
        end = time.monotonic() + SECONDS
        while not (progress := self.api("progress"))["is_whole"]:
            if progress["problem"] or time.monotonic() > end:
                raise AssertionError(progress)
            time.sleep(0.05)

    def status(self, path, **values):
        try:
            self.get(path, **values)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        return 200

    def raw(self, path, host=None, method="GET"):
        """The status of a request for `path` with this Host."""
        place = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=SECONDS)
        connection.putrequest(method, path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        status = connection.getresponse().status
        connection.close()
        return status

    def close(self):
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors


def row_sums(answer):
    """Calls of the rows of a time line: exact ones, and those in density buckets."""
    exact = crowded = 0
    for _, rows, *_ in answer["lanes"]:
        for level, stretches, crowds in rows:
            if level >= 3:
                exact += len(stretches) // 4
                crowded += sum(crowds[2::4])
    return exact, crowded


class ServedTest(TracedTest):
    """A test of the page of one trace, self.trace, that all tests of its class share."""

    TURNS = None  # of record_program()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.recorded = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.trace = record_program(pathlib.Path(cls.recorded.name), cls.TURNS)

    @classmethod
    def tearDownClass(cls):
        cls.recorded.cleanup()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.server = None

    def tearDown(self):
        if self.server is not None:
            self.server.close()
        super().tearDown()

    def serve(self):
        self.server = Server(self.trace)
        self.assertRegex(self.server.url, r"^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/$")
        self.server.wait_whole()
        return self.server
