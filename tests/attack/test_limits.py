#!/usr/bin/env python3
"""Traces that are deep or wide: reports stay readable, and take time in proportion."""

import collections
import json
import math
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile

import attack
from command import arctrace, read_info
from support import API
from tracing import TracedTest

DEEP = API + """
keys = [key(f"f{i}") for i in range(3)]
depth, rounds = int(sys.argv[1]), int(sys.argv[2])
for _ in range(rounds):
    for i in range(depth): api.arctrace_enter(keys[i % 3])
    for i in reversed(range(depth)): api.arctrace_exit(keys[i % 3])
"""
WIDE = API + """
outer = key("outer")
api.arctrace_enter(outer)
for i in range(int(sys.argv[1])):
    inner = key(f"callee {i}")
    api.arctrace_enter(inner)
    api.arctrace_exit(inner)
api.arctrace_exit(outer)
"""
THREADS = API + """
ring = name("ring")
for _ in range(3):
    thread = threading.Thread(target=lambda: api.arctrace_instant(ring))
    thread.start()
    thread.join()
"""
SEQUENCE = API + """
ring = name("ring")
libc = ctypes.CDLL(None)
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def work(_): api.arctrace_instant(ring)
for _ in range(int(sys.argv[1])):
    thread = ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, work, None)
    libc.pthread_join(thread, None)  # unlike Python's, after the end in the kernel too
"""
FORKS = API + """
ring = name("ring")
for i in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        fresh = name(f"child {i}")
        for _ in range(20): api.arctrace_instant(fresh)
        os._exit(0)
    os.waitpid(pid, 0)
"""
LOADS = """
#include <dlfcn.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  for (int i = 0; i < atoi(argv[1]); ++i) {
    void* library = dlopen(argv[2 + i % (argc - 2)], RTLD_NOW);
    void (*called)(void) = (void (*)(void))dlsym(library, "called");
    for (int j = 0; j < 50; ++j) called();
    dlclose(library);
  }
  return 0;
}
"""
CALLED = """
#include <unistd.h>
void called(void) { getppid(); }
"""
DEPTH, ROUNDS = 1000, 3
FORMATS = collections.defaultdict(lambda: ("text", "json"), {"log-rt": ("text",)})
VIEWS = ("tree", "flat", "arcs", "kinds", "flow", "invocations", "log-rt")


