"""Programs that run already, for tests that join them."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from command import ARCTRACE, arctrace, read, read_report, run, start_arctrace
from states import wait_until
from tracing import TracedTest

JOINED = os.environ["ARCTRACE_JOINED"]
AT_STEP = os.environ["ARCTRACE_AT_STEP"]
LONG = bool(os.environ.get("ARCTRACE_TEST_LONG"))
FIXTURES = pathlib.Path(os.environ["ARCTRACE_FIXTURES"])
# In each of three threads a function may be open, and one that its handler has interrupted.
OPEN_MAX = 6
HOOKED = ["gcc/patchable", "gcc/patchable_pad", "clang/patchable", "clang/patchable_pad", "clang/xray"]


class AttachTest(TracedTest):
    def start(self, mode, *arguments, environment=None):
        """The program, which works: a mode of attach_joined, or a fixture. `environment`: besides its own."""
        place = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        program = subprocess.Popen([FIXTURES / mode, *arguments] if "/" in mode else [JOINED, mode], cwd=place, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env={**os.environ, **(environment or {})})
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), "begins\n")
        return program, place

    def start_python(self, source):
        """A Python program, which works when it has printed "begins"; its standard input is a pipe."""
        program = subprocess.Popen([sys.executable, "-c", source], text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), "begins\n")
        return program

    @staticmethod
    def wait_for_rounds(place, threads=1, times=10):
        """Waits until each thread of the program in this place has begun so many more iterations, so that it has made
        whole ones (rounds.h), and a timer of 1 ms has expired between them. `threads`: how many threads iterate, at
        least."""
        wait_until(lambda: len(list(place.glob("round-*"))) >= threads, f"rounds of {threads} threads")
        files = list(place.glob("round-*"))
        for _ in range(times):
            for file in files:
                file.unlink()
            time.sleep(0.01)
            wait_until(lambda: all(file.exists() for file in files), lambda: f"{list(place.iterdir())} of {files}")

    @staticmethod
    def wait_for_calls(pid, *numbers):
        """Waits until, for each system call, so many threads of a process wait in it as its number says."""
        def waiting():
            return [task.read_text(encoding="ascii").split()[0] for task in pathlib.Path(f"/proc/{pid}/task").glob("*/syscall")]
        wait_until(lambda: all(waiting().count(str(number)) >= numbers.count(number) for number in numbers),
                   lambda: f"threads are in the calls {waiting()} instead of {numbers}")

    def attach_for_rounds(self, program, place, *options, end=signal.SIGINT, command=("record",), trace="arctrace.data",
                          pids=True, **rounds):
        """Records the program until it has worked for a while; returns what the recorder printed. `command` and `pids`:
        a collector of a session that the program has joined needs no -p."""
        with start_arctrace(*command, "-o", self.directory / trace, *(["-p", str(program.pid)] if pids else []),
                            *options, text=True, stderr=subprocess.PIPE) as recorder:
            self.addCleanup(recorder.kill)
            begun = ""
            for line in recorder.stderr:
                begun += line
                if ("joined process" if pids else "collecting") in line:
                    break
            self.wait_for_rounds(place, **rounds)
            recorder.send_signal(end)
            errors = begun + recorder.stderr.read()
        self.assertEqual(recorder.returncode, 0 if end == signal.SIGINT else -end, errors)
        return errors

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def assert_unharmed(self, program, place):
        (place / "stop").touch()
        output, _ = program.communicate(timeout=600)
        self.assertEqual((output, program.returncode), ("as always\n", 7))

    def attach(self, *pids, options=(), trace="arctrace.data"):
        return arctrace("record", "-o", self.directory / trace, "--pid", ",".join(map(str, pids)), *options)

    @staticmethod
    def policies(pid):
        """How the process' threads are scheduled: SCHED_OTHER is 0."""
        policies = []
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                policies.append(os.sched_getscheduler(int(task)))
            except ProcessLookupError:
                pass
        return policies

    def functions(self, trace="arctrace.data"):
        return {f["name"]: f["calls"] for f in read_report(self.directory / trace, "flat")["functions"]}

    def record_hooked(self, program, wanted, *options, room="4M", standing=None):
        """Records the program until its threads have called all of the wanted functions meanwhile. A function in whose
        hook a handler was running is left out, and the recorder says so. `room`: the buffer's size; with little,
        records are lost, in handlers, too. `standing`: a function that is open all the time; it counts once."""
        named = set()
        for number in range(100):
            # The threads of a busy machine may get no CPU within 5 ms.
            duration = min(5 * (1 + number // 4), 40)
            done = self.attach(program.pid, options=("-b", room, f"--duration={duration}ms", *options))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"stood still for \d+ ms, all of them for \d+ ms\n")
            named = {name for name, calls in self.functions().items()
                     if (name.startswith("hooked_") or name == "sum_of") and not (name == standing and calls == 1)
                     and not (name not in wanted and calls <= OPEN_MAX)}
            self.assertLessEqual(named, wanted)
            if named == wanted:
                break
        self.assertEqual(named, wanted)
        read("check", self.directory / "arctrace.data")

    def run_to_step(self, mode, last, *options, again=False, what="kill"):
        """Kills the recorder, while it joins a program, at its ptrace() call number `last`; or, if `what` is "stop",
        has the program stop then and continue, or if it is "suspend", the recorder itself. Returns how many such
        calls there were, and the program."""
        buffers = tempfile.mkdtemp(dir="/dev/shm")
        self.addCleanup(shutil.rmtree, buffers)
        program, place = self.start(mode)
        if again:
            self.assertEqual(self.attach(program.pid, options=("--duration=1ms", *options)).returncode, 0)
        who = {"stop": program.pid, "suspend": -program.pid}.get(what, what)
        done = run(AT_STEP, last, who, ARCTRACE, "record", f"--buffer-dir={buffers}",
                   "-b", "1M", "-o", self.directory / "step.data", "--duration=10ms", "-p", program.pid, *options)
        # A thread that is stopped may hold a lock for which another one waits.
        waits = what == "stop" and "it was stopped by a signal meanwhile; continue it (kill -CONT)" in done.stderr
        # The only thread of "loads" is nearly always in malloc or the loader.
        waits |= mode == "loads" and "each of its threads was in malloc or in the dynamic loader" in done.stderr
        self.assertEqual(done.returncode, 2 if waits else 0, done.stderr)
        # A child of the recorder restores the scheduling policies.
        wait_until(lambda: not any(self.policies(program.pid)), "the threads are scheduled as before")
        for file in self.directory.glob("step.data*"):
            file.unlink()
        return int(done.stdout or 0), program, place
