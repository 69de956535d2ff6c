"""A thread's time is its whole life: loader, constructors, exit handlers; ends that nobody
announces; children of fork, which begin in their parent's frames."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import cases
import support

WHOLE_LIFE = """
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(void) { usleep(100000); }
__attribute__((destructor)) static void end(void) { usleep(60000); }
static void handler(void) { usleep(40000); }
int main(void) { atexit(handler); usleep(50000); return 3; }
"""
# A thread ends long before the process, another one with it.
EARLY = """
#include <pthread.h>
#include <unistd.h>
void* early(void* p) { usleep(1000); return p; }
static volatile int is_there;
void* late(void* p) { is_there = 1; for (;;) pause(); return p; }
int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, late, NULL);
  while (!is_there) usleep(1000);
  pthread_create(&thread, NULL, early, NULL);
  pthread_join(thread, NULL);
  usleep(300000);
  return 0;
}
"""
# Enters a frame, and waits in it to be killed.
WAITS = support.API + """
waits, before = key("waits"), time.monotonic_ns()
api.arctrace_enter(waits)
print("ready", before, flush=True)
time.sleep(100)
"""
# Waits to be killed in calls that it has just entered.
HANGS = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int brief(int n) { return n + 1; }
__attribute__((noinline)) void hang(void) { puts("ready"); fflush(stdout); for (;;) pause(); }
__attribute__((noinline)) void outer(void) { hang(); }
int main(int argc, char** argv) {
  for (int i = 0; i < 1000; ++i) argc = brief(argc);
  outer();
  return argc;
}
"""
# A program without a loader, which the shim can't follow, executes another one.
LAUNCHER = """
#include <unistd.h>
int main(int argc, char** argv) { usleep(20000); execv(argv[1], argv + 1); return 1; }
"""
# The child records nothing before its parent is in another function.
LATE_CHILD = """
#include <sys/wait.h>
#include <unistd.h>
static int go[2];
__attribute__((noinline)) void child_work(void) { usleep(1000); }
__attribute__((noinline)) int forks(void) {
  int pid = fork();
  char byte;
  if (pid == 0 && read(go[0], &byte, 1) == 1) { child_work(); _exit(0); }
  return pid;
}
__attribute__((noinline)) void later(int pid) {
  if (write(go[1], "x", 1) == 1) waitpid(pid, NULL, 0);
}
int main(void) { return pipe(go) != 0 ? 1 : (later(forks()), 0); }
"""
# Threads that leave their frames without a return; the main thread is the last of them.
LEAVE = """
#include <pthread.h>
#include <threads.h>
#include <unistd.h>
__attribute__((noinline)) void leave(void) { pthread_exit(NULL); }
__attribute__((noinline)) void leave_c11(void) { thrd_exit(0); }
void* worker(void* p) { leave(); return p; }
int worker_c11(void* p) { leave_c11(); return p != NULL; }
void* last(void* p) { pthread_join(*(pthread_t*)p, NULL); usleep(300000); return p; }
int main(void) {
  static pthread_t main_thread;
  pthread_t thread;
  thrd_t c11;
  pthread_create(&thread, NULL, worker, NULL);
  pthread_join(thread, NULL);
  thrd_create(&c11, worker_c11, NULL);
  thrd_join(c11, NULL);
  main_thread = pthread_self();
  pthread_create(&thread, NULL, last, &main_thread);
  pthread_exit(NULL);
}
"""
FORKS = support.API + """
def call(name, function):
    api.arctrace_enter(key(name))
    function()
    api.arctrace_exit(key(name))
def child_work(): time.sleep(0.05)
def inner():
    if os.fork() == 0:
        call("child_work", child_work)
        os._exit(0)
    os.wait()
call("outer", lambda: call("inner", inner))
"""


def compiled(directory, source, *options, name="program"):
    program = directory / name
    subprocess.run(["gcc", "-O1", *options, "-x", "c", "-", "-o", program], input=source,
                   text=True, check=True)
    return program


def children(node):
    return {child["name"]: child for child in node["children"]}


def path_to(node, name):
    """The names from the root to the node of that name, or None."""
    if node["name"] == name:
        return [name]
    for child in node["children"]:
        path = path_to(child, name)
        if path is not None:
            return [node["name"], *path]
    return None


