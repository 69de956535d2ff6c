"""Running processes are joined, recorded and released, and do not notice."""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cases
from attached_programs import AT_STEP, HOOKED, JOINED, LONG, AttachTest
from command import ARCTRACE, arctrace, read, read_dump, read_report, run, start_arctrace
from states import wait_until
from tmux_terminal import Terminal

READ = 0  # the system call
MODES = ["sleeps", "polls", "computes", "signals", "threads", "executes", "loads", "robust"]


# A thread is in dlopen until a line is read; main sleeps meanwhile.
HELD = """
#include <unistd.h>
__attribute__((constructor)) static void hold(void) {
  char byte;
  write(1, "begins\\n", 7);
  if (read(0, &byte, 1) != 1) _exit(1);
}
"""
HOLDS = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int done;
static void* load(void* unused) {
  done = dlopen("./held.so", RTLD_NOW) != NULL ? 1 : 2;
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, load, NULL);
  while (!done) usleep(1000);
  pthread_join(thread, NULL);
  puts(done == 1 ? "as always" : "failed");
  return 7;
}
"""


# A master: it forks as many children as its argument says, names itself, and waits with them.
MASTER = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char** arguments) {
  (void)count;
  for (int i = atoi(arguments[1]); i > 0; --i) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) getppid(), usleep(1000);
    }
    printf("%d ", child);
  }
  puts("");
  fflush(stdout);
  prctl(PR_SET_NAME, "a\\033[1mster");
  for (;;) pause();
}
"""


