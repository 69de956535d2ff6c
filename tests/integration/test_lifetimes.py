"""A thread's time is its whole lifetime: loader, constructors, exit handlers; ends that nobody announces; children of
fork, which begin in their parent's frames."""

import os
import signal
import subprocess
import sys
import time

import cases
import states
import support
from command import read, read_dump, read_info, read_report, run, start_arctrace
from tracing import TracedTest

WHOLE_LIFE = """
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(void) { usleep(100000); }
__attribute__((destructor)) static void end(void) { usleep(60000); }
static void handler(void) { usleep(40000); }
int main(void) { atexit(handler); usleep(50000); return 3; }
"""
# A thread ends long before the process, and so does another one with it.
EARLY = """
#include <pthread.h>
#include <unistd.h>
void* early(void* p) { usleep(1000); return p; }
static volatile int is_there;
void* late(void* p) { is_there = 1; for (;;) pause(); return p; }
int main(void) {
  pthread_t thread;
  pthread_key_t key;
  for (int i = 0; i < 32; ++i) pthread_key_create(&key, NULL);
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
# Spawns a program. Then another thread ends the process, whose exit handler takes some time.
SPAWNS = """
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char** environ;
static void handler(void) { usleep(30000); }
static void* ends(void* p) { exit(4); return p; }
int main(void) {
  char* arguments[] = {"true", NULL};
  pid_t child = 0;
  posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ);
  waitpid(child, NULL, 0);
  atexit(handler);
  pthread_t thread;
  pthread_create(&thread, NULL, ends, NULL);
  for (;;) pause();
}
"""
# The first process ends within a function of libc, without a call that can be hooked. OUTLIVES: the second one lives
# for so many us longer than the recorder needs to learn that.
DAEMON = """
#include <signal.h>
#include <unistd.h>
int main(void) {
  int first = getpid();
  if (daemon(1, 1) != 0) return 1;
#ifdef OUTLIVES
  while (kill(first, 0) == 0) usleep(1000);
  usleep(OUTLIVES);
#endif
  return first == 0;
}
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
# A program without a loader, which the shim can't join, executes another one.
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
# Put before the programs above: forks without libc's fork(), and by the instruction itself.
OTHER_FORKS = """
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((no_instrument_function, unused)) static int raw_clone(void) {
  long pid;
#ifdef __x86_64__
  register long r10 __asm__("r10") = 0;
  register long r8 __asm__("r8") = 0;
  __asm__ volatile("syscall" : "=a"(pid) : "a"((long)SYS_clone), "D"((long)SIGCHLD), "S"(0L), "d"(0L),
                   "r"(r10), "r"(r8) : "rcx", "r11", "memory");
#else
  register long x8 __asm__("x8") = SYS_clone;
  register long x0 __asm__("x0") = SIGCHLD;
  register long x1 __asm__("x1") = 0;
  register long x2 __asm__("x2") = 0;
  register long x3 __asm__("x3") = 0;
  register long x4 __asm__("x4") = 0;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  pid = x0;
#endif
  return (int)pid;
}
"""
# Forks in functions that its own records do not tell: the collector is stopped when the functions are entered, or with
# an argument, later calls overwrite their records. The child forks in turn, when there is space again, or when the
# records have been overwritten.
UNTOLD = """
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define PLAIN __attribute__((no_instrument_function, noinline))
static volatile int sink;
static int overwrites, recorder, is_throttled[2];
__attribute__((noinline)) void tiny(void) { ++sink; }
__attribute__((noinline)) void flood(void) { for (int i = 0; i < 100000; ++i) tiny(); }
__attribute__((noinline)) void grandchild_work(void) { tiny(); }
__attribute__((noinline)) void forks_again(void) {
  int pid = fork();
  if (pid == 0) { grandchild_work(); _exit(0); }
  waitpid(pid, NULL, 0);
}
__attribute__((noinline)) void child_work(void) { tiny(); }
PLAIN void wait_for_rounds(int of) {
  long before[64] = {0};
  for (int round = 0;; ++round, usleep(10000)) {
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%d/task", of);
    DIR* threads = opendir(path);
    for (int i = 0; i < 64; ++i) {
      struct dirent* thread = readdir(threads);
      if (thread == NULL) break;
      if (thread->d_name[0] == '.') continue;
      snprintf(path, sizeof path, "/proc/%d/task/%.10s/status", of, thread->d_name);
      int file = open(path, O_RDONLY | O_CLOEXEC);
      long size = read(file, text, sizeof text - 1);
      close(file);
      text[size > 0 ? size : 0] = 0;
      const char* found = strstr(text, "\\nvoluntary_ctxt_switches:");
      long sleeps = found != NULL ? atol(found + 25) : 0;
      if (round == 0) before[i] = sleeps;
      if (sleeps >= before[i] + 10) { closedir(threads); return; }
    }
    closedir(threads);
  }
}
PLAIN void in_child(void) {
  char byte;
  if (overwrites) {
    if (read(is_throttled[0], &byte, 1) != 1) _exit(1);
  } else {
    kill(getppid(), SIGUSR1);
    wait_for_rounds(recorder);
  }
  child_work();
  forks_again();
  _exit(0);
}
__attribute__((noinline)) void forks(void) {
  int pid = fork();
  if (pid == 0) in_child();
  if (overwrites) {
    flood();
    if (write(is_throttled[1], "x", 1) != 1) return;
  }
  while (waitpid(pid, NULL, 0) != pid) {}
}
PLAIN void go_on(int number) { kill(recorder, SIGCONT); }
int main(int argc, char** argv) {
  overwrites = argc > 1;
  recorder = getppid();
  if (pipe(is_throttled) != 0) return 1;
  signal(SIGUSR1, go_on);
  if (!overwrites) kill(recorder, SIGSTOP);
  flood();
  forks();
  return 0;
}
"""
# Threads abandon their frames without a return; the main thread is the last of them.
ENDS_OF_A_KIND = 10
ENDS = """
#include <pthread.h>
#include <unistd.h>
static pthread_key_t key;
void destroy(void* p) { pthread_setspecific(key, p); usleep(100); }
void work(void) { usleep(1000); }
void begin(void) { pthread_setspecific(key, &key); work(); }
void* returns(void* p) { begin(); return p; }
void* leaves(void* p) { begin(); pthread_exit(p); }
static volatile int is_waiting;
void* waits(void* p) { begin(); is_waiting = 1; for (;;) pause(); }
int main(void) {
  void* (*routines[])(void*) = {returns, leaves, waits};
  pthread_key_create(&key, destroy);
  for (int i = 0; i < 30; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, routines[i % 3], NULL);
    while (i % 3 == 2 && !is_waiting) usleep(100);
    if (i % 3 == 2) pthread_cancel(thread);
    is_waiting = 0;
    pthread_join(thread, NULL);
  }
  usleep(100000);
}
"""
KEYS = """
#include <pthread.h>
#include <stdio.h>
#include <threads.h>
void* thread(void* p) { return p; }
int run_thread(void) { pthread_t id; return pthread_create(&id, NULL, thread, NULL) || pthread_join(id, NULL); }
int main(void) {
  static pthread_key_t keys[2000];
  int count = 0;
  if (run_thread()) return 1;
  while (count < 31 && pthread_key_create(&keys[count], NULL) == 0) ++count;
  for (int i = 0; i < count; ++i) printf("%d ", keys[i]);
  if (run_thread()) return 1;
  while (tss_create(&keys[count], NULL) == thrd_success) ++count;
  printf("%d keys\\n", count);
  return run_thread();
}
"""
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


