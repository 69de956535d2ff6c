"""Names of generated code: from perf-PID.map and jitdump files, of processes that live, end, fork, are
killed or are in a container, in every view; the files are not needed after recording."""

import contextlib
import glob
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import support
from command import LIBRARY, arctrace, read, read_dump, read_info, read_report, run, start_arctrace
from tracing import Recorded, TracedTest

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
FIRST = "LazyCompile:*first file.js:1"  # a name of jit/generates.c
VIEWS = ("tree", "flat", "arcs", "flow", "invocations", "log-rt")  # that name functions

PYTHON = support.API + """
import mmap
page = mmap.mmap(-1, 4096)
start = ctypes.addressof(ctypes.c_char.from_buffer(page))
with open(f"/tmp/perf-{os.getpid()}.map", "w") as file: print(f"{start:x} 10 compiled", file=file)
for _ in range(int(sys.argv[1])):
    api.arctrace_enter(ctypes.c_uint64(start + 4))
    api.arctrace_exit(ctypes.c_uint64(start + 4))
"""
NODE = """
function hot(n) { let sum = 0; for (let i = 0; i < n; ++i) sum += i % 7; return sum; }
let all = 0;
for (let i = 0; i < 2000; ++i) all += hot(1000);
console.log(all);
process.exitCode = 3;
"""


