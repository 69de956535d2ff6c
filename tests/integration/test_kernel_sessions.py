"""Records of the kernel's in sessions that outlive commands, and its events switched on and off by name while programs
run."""

import mmap
import os
import pathlib
import signal
import struct
import subprocess
import unittest

import cases
import second_reader
from command import arctrace, read, read_dump, read_info, read_report, refused, run, start_arctrace
from kernel_programs import ATTEMPTS, NO_KERNEL, SOURCES
from states import wait_until
from tracing import TracedTest

# Prints its session. For each line of its input it asks for its priority 100 times, in a function, and answers.
ASKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) static void asks(void) {
  for (int i = 0; i < 100; ++i) syscall(SYS_getpriority);
}
int main(void) {
  char line[80];
  setvbuf(stdout, NULL, _IOLBF, 0);
  puts(getenv("ARCTRACE_SESSION"));
  while (fgets(line, sizeof line, stdin) != NULL) asks(), puts("asked");
  return 0;
}
"""
# Offsets in the control page, which begins at 4096 (SPEC.md KRN-9).
KERNEL_LOADER, KERNEL_PARENT = 4096 + 300, 4096 + 304


@unittest.skipIf(NO_KERNEL, NO_KERNEL or "")
class KernelSessionsTest(TracedTest):
    CHECKS_VIEWS = False

    def setUp(self):
        super().setUp()
        self.name = f"test-{os.getpid()}-{self.id().rsplit('.', 1)[1]}"[:64]

    def build(self, source, *options):
        program = self.directory / "program"
        run("gcc", "-O1", "-x", "c", "-", "-pthread", "-o", program, *options, input=source, check=True)
        return program

    @staticmethod
    def buffers():
        """The buffers in the kernel's memory."""
        return set(pathlib.Path("/run/arctrace").glob("arctrace-*"))

    def create(self, *options):
        done = arctrace("create", self.name, "--kernel=bpf", "-b", "8M", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(arctrace, "destroy", "--force", self.name)
        return pathlib.Path(done.stdout.strip())

    def attach(self, name="attached.data", *options):
        """(the collector, its file), once the collector works."""
        trace = self.directory / name
        collector = start_arctrace("attach", self.name, "-o", trace, *options, stderr=subprocess.PIPE, text=True)
        self.addCleanup(collector.kill)
        self.assertIn("collecting session", collector.stderr.readline())
        return collector, trace

    def end(self, collector):
        """Ends the collector; returns what it printed."""
        collector.send_signal(signal.SIGINT)
        _, printed = collector.communicate()
        self.assertEqual(collector.returncode, 0, printed)
        return printed

    def works(self, program):
        """Records the program; returns the CPU time that it counted itself."""
        done = arctrace("record", f"--session={self.name}", "--", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)

    def test_a_program_of_the_session(self):
        """A program is recorded from its exec on, with all threads and the CPU time that the kernel counts; the
        command that started it is not."""
        program = self.build((SOURCES / "works.c").read_text(encoding="ascii"))
        tried = []
        for i in range(ATTEMPTS):
            path = self.create("--start")
            self.assertEqual(path.parent, pathlib.Path("/run/arctrace"))
            collector, trace = self.attach(f"works{i}.data")
            used = self.works(program)
            self.end(collector)
            read("destroy", self.name)
            read("check", trace)
            threads = read_report(trace, "threads")["threads"]
            self.assertEqual([thread["name"] for thread in threads], ["program"] * 3)
            self.assertEqual(sum(record["type"] == "EXECED" for record in read_dump(trace)), 1)
            on_cpu = sum(thread["running_ns"] for thread in threads)
            tried.append((on_cpu, used))
            if 0.97 * used <= on_cpu <= 1.03 * used + 20_000_000:
                break
        else:
            self.fail(tried)

    def test_names_and_files(self):
        before = self.buffers()
        path = self.create()
        self.assertIn(self.name, read("list"))
        self.assertNotIn(str(path), read("list"))
        self.assertEqual(read_info(self.name)["session"]["cpu_count"] > 0, True)
        again = refused("create", self.name, "--kernel=bpf")
        self.assertIn("exists already", again)
        self.assertEqual(self.buffers() - before, {path})
        self.assertIn("exists already", refused("create", self.name))
        read("destroy", self.name)
        self.assertFalse(path.exists())
        self.assertNotIn(self.name, read("list"))
        self.assertIn("no session", refused("ctl", self.name, "--on", "marks"))
        # A name whose buffer the machine has lost can be used again.
        os.unlink(self.create())
        self.create()

    def test_what_is_refused(self):
        self.assertIn("perf events", refused("create", self.name, "--kernel=perf"))
        self.assertIn("--buffer-dir", refused("create", self.name, "--kernel", "--buffer-dir", self.directory))
        self.assertIn("too small", refused("create", self.name, "--kernel=bpf", "-b", "64k"))
        plain = f"{self.name}-plain"
        read("create", plain)
        self.addCleanup(arctrace, "destroy", plain)
        self.assertIn("no records of the kernel's", refused("ctl", plain, "--on", "syscalls"))
        self.assertIn("--on", refused("ctl", plain, "--on", "system-calls"))

    def test_collected_twice(self):
        """The kernel writes while a collector runs; records of programs in between are saved by the next one."""
        program = self.build(ASKS, "-finstrument-functions")
        path = self.create("--start", "--syscalls")
        asker = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={
            **os.environ, **self.session_variables()})
        self.addCleanup(asker.kill)
        self.assertEqual(asker.stdout.readline(), f"{path}\n")
        collector, first = self.attach("first.data")
        self.wait_until_traced(path, asker.pid)
        self.ask(asker)
        self.end(collector)
        self.ask(asker)
        collector, second = self.attach("second.data")
        self.wait_until_traced(path, asker.pid)
        self.ask(asker)
        asker.stdin.close()
        asker.wait()
        self.end(collector)
        # Records in a block that the program still has are in both files.
        for trace, calls in ((first, 1), (second, 3)):
            read("check", trace)
            functions = {f["name"]: f["calls"] for f in read_report(trace, "flat")["functions"]}
            self.assertEqual((functions["asks"], functions["K:getpriority"]), (calls, 100), functions)

    def session_variables(self):
        """The variables with which a program joins the session."""
        lines = read("env", self.name).splitlines()
        return dict(line.removeprefix("export ").replace("'", "").split("=", 1) for line in lines if "=" in line)

    def ask(self, asker):
        asker.stdin.write("\n")
        asker.stdin.flush()
        self.assertEqual(asker.stdout.readline(), "asked\n")

    def wait_until_traced(self, path, pid):
        """Waits until there are records of the kernel's of the process; checks a hundred times a second."""
        def has_records():
            os.kill(pid, signal.SIGSTOP)
            os.kill(pid, signal.SIGCONT)
            return any(record.get("tid") == pid for record in read_dump(path, "--type", "SWITCH"))
        wait_until(has_records, "a record of the kernel's")

    def test_events_by_name(self):
        """Events are recorded from when `ctl` returns on, and until it is called; each view says so."""
        program = self.build(ASKS, "-finstrument-functions")
        trace = self.directory / "events.data"
        recorder = start_arctrace("record", "--kernel=bpf", "-o", trace, "--", program, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.kill)
        session = recorder.stdout.readline().strip()
        self.ask(recorder)
        read("ctl", session, "--on", "syscalls,page-faults")
        self.ask(recorder)
        self.ask(recorder)
        read("ctl", session, "--off", "syscalls")
        self.ask(recorder)
        _, printed = recorder.communicate("")
        self.assertEqual(recorder.returncode, 0, printed)
        read("check", trace)
        report = read_report(trace, "flat")
        functions = {f["name"]: f for f in report["functions"]}
        self.assertEqual(functions["asks"]["calls"], 4)
        self.assertNotIn("recorded", functions["asks"])
        asked = functions["K:getpriority"]
        self.assertEqual(asked["calls"], 200)
        self.assertEqual(asked["recorded"]["until_by"], "ctl --off syscalls")
        before, = asked["recorded"]["partly"]
        self.assertEqual((before["by"], before["from_ns"]), ("recording without syscalls", None))
        self.assertLess(before["to_ns"], asked["recorded"]["until_ns"])
        reasons = [gap["reason"] for gap in report["gaps"]]
        self.assertEqual(reasons, ["syscalls, page-faults off", "syscalls off"])
        text = read("report", "--view=flat", trace)
        self.assertRegex(text, r"K:getpriority in \[kernel\] \[partly to [0-9.]+ .?s, until [0-9.]+ .?s\]")
        self.assertIn("ctl --off syscalls", text)
        exported = self.directory / "events.csv"
        read("export", "--to=csv", "-o", exported, trace)
        self.assertIn("ctl --off syscalls", exported.read_text(encoding="utf-8"))
        info = read("info", trace)
        self.assertRegex(info, r"(?m)^recorded from .* on: all, syscalls, page-faults$")
        words = [record["gate"] for record in read_dump(trace, "--type", "ENABLED")]
        self.assertEqual(words, ["all", "all, syscalls, page-faults", "all, page-faults"])

    def test_others_are_nobodys_business(self):
        """A user who may write to the buffer can't have unrelated processes recorded."""
        path = self.create("--start")
        collector, trace = self.attach()
        other = subprocess.Popen(["sh", "-c", "while read line; do sleep 0.01; done"], stdin=subprocess.PIPE)
        self.addCleanup(other.kill)
        descriptor, size = second_reader.open_map(path)
        with mmap.mmap(descriptor, size) as buffer:
            self.assertEqual(struct.unpack_from("=I", buffer, KERNEL_LOADER)[0], collector.pid)
            struct.pack_into("=I", buffer, KERNEL_PARENT, other.pid)
            wait_until(lambda: struct.unpack_from("=I", buffer, KERNEL_PARENT)[0] == 0, "an answer")
        os.close(descriptor)
        for _ in range(3):
            other.stdin.write(b"\n")
        other.stdin.close()
        other.wait()
        self.end(collector)
        self.assertEqual([record for record in read_dump(trace) if record["type"] == "FORKED"], [])


if __name__ == "__main__":
    cases.main()