class LifetimesTest(support.TraceTest):
    def test_whole_life(self):
        program = compiled(self.directory, WHOLE_LIFE)
        begin = time.monotonic_ns()
        done = self.record(program)
        most = time.monotonic_ns() - begin
        self.assertEqual(done.status, 3)
        thread, = self.report(done.trace, "tree")["threads"]
        root = thread["root"]
        parts = children(root)
        # The times that the program slept are what it cannot have been shorter than.
        self.assertGreaterEqual(root["cum_ns"], 250e6)
        self.assertLess(root["cum_ns"], most)
        self.assertGreaterEqual(parts["[constructors]"]["cum_ns"], 100e6)
        self.assertLess(parts["[constructors]"]["cum_ns"], root["cum_ns"] - 150e6)
        self.assertGreaterEqual(parts["[exit]"]["cum_ns"], 100e6)
        self.assertLess(parts["[exit]"]["cum_ns"], root["cum_ns"] - 150e6)
        self.assertGreater(parts["[loader]"]["cum_ns"], 0)
        self.assertGreaterEqual(children(root)["usleep"]["cum_ns"], 50e6)
        for name in ("[loader]", "[constructors]", "[exit]"):
            self.assertEqual(parts[name]["calls"], 1)
        # Other views have the same life.
        self.assertEqual(self.report(done.trace, "summary")["summary"]["duration_ns"],
                         root["cum_ns"])
        info = self.info(done.trace)
        for row in (info["processes"][0], info["threads"][0]):
            self.assertEqual((row["start_ns"], row["end_ns"]),
                             (info["summary"]["first_ns"], info["summary"]["last_ns"]))

    def test_children_of_all_kinds(self):
        """Whoever executes a program notes when; also one that calls nothing has a life."""
        for command in ("/bin/true; exit 0", "exec /bin/true", "(sleep 0.01); exit 0",
                        "env sleep 0.01; exit 0"):
            done = self.record("sh", "-c", command)
            # What a child inherits is the function that its parent is in.
            forks = [f["module"] for f in self.report(done.trace, "flat")["functions"]
                     if f["name"] == "fork"]
            self.assertEqual(len(set(forks)), len(forks[:1]), (command, forks))
            for thread in self.report(done.trace, "tree")["threads"]:
                parts = children(thread["root"])
                self.assertTrue("[loader]" in parts or "inherited" in
                                parts.get("fork", {}).get("marks", {}), (command, thread))
        spawner = [sys.executable, "-c", "import os; os.waitpid(os.posix_spawn('/bin/true', "
                   "['true'], os.environ), 0)"]
        threads = self.report(self.record(*spawner).trace, "tree")["threads"]
        self.assertEqual(len(threads), 2)
        for thread in threads:
            self.assertIn("[loader]", children(thread["root"]))

    def test_a_thread_that_ends_before_its_process(self):
        """In overwrite mode nobody sees when: it is known to within the time up to the process' end."""
        source = self.directory / "early.c"
        source.write_text(EARLY, encoding="ascii")
        subprocess.run(["gcc", "-finstrument-functions", "-pthread", source, "-o",
                        self.directory / "early"], check=True)
        trace = self.record(self.directory / "early", options=("--mode=overwrite",)).trace
        main, *others = self.report(trace, "tree")["threads"]
        self.assertNotIn("end_within_ns", main)
        ends = {next(iter(children(t["root"]))): t for t in others}
        self.assertNotIn("end_within_ns", ends["late"])  # it is in a function
        early = ends["early"]
        self.assertGreaterEqual(early["end_within_ns"], 300_000_000)
        self.assertLessEqual(early["end_within_ns"], early["root"]["base_ns"])

    def test_threads_that_leave_their_frames(self):
        """When that was is known, in each mode; the frames don't last until the process' end."""
        program = compiled(self.directory, LEAVE, "-finstrument-functions", "-pthread")
        for options in ((), ("--no-libcall",), ("--mode=overwrite", "--no-libcall")):
            threads = self.report(self.record(program, options=options).trace, "tree")["threads"]
            roots = {path[1]: t["root"] for t in threads for path in
                     (path_to(t["root"], name) for name in ("leave", "leave_c11", "main"))
                     if path is not None}
            self.assertEqual(set(roots), {"worker", "worker_c11", "main"}, options)
            for name, root in roots.items():
                frame = children(root)[name]
                self.assertEqual(frame["marks"], {"unwound": 1}, (options, name))
                if "--mode=overwrite" in options:
                    self.assertGreaterEqual(root["base_ns"], 300_000_000, (options, name))

    def test_killed_in_a_call(self):
        trace = self.directory / "killed.data"
        with subprocess.Popen([support.ARCTRACE, "record", "--no-libcall", "-o", trace, "--",
                               sys.executable, "-c", WAITS], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as recorder:
            ready, entered = recorder.stdout.readline().split()
            self.assertEqual(ready, "ready")
            begin = time.monotonic_ns()
            time.sleep(0.5)
            child = pathlib.Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text(
                encoding="ascii").split()
            least = time.monotonic_ns() - begin
            killed = time.monotonic_ns()
            subprocess.run(["kill", "-KILL", *child], check=True)
            recorder.wait()
            waited = time.monotonic_ns()
            most = waited - int(entered)  # from before it entered the frame
            self.assertEqual(recorder.returncode, -signal.SIGKILL)
        thread, = self.report(trace, "tree")["threads"]
        waits = children(thread["root"])["waits"]
        # The collector sees the end in its next round.
        self.assertGreater(thread["end_within_ns"], 0)
        text = subprocess.run([support.ARCTRACE, "report", "--view=tree", trace], text=True,
                              stdout=subprocess.PIPE, check=True).stdout
        self.assertRegex(text, r", ended up to [0-9.]+ [mun]?s earlier")
        info = self.info(trace)
        end = info["session"]["start_monotonic_ns"] + info["threads"][0]["end_ns"]
        self.assertGreaterEqual(end, killed)
        self.assertLessEqual(end - info["threads"][0]["end_within_ns"], waited)
        self.assertGreaterEqual(waits["cum_ns"], 0.95 * least)
        self.assertLess(waits["cum_ns"], 1.05 * most)
        rows = self.report(trace, "invocations", "-t", "100ms")["invocations"]
        self.assertIn("waits", [row["name"] for row in rows])

    def test_killed_while_calls_wait(self):
        """With -t, calls are reported when they have lasted long enough: those that are open when
        the process is killed are not lost."""
        program = compiled(self.directory, HANGS, "-finstrument-functions", name="hangs")
        for options in ((), ("--scope=thread",), ("--mode=overwrite",), ("--kernel=require",)):
            trace = self.directory / "hangs.data"
            with subprocess.Popen([support.ARCTRACE, "record", "--no-libcall", "-t", "200ms",
                                   *options, "-o", trace, "--", program], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as recorder:
                if recorder.stdout.readline() != "ready\n":
                    self.assertIn("--kernel=require", recorder.stderr.read())
                    continue
                time.sleep(0.5)
                child = pathlib.Path(
                    f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text(
                        encoding="ascii").split()
                subprocess.run(["kill", "-KILL", *child], check=True)
                recorder.wait()
            with self.subTest(options=options):
                thread, = self.report(trace, "tree")["threads"]
                self.assertEqual(path_to(thread["root"], "hang")[1:], ["main", "outer", "hang"])
                for call in self.waiting_calls(trace):
                    self.assertGreaterEqual(call["stop_ns"] - call["start_ns"], 0.45e9)

    def waiting_calls(self, trace):
        """Those of HANGS, recorded with -t 200ms: no other call is there, but for brief ones that lasted
        as long because the machine did something else."""
        calls = self.report(trace, "invocations")["invocations"]
        brief = [c for c in calls if c["name"] == "brief"]
        for call in brief:
            self.assertGreaterEqual(call["stop_ns"] - call["start_ns"], 200_000_000)
        thread, = self.report(trace, "tree")["threads"]
        self.assertEqual(path_to(thread["root"], "brief") is not None, bool(brief))
        waiting = [c for c in calls if c["name"] != "brief"]
        self.assertEqual([c["name"] for c in waiting], ["main", "outer", "hang"])
        return waiting

    def test_waiting_calls_of_the_living(self):
        program = compiled(self.directory, HANGS, "-finstrument-functions", name="hangs")
        # The program must come to its waiting call 200 ms before recording ends.
        recorder = subprocess.Popen([support.ARCTRACE, "record", "--no-libcall", "-t", "200ms",
                                     "--duration", "6s", "-o", self.directory / "lives.data", "--",
                                     program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True)
        self.assertEqual(recorder.stdout.readline(), "ready\n")
        self.assertTrue(any(" records, " in line for line in recorder.stderr))
        child = pathlib.Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text(
            encoding="ascii").split()
        subprocess.run(["kill", "-KILL", *child], check=True)
        recorder.stdout.close()
        recorder.stderr.close()
        recorder.wait()
        self.waiting_calls(self.directory / "lives.data")

    def test_before_recording(self):
        """Nobody has noted when the program was executed: how long it had run at most is known."""
        program = compiled(self.directory, WHOLE_LIFE)
        name = f"before-{self.directory.name}"
        subprocess.run([support.ARCTRACE, "create", name], check=True, stdout=subprocess.DEVNULL)
        self.addCleanup(subprocess.run, [support.ARCTRACE, "destroy", "--force", name], check=True)
        subprocess.run([support.ARCTRACE, "ctl", name, "--on", "all"], check=True)
        exports = subprocess.run([support.ARCTRACE, "env", name], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        begin = time.monotonic_ns()
        subprocess.run(["bash", "-c", f"set -a\n{exports}\nexec {program}"], check=False)
        most = time.monotonic_ns() - begin
        trace = self.directory / "before.data"
        subprocess.run([support.ARCTRACE, "snapshot", name, "-o", trace], check=True,
                       stderr=subprocess.DEVNULL)
        thread, = self.report(trace, "tree")["threads"]
        parts = children(thread["root"])
        self.assertEqual(parts["[before recording]"]["marks"], {"at_most": 1})
        self.assertGreater(parts["[before recording]"]["cum_ns"], 0)
        self.assertGreaterEqual(parts["[constructors]"]["cum_ns"], 100e6)
        self.assertGreaterEqual(thread["root"]["cum_ns"], 250e6)
        # The kernel counts in ticks.
        self.assertLess(thread["root"]["cum_ns"], most + 2e9 / os.sysconf("SC_CLK_TCK"))
        self.assertNotIn("[loader]", parts)

    def test_exec_that_only_the_kernel_saw(self):
        launcher = compiled(self.directory, LAUNCHER, "-static", name="launcher")
        done = self.record(launcher, "/bin/true", options=("--kernel",))
        if "recording without the kernel" in done.stderr or "perf events" in done.stderr:
            self.skipTest(done.stderr)
        thread, = self.report(done.trace, "tree")["threads"]
        self.assertIn("[loader]", children(thread["root"]))
        self.assertNotIn("[before recording]", children(thread["root"]))

    def test_a_child_that_records_late(self):
        program = compiled(self.directory, LATE_CHILD, "-finstrument-functions")
        trace = self.record(program, options=("--no-libcall",)).trace
        parent, child = self.report(trace, "tree")["threads"]
        self.assertEqual(path_to(child["root"], "child_work")[1:], ["main", "forks", "child_work"])
        self.assertEqual(path_to(parent["root"], "later")[1:], ["main", "later"])
        self.assertIsNone(path_to(child["root"], "later"))
        # Its life begins with the fork, and is the view's.
        forked, = (p["start_ns"] for p in self.info(trace)["processes"] if p["origin"] == "fork")
        calls = self.report(trace, "invocations")["invocations"]
        later, = (c["start_ns"] for c in calls if c["name"] == "later")
        self.assertLess(forked, later)

    def test_a_child_whose_fork_is_not_known(self):
        """It is in none of libc's functions that don't fork, though its parent is by then."""
        source = LATE_CHILD.replace("fork()", "syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)")
        program = compiled(self.directory, "#include <signal.h>\n#include <sys/syscall.h>" + source,
                           "-finstrument-functions", "-D_GNU_SOURCE")
        trace = self.record(program).trace
        _, child = self.report(trace, "tree")["threads"]
        path = path_to(child["root"], "child_work")
        self.assertEqual(path[1], "main")
        self.assertNotIn("waitpid", path)

    def test_exec_of_which_the_kernel_has_the_moment(self):
        """The recorder notes it before it forks: what came until the exec is not the program's."""
        done = self.record("/bin/true", options=("--kernel",))
        execs = [r["time_ns"] for r in self.dump(done.trace) if r["type"] == "EXECED"]
        if not execs:
            self.skipTest("recorded without the kernel")
        process, = self.info(done.trace)["processes"]
        self.assertEqual(process["start_ns"], execs[-1])
        thread, = self.report(done.trace, "tree")["threads"]
        self.assertIn("[loader]", children(thread["root"]))
        self.assertNotIn("[before recording]", children(thread["root"]))

    def test_fork(self):
        trace = self.record(sys.executable, "-c", FORKS, options=("--no-libcall",)).trace
        parent, child = self.report(trace, "tree")["threads"]
        path = path_to(child["root"], "child_work")
        self.assertEqual(path[1:], ["outer", "inner", "child_work"])
        outer = children(child["root"])["outer"]
        self.assertEqual(outer["calls"], 0)
        self.assertGreaterEqual(outer["cum_ns"], 50e6)
        self.assertEqual(children(parent["root"])["outer"]["calls"], 1)


if __name__ == "__main__":
    cases.main()