def is_root_with_namespaces():
    done = subprocess.run(["unshare", "-p", "-m", "-f", "mount", "-t", "tmpfs", "none", "/tmp"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


@unittest.skipUnless(platform.machine() == "x86_64", "the programs generate x86-64 code")
class GeneratedCodeTest(TracedTest):
    def setUp(self):
        super().setUp()
        library = LIBRARY.parent
        subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{REPOSITORY}/include",
                        HERE / "jit/generates.c", "-o", self.directory / "generates",
                        f"-L{library}", "-larctrace", f"-Wl,-rpath,{library}"], check=True)
        self.addCleanup(self.remove_maps, set(glob.glob("/tmp/perf-*.map")))

    @staticmethod
    def remove_maps(before):
        for path in set(glob.glob("/tmp/perf-*.map")) - before:
            with contextlib.suppress(OSError):
                os.remove(path)

    def generated(self, trace):
        """{function: calls} of module [jit]."""
        return {row["name"]: row["calls"]
                for row in read_report(trace, "flat")["functions"] if row.get("module") == "[jit]"}

    def files(self, trace):
        return [file for process in read_info(trace)["processes"] for file in process["code_files"]]

    def run_until_held(self, held, *command, options=()):
        """Records a command that waits for a line, which it gets when the recorder has opened a file of
        that name, or of these names."""
        trace = self.directory / "arctrace.data"
        with start_arctrace("record", "-o", trace, *options, "--", *command, cwd=self.directory,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True) as recorder:
            until = time.monotonic() + 60
            while not self.holds(recorder.pid, held) and time.monotonic() < until:
                time.sleep(0.02)
            stdout, stderr = recorder.communicate("\n")
        return Recorded(self.directory, trace, recorder.returncode, stdout, stderr)

    @staticmethod
    def holds(pid, pattern):
        with contextlib.suppress(OSError):
            for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if pathlib.PurePath(os.readlink(fd)).match(pattern):
                        return True
        return False

    def test_map(self):
        recorded = self.record("./generates", "map")
        pid, *results = recorded.stdout.split()
        self.assertEqual(results, ["6", "12"])
        os.remove(f"/tmp/perf-{pid}.map")  # the names are in the trace
        read("check", recorded.trace)
        self.assertEqual(self.generated(recorded.trace), {FIRST: 3, "second": 4})
        self.assertEqual(self.files(recorded.trace),
                         [{"path": f"/tmp/perf-{pid}.map", "kind": "perf_map", "names": 2,
                           "left_out": 0, "cut": False}])
        # A library call that generated code makes stands in that code.
        root = read_report(recorded.trace, "tree")["threads"][0]["root"]
        first = next(node for node in root["children"] if node["name"] == FIRST)
        self.assertEqual([child["name"] for child in first["children"]], ["getppid"])

    def test_every_reader(self):
        trace = self.record("./generates", "map").trace
        for view in VIEWS:
            for form in ("text", "json"):
                with self.subTest(view=view, form=form):
                    shown = read("report", trace, f"--view={view}", f"--format={form}")
                    self.assertIn(FIRST, shown)
        functions = [r["function"] for r in read_dump(trace) if r["type"] == "ENTER"]
        self.assertEqual(functions.count("second"), 4)
        codes = [r for r in read_dump(trace) if r["type"] == "CODE"]
        self.assertEqual([code["name"] for code in codes], [FIRST, "second"])
        self.assertIn(f"name={FIRST!r}".replace("'", '"'), read("dump", trace))
        self.assertIn("1 file with names of generated code", read("info", trace))

    def test_replaced_and_moved(self):
        recorded = self.record("./generates", "dump")
        pid, *results = recorded.stdout.split()
        self.assertEqual(results, ["6", "15", "6"])
        os.remove(self.directory / f"jit-{pid}.dump")
        read("check", recorded.trace)
        self.assertEqual(self.generated(recorded.trace), {"first": 3, "second": 7})
        self.assertEqual([(file["kind"], file["names"]) for file in self.files(recorded.trace)],
                         [("jitdump", 3)])

    def test_dump_of_who_is_killed_or_unmaps_it(self):
        for way, status in (("kill", -9), ("unmapped", 0)):
            with self.subTest(way=way):
                recorded = self.run_until_held("jit-*.dump", "./generates", way)
                self.assertEqual(recorded.status, status, recorded.stderr)
                self.assertEqual(self.generated(recorded.trace), {"first": 3, "second": 7})

    def test_fork_child_has_its_parents_code(self):
        trace = self.record("./generates", "fork").trace
        self.assertEqual(self.generated(trace), {FIRST: 3, "second": 10})
        threads = read_report(trace, "tree")["threads"]
        self.assertEqual([{node["name"]: node["calls"] for node in thread["root"]["children"]
                           if node.get("module") == "[jit]"} for thread in threads],
                         [{FIRST: 3, "second": 4}, {"second": 6}])

    def test_overwrite_mode(self):
        for way, expected in (("map", {FIRST: 3, "second": 4}), ("dump", {"first": 3, "second": 7})):
            with self.subTest(way=way):
                trace = self.record("./generates", way, options=("--mode=overwrite",)).trace
                read("check", trace)
                self.assertEqual(self.generated(trace), expected)

    def test_live_session(self):
        name = f"jit-{os.getpid()}"
        read("create", name, "--start")
        self.addCleanup(arctrace, "destroy", "--force", name)
        with start_arctrace("record", f"--session={name}", "--", "./generates", "wait", cwd=self.directory,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as command:
            for _ in range(3):
                command.stdout.readline()  # it waits now
            trace = self.directory / "now.data"
            read("snapshot", name, "-o", trace)
            command.communicate("\n")
        self.assertEqual(self.generated(trace), {FIRST: 3, "second": 4})

    def test_each_file_of_a_ring_has_the_names(self):
        trace = self.record(sys.executable, "-c", PYTHON, "100000",
                            options=("--size-limit=1M", "--no-libcall", "--block-size=4k")).trace
        files = [trace, *self.directory.glob("arctrace.data.*")]
        self.assertGreater(len(files), 2)
        for file in files:
            self.assertEqual(set(self.generated(file)), {"compiled"}, file)

    @unittest.skipUnless(is_root_with_namespaces(), "no namespaces may be made")
    def test_container(self):
        recorded = self.run_until_held(
            "perf-1.map", "unshare", "-p", "-m", "-f", "sh", "-ec",
            f"{self.another_tmp()}; exec '{self.outside()}' wait", options=("--no-libcall",))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        self.assertEqual(recorded.stdout.split()[0], "1")
        self.assertEqual(self.generated(recorded.trace), {FIRST: 3, "second": 4})

    def another_tmp(self):
        """Commands that mount it, with the libraries if they are built below /tmp."""
        mount = "mount -t tmpfs none /tmp"
        libraries = LIBRARY.parent
        if not libraries.is_relative_to("/tmp"):
            return mount
        old = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.addCleanup(old.rmdir)
        return (f"mount --rbind /tmp {old}; {mount}; mkdir -p {libraries}; "
                f"mount --bind {old}/{libraries.relative_to('/tmp')} {libraries}")

    def outside(self):
        """The program, copied to where it is still visible when another /tmp is mounted."""
        copy = pathlib.Path("/dev/shm") / f"generates-{os.getpid()}"
        shutil.copy(self.directory / "generates", copy)
        self.addCleanup(copy.unlink)
        return copy

    def test_python(self):
        trace = self.record(sys.executable, "-c", PYTHON, "7", options=("--no-libcall",)).trace
        self.assertEqual(self.generated(trace), {"compiled": 7})

    @unittest.skipUnless(shutil.which("node"), "no node")
    def test_node(self):
        def command(option):
            return ("node", option, "-e", NODE)
        for option, kind in (("--perf-basic-prof", "perf_map"), ("--perf-prof", "jitdump")):
            with self.subTest(option=option):
                bare = run(*command(option), cwd=self.directory)
                # The many short calls are filtered out, because they take long to check.
                recorded = self.record(*command(option), options=("-t", "100us"))
                self.assertEqual(recorded.stdout, bare.stdout)
                self.assertEqual(recorded.status, bare.returncode)
                read("check", recorded.trace)
                files = [file for file in self.files(recorded.trace) if file["kind"] == kind]
                self.assertEqual(len(files), 1)
                self.assertGreater(files[0]["names"], 100)
                codes = [r["name"] for r in read_dump(recorded.trace) if r["type"] == "CODE"]
                self.assertTrue(any("hot" in code for code in codes))


if __name__ == "__main__":
    cases.main()