class LimitsTest(TracedTest):
    def run_program(self, program, *arguments):
        recorded = self.record(sys.executable, "-c", program, *map(str, arguments),
                               options=("--no-libcall", "-b", "64M"))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        return recorded.trace

    @staticmethod
    def functions(rows):
        """The rows that are functions, not made up, as [loader] is."""
        return [row for row in rows if not row["name"].startswith("[")]

    def test_json_of_a_deep_tree_can_be_read(self):
        trace = self.run_program(DEEP, DEPTH, ROUNDS)
        tree = json.loads(arctrace("report", trace, "--format=json").stdout)["threads"][0]
        nodes = {}  # by id
        level, node = 0, tree["root"]
        while functions := self.functions(node["children"]):
            level, node = level + 1, functions[0]
            self.assertEqual((node["name"], node["calls"]), (f"f{(level - 1) % 3}", ROUNDS))
        self.assertEqual(level, 200)
        nodes[node["id"]] = level
        self.assertEqual(len(tree["deeper"]), DEPTH - level)
        for row in tree["deeper"]:
            self.assertEqual(row["level"], nodes[row["parent"]] + 1)
            self.assertEqual((row["name"], row["calls"]),
                             (f"f{(row['level'] - 1) % 3}", ROUNDS))
            nodes[row["id"]] = row["level"]
        self.assertEqual(max(nodes.values()), DEPTH)
        # A shallow trace has no such rows.
        shallow = json.loads(arctrace("report", self.run_program(DEEP, 50, 1),
                                      "--format=json").stdout)["threads"][0]
        self.assertNotIn("deeper", shallow)

    def test_a_function_with_many_callees(self):
        trace = self.run_program(WIDE, 20_000)
        done = arctrace("report", trace, "--view=arcs", "--limit=1000000")
        rows = re.findall("^self .*", done.stdout, re.M)
        self.assertEqual(len([row for row in rows if "  [" not in row]), 20_001)

    def test_one_thread_after_another(self):
        """There are few slots: each thread that ends frees one for the next thread."""
        recorded = self.record(sys.executable, "-c", SEQUENCE, "20000",
                               options=("--no-libcall", "--slots=16"))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        summary = read_info(recorded.trace)["summary"]
        self.assertEqual(summary["lost"], 0, recorded.stderr)
        self.assertEqual(summary["records"], 20000)
        self.assertEqual(summary["findings"], 0)

    def compile(self, name, source, *options):
        path = self.directory / name
        subprocess.run(["gcc", "-x", "c", "-o", path, *options, "-"], input=source, text=True,
                       check=True)
        return path

    def test_libraries_that_come_and_go(self):
        """Modules that were unloaded free space for those that the newest records need."""
        program = self.compile("loads", LOADS)
        libraries = [self.compile(f"lib{i}.so", CALLED, "-shared", "-fPIC",
                                  "-finstrument-functions") for i in range(3)]
        recorded = self.record(program, "8000", *libraries,
                               options=("--mode=overwrite", "-b", "1M"))
        self.assertEqual(recorded.status, 0, recorded.stderr)
        info = read_info(recorded.trace)
        self.assertEqual((info["summary"]["lost"], info["summary"]["findings"]), (0, 0))
        self.assertGreater(info["summary"]["overwritten"], 0)
        done = arctrace("report", recorded.trace, "--view=flat", "--format=json")
        names = {row["name"] for row in json.loads(done.stdout)["functions"]}
        self.assertIn("called", names)
        self.assertEqual([name for name in names if name.startswith("0x")], [])

    def test_processes_that_come_and_go(self):
        """Names for which there is no space are counted."""
        for size in ("1M", "4M"):
            recorded = self.record(sys.executable, "-c", FORKS, "1000",
                                   options=("--no-libcall", "--mode=overwrite", "-b", size))
            self.assertEqual(recorded.status, 0, recorded.stderr)
            info = read_info(recorded.trace)
            lost = info["summary"]["lost_by_cause"]["definitions"]
            self.assertGreater(lost, 0)
            self.assertEqual(info["summary"]["lost"], lost)
            self.assertIn(f"{lost:,} lost (definitions {lost:,})", recorded.stderr)
            self.assertEqual(info["summary"]["records"] + info["summary"]["overwritten"], 20_000)
            self.assertEqual(info["summary"]["findings"], 0)
            self.assertEqual(arctrace("check", recorded.trace).returncode, 0)
            recorded.trace.unlink()  # without a time for each of its threads

    def user_seconds(self, trace, *options):
        """The CPU time that a report took."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = arctrace("report", trace, "--limit=10000000", *options,
                        stdout=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    def ratio_of_times(self, small, large, most):
        """The ratio of the CPU times of all views together, because one alone takes no longer than
        the clock can tell. Of each the least time of two runs counts, or of up to eight while the
        ratio is larger than `most`: other work on the machine makes runs longer, and none
        shorter."""
        least = collections.defaultdict(lambda: math.inf)
        for turn in range(8):
            for view in VIEWS:
                for form in FORMATS[view]:
                    for trace in (small, large):
                        seconds = self.user_seconds(trace, f"--view={view}", f"--format={form}")
                        least[trace, view, form] = min(least[trace, view, form], seconds)
            sums = [sum(seconds for of, seconds in least.items() if of[0] == trace)
                    for trace in (small, large)]
            if turn > 0 and sums[1] / sums[0] < most:
                break
        return sums[1] / sums[0]

    def test_reports_take_time_in_proportion(self):
        """Eight times the depth, or the callees, take some eight times the time in all views,
        not 64 times."""
        small, factor = 10_000, 8
        for what, program, rest in (("deep", DEEP, (1,)), ("wide", WIDE, ())):
            traces = []
            for size in (small, small * factor):
                trace = self.run_program(program, size, *rest)
                traces.append(trace.rename(trace.with_name(f"{what}-{size}")))
                summary = read_info(traces[-1])["summary"]
                self.assertEqual((summary["lost"], summary["findings"]), (0, 0))
                self.assertGreaterEqual(summary["records"], 2 * size)
            most = factor * 3  # as far from 8 as from 64
            ratio = self.ratio_of_times(*traces, most)
            print(f"{what}: {ratio:.1f}")
            self.assertLess(ratio, most, what)

    def test_identities_end(self):
        """A session that has given nearly all identities says so, and refused ones are counted."""
        end = 0x7FFF0000
        name = f"identities-{os.getpid()}"
        self.assertEqual(arctrace("create", name, "--start", "-b", "1M").returncode, 0)
        self.addCleanup(arctrace, "destroy", name)
        buffer = f"/dev/shm/arctrace-{os.geteuid()}/{name}"
        for given, says in ((1000, False), (end // 2, True), (end - 2, True)):
            with open(buffer, "r+b") as file:
                file.seek(4096 + 324)
                file.write(struct.pack("<I", given))
            done = arctrace("record", "--session", name, "--no-libcall", "--",
                            sys.executable, "-c", THREADS)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("identities:" in arctrace("info", name).stdout, says, given)
        with tempfile.TemporaryDirectory() as directory:
            trace = f"{directory}/trace"
            done = arctrace("attach", name, "-o", trace, "--duration=10ms")
            self.assertIn("identities:", done.stderr)
            self.assertIn(f"{end - 1} of threads are given", done.stderr)
            checked = arctrace("check", trace)
            self.assertIn("note: identities:", checked.stdout)
            self.assertEqual(checked.returncode, 0, checked.stdout)
            info = json.loads(arctrace("info", trace, "--format=json").stdout)
            self.assertEqual(info["session"]["identities"]["threads"], end - 1)
            self.assertEqual(info["session"]["identities"]["most"], end - 1)
            self.assertEqual(info["summary"]["lost_by_cause"]["identity"], 3 - 1)


if __name__ == "__main__":
    attack.main()
