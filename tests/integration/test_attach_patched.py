"""Functions of running programs are patched (record -p PID -P), while threads run them, again and again."""

import json
import os
import pathlib
import random
import signal
import subprocess
import unittest
import unittest.mock

import cases
from attached_programs import LONG, AttachTest
from command import arctrace, read, read_dump, read_report, start_arctrace
from states import wait_until

COUNTED = ("-Z", "1", "-P", "counted_part", "-P", "counted_a", "-P", "counted_b")
CALLS = {"counted_a": 7, "counted_b": 11}
HOOKED = {f"hooked_{i}" for i in range(8)}
# After a line of input it takes all addresses around libc but for a hole, in which the kernel puts the next mapping.
FULL = r"""
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096, kHole = 700 * 1024 };

static uintptr_t begin_of(const char* name) {
  char line[512];
  uintptr_t begin = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (begin == 0 && fgets(line, sizeof line, maps) != NULL) {
    if (strstr(line, name) != NULL) begin = strtoull(line, NULL, 16);
  }
  fclose(maps);
  return begin;
}

static void* take(void* at, size_t size, int flags) {
  return mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

int main(void) {
  const uintptr_t libc = begin_of("libc.so");
  const uintptr_t low = libc - ((uintptr_t)3 << 30);
  const uintptr_t high = begin_of("[stack]") - (16 << 20);  // it may grow
  puts("begins");
  fflush(stdout);
  getchar();
  // The kernel takes the highest addresses that are free first.
  for (size_t size = (size_t)1 << 30; size >= kPage; size /= 2) {
    for (;;) {
      void* got = take(NULL, size, 0);
      if (got == MAP_FAILED) break;
      if ((uintptr_t)got < low) {
        munmap(got, size);
        break;
      }
    }
  }
  // The kernel would not choose addresses above libc.
  for (uintptr_t at = libc & -(1 << 20); at < high && at < libc + ((uintptr_t)3 << 30); at += 1 << 20) {
    take((void*)at, 1 << 20, MAP_FIXED_NOREPLACE);
  }
  munmap((void*)((libc - (1 << 30)) & ~(uintptr_t)(kPage - 1)), kHole);
  puts("full");
  fflush(stdout);
  for (;;) {
    free(strdup("text"));
    usleep(500);
  }
}
"""
ROOM = "64M"  # space for all records, because functions that flood a nearly full buffer are switched off


