"""arctrace record: exit status, the summary line, files, signals, and every bad input."""

import ctypes
import json
import os
import platform
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

import cases
import support
from command import (ARCTRACE, HINT, arctrace, destroy_left_buffer, lines_without, read_info, read_report, run,
                     start_arctrace)
from tracing import TracedTest

# Adds up how many digits numbers have.
DIGITS = """
#include <stdio.h>
__attribute__((noinline)) static int digits(int number) {
  int count = 1;
  for (; number >= 10; number /= 10) ++count;
  return count;
}
__attribute__((noinline)) static int add(int sum, int number) { return sum + digits(number); }
int main(void) {
  int sum = 0;
  for (int i = 1; i <= 20000; ++i) sum = add(sum, i);
  printf("%d\\n", sum);
  return 0;
}
"""
SUMMARY = re.compile(
    r"^arctrace: ([\d,]+) records?, ([\d,]+) lost(?: \([a-z_0-9, ]+\))?, ([\d,]+) process(?:es)?, ([\d,]+) threads?, ([\d.]+ (?:bytes|[KMG]iB)), (.+)$")


class RecordTest(TracedTest):
    def assert_refused(self, done, *words, status=2):
        """The run has this exit status, and prints one clear line with these words."""
        self.assertEqual(done.returncode, status, done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("arctrace: "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])

    def test_keeps_output_and_exit_status(self):
        for status in (0, 1, 77, 255):
            recorded = self.record("sh", "-c", f"echo out; echo err >&2; exit {status}")
            self.assertEqual(recorded.status, status)
            self.assertEqual(recorded.stdout, "out\n")
            self.assertEqual(recorded.stderr.splitlines()[0], "err")

    def test_keeps_its_own_command_line(self):
        recorded = self.record("sh", "-c", "exit 0", options=("--no-libcall", "-b", "1M"))
        self.assertEqual(
            read_info(recorded.trace)["session"]["recorder_command"],
            ["arctrace", "record", "-o", str(recorded.trace), "--no-libcall", "-b", "1M", "--",
             "sh", "-c", "exit 0"])

    def test_ends_by_the_commands_signal(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            recorded = self.record("sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(recorded.status, -number)
            self.assertTrue(recorded.trace.exists())

    def test_ends_with_one_summary_line(self):
        recorded = self.record("true", options=("-F", "*"))
        match = SUMMARY.match(recorded.stderr.rstrip("\n"))
        self.assertTrue(match, recorded.stderr)
        self.assertEqual(match.group(1, 2, 3, 4), ("0", "0", "1", "1"))
        self.assertEqual(match.group(5), support.bytes_text(recorded.trace.stat().st_size))
        self.assertEqual(match.group(6), str(recorded.trace))

    def test_says_how_own_functions_are_recorded(self):
        """One line says how own functions are recorded, if none was in any process and the user did not exclude
        them."""
        source = """#include <stdlib.h>
        __attribute__((noinline)) int own(char **words) { return getenv(words[0]) == 0; }
        int main(int count, char **words) { return count * own(words) != 1; }"""
        for name, option in (("plain", "-g"), ("hooked", "-finstrument-functions"),
                             ("sleds", "-fpatchable-function-entry=5")):
            subprocess.run(["gcc", "-x", "c", "-", "-O2", option, "-o", self.directory / name],
                           input=source, text=True, check=True)
        script = self.directory / "script"
        script.write_text("#!/bin/sh\n" f"cd '{self.directory}'; ./plain; ./${{1-plain}}\n")
        script.chmod(0o755)
        plain, hooked = self.directory / "plain", self.directory / "hooked"
        calls, nothing = "only library calls were", r"no function was recorded \(--no-libcall\);"
        for hint, command, options in (
                (calls, [plain], ()), (calls, [plain], ("--nest-libcall",)),
                (calls, [plain], ("--mode=overwrite",)), (calls, [plain], ("-R", "getenv")),
                (calls, [script], ()), (calls, [sys.executable, "-c", "print(1)"], ()),
                (nothing, [plain], ("--no-libcall",)), (nothing, ["true"], ("--no-libcall",)),
                (None, [hooked], ()), (None, [hooked], ("--no-libcall",)),
                (None, [hooked], ("--mode=overwrite",)), (None, [script, "hooked"], ()),
                (None, [self.directory / "sleds"], ()), (None, [plain], ("-F", "getenv")),
                (None, [plain], ("-N", "nothing")), (None, [plain], ("-D", "1")),
                (None, [plain], ("-t", "1us")), (None, [plain], ("--event=x",)),
                (None, [self.directory / "missing"], ())):
            with self.subTest(command=command, options=options):
                *before, summary = self.record(*command, options=options).stderr.splitlines()
                hints = [line for line in before if HINT in line]
                self.assertEqual(len(hints), hint is not None, before)
                if hint is not None:
                    how = "python3 -m arctrace_python " if command[0] == sys.executable else "-fpatchable-function-entry="
                    self.assertRegex(hints[0], f"^arctrace: {hint}.* {how}")
                    self.assertTrue(SUMMARY.match(summary), summary)

    def test_hooks_where_no_memory_becomes_executable(self):
        """Under PR_SET_MDWE the hooks of a program that begins, and of one that is joined, are put in place
        nevertheless."""
        def confine():
            if ctypes.CDLL(None).prctl(*(ctypes.c_ulong(word) for word in (65, 1, 0, 0, 0))) != 0:
                os._exit(77)

        if subprocess.run(["true"], preexec_fn=confine, check=False).returncode == 77:
            self.skipTest("the kernel has no PR_SET_MDWE")
        source = """#include <stdio.h>
            __attribute__((noinline)) int work(int n) { volatile int sum = n; return sum + 1; }
            int main(void) {
              puts("begun");
              fflush(stdout);
              if (getchar() == EOF) return 1;
              int sum = 0;
              for (int i = 0; i < 100; ++i) sum += work(i);
              return sum != 5050;
            }"""
        program = self.directory / "confined"
        subprocess.run(["gcc", "-x", "c", "-", "-O2", "-fpatchable-function-entry=5", "-o", program], input=source,
                       text=True, check=True)
        begun = self.record(str(program), preexec_fn=confine, input="\n")
        self.assertEqual((begun.status, begun.calls()["work"]), (0, 100), begun.stderr)
        if platform.machine() != "x86_64":
            return
        trace = self.directory / "joined.data"
        with subprocess.Popen([program], preexec_fn=confine, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as running:
            running.stdout.readline()
            with start_arctrace("record", "-o", trace, "-p", str(running.pid), stderr=subprocess.PIPE,
                                text=True) as recorder:
                self.assertIn("joined process", recorder.stderr.readline())
                running.communicate("\n")
                self.assertEqual(running.returncode, 0)
                recorder.communicate()
        calls = {row["name"]: row["calls"] for row in read_report(trace, "flat")["functions"]}
        self.assertEqual(calls.get("work"), 100)

    @unittest.skipUnless(platform.machine() == "x86_64", "the code model is x86-64's")
    def test_says_that_calls_are_not_seen(self):
        """clang's -mcmodel=large has the code compute where the addresses of library functions are; whatever else is
        recorded, a line says that such calls are not."""
        source = """#include <stdlib.h>
        __attribute__((noinline)) int own(char **words) { return getenv(words[0]) == 0; }
        int main(int count, char **words) { return count * own(words) != 1; }"""
        program = self.directory / "large"
        line = (f"arctrace: calls of library functions by {program} are not recorded: its code computes where their "
                "addresses are, as with -mcmodel=large\n")
        for options, is_told in ((("-mcmodel=large",), True), (("-mcmodel=large", "-fpatchable-function-entry=5"), True),
                                 (("-fno-plt",), False), ((), False)):
            subprocess.run([os.environ.get("ARCTRACE_CLANG", "clang-14"), "-x", "c", "-", "-O2", "-fPIE", "-pie",
                            *options, "-o", program], input=source, text=True, check=True)
            for recording in ((), ("-P", ".", "-Z", "1")):
                with self.subTest(options=options, recording=recording):
                    traced = self.record(str(program), options=recording)
                    self.assertEqual(traced.own_lines.count(line), is_told, traced.stderr)
                    self.assertEqual(traced.calls()["getenv"], not is_told)
        self.assertNotIn(line, self.record(str(program), options=("--no-libcall",)).stderr)

    @unittest.skipUnless(platform.machine() == "x86_64", "elsewhere one NOP is room enough")
    def test_says_why_room_for_hooks_is_not_used(self):
        """The NOP areas are too small, or nothing says where functions begin."""
        source = "int main(int count, char **words) { return count + (words == 0) != 1; }"
        reason = "have room for hooks (-fpatchable-function-entry), but less than a hook needs, or neither"
        tables, symbols = "-fasynchronous-unwind-tables", "-g"
        no_tables, no_symbols = "-fno-asynchronous-unwind-tables", "-s"
        for room, options, is_told in (
                ("5", (tables, symbols), False), ("5", (tables, no_symbols), False),
                ("5", (no_tables, symbols), False), ("5", (no_tables, no_symbols), True),
                ("4", (tables, symbols), True), ("7,3", (tables, symbols), True)):
            program = self.directory / "roomy"
            subprocess.run(["gcc", "-x", "c", "-", "-O2", f"-fpatchable-function-entry={room}", *options,
                            "-o", program], input=source, text=True, check=True)
            for option in ("--libcall", "--no-libcall"):
                recorded = self.record(program, options=(option,))
                self.assertEqual(reason in recorded.stderr, is_told, recorded.stderr)
                self.assertNotIn(HINT, recorded.stderr)

    @unittest.skipUnless(platform.machine() == "x86_64", "elsewhere rooms need no begin")
    def test_says_which_rooms_are_not_used(self):
        """Only some objects lack the section that says where their functions begin."""
        sources = {"a": "int f(int); int main(int count, char **words) { return f(count) + (words == 0) != 3; }",
                   "b": "__attribute__((noinline)) static int g(int x) { volatile int y = x; return y + 1; }\n"
                        "int f(int x) { return g(x) + 1; }"}
        told = "2 of the 3 functions of .* that have room for hooks .* are not recorded: neither unwind tables"
        for pie, symbols, tables, is_told in (("-pie", "-s", "no-", True), ("-no-pie", "-s", "no-", True),
                                              ("-pie", "-g", "no-", False), ("-pie", "-s", "", False)):
            objects = []
            for name, source in sources.items():
                objects.append(self.directory / f"{name}.o")
                option = f"-f{tables if name == 'b' else ''}asynchronous-unwind-tables"
                subprocess.run(["gcc", "-x", "c", "-", "-c", "-O1", "-fPIE", "-fpatchable-function-entry=5",
                                option, "-o", objects[-1]], input=source, text=True, check=True)
            program = self.directory / "partly"
            subprocess.run(["gcc", pie, symbols, *objects, "-o", program], check=True)
            with self.subTest(pie=pie, symbols=symbols, tables=tables):
                recorded = self.record(program, options=("--no-libcall",))
                (self.assertRegex if is_told else self.assertNotRegex)(recorded.stderr, told)

    def test_default_file_and_old_one(self):
        for _ in range(2):
            self.assertEqual(arctrace("record", "true", cwd=self.directory).returncode, 0)
        names = sorted(os.listdir(self.directory))
        self.assertEqual(names, ["arctrace.data", "arctrace.data.old"])

    @cases.not_in_gate
    @unittest.skipIf(os.environ["ARCTRACE_SANITIZE"], "the recorder is too slow for a file of that size")
    def test_a_large_file(self):
        """A file of a GiB has a line that says what makes it smaller; the command in it works as it is printed."""
        program = self.directory / "many"
        run("gcc", "-O2", "-finstrument-functions", "-x", "c", "-", "-o", program, check=True, input=(
            "__attribute__((noinline)) static void often(void) { __asm__ volatile(\"\"); }"
            "int main(void) { for (int i = 0; i < 48000000; ++i) often(); return 0; }"))
        done = arctrace("record", "--no-libcall", "-b", "512M", "-o", "my trace", "--", program, cwd=self.directory)
        line = next(line for line in done.stderr.splitlines() if "the file is large" in line)
        self.assertIn("-t 20us leaves out all that are shorter, and --size-limit=1G removes", line)
        (command,) = re.findall(r"arctrace (report .*) shows; ", line)
        flat = run(ARCTRACE, *shlex.split(command), cwd=self.directory, check=True).stdout
        self.assertRegex(flat, " often in many ")
        done = arctrace("record", "--no-libcall", "--size-limit=4M", "-o", "limited", "--", program, cwd=self.directory)
        self.assertNotIn("the file is large", done.stderr)

    def test_options_behind_the_command_are_the_commands(self):
        done = arctrace("record", "-o", self.directory / "x", "echo", "-o", "--help")
        self.assertEqual(done.stdout, "-o --help\n")
        done = arctrace("record", "-o", self.directory / "x", "--", "echo", "--", "-n")
        self.assertEqual(done.stdout, "-- -n\n")
        for separator in ([], ["--"]):  # after an option whose value is optional
            done = arctrace("record", "-o", self.directory / "x", "--kernel", *separator, "echo", "-o")
            self.assertEqual(done.stdout, "-o\n")

    def test_leaves_nothing_in_shared_memory(self):
        for end in ("exit 3", "kill -9 $$", "kill -INT $$"):
            session = self.record("sh", "-c", "echo $ARCTRACE_SESSION; " + end).stdout.rstrip()
            self.assertTrue(session.startswith("/dev/shm/arctrace-"), session)
            self.assertFalse(os.path.exists(session))

    def test_interrupt_from_terminal_keeps_the_data(self):
        trace = self.directory / "arctrace.data"
        recorder = start_arctrace("record", "-o", trace, "--", sys.executable, "-c",
                                  "import time\nprint('ready', flush=True)\ntime.sleep(600)", stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.assertEqual(recorder.stdout.readline(), "ready\n")
        os.killpg(recorder.pid, signal.SIGINT)
        _, errors = recorder.communicate(timeout=300)
        self.assertEqual(recorder.returncode, -signal.SIGINT)
        self.assertTrue(SUMMARY.match(errors.splitlines()[-1]), errors)
        self.assertEqual(arctrace("check", trace).returncode, 0)

    def test_termination_is_passed_on(self):
        trace = self.directory / "arctrace.data"
        recorder = start_arctrace("record", "-o", trace, "--", "sh", "-c",
                                  "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.05; done",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.assertEqual(recorder.stdout.readline(), "ready\n")
        recorder.terminate()
        output, _ = recorder.communicate(timeout=300)
        self.assertEqual(output, "got\n")
        self.assertEqual(recorder.returncode, 5)

    def test_waits_for_descendants_only_when_asked(self):
        script = "sleep 1.5 >/dev/null 2>&1 & exit 4"
        start = time.monotonic()
        self.assertEqual(self.record("sh", "-c", script, options=["--wait"]).status, 4)
        self.assertGreaterEqual(time.monotonic() - start, 1.4)

    def test_signal_dispositions_are_the_commands_own(self):
        script = ("import signal\n"
                  "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler,"
                  " len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))")
        self.assertEqual(self.record(sys.executable, "-c", script).stdout, "True 0\n")

    def test_no_command(self):
        self.assert_refused(arctrace("record"), "no command")
        self.assert_refused(arctrace("record", "--"), "no command")

    def test_command_that_cannot_run(self):
        kept = self.directory / "arctrace.data"
        kept.write_text("precious")
        script = self.directory / "script"
        script.write_text("#!/nonexistent/interpreter\n")
        script.chmod(0o755)
        binary = self.directory / "binary"
        binary.write_bytes(b"\x7fELF\0\0 of no machine\n")
        binary.chmod(0o755)
        for command, status in (("/nonexistent/program", 127), ("no-such-command-anywhere", 127),
                                (self.directory, 126), ("/etc/passwd", 126), (script, 126),
                                (binary, 126)):
            done = arctrace("record", "-o", kept, "--", command)
            self.assert_refused(done, "can't run", status=status)
        self.assertEqual(kept.read_text(), "precious")
        self.assertEqual(sorted(os.listdir(self.directory)), ["arctrace.data", "binary", "script"])

    def test_script_without_interpreter(self):
        """The script runs as a shell would run it."""
        script = self.directory / "script"
        script.write_text("echo ran $1\nexit 3\n")
        script.chmod(0o755)
        recorded = self.record(script, "so")
        self.assertEqual((recorded.status, recorded.stdout), (3, "ran so\n"))

    def test_output_that_cannot_be_written(self):
        for name in ("/nonexistent/directory/file", self.directory):
            done = arctrace("record", "-o", name, "--", "touch", self.directory / "was-run")
            self.assert_refused(done)
        self.assertFalse((self.directory / "was-run").exists())

    def test_impossible_buffers(self):
        for options in (["-b", "1"], ["-b", "0"], ["--block-size", "100"], ["--slots", "0"],
                        ["--block-size", "32M"], ["-b", "100000G", "--block-size", "16M"]):
            self.assert_refused(arctrace("record", "-o", self.directory / "x", *options, "true"))

    def test_where_the_collector_runs(self):
        """The traced program looks at the threads of the command, its parent."""
        looks = """
import json, os
tids = [int(tid) for tid in os.listdir(f"/proc/{os.getppid()}/task")]
print(json.dumps([(sorted(os.sched_getaffinity(tid)), os.sched_getscheduler(tid) & 7) for tid in [0, *tids]]))
"""
        usual = (sorted(os.sched_getaffinity(0)), os.SCHED_OTHER)
        cpu = usual[0][-1]
        collector = ([cpu], os.SCHED_FIFO)
        for mode in ("drop", "overwrite"):
            done = self.record(sys.executable, "-c", looks, options=(
                f"--mode={mode}", f"--collector-cpu={cpu}", "--rt-priority=1"))
            if done.status == 2 and "--rt-priority: not permitted" in done.stderr:
                self.skipTest("no real-time priority")
            own, *others = map(tuple, json.loads(done.stdout))
            self.assertEqual(usual, own)
            self.assertEqual([collector], [runs for runs in others if runs != usual])
        for option, words in (("--collector-cpu=100000", "can't run on CPU 100000"),
                              ("--collector-cpu=-1", "--collector-cpu"), ("--rt-priority=0", "--rt-priority"),
                              ("--rt-priority=100", "--rt-priority")):
            trace = self.directory / "refused"
            self.assert_refused(arctrace("record", "-o", trace, option, "--", "true"), words)
            self.assertFalse(trace.exists())

    def test_bad_options(self):
        for options in (["--mode", "sometimes"], ["--no-such-option"], ["-b", "many"],
                        ["--high-water", "101"], ["--pin", "maybe"], ["--scope", "cpu"]):
            self.assert_refused(arctrace("record", *options, "true"))

    def test_config_file(self):
        config = self.directory / "config"
        config.write_text("[record]\nblock-size=8k\nnotrace=[\"a;b\",\"c%\"]\n", encoding="utf-8")
        show = ("sh", "-c", "echo $ARCTRACE_OPTIONS")
        done = self.record(*show, options=("--config", config))
        self.assertEqual(done.stdout, "libcall=program;notrace=a%3Bb;notrace=c%25\n")
        with unittest.mock.patch.dict(os.environ, ARCTRACE_CONFIG=str(config)):
            done = self.record(*show, options=("-N", "d"))  # the option on the command line overrides the file's
            self.assertEqual(done.stdout, "libcall=program;notrace=d\n")
        for text in ("[record]\nnosuch=1\n", "[record]\ndepth=0\n", None):
            config.unlink()
            if text is not None:
                config.write_text(text, encoding="utf-8")
            done = self.record(*show, options=("--config", config))
            self.assertEqual((done.status, done.stdout), (2, ""), text)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            config.touch()

    def test_filters_of_any_size_reach_the_program(self):
        """The patterns also reach a program that another one starts with an environment of its own."""
        # The patterns take nearly 128 KiB, the most that the kernel permits for a variable.
        patterns = [f"no-{i}-" + "%" * 1000 for i in range(42)]
        options = [word for pattern in patterns for word in ("-N", pattern)]
        text = "libcall=program;" + ";".join(
            "notrace=" + pattern.replace("%", "%25") for pattern in patterns) + "\n"
        self.assertGreater(len(text), 120 << 10)
        show = ("sh", "-c", "echo $ARCTRACE_OPTIONS; exec env -i sh -c 'echo $ARCTRACE_OPTIONS'")
        done = self.record(*show, options=options)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(done.stdout, text * 2)

    def test_filters_that_do_not_fit_are_refused(self):
        ran = self.directory / "was-run"
        for options in (["-F", "a"] * 65, ["-F", "a" * 70000, "-N", "b" * 70000],
                        ["-A", "a"] * 33 + ["-R", "b"] * 32):
            self.assert_refused(arctrace("record", "-o", self.directory / "x", *options, "touch", ran),
                                "too many patterns", "re:")
        self.assertFalse(ran.exists())
        self.assertFalse((self.directory / "x").exists())

    @cases.not_in_gate
    def test_types_of_very_many_functions(self):
        """-A reads the arguments of all functions that match: as many as fit, or it names the rest."""
        def program(count):
            source = "".join(f"__attribute__((noinline)) int nth{i}(int number_{i})"
                             f"{{ return number_{i} + {i}; }}\n" for i in range(count))
            source += f"int main(void) {{ return nth0(1000) + nth{count - 1}(77) == 0; }}\n"
            name = self.directory / f"functions-{count}"
            subprocess.run(["gcc", "-g", "-O1", "-fpatchable-function-entry=5", "-x", "c", "-", "-o", name],
                           input=source, text=True, check=True)
            return name
        done = self.record(program(2000), options=("-A", "nth*", "-F", "nth*"))
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        dump = arctrace("dump", done.trace).stdout
        for argument in ("number_0=1000", "number_1999=77"):
            self.assertIn(argument, dump)
        self.assert_refused(arctrace("record", "-o", self.directory / "x", "-A", "nth*", program(2049)),
                            "-A and -R", "2048")

    def test_command_line_outranks_the_config_file(self):
        """An option may also exclude the file's."""
        config = self.directory / "config"
        config.write_text("[record]\nno-libcall=true\nno-huge-pages=true\n", encoding="utf-8")
        show = ("sh", "-c", "echo $ARCTRACE_OPTIONS")
        for option, calls in (("--libcall", "program"), ("--nest-libcall", "all")):
            done = self.record(*show, options=("--config", config, option, "--huge-pages", "-D", "9"))
            self.assertEqual((done.status, done.stdout), (0, f"libcall={calls};depth=9\n"), done.stderr)
        done = self.record(*show, options=("--config", config, "-D", "9"))
        self.assertEqual(done.stdout, "libcall=none;depth=9\n")
        self.assert_refused(arctrace("record", "--libcall", "--no-libcall", "true"))
        config.write_text("[record]\nlibcall=true\nno-libcall=true\n", encoding="utf-8")
        self.assert_refused(arctrace("record", "--config", config, "true"))

    def test_disk_full(self):
        """The command continues, the file is good up to that point, and the summary says so."""
        program = self.directory / "digits"
        run("gcc", "-O1", "-finstrument-functions", "-x", "c", "-", "-o", program, input=DIGITS, check=True)
        mount = self.directory / "disk"
        mount.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mount],
                                 stderr=subprocess.DEVNULL, check=False)
        if mounted.returncode != 0:
            self.skipTest("can't mount a small disk here")
        try:
            done = arctrace("record", "-b", "4M", "-o", mount / "trace", "--", program)
            self.assertEqual(done.stdout, "88894\n")
            self.assertEqual(done.returncode, 0, done.stderr)
            match = re.search(r"^arctrace: ([\d,]+) records, ([\d,]+) lost .*file ([\d,]+).* "
                              r"\(cut off: No space left on device\)$", done.stderr, re.M)
            records, lost, of_file = (int(number.replace(",", "")) for number in match.groups())
            self.assertGreater(records, 1000)
            self.assertGreater(of_file, 1000)
            report = read_report(mount / "trace", "flat")
            self.assertEqual(report["summary"]["records"], records)
            self.assertEqual(report["summary"]["lost"], lost)
            self.assertEqual(report["summary"]["lost_by_cause"]["file"], of_file)
            self.assertIn("lost: file", [gap["reason"] for gap in report["gaps"]])
            # All functions have names, and all that the program wrote is accounted for.
            self.assertFalse([f["name"] for f in report["functions"]
                              if f["name"].startswith("0x")])
            calls = arctrace("record", "-b", "256M", "-o", self.directory / "whole", "--", program)
            whole = re.match(r"arctrace: ([\d,]+) records, 0 lost", calls.stderr.splitlines()[-1])
            self.assertAlmostEqual((records + lost) / int(whole[1].replace(",", "")), 1, delta=0.01)
            buffer = re.search(r"are in (\S+):", done.stderr)
            self.assertEqual(arctrace("destroy", buffer[1]).returncode, 0)
        finally:
            subprocess.run(["umount", mount], check=True)

    def test_columns_of_dump(self):
        trace = self.record("true").trace
        lines = arctrace("dump", trace, "--no-header", "--fields=time,delta,wall,cpu,type").stdout
        last = None
        for line in lines.splitlines():
            now, delta, wall, cpu, _ = line.split()
            self.assertRegex(wall, r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}$")
            self.assertEqual(cpu, "-")
            if last is not None:
                self.assertAlmostEqual(float(delta), float(now) - last, delta=2e-9)
            last = float(now)
        raw = arctrace("dump", trace, "--raw").stdout
        self.assertRegex(raw, r"(?m)^# block \d+: full definitions, writer 1, .* handout \d+")

    def test_trace_from_a_pipe(self):
        trace = self.record("true").trace
        piped = arctrace("report", "-", "--format=json", input=trace.read_bytes(), text=False)
        self.assertEqual(piped.returncode, 0)
        self.assertEqual(json.loads(piped.stdout)["threads"],
                         read_report(trace, "tree")["threads"])

    def test_daemons(self):
        """A process that continues when the command has ended is not waited for, which a line says."""
        program = (sys.executable, "-c", support.API + """
ready, done = os.pipe()
if os.fork() == 0:
    api.arctrace_instant(name("alive"))
    for stream in (1, 2): os.close(stream)  # whoever reads them does not wait for it
    os.write(done, b"x")
    end = time.monotonic() + 600
    while not os.path.exists("end") and time.monotonic() < end: time.sleep(0.01)
    time.sleep(1)
    os._exit(0)
os.read(ready, 1)
os._exit(5)
""")
        done = self.record(*program, options=("--no-libcall",))
        self.assertEqual(done.status, 5)
        self.assertIn("warning: 1 process of the command still runs", done.stderr)
        self.assertIn("--wait", done.stderr)
        (self.directory / "end").touch()
        waited = self.record(*program, options=("--no-libcall", "--wait"))
        self.assertEqual(waited.status, 5)
        self.assertNotIn("--wait", waited.stderr)

    def test_a_daemon_that_has_recorded_nothing(self):
        """The process is none of the buffer's writers, and has a name all the same."""
        source = self.directory / "daemon.c"
        source.write_text("""
#include <unistd.h>
int main(void) {
  int ready[2];
  char byte = 0;
  if (pipe(ready) != 0) return 1;
  if (fork() == 0) {
    setsid();
    close(1);
    close(2);
    write(ready[1], &byte, 1);
    for (int i = 0; i < 6000 && access("end", F_OK) != 0; ++i) usleep(100000);
    _exit(0);
  }
  read(ready[0], &byte, 1);
  return 0;
}
""", encoding="ascii")
        subprocess.run(["gcc", "-o", self.directory / "daemon", source], check=True,
                       stderr=subprocess.DEVNULL)
        done = self.record(self.directory / "daemon", options=("--no-libcall",))
        self.assertIn("warning: 1 process of the command still runs", done.stderr)
        done = self.record("true")
        (self.directory / "end").touch()
        self.assertNotIn("still run", done.stderr)

    def test_filter_that_matches_nothing(self):
        trace = self.record("true").trace
        for view in ("tree", "flat", "flow", "arcs"):
            done = arctrace("report", trace, f"--view={view}", "-F", "no_such_function")
            self.assertEqual(done.returncode, 0)
            self.assertIn("no call passes the filters", done.stderr, view)

    @unittest.skipIf(os.environ["ARCTRACE_SANITIZE"], "sanitizers' mlock() does nothing")
    def test_memlock_too_small(self):
        if os.geteuid() == 0 and subprocess.run(["setpriv", "--version"], check=False,
                                                stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no setpriv to drop CAP_IPC_LOCK with")

        def limited(*options):
            command = [ARCTRACE, "record", "-o", self.directory / "x", *options,
                       "--", "true"]
            if os.geteuid() == 0:
                command = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock",
                           *command]
            return run(*command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536)))

        tried = limited("--pin=try")
        self.assertEqual(tried.returncode, 0, tried.stderr)
        warning, summary = lines_without(tried.stderr, HINT)
        self.assertIn("RLIMIT_MEMLOCK", warning)
        self.assertTrue(SUMMARY.match(summary), summary)
        # Unless it was asked for, only info mentions pinning.
        self.assertEqual(len(lines_without(limited().stderr, HINT)), 1)
        self.assertIn(", 64 KiB of it pinned; ", arctrace("info", self.directory / "x").stdout)
        self.assertEqual(read_info(self.directory / "x")["session"]["pinned_bytes"], 65536)
        self.assert_refused(limited("--pin=require"), "RLIMIT_MEMLOCK")
        self.assertEqual(len(lines_without(limited("--pin=no").stderr, HINT)), 1)

    def test_to_standard_output(self):
        done = arctrace("record", "-o", "-", "--", "echo", "hello", text=False)
        self.assertEqual(done.stdout[:8], b"ARCTFILE")
        self.assertNotIn(b"hello\n", done.stdout)
        self.assertIn(b"hello\n", done.stderr)

    def test_closed_pipe_is_no_death(self):
        """The reader of the output goes away while the command runs, before the last records are written."""
        reader, writer = os.pipe()
        recorder = start_arctrace("record", "-o", "-", "--", "sh", "-c", "echo ready; read end",
                                  stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        self.assertEqual(recorder.stderr.readline(), "ready\n")
        os.close(reader)
        _, errors = recorder.communicate("end\n", timeout=300)
        self.assertEqual(recorder.returncode, 2, errors)
        self.assertIn("Broken pipe", errors)
        destroy_left_buffer(errors)


if __name__ == "__main__":
    cases.main()
