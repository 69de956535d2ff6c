// count_steps CMD...: runs CMD, whose calls stand between two breakpoints each (int3), in
// whatever thread or child, and prints for each how many instructions it executes between
// them. Exit status 1 if there are none.
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

// A stop of one of the threads.
struct Stop {
  pid_t tid;  // -1: the process has ended
  int signal;
};

Stop next_stop(pid_t of) {
  int status = 0;
  const pid_t tid = waitpid(of, &status, __WALL);
  if (tid < 0 || (of > 0 && !WIFSTOPPED(status))) return {-1, 0};
  return {tid, WIFSTOPPED(status) ? WSTOPSIG(status) : 0};
}

bool is_at_breakpoint(pid_t tid) {
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, tid, nullptr, &registers);
  const long word = ptrace(PTRACE_PEEKTEXT, tid, registers.rip, nullptr);
  return (word & 0xFF) == 0xCC;
}

// Lets the thread do one step; false: it has ended.
bool step(pid_t tid) {
  int signal = 0;
  for (;;) {
    if (ptrace(PTRACE_SINGLESTEP, tid, nullptr, signal) != 0) return false;
    const Stop stop = next_stop(tid);
    if (stop.tid < 0) return false;
    if (stop.signal == SIGTRAP) return true;
    signal = stop.signal;
  }
}

// Whether a thread that got SIGTRAP stands after a breakpoint, not at another event.
bool is_after_breakpoint(pid_t tid) {
  siginfo_t info{};
  if (ptrace(PTRACE_GETSIGINFO, tid, nullptr, &info) != 0) return false;
  return info.si_code == SI_KERNEL;
}

// Prints the steps of one thread up to its next breakpoint.
bool count(pid_t tid) {
  long steps = 0;
  for (; !is_at_breakpoint(tid); ++steps) {
    if (!step(tid)) return false;
  }
  step(tid);  // the breakpoint itself
  std::printf("%ld\n", steps);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return EXIT_FAILURE;
  const pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    execv(argv[1], argv + 1);
    _exit(127);
  }
  next_stop(pid);  // by exec
  ptrace(PTRACE_SETOPTIONS, pid, nullptr,
         PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL);
  ptrace(PTRACE_CONT, pid, nullptr, 0);
  int calls = 0;
  for (Stop stop = next_stop(-1); stop.tid > 0; stop = next_stop(-1)) {
    if (stop.signal == 0) continue;  // one thread has ended
    int signal = stop.signal;
    if (signal == SIGTRAP) {
      signal = 0;
      if (is_after_breakpoint(stop.tid)) calls += count(stop.tid) ? 1 : 0;
    } else if (signal == SIGSTOP) {
      signal = 0;  // a thread begins
    }
    ptrace(PTRACE_CONT, stop.tid, nullptr, signal);
  }
  return calls > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