class AttachPatched(AttachTest):
    def record_patched(self, program, place, *options):
        """Records until each of the program's four threads has made several iterations."""
        errors = self.attach_for_rounds(program, place, "-b", "256M", *options, threads=4, times=3)
        self.assertIn(" 0 lost", errors)
        read("check", self.directory / "arctrace.data")

    def patches(self):
        """What info says of the patches."""
        shown = arctrace("info", "-v", "--format=json", self.directory / "arctrace.data", check=True)
        [process] = json.loads(shown.stdout)["processes"]
        return process["patches"]

    def calls_in_parts(self):
        """The calls in each whole part that was recorded."""
        parts = []
        open_parts = {}
        for record in read_dump(self.directory / "arctrace.data"):
            function, thread = record.get("function"), record.get("tid")
            if record["type"] == "ENTER" and function == "counted_part":
                open_parts[thread] = {}
            elif record["type"] == "EXIT" and function == "counted_part" and thread in open_parts:
                parts.append(open_parts.pop(thread))
            elif record["type"] == "ENTER" and thread in open_parts:
                open_parts[thread][function] = open_parts[thread].get(function, 0) + 1
        return parts

    @cases.in_gate
    def test_counts(self):
        """Each part in each thread has the calls that it makes, in all recordings."""
        program, place = self.start("counts")
        for options, calls in ((COUNTED, CALLS), (COUNTED, CALLS), (("-Z", "1", "-P", "."), CALLS),
                               ((*COUNTED, "-N", "counted_b"), {"counted_a": 7}),
                               ((*COUNTED[:6], "--nest-libcall"), {"counted_a": 7}),
                               ((*COUNTED, "-A", "counted_a@arg2/u32", "-R", "counted_b@retval/u32"), CALLS),
                               ((*COUNTED, "--scope=shared"), CALLS)):
            with self.subTest(options=options):
                self.record_patched(program, place, *options)
                parts = self.calls_in_parts()
                self.assertGreater(len(parts), 20)
                self.assertEqual([part for part in parts if part != calls], [])
                if "-A" in options:
                    self.check_values()
        self.assert_unharmed(program, place)

    def check_values(self):
        """The values of the second argument of counted_a, and of what counted_b returns for the parts' first sum,
        1."""
        sum_of_a = 1
        for i in range(CALLS["counted_a"]):
            sum_of_a = sum_of_a * 3 + i
        results = []
        for i in range(CALLS["counted_b"]):
            results.append(((results or [sum_of_a])[-1] * 5 + i) % (1 << 32))
        records = read_dump(self.directory / "arctrace.data")
        self.assertEqual({tuple(record["args"]) for record in records if record["type"] == "ARGUMENTS"},
                         {(i,) for i in range(CALLS["counted_a"])})
        self.assertEqual({record["retval"] for record in records if record["type"] == "RESULT"}, set(results))

    def test_other_recordings(self):
        """Functions that were patched for one recording are recorded in the next one only if that asks for them."""
        program, place = self.start("counts")
        self.record_patched(program, place, *COUNTED)
        self.assertIn("counted_a", self.functions())
        self.record_patched(program, place)
        self.assertTrue(set(self.functions()).isdisjoint({"counted_a", "counted_b", "counted_part"}))
        self.record_patched(program, place, "-Z", "1", "-P", "counted_b")
        self.assertEqual({name for name in self.functions() if name.startswith("counted")}, {"counted_b"})
        patches = self.patches()
        self.assertEqual((patches["patched"], patches["left"], patches["refused"]), (1, {}, None))
        self.record_patched(program, place, "-D", "1", "-F", "counted_part", *COUNTED)
        self.assertEqual(set(self.functions()), {"counted_part"})
        self.assert_unharmed(program, place)

    def test_interrupted_threads(self):
        """Threads run the functions, and handlers interrupt them there, while their first bytes change."""
        for _ in range(10 if LONG else 1):
            program, place = self.start("gcc/plain")
            patched = ("-Z", "1", "-P", "hooked_*", "-P", "sum_of")
            for options, wanted in ((patched, HOOKED | {"sum_of"}),
                                    ((*patched, "-F", "hooked_3", "-D", "1"), {"hooked_3"}),
                                    ((*patched, "-N", "hooked_5"), HOOKED - {"hooked_5"} | {"sum_of"}),
                                    (("-Z", "1", "-P", "."), HOOKED | {"sum_of"})):
                self.record_hooked(program, wanted, *options, room=ROOM)
            self.assert_unharmed(program, place)

    def test_functions_with_hooks(self):
        """Functions with hooks are recorded by these, at the first time too, when the hooks change at the same
        time."""
        for mode in ("gcc/patchable", "clang/xray"):
            program, place = self.start(mode)
            for _ in range(2):
                self.record_hooked(program, HOOKED | {"sum_of"}, "-Z", "1", "-P", ".", room=ROOM)
                self.assertEqual({row["verdict"] for row in self.patches()["functions"] if row["name"] in HOOKED},
                                 {"changed"} if mode == "gcc/patchable" else {"ends_early"})
            self.assert_unharmed(program, place)

    def test_handler_that_returns_into_the_bytes(self):
        """Functions in which a thread stands are not patched until the next recording, and the trace says so."""
        program, place = self.start("gcc/plain", "stands")
        wait_until((place / "stands").exists, "the handler stands")
        # Functions are asked for by name: when the recorder gets no CPU, what a pattern matches may be switched off.
        options = ("-Z", "1", *(option for name in sorted(HOOKED) for option in ("-P", name)), "-P", "sum_of")
        for _ in range(20):
            self.record_hooked(program, HOOKED - {"hooked_0"} | {"sum_of"}, *options, room=ROOM, standing="hooked_0")
            patches = self.patches()
            # A thread that waits for a CPU may be in another function's bytes, which then is known from that thread
            # only.
            if patches["left"] == {"in_use": 1}:
                break
        self.assertEqual((patches["patched"], patches["left"]), (8, {"in_use": 1}))
        self.assertEqual([(row["name"], row["verdict"]) for row in patches["functions"]], [("hooked_0", "in_use")])
        (place / "leave").touch()
        self.record_hooked(program, HOOKED | {"sum_of"}, *options, room=ROOM)
        self.assert_unharmed(program, place)

    @cases.in_gate
    def test_few_addresses_are_free(self):
        """What is handed over to the program does not take the only addresses at which the image can be."""
        program = self.directory / "full"
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", program], text=True, check=True, input=FULL)
        running = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, running)
        trace = self.directory / "arctrace.data"
        options = ("-o", trace, "--duration=50ms", "-p", running.pid)
        maps = pathlib.Path(f"/proc/{running.pid}/maps")
        self.assertEqual(running.stdout.readline(), "begins\n")
        arctrace("record", *options, check=True)  # the shim and the library have a place of their own
        running.stdin.write("\n")
        running.stdin.flush()
        self.assertEqual(running.stdout.readline(), "full\n")
        lines = []
        for _ in range(4):
            done = arctrace("record", *options, "-P", "lib:libc:*", check=True)
            self.assertNotIn("nothing of some library", done.stderr)
            [function] = [row for row in read_report(trace, "flat")["functions"] if row["name"] == "strdup"]
            self.assertGreater(function["calls"], 0)
            lines.append(len(maps.read_text(encoding="ascii").splitlines()))
        # Each recording leaves the addresses of its buffer, and the first one the image.
        self.assertLessEqual(lines[-1] - lines[0], 3 * 3, lines)
        self.assertNotIn("(deleted)", "".join(line for line in maps.read_text(encoding="ascii").splitlines()
                                              if "r-xp" in line and "arctrace" not in line))

    def test_memory_after_many_recordings(self):
        """A patched function is not patched again."""
        program, place = self.start("counts")

        def mappings():
            with open(f"/proc/{program.pid}/maps", encoding="utf-8") as maps:
                return sum("memfd:arctrace" in line for line in maps)

        counts = []
        for _ in range(4):
            self.record_patched(program, place, "-P", ".", "-Z", "1")
            counts.append(mappings())
        self.assertGreater(counts[0], 0)
        self.assertEqual(counts, counts[:1] * 4)
        self.assert_unharmed(program, place)

    def test_modules_that_come_later(self):
        """Libraries are patched as they are loaded, by the patterns of each recording."""
        plugin = pathlib.Path(os.environ["PLUGIN"]).with_name("libattach_plain_plugin.so")
        with unittest.mock.patch.dict(os.environ, PLUGIN=str(plugin)):
            program, place = self.start("loads")
        for option, is_patched in (("lib:libattach_plain*", True), ("lib:libc", False), ("lib:libattach_p*", True)):
            for _ in range(10):
                self.attach_for_rounds(program, place, "--no-libcall", "-Z", "1", "-P", option)
                read("check", self.directory / "arctrace.data")
                # Functions that were open as the program was joined are there once.
                functions = {name for name, calls in self.functions().items()
                             if calls > 1 and name != "[arctrace]"}
                if functions:  # the program may have waited for a CPU meanwhile
                    break
            self.assertEqual("plugin_work" in functions, is_patched, functions)
            self.assertEqual(functions <= {"plugin_work"}, is_patched, functions)
        self.assert_unharmed(program, place)

    def test_session(self):
        """Functions are switched off and on by ctl, too."""
        name = f"attach-patched-{os.getpid()}"
        read("create", name, "-b", "16M", "--start")
        self.addCleanup(arctrace, "destroy", "--force", name)

        def collect(*options, pids=False):
            self.attach_for_rounds(program, place, *options, command=("attach", name), pids=pids, times=3)
            read("check", self.directory / "arctrace.data")
            return {function for function in self.functions() if function.startswith("counted")}

        program, place = self.start("counts")
        self.assertEqual(collect(*COUNTED, pids=True), {*CALLS, "counted_part"})
        read("ctl", name, "-N", "counted_b")
        # The buffer still has records from before.
        wait_until(lambda: "counted_b" not in collect(), "counted_b is filtered out")
        self.assertEqual(collect(), {"counted_a", "counted_part"})
        self.assert_unharmed(program, place)

    def test_refusals(self):
        """A refusal is one line, and nothing happens."""
        program, place = self.start("counts")
        done = self.attach(program.pid, options=("-P", "lib:nothing-like-it", "--duration=10ms"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("lib:nothing-like-it", done.stderr)
        done = self.attach(program.pid, options=("-P", "counted_aa", "--duration=10ms"))
        self.assertIn("counted_aa", done.stderr)
        self.assertIn('did you mean "counted_a"', done.stderr)
        with subprocess.Popen(["/bin/sleep", "600"]) as sleep:
            self.addCleanup(sleep.kill)
            done = self.attach(sleep.pid, options=("-P", "counted_a"), trace="refused.data")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertRegex(done.stderr, "no function of .*sleep matches -P counted_a")
            sleep.kill()
        with start_arctrace("record", "-o", self.directory / "arctrace.data", "-p", program.pid, *COUNTED, text=True,
                            stderr=subprocess.PIPE) as recorder:
            self.addCleanup(recorder.kill)
            self.assertIn("joined process", recorder.stderr.readline())
            again = self.attach(program.pid, options=("--duration=100ms", *COUNTED), trace="refused.data")
            self.assertEqual((again.returncode, again.stderr.count("\n")), (2, 1), again.stderr)
            self.assertIn("it is in a recording that goes on", again.stderr)
            recorder.send_signal(signal.SIGINT)
            recorder.communicate(timeout=600)
        self.assert_unharmed(program, place)

    def test_recorder_killed_at_each_step(self):
        """The program continues, and functions that were patched by then are recorded when it is joined again."""
        for again in (False, True):
            steps, program, place = self.run_to_step("counts", 1_000_000, *COUNTED, again=again)
            self.assert_unharmed(program, place)
            chosen = range(1, steps + 1) if LONG else sorted(random.sample(range(1, steps), 5))
            for last in chosen:
                with self.subTest(last=last, again=again):
                    _, program, place = self.run_to_step("counts", last, *COUNTED, again=again)
                    self.record_patched(program, place, *COUNTED)
                    self.assertEqual([part for part in self.calls_in_parts() if part != CALLS], [])
                    self.assertLessEqual(set(CALLS), set(self.functions()))
                    self.assert_unharmed(program, place)


if __name__ == "__main__":
    cases.main()