class Attach(AttachTest):
    def master(self, children):
        """A process that waits, and its children, which work."""
        binary = self.directory / "master"
        subprocess.run(["gcc", "-x", "c", "-", "-o", binary], input=MASTER, text=True, check=True)
        program = subprocess.Popen([binary, str(children)], stdout=subprocess.PIPE, text=True, start_new_session=True)

        def end():
            os.killpg(program.pid, signal.SIGKILL)
            program.communicate()

        self.addCleanup(end)
        pids = [int(pid) for pid in program.stdout.readline().split()]
        self.assertEqual(len(pids), children)
        return program.pid, pids

    def test_children_that_run_already(self):
        """Children that are older than the recording are not part of it: a line names them, and they can be joined."""
        master, (first, second) = self.master(2)
        done = self.attach(master, options=("--duration=50ms",))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"arctrace: process {master} (a\\x1b[1mster) has 2 children that are not recorded: "
                      f"-p {first},{second} records them, too\n", done.stderr)
        self.assertIn("called no library, and its children are not recorded\n", done.stderr)
        self.assertNotIn("--nest-libcall", done.stderr)
        done = self.attach(master, first, options=("--duration=50ms",))
        self.assertIn(f"has 1 child that is not recorded: -p {second} records it, too\n", done.stderr)
        done = self.attach(master, first, second, options=("--duration=50ms",))
        self.assertNotIn("not recorded", done.stderr)
        self.assertIn("getppid", self.functions())
        # The master does not take note of the end.
        os.kill(first, signal.SIGKILL)
        status = pathlib.Path(f"/proc/{first}/status")
        wait_until(lambda: "\nState:\tZ" in status.read_text(encoding="utf-8", errors="replace"), "the child has ended")
        done = self.attach(master, options=("--duration=50ms",))
        self.assertIn(f"has 1 child that is not recorded: -p {second} ", done.stderr)

    def test_many_children_that_run_already(self):
        """The list of children is bounded, and the line can still be copied."""
        master, children = self.master(17)
        done = self.attach(master, options=("--duration=50ms",))
        said = re.search(r"has 17 children that are not recorded: -p (.*) records them, too\n", done.stderr)
        found = subprocess.run(["bash", "-c", f"echo {said[1]}"], capture_output=True, text=True, check=True).stdout
        self.assertEqual({int(pid) for pid in found.split(",")}, set(children))

    def test_children_of_a_session(self):
        """Children that are in the session already are not named; neither is the recorder, if its parent joins."""
        name = f"attach-children-{os.getpid()}"
        read("create", name, "-b", "8M", "--start")
        self.addCleanup(arctrace, "destroy", "--force", name)
        master, (first, second) = self.master(2)

        def collect(*pids):
            done = arctrace("attach", name, "-o", self.directory / f"{pids[0]}.data", "--duration=50ms",
                            "-p", ",".join(map(str, pids)))
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stderr

        self.assertNotIn("not recorded", collect(first))
        self.assertIn(f"has 1 child that is not recorded: -p {second} records it, too\n", collect(master))
        shell = f'{ARCTRACE} record -p $$ -o {self.directory}/own.data --duration=50ms; true'
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
        self.assertIn("joined process", done.stderr)
        self.assertNotIn("not recorded", done.stderr)

    @cases.in_gate
    def test_modes(self):
        for mode in MODES:
            for _ in range(10 if LONG else 1):
                with self.subTest(mode=mode):
                    program, place = self.start(mode)
                    time.sleep(random.random() / 10)
                    errors = self.attach_for_rounds(program, place)
                    self.assertRegex(errors, rf"joined process {program.pid} \(attach_joined\), of which a thread "
                                                  r"stood still for \d+ ms(, all of them for \d+ ms)?\n")
                    self.assertRegex(errors, r"[1-9][\d,]* records, ")
                    self.assertGreater(self.functions()["getppid"], 0)
                    self.assert_unharmed(program, place)

    def test_again(self):
        """A program that was recorded joins again, with other options, whether its recorder ended or was killed."""
        buffers = tempfile.mkdtemp(dir="/dev/shm")  # a recorder that is killed leaves its buffer there
        self.addCleanup(shutil.rmtree, buffers)
        for mode in MODES:
            with self.subTest(mode=mode):
                program, place = self.start(mode)

                def attach(*options, end=signal.SIGINT, program=program, place=place):
                    errors = self.attach_for_rounds(program, place, f"--buffer-dir={buffers}", *options, end=end)
                    self.assertIn(f"joined process {program.pid} (attach_joined)", errors)
                    if end == signal.SIGINT:
                        read("check", self.directory / "arctrace.data")
                    return errors, self.functions() if end == signal.SIGINT else None

                self.assertIn("close", attach()[1])
                errors, functions = attach("-F", "getppid")
                self.assertRegex(errors, r"stood still for \d+ ms, all of them for \d+ ms\n")
                self.assertIn("getppid", functions)
                self.assertTrue({"close", "open", "access"}.isdisjoint(functions), functions)
                attach("--auto-args", end=signal.SIGKILL)
                functions = attach("--no-libcall")[1]
                excluded = {name: functions[name] for name in functions if name in ("close", "open", "access", "getppid")}
                # A handler may have interrupted one function in its hook, after the hook had asked the filter.
                self.assertLessEqual(sum(excluded.values()), 1 if mode == "signals" else 0, functions)
                self.assertTrue({"close", "access", "getppid"}.issubset(attach()[1]))
                self.assert_unharmed(program, place)

    def test_functions_whose_hooks_are_code(self):
        """The bytes of hooks change while threads run them, and while handlers have interrupted them there."""
        calls = {f"hooked_{i}" for i in range(8)}
        for mode in HOOKED:
            for _ in range(10 if LONG else 1):
                with self.subTest(mode=mode):
                    program, place = self.start(mode)
                    for options, wanted in (((), calls | {"sum_of"}), (("-F", "hooked_3", "-D", "1"), {"hooked_3"}),
                                            (("-N", "hooked_5"), calls - {"hooked_5"} | {"sum_of"}),
                                            ((), calls | {"sum_of"})):
                        self.record_hooked(program, wanted, *options)
                    self.assert_unharmed(program, place)

    def test_handler_that_returns_into_a_hook(self):
        """The bytes of a hook in which a thread stands do not change until the next recording."""
        program, place = self.start("gcc/patchable", "stands")
        functions = {f"hooked_{i}" for i in range(1, 8)} | {"sum_of"}
        wait_until((place / "stands").exists, "the handler stands")
        self.record_hooked(program, functions, standing="hooked_0")
        (place / "leave").touch()
        self.record_hooked(program, functions | {"hooked_0"})
        self.assert_unharmed(program, place)

    def test_modules_that_come_later(self):
        """Functions and library calls of loaded libraries are recorded, also when the program is joined again."""
        program, place = self.start("loads")
        for _ in range(2):
            self.attach_for_rounds(program, place, "--nest-libcall")
            read("check", self.directory / "arctrace.data")
            functions = self.functions()
            self.assertGreater(functions["plugin_work"], 0)
            self.assertGreater(functions["sched_yield"], 0)
        self.assert_unharmed(program, place)

    def test_memory_after_many_recordings(self):
        """The memory of a session is released when the next one is joined."""
        program, place = self.start("sleeps")

        def resident():
            with open(f"/proc/{program.pid}/statm", encoding="utf-8") as statm:
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        sizes = []
        for _ in range(6):
            self.assertEqual(self.attach(program.pid, options=("-b", "16M", "--duration=20ms", "--nest-libcall")).returncode,
                             0)
            sizes.append(resident())
        self.assertLess(sizes[-1], sizes[0] + (4 << 20), sizes)
        self.assert_unharmed(program, place)

    def test_what_began_in_a_recording(self):
        place = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        buffers = tempfile.mkdtemp(dir="/dev/shm")
        self.addCleanup(shutil.rmtree, buffers)
        with start_arctrace("record", f"--buffer-dir={buffers}", "-o", self.directory / "began.data", JOINED,
                            "sleeps", cwd=place, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL) as recorder:
            self.assertEqual(recorder.stdout.readline(), "begins\n")
            with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="utf-8") as children:
                pid = int(children.read())
            recorder.kill()
            recorder.wait()
            refused = self.attach(pid, trace="refused.data")
            self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 1), refused.stderr)
            self.assertIn("it began in a recording", refused.stderr)
            (place / "stop").touch()
            self.assertEqual(recorder.stdout.read(), "as always\n")
        for file in self.directory.glob("began.data*"):
            file.unlink()  # the file is cut off

    def test_children(self):
        """Children that begin from then on are recorded, and so is what they execute."""
        program, place = self.start("executes")
        self.attach_for_rounds(program, place)
        self.assert_unharmed(program, place)
        names = {thread["name"] for thread in read_report(self.directory / "arctrace.data", "tree")["threads"]}
        self.assertEqual(names, {"attach_joined", "true"})

    def test_several_and_their_end(self):
        """Recording ends when all processes have ended."""
        one, place = self.start("sleeps")
        other, other_place = self.start("computes")
        recorder = start_arctrace("record", "-o", self.directory / "arctrace.data", "-p", f"{one.pid},{other.pid}",
                                  text=True, stderr=subprocess.PIPE)
        self.addCleanup(self.end, recorder)
        lines = [recorder.stderr.readline() for _ in range(2)]
        self.assertTrue(all("joined process" in line for line in lines), lines)
        self.assert_unharmed(one, place)
        time.sleep(0.3)
        self.assertIsNone(recorder.poll())
        self.assert_unharmed(other, other_place)
        self.assertIn("2 processes", recorder.communicate(timeout=600)[1])
        self.assertEqual(recorder.returncode, 0)

    @cases.in_gate
    def test_session(self):
        """A process that joined a session is part of it for later collectors, too."""
        name = f"attach-{os.getpid()}"
        read("create", name, "-b", "8M", "--start")
        self.addCleanup(arctrace, "destroy", "--force", name)

        def collect(trace, *options, pids=True):
            return self.attach_for_rounds(program, place, *options, command=("attach", name), trace=trace, pids=pids)

        program, place = self.start("sleeps")
        self.assertIn(f"joined process {program.pid} (attach_joined)", collect("first.data", "-N", "access"))
        collect("second.data", pids=False)
        for trace in ("first.data", "second.data"):
            read("check", self.directory / trace)
            functions = self.functions(trace)
            self.assertGreater(functions["getppid"], 0)
            self.assertNotIn("access", functions)
        for options, line in ((("-p", str(program.pid)), "it is in a recording that goes on, or in a session"),
                              (("-p", "999999999"), "there is no process 999999999"),
                              (("-D", "3"), "--depth applies with --pid only")):
            refused = arctrace("attach", name, "-o", self.directory / "refused.data", *options)
            self.assertEqual((refused.returncode, refused.stderr.count("\n"), line in refused.stderr), (2, 1, True),
                             refused.stderr)
            self.assertFalse((self.directory / "refused.data").exists())
        self.assert_unharmed(program, place)

    def test_patterns_that_no_function_matches(self):
        program, place = self.start("sleeps")
        errors = self.attach_for_rounds(program, place, "-N", "getppit", "-N", "access")
        self.assertIn('arctrace: warning: no function or scope matches -N getppit; did you mean "getppid"?\n', errors)
        self.assertEqual(errors.count("warning"), 1, errors)
        name = f"attach-patterns-{os.getpid()}"
        read("create", name, "-b", "8M", "--start")
        self.addCleanup(arctrace, "destroy", "--force", name)
        done = arctrace("attach", name, "-o", self.directory / "session.data", "--duration=1s", "-p", program.pid,
                        "-N", "getppit", "-N", "access")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('arctrace: warning: no function or scope matches -N getppit; did you mean "getppid"?\n', done.stderr)
        self.assertEqual(done.stderr.count("warning"), 1, done.stderr)
        self.assert_unharmed(program, place)

    def live_lines(self, pid):
        """`arctrace live --plain -p PID`, after it has printed a call."""
        live = start_arctrace("live", "--plain", "-p", pid, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, live)
        self.assertTrue(any(" EXIT " in line and "getppid" in line for line in live.stdout))
        return live

    def test_live_lines(self):
        """Runs until Ctrl-C, or until the process has ended."""
        program, place = self.start("sleeps")
        live = self.live_lines(program.pid)
        live.send_signal(signal.SIGINT)
        self.assertRegex(live.communicate(timeout=120)[1], rf"^arctrace: joined process {program.pid} .*\n$")
        self.assertEqual(live.returncode, 130)
        self.assert_unharmed(program, place)
        program, place = self.start("sleeps")
        live = self.live_lines(program.pid)
        self.assert_unharmed(program, place)
        last = live.communicate(timeout=120)[0].splitlines()[-1]
        self.assertRegex(last, 'PROCESS_END .*how="exit" status=7$')
        self.assertEqual(live.returncode, 0)

    def test_live_screen(self):
        program, place = self.start("sleeps")
        terminal = Terminal(120, 30)
        self.addCleanup(terminal.close)
        terminal.type(f"{ARCTRACE} live -p {program.pid}; echo status=$?")
        terminal.wait_for(f"process {program.pid}", "records/s", "getppid")
        terminal.press("q")
        terminal.wait_for(f"joined process {program.pid} (attach_joined)", "the processes go on", "status=0")
        self.assert_unharmed(program, place)

    def test_threads_without_calls(self):
        """Each thread is there once, by its name; also if other threads begin to call when the process is joined
        again."""
        program = self.start_python(
            "import ctypes, os, sys, threading, time\n"
            "over = threading.Event()\n"
            "def wait(name):\n"
            "    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)\n"
            "    os.read(0, 1)\n"
            "for name in (b'silent', b'silent', b'other'):\n"
            "    threading.Thread(target=wait, args=[name], daemon=True).start()\n"
            "print('begins', flush=True)\n"
            "while True:\n"
            "    os.getppid()\n"
            "    time.sleep(0.001)\n")
        self.wait_for_calls(program.pid, READ, READ, READ)
        for options in ((), ("--mode=overwrite",)):
            done = self.attach(program.pid, options=("--nest-libcall", "--duration=300ms", *options))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(", 4 threads, ", done.stderr)
            trace = self.directory / "arctrace.data"
            read("check", trace)
            summary = read("report", trace)
            self.assertRegex(summary, r"\n.* 1  .*thread other  ")
            self.assertRegex(summary, r"\n.* 2  .*thread silent  ")
            # Of a thread in which nobody has seen a change, the recorder says that it waited.
            stacks = [record for record in read_dump(trace, "--type=STACK") if "waits" in record]
            self.assertTrue(stacks)
            self.assertEqual({stack["waits"] for stack in stacks}, {1})
            self.assertEqual(set(self.policies(program.pid)), {0})

    def test_ends_of_threads_that_ran_already(self):
        """Each thread tells its end itself, in both recordings."""
        program = self.start_python(
            "import os, sys, threading, time\n"
            "def work(over):\n"
            "    while not over.is_set():\n"
            "        os.getppid()\n"
            "        time.sleep(0.001)\n"
            "    for _ in range(100):\n"
            "        os.getppid()\n"
            "ends = [threading.Event(), threading.Event()]\n"
            "for over in ends * 3:\n"
            "    threading.Thread(target=work, args=[over], daemon=True).start()\n"
            "print('begins', flush=True)\n"
            "for over in ends:\n"
            "    sys.stdin.readline()\n"
            "    over.set()\n"
            "sys.stdin.readline()\n")
        trace = self.directory / "arctrace.data"
        tasks = pathlib.Path(f"/proc/{program.pid}/task")
        for mode in ("drop", "overwrite"):
            with start_arctrace("record", "-o", trace, "-p", program.pid, "--nest-libcall", f"--mode={mode}", text=True,
                                stderr=subprocess.PIPE) as recorder:
                self.addCleanup(recorder.kill)
                self.assertTrue(any("joined process" in line for line in recorder.stderr))
                before = len(list(tasks.iterdir()))
                program.stdin.write("\n")
                program.stdin.flush()
                wait_until(lambda: len(list(tasks.iterdir())) == before - 3, "three threads have ended")
                recorder.send_signal(signal.SIGINT)
                recorder.stderr.read()
            self.assertEqual(recorder.returncode, 0)
            read("check", trace)
            ends = [r for r in read_dump(trace) if r["type"] == "PHASE" and r["phase"] == "thread_end"]
            self.assertEqual(len(ends), 3, mode)

    @cases.in_gate
    def test_interrupt_keeps_the_data(self):
        program, place = self.start("sleeps")
        self.assertRegex(self.attach_for_rounds(program, place), r"[1-9][\d,]* records, 0 lost, 1 process")
        self.assert_unharmed(program, place)

    def test_threads_that_cannot_be_stopped(self):
        """Threads in vfork() are waited for; the others continue meanwhile, and can be stopped again."""
        program, place = self.start("vforks")
        for i in range(10):
            done = self.attach(program.pid, options=("--duration=10ms",))
            self.assertEqual(done.returncode, 0, (i, done.stderr))
        self.assert_unharmed(program, place)

    @cases.in_gate
    def test_refusals(self):
        """A refusal is one line with exit status 2, and nothing happens."""
        program, place = self.start("sleeps")
        stopped, stopped_place = self.start("sleeps")
        stopped.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)  # it stops when it next gets a CPU
        comm = pathlib.Path("/proc/2/comm")  # the process has another number in containers
        kernel = ("2", "cannot join process 2: it is a thread of the kernel")
        has_kernel = comm.exists() and comm.read_text(encoding="utf-8") == "kthreadd\n"
        for pid, line in (*([kernel] if has_kernel else []),
                          ("999999999", "there is no process 999999999"),
                          (stopped.pid, "it is stopped; continue it first"),
                          ("0", "--pid"), ("-1", "--pid"), ("x", "--pid")):
            with self.subTest(pid=pid):
                done = self.attach(pid, trace="refused.data")
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(line, done.stderr)
                self.assertFalse((self.directory / "refused.data").exists())
        for options, line in ((("--", "true"), "either --pid or a command"), (("--wait",), "--session and --wait do not apply")):
            done = self.attach(program.pid, options=options, trace="refused.data")
            self.assertEqual((done.returncode, line in done.stderr), (2, True), done.stderr)
        for options, line in ((("-p", "999999999"), "there is no process 999999999"),
                              (("-b", "1M"), "or with --pid")):
            done = arctrace("live", "--plain", *options)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n"), line in done.stderr),
                             (2, "", 1, True), done.stderr)
        # A process that cannot be joined keeps the others from being joined.
        self.assertEqual(self.attach(program.pid, 999999999, trace="refused.data").returncode, 2)
        with start_arctrace("record", "-o", self.directory / "arctrace.data", "-p", program.pid, text=True,
                            stderr=subprocess.PIPE) as recorder:
            self.addCleanup(recorder.kill)
            self.assertIn("joined process", recorder.stderr.readline())
            again = self.attach(program.pid, options=("--duration=100ms",), trace="refused.data")
            self.assertEqual((again.returncode, again.stderr.count("\n")), (2, 1), again.stderr)
            self.assertIn("it is in a recording that goes on", again.stderr)
            recorder.send_signal(signal.SIGINT)
            recorder.communicate(timeout=600)
        self.assertEqual(recorder.returncode, 0)
        self.assert_unharmed(program, place)
        stopped.send_signal(signal.SIGCONT)
        self.assert_unharmed(stopped, stopped_place)

    def test_libc_mapped_as_data(self):
        """A program may have mapped the file of its libc once more, or another one of that name."""
        with open(f"/proc/{os.getpid()}/maps", encoding="utf-8") as maps:
            libc = next(line.split()[-1] for line in maps if line.rstrip().endswith("/libc.so.6"))
        junk = self.directory / "libc.so.6"
        junk.write_bytes(random.randbytes(1 << 16))
        for path in (libc, junk):
            program = subprocess.Popen(
                [sys.executable, "-c", "import mmap, sys\n"
                 "with open(sys.argv[1], 'rb') as file: mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
                 "print('begins', flush=True)\n"
                 "sys.stdin.read()\n"
                 "print('as always')\n", path], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.addCleanup(self.end, program)
            self.assertEqual(program.stdout.readline(), "begins\n")
            done = self.attach(program.pid, options=("--duration=10ms",))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(program.communicate(timeout=600), ("as always\n", None))
            self.assertEqual(program.returncode, 0)

    def test_libc_that_is_gone_or_damaged(self):
        """A line says that libc can't be found, and nothing happens."""
        with open(f"/proc/{os.getpid()}/maps", encoding="utf-8") as maps:
            libc = next(line.split()[-1] for line in maps if line.rstrip().endswith("/libc.so.6"))
        copy = self.directory / "libc.so.6"

        def replace():
            shutil.copy(libc, self.directory / "other")
            os.replace(self.directory / "other", copy)

        def damage():
            with open(copy, "r+b") as file:
                file.seek(0x28)  # the offset of the section headers, which no program maps
                sections = int.from_bytes(file.read(8), "little")
                self.assertGreater(sections, 0)
                size = copy.stat().st_size
                file.seek(sections)
                file.write(random.randbytes(size - sections))

        for change, line in ((replace, "its libc has been replaced since it began"), (damage, "has no dlopen")):
            shutil.copy(libc, copy)
            place = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
            program = subprocess.Popen([JOINED, "sleeps"], cwd=place, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, env={**os.environ, "LD_LIBRARY_PATH": self.directory})
            self.addCleanup(self.end, program)
            self.assertEqual(program.stdout.readline(), "begins\n")
            change()
            done = self.attach(program.pid, trace="refused.data")
            self.assertEqual((done.returncode, done.stderr.count("\n"), line in done.stderr), (2, 1, True), done.stderr)
            self.assert_unharmed(program, place)

    def test_recorder_killed_at_each_step(self):
        """Whatever a thread does for the recorder when this is killed, it returns to where it was. The calls do not
        include those that end with EINTR when a thread is stopped: a thread that has only been stopped yet sees
        that, as after SIGSTOP and SIGCONT."""
        modes = [mode for mode in MODES if mode != "polls"]

        def killed(mode, last, again=False):
            steps, program, place = self.run_to_step(mode, last, again=again)
            self.assert_unharmed(program, place)
            return steps

        steps = killed("threads", 1_000_000, again=True)
        for last in range(1, steps, 1 if LONG else max(1, steps // 15)):
            for mode in [*modes, *HOOKED] if LONG else [random.choice(["sleeps", "threads", "robust", "gcc/patchable"])]:
                with self.subTest(last=last, mode=mode, again=True):
                    killed(mode, last, again=True)
        steps = killed("sleeps", 1_000_000)
        self.assertGreater(steps, 50)
        # The test takes all of the first and last calls, and some of those during dlopen(), which are alike.
        middle = range(20, steps - 40, 1 if LONG else max(1, steps // 12))
        for last in [*range(1, 20, 1 if LONG else 2), *middle, *range(max(20, steps - 40), steps + 1, 1 if LONG else 4)]:
            for mode in [*modes, *HOOKED] if LONG else [random.choice(["sleeps", "computes", "signals", "gcc/patchable"])]:
                with self.subTest(last=last, mode=mode):
                    killed(mode, last)

    @cases.in_gate
    def test_program_stopped_at_each_step(self):
        """The program is stopped by SIGSTOP, and continues at once, later or after the recording: what a thread is
        doing for the recorder is finished, so that no lock of the loader stays held."""
        steps, program, place = self.run_to_step("loads", 1_000_000)
        self.assert_unharmed(program, place)
        for last in range(random.randrange(5), steps, 1 if LONG else max(1, steps // (10 if cases.IS_GATE else 60))):
            mode = random.choice(["loads", "loads", "threads", "gcc/patchable"])
            with self.subTest(last=last, mode=mode):
                _, program, place = self.run_to_step(mode, last, what="stop")
                self.assert_unharmed(program, place)

    @cases.in_gate
    def test_recorder_stopped_at_each_step(self):
        """The recorder is suspended by Ctrl-Z: it stops when all threads of the program continue."""
        steps, program, place = self.run_to_step("threads", 1_000_000)
        self.assert_unharmed(program, place)
        for last in range(1 + random.randrange(5), steps, 1 if LONG else max(1, steps // (8 if cases.IS_GATE else 40))):
            with self.subTest(last=last):
                _, program, place = self.run_to_step("threads", last, what="suspend")
                self.assert_unharmed(program, place)

    @cases.not_in_gate
    def test_recorder_without_a_cpu(self):
        """No step begins more than 10 s after a thread was stopped: it returns to its work, and a line says what is not
        recorded for that, the process or only its hooks."""
        steps, program, place = self.run_to_step("threads", 1_000_000)
        self.assert_unharmed(program, place)
        why = (r"the CPUs are so busy that thread \d+ was kept from its work for 10 s; run arctrace as root or with "
               r"CAP_SYS_NICE")
        for last, status, what in ((steps // 6, 2, "cannot join process"), (steps // 2, 0, "warning: functions of process")):
            with self.subTest(what):
                program, place = self.start("threads")
                done = run(AT_STEP, last, "late", ARCTRACE, "record", "-b", "1M", "-o", self.directory / "late.data",
                           "--duration=10ms", "-p", program.pid)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertRegex(done.stderr, rf"(?m)^arctrace: {what} \d+.*: ({why}|thread \d+ .* waits for a CPU$)")
                self.assertEqual((self.directory / "late.data").exists(), status == 0)
                self.assertEqual(self.attach(program.pid, options=("--duration=10ms",)).returncode, 0)
                self.assert_unharmed(program, place)

    @cases.not_in_gate
    def test_loader_that_another_thread_holds(self):
        """A thread that does not come back from dlopen is released after 10 s, and comes back by itself; another
        process is recorded all the same."""
        (self.directory / "holds.c").write_text(HOLDS, encoding="utf-8")
        (self.directory / "held.c").write_text(HELD, encoding="utf-8")
        run("gcc", "-shared", "-fPIC", "held.c", "-o", "held.so", cwd=self.directory, check=True)
        run("gcc", "-pthread", "holds.c", "-o", "holds", cwd=self.directory, check=True)
        holds = subprocess.Popen(["./holds"], cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, holds)
        self.assertEqual(holds.stdout.readline(), "begins\n")
        program, place = self.start("sleeps")
        with start_arctrace("record", "-b", "1M", "-o", self.directory / "arctrace.data", "-p", f"{holds.pid},{program.pid}",
                            stderr=subprocess.PIPE, text=True) as recorder:
            self.addCleanup(recorder.kill)
            self.assertIn(f"cannot join process {holds.pid}: ", recorder.stderr.readline())
            self.assertIn(f"joined process {program.pid} ", recorder.stderr.readline())
            status = pathlib.Path(f"/proc/{holds.pid}/status").read_text(encoding="utf-8")
            self.assertRegex(status, r"TracerPid:\t0\n")
            self.assertEqual(holds.communicate("end\n", timeout=600), ("as always\n", None))
            self.assertEqual(holds.returncode, 7)
            recorder.send_signal(signal.SIGINT)
            recorder.stderr.read()
        self.assert_unharmed(program, place)


if __name__ == "__main__":
    cases.main()