class LifetimesTest(TracedTest):
    @cases.in_gate
    def test_whole_life(self):
        program = compiled(self.directory, WHOLE_LIFE)
        begin = time.monotonic_ns()
        done = self.record(program)
        most = time.monotonic_ns() - begin
        self.assertEqual(done.status, 3)
        thread, = read_report(done.trace, "tree")["threads"]
        root = thread["root"]
        parts = children(root)
        # The program cannot have been shorter than its sleeps.
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
        # Other views have the same lifetime.
        # The tracer's own start is in no sum.
        self.assertEqual(parts["[arctrace]"]["cum_ns"], 0)
        self.assertEqual(read_report(done.trace, "summary")["summary"]["duration_ns"],
                         root["cum_ns"] + parts["[arctrace]"]["overhead_ns"])
        info = read_info(done.trace)
        for row in (info["processes"][0], info["threads"][0]):
            self.assertEqual((row["start_ns"], row["end_ns"]),
                             (info["summary"]["first_ns"], info["summary"]["last_ns"]))

    @cases.in_gate
    def test_a_child_that_executes_a_program_is_one_process(self):
        """The sums count processes and threads as the kernel does, at the end of the recording, too."""
        program = self.directory / "forks"
        run("gcc", "-x", "c", "-", "-o", program, check=True, input=(
            "#include <sys/wait.h>\n#include <unistd.h>\nint main(void) { for (int i = 0; i < 3; ++i) {"
            "if (fork() == 0) execl(\"/bin/true\", \"true\", (char*)0); wait(0); } return 0; }"))
        done = self.record(program)
        self.assertIn(", 4 processes, 4 threads, ", done.stderr)
        report = read_report(done.trace, "processes")
        self.assertEqual((report["summary"]["processes"], report["summary"]["threads"]), (4, 4))
        self.assertIn(", 4 processes, 4 threads\n", read("report", done.trace))
        self.assertEqual(len(read_info(done.trace)["processes"]), 7)

    def test_children_of_all_kinds(self):
        """A process that executes a program notes the time; also one that calls nothing has a lifetime."""
        for command in ("/bin/true; exit 0", "exec /bin/true", "(sleep 0.01); exit 0",
                        "env sleep 0.01; exit 0"):
            done = self.record("sh", "-c", command)
            # A child inherits the function that its parent is in.
            forks = [f["module"] for f in read_report(done.trace, "flat")["functions"]
                     if f["name"] == "fork"]
            self.assertEqual(len(set(forks)), len(forks[:1]), (command, forks))
            for thread in read_report(done.trace, "tree")["threads"]:
                parts = children(thread["root"])
                self.assertTrue("[loader]" in parts or "inherited" in
                                parts.get("fork", {}).get("marks", {}), (command, thread))
        spawner = [sys.executable, "-c", "import os; os.waitpid(os.posix_spawn('/bin/true', "
                   "['true'], os.environ), 0)"]
        threads = read_report(self.record(*spawner).trace, "tree")["threads"]
        self.assertEqual(len(threads), 2)
        for thread in threads:
            self.assertIn("[loader]", children(thread["root"]))

    def test_when_a_spawned_program_was_executed(self):
        """The parent of a spawned program knows two times between which the spawning was."""
        done = self.record(compiled(self.directory, SPAWNS, "-pthread", name="spawns"))
        self.assertEqual(done.status, 4)
        records = read_dump(done.trace)
        recorder, parent = [r for r in records if r["type"] == "EXEC"]
        self.assertGreater(recorder["within_ticks"], 0)
        call, = [r for r in records if r["type"] == "ENTER" and r["function"] == "posix_spawn"]
        end = next(r for r in records if r["type"] == "EXIT" and r["function"] == "posix_spawn")
        self.assertGreaterEqual(parent["time_ns"], call["time_ns"])
        self.assertGreater(parent["within_ticks"], 0)
        per_second = read_info(done.trace)["session"]["ticks_per_second"]
        last_ns = parent["time_ns"] + parent["within_ticks"] * 1e9 / per_second
        # The bound is rounded up.
        self.assertLess(last_ns, end["time_ns"] + 0.07 * (end["time_ns"] - call["time_ns"]))
        for thread in read_report(done.trace, "tree")["threads"]:
            loader = children(thread["root"]).get("[loader]")
            if loader is None:
                continue  # the thread that ends the process
            within = loader["marks"]["begin_within_ns"]
            self.assertGreater(within, 0)
            self.assertLessEqual(within, loader["base_ns"])

    def test_exit_in_another_thread(self):
        done = self.record(compiled(self.directory, SPAWNS, "-pthread", name="spawns"))
        threads = read_report(done.trace, "tree")["threads"]
        main, other = [t for t in threads if path_to(t["root"], "true") is None and
                       (path_to(t["root"], "pause") or path_to(t["root"], "exit"))]
        if path_to(main["root"], "pause") is None:
            main, other = other, main
        self.assertIsNone(path_to(main["root"], "[exit]"))
        self.assertEqual(path_to(other["root"], "[exit]")[-2:], ["exit", "[exit]"])

    def test_ends_that_were_not_recorded(self):
        """The recorder knows how its command ended, and that other processes did."""
        done = self.record(compiled(self.directory, DAEMON, name="daemon"), options=("--wait",))
        self.assertEqual(done.status, 0)
        exits = [p["exits"] for p in read_report(done.trace, "processes")["processes"]]
        self.assertIn({"0": 1}, exits)
        done = self.record("sh", "-c", "(kill -9 $(exec sh -c 'echo $PPID')); exit 3")
        exits = {}
        def add(command):
            for how, count in command["exits"].items():
                exits[how] = exits.get(how, 0) + count
            for child in command["children"]:
                add(child)
        for command in read_report(done.trace, "processes")["processes"]:
            add(command)
        self.assertIn("not known", exits)
        self.assertNotIn("open", exits)
        self.assertIn("3", exits)

    def test_the_command_ended_before_the_recorder_learned_it(self):
        """This also holds in a mode in which ends are not checked while other processes are still recorded."""
        for outlives_us in (300_000, 1_200_000, 5_000_000, 20_000_000):
            program = compiled(self.directory, DAEMON, f"-DOUTLIVES={outlives_us}", name="daemon")
            done = self.record(program, options=("--wait", "--mode=overwrite"))
            self.assertEqual(done.status, 0, done.stderr)
            learned, = (r["time_ns"] for r in read_dump(done.trace) if r["type"] == "CHILD_STATUS")
            processes = {p["pid"]: p for p in read_info(done.trace)["processes"]}
            command, = read_report(done.trace, "processes")["processes"]
            first = processes.pop(command["pid"])
            ends = [process["end_ns"] for process in processes.values()]
            self.assertTrue(ends)
            if min(ends) > learned:  # the recorder was quick enough to write the end
                break
        self.assertGreater(min(ends), learned)
        self.assertLessEqual(first["end_ns"], learned)
        main, *_ = read_report(done.trace, "tree")["threads"]
        self.assertLessEqual(main["root"]["cum_ns"], learned - first["start_ns"])

    def test_ends_that_nobody_saw_are_not_long_lives(self):
        """In stop and overwrite mode killed processes are not detected until the end."""
        for mode in ("stop", "overwrite"):
            with self.subTest(mode=mode):
                done = self.record(
                    "sh", "-c", "for i in 1 2 3; do sh -c 'ls >/dev/null; kill -9 $$'; done; sleep 0.5",
                    options=(f"--mode={mode}",))
                self.assertEqual(done.status, 0, done.stderr)
                shell, = read_report(done.trace, "processes")["processes"]
                self.assertEqual((shell["runs"], shell["ends_not_known"]), (1, 0))
                self.assertGreater(shell["wall_ns"], 500_000_000)
                killed, = (child for child in shell["children"] if child["name"] == "sh")
                self.assertEqual((killed["runs"], killed["ends_not_known"]), (3, 3))
                self.assertEqual((killed["wall_ns"], killed["longest_ns"]), (0, 0))

    def test_a_thread_that_ends_before_its_process(self):
        """In overwrite mode the time of an end that the thread does not tell, because the program has the key by which
        it would, is not seen: it is known to within the time up to the process' end."""
        source = self.directory / "early.c"
        source.write_text(EARLY, encoding="ascii")
        subprocess.run(["gcc", "-finstrument-functions", "-pthread", source, "-o",
                        self.directory / "early"], check=True)
        trace = self.record(self.directory / "early", options=("--mode=overwrite",)).trace
        main, *others = read_report(trace, "tree")["threads"]
        self.assertNotIn("end_within_ns", main)
        ends = {next(iter(children(t["root"]))): t for t in others}
        self.assertNotIn("end_within_ns", ends["late"])  # this thread is in a function
        early = ends["early"]
        self.assertGreaterEqual(early["end_within_ns"], 300_000_000)
        self.assertLessEqual(early["end_within_ns"], early["root"]["base_ns"])

    @cases.in_gate
    def test_threads_tell_their_ends(self):
        """Threads that return, leave by pthread_exit or are cancelled last as long as they do, in each mode: here one
        after the other, each joined by the first, so together not longer than that one. Their destructors count."""
        program = compiled(self.directory, ENDS, "-finstrument-functions", "-pthread")
        for mode in ("drop", "overwrite"):
            main, *others = read_report(self.record(program, options=(f"--mode={mode}",)).trace, "tree")["threads"]
            self.assertEqual(len(others), 3 * ENDS_OF_A_KIND, mode)
            self.assertEqual([t for t in others if "end_within_ns" in t], [], mode)
            self.assertLess(sum(t["root"]["cum_ns"] for t in others), main["root"]["cum_ns"], mode)
            for thread in others:
                self.assertEqual(children(thread["root"])["destroy"]["calls"], 4, mode)

    @cases.in_gate
    def test_a_program_has_all_keys(self):
        """The key by which ends are told is taken from no program that makes all keys, with their numbers in order
        but for that one."""
        program = compiled(self.directory, KEYS, "-pthread")
        for options in ((), ("--kernel=no", "-P", ".")):
            done = self.record(program, options=options)
            self.assertEqual(done.stdout, subprocess.run([program], capture_output=True, text=True, check=True).stdout)

    def test_threads_that_leave_their_frames(self):
        """The time at which frames were abandoned is known, in each mode; the frames don't last until the process'
        end."""
        program = compiled(self.directory, LEAVE, "-finstrument-functions", "-pthread")
        for options in ((), ("--no-libcall",), ("--mode=overwrite", "--no-libcall")):
            threads = read_report(self.record(program, options=options).trace, "tree")["threads"]
            roots = {path[1]: t["root"] for t in threads for path in
                     (path_to(t["root"], name) for name in ("leave", "leave_c11", "main"))
                     if path is not None}
            self.assertEqual(set(roots), {"worker", "worker_c11", "main"}, options)
            for name, root in roots.items():
                frame = children(root)[name]
                self.assertEqual(frame["marks"], {"unwound": 1}, (options, name))
                self.assertLess(root["base_ns"], 300_000_000, (options, name))

    def test_killed_in_a_call(self):
        trace = self.directory / "killed.data"
        with start_arctrace("record", "--no-libcall", "-o", trace, "--", sys.executable, "-c", WAITS,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
            ready, entered = recorder.stdout.readline().split()
            self.assertEqual(ready, "ready")
            begin = time.monotonic_ns()
            time.sleep(0.5)
            child = states.command_of(recorder.pid)
            least = time.monotonic_ns() - begin
            killed = time.monotonic_ns()
            os.kill(child, signal.SIGKILL)
            recorder.wait()
            waited = time.monotonic_ns()
            most = waited - int(entered)  # starts before the program entered the frame
            self.assertEqual(recorder.returncode, -signal.SIGKILL)
        thread, = read_report(trace, "tree")["threads"]
        waits = children(thread["root"])["waits"]
        # The collector sees the end in its next pass.
        self.assertGreater(thread["end_within_ns"], 0)
        text = read("report", "--view=tree", trace)
        self.assertRegex(text, r", ended up to [0-9.]+ [mun]?s earlier")
        info = read_info(trace)
        end = info["session"]["start_monotonic_ns"] + info["threads"][0]["end_ns"]
        self.assertGreaterEqual(end, killed)
        self.assertLessEqual(end - info["threads"][0]["end_within_ns"], waited)
        self.assertGreaterEqual(waits["cum_ns"], 0.95 * least)
        self.assertLess(waits["cum_ns"], 1.05 * most)
        command, = read_report(trace, "processes")["processes"]
        self.assertEqual(command["exits"], {"signal 9": 1})
        self.assertEqual(info["processes"][0]["end_ns"], info["threads"][0]["end_ns"])
        rows = read_report(trace, "invocations", "-t", "100ms")["invocations"]
        self.assertIn("waits", [row["name"] for row in rows])

    def test_killed_while_calls_wait(self):
        """With -t, calls are recorded when they have lasted long enough: those that are open when the process is killed
        are not lost."""
        program = compiled(self.directory, HANGS, "-finstrument-functions", name="hangs")
        for options in ((), ("--scope=thread",), ("--mode=overwrite",), ("--kernel=require",)):
            trace = self.directory / "hangs.data"
            with self.subTest(options=options), \
                    start_arctrace("record", "--no-libcall", "-t", "200ms", *options, "-o", trace, "--", program,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
                if recorder.stdout.readline() != "ready\n":
                    errors = recorder.stderr.read()
                    self.assertIn("--kernel=require", errors)
                    self.skipTest(errors.strip())
                begin = time.monotonic_ns()
                time.sleep(0.5)
                least = time.monotonic_ns() - begin
                os.kill(states.command_of(recorder.pid), signal.SIGKILL)
                recorder.wait()
                thread, = read_report(trace, "tree")["threads"]
                self.assertEqual(path_to(thread["root"], "hang")[1:], ["main", "outer", "hang"])
                for call in self.waiting_calls(trace):
                    self.assertGreaterEqual(call["stop_ns"] - call["start_ns"], 0.95 * least)

    def waiting_calls(self, trace):
        """The calls of HANGS, recorded with -t 200ms: there are no others but brief ones that lasted as long because
        the machine did something else."""
        calls = read_report(trace, "invocations")["invocations"]
        brief = [c for c in calls if c["name"] == "brief"]
        for call in brief:
            self.assertGreaterEqual(call["stop_ns"] - call["start_ns"], 200_000_000)
        thread, = read_report(trace, "tree")["threads"]
        self.assertEqual(path_to(thread["root"], "brief") is not None, bool(brief))
        waiting = [c for c in calls if c["name"] != "brief"]
        self.assertEqual([c["name"] for c in waiting], ["main", "outer", "hang"])
        return waiting

    def test_waiting_calls_of_the_living(self):
        program = compiled(self.directory, HANGS, "-finstrument-functions", name="hangs")
        for seconds in (2, 8, 32, 128):
            with start_arctrace("record", "--no-libcall", "-t", "200ms", "--duration", f"{seconds}s", "-o",
                                self.directory / "lives.data", "--", program, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) as recorder:
                self.assertEqual(recorder.stdout.readline(), "ready\n")
                ready = time.monotonic()
                self.assertTrue(any(" records, " in line for line in recorder.stderr))
                waited = time.monotonic() - ready
                os.kill(states.command_of(recorder.pid), signal.SIGKILL)
            if waited > seconds / 2:  # else the program may have come to its waiting call too late
                break
        self.waiting_calls(self.directory / "lives.data")

    def test_before_recording(self):
        """Nobody has noted when the program was executed: only the most that it had run is known."""
        program = compiled(self.directory, WHOLE_LIFE)
        name = f"before-{self.directory.name}"
        read("create", name)
        self.addCleanup(read, "destroy", "--force", name)
        read("ctl", name, "--on", "all")
        exports = read("env", name)
        begin = time.monotonic_ns()
        subprocess.run(["bash", "-c", f"set -a\n{exports}\nexec {program}"], check=False)
        most = time.monotonic_ns() - begin
        trace = self.directory / "before.data"
        read("snapshot", name, "-o", trace)
        thread, = read_report(trace, "tree")["threads"]
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
        thread, = read_report(done.trace, "tree")["threads"]
        self.assertIn("[loader]", children(thread["root"]))
        self.assertNotIn("[before recording]", children(thread["root"]))

    def test_a_child_that_records_late(self):
        program = compiled(self.directory, LATE_CHILD, "-finstrument-functions")
        trace = self.record(program, options=("--no-libcall",)).trace
        parent, child = read_report(trace, "tree")["threads"]
        self.assertEqual(path_to(child["root"], "child_work")[1:], ["main", "forks", "child_work"])
        self.assertEqual(path_to(parent["root"], "later")[1:], ["main", "later"])
        self.assertIsNone(path_to(child["root"], "later"))
        # The child's lifetime begins with the fork, and is the view's.
        forked, = (p["start_ns"] for p in read_info(trace)["processes"] if p["origin"] == "fork")
        calls = read_report(trace, "invocations")["invocations"]
        later, = (c["start_ns"] for c in calls if c["name"] == "later")
        self.assertLess(forked, later)

    def test_a_child_whose_forker_has_no_record_of_its_frames(self):
        program = compiled(self.directory, UNTOLD, "-finstrument-functions", "-D_GNU_SOURCE")
        inside = ["main", "forks"]
        for arguments, mode in (((), "drop"), (("overwrite",), "overwrite")):
            with self.subTest(mode=mode):
                trace = self.record(program, *arguments, options=("--no-libcall", "-b", "256k", f"--mode={mode}")).trace
                _, child, grandchild = read_report(trace, "tree")["threads"]
                self.assertEqual(path_to(child["root"], "child_work")[1:], [*inside, "child_work"])
                self.assertEqual(path_to(grandchild["root"], "grandchild_work")[1:],
                                 [*inside, "forks_again", "grandchild_work"])
                self.assertEqual(children(child["root"])["main"]["calls"], 0)
                told = [r["frames"] for r in read_dump(trace) if r["type"] == "INHERITED"]
                self.assertEqual(told, [inside, [*inside, "forks_again"]])

    def test_a_child_of_what_calls_no_handlers_of_fork(self):
        """The function that a child began in is known, even if it records late, or its parent has no record of it."""
        kinds = {"_Fork": "_Fork()", "clone": "syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)",
                 "clone3": "syscall(SYS_clone3, &(struct clone_args){.exit_signal = SIGCHLD}, 64)"}
        for kind, call in kinds.items():
            with self.subTest(kind=kind):
                sources = [OTHER_FORKS + source.replace("fork()", call) for source in (LATE_CHILD, UNTOLD)]
                late, untold = [compiled(self.directory, source, "-finstrument-functions", "-D_GNU_SOURCE",
                                         name=f"{kind}{i}") for i, source in enumerate(sources)]
                trace = self.record(late, options=("--no-libcall",)).trace
                _, child = read_report(trace, "tree")["threads"]
                self.assertEqual(path_to(child["root"], "child_work")[1:], ["main", "forks", "child_work"])
                self.assertNotIn("guessed", children(child["root"])["main"]["marks"])
                trace = self.record(untold, options=("--no-libcall", "-b", "256k")).trace
                _, child, grandchild = read_report(trace, "tree")["threads"]
                self.assertEqual(path_to(child["root"], "child_work")[1:], ["main", "forks", "child_work"])
                self.assertEqual(path_to(grandchild["root"], "grandchild_work")[1:],
                                 ["main", "forks", "forks_again", "grandchild_work"])

    def test_a_child_whose_fork_is_not_known(self):
        """The child is in none of libc's functions that don't fork, though its parent is by then; a mark says that its
        frames are a guess."""
        source = OTHER_FORKS + LATE_CHILD.replace("fork()", "raw_clone()")
        program = compiled(self.directory, source, "-finstrument-functions", "-D_GNU_SOURCE")
        trace = self.record(program).trace
        tree = read_report(trace, "tree")
        _, child = tree["threads"]
        path = path_to(child["root"], "child_work")
        self.assertEqual(path[1], "main")
        self.assertNotIn("waitpid", path)
        main = children(child["root"])["main"]
        self.assertEqual((main["marks"]["inherited"], main["marks"]["guessed"]), (1, 1))
        frames = tree["summary"]["frames"]
        self.assertGreater(frames["guessed"], 0)
        self.assertEqual(frames["guessed"], frames["inherited"])

    def test_exec_of_which_the_kernel_has_the_moment(self):
        """The recorder notes the exec before it forks: the time up to the exec is not the program's."""
        done = self.record("/bin/true", options=("--kernel",))
        execs = [r["time_ns"] for r in read_dump(done.trace) if r["type"] == "EXECED"]
        if not execs:
            self.skipTest("recorded without the kernel")
        process, = read_info(done.trace)["processes"]
        self.assertEqual(process["start_ns"], execs[-1])
        thread, = read_report(done.trace, "tree")["threads"]
        self.assertIn("[loader]", children(thread["root"]))
        self.assertNotIn("[before recording]", children(thread["root"]))

    @cases.in_gate
    def test_fork(self):
        trace = self.record(sys.executable, "-c", FORKS, options=("--no-libcall",)).trace
        parent, child = read_report(trace, "tree")["threads"]
        path = path_to(child["root"], "child_work")
        self.assertEqual(path[1:], ["outer", "inner", "child_work"])
        outer = children(child["root"])["outer"]
        self.assertEqual(outer["calls"], 0)
        self.assertGreaterEqual(outer["cum_ns"], 50e6)
        self.assertEqual(children(parent["root"])["outer"]["calls"], 1)


if __name__ == "__main__":
    cases.main()
