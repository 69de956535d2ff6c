// count_steps CMD...: runs CMD, which has two breakpoints of its own (int3), and prints
// how many instructions it executes between them. Exit status 1 if it has fewer.
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

// Lets the process go on until it is stopped; false: it has ended.
bool go_on(pid_t pid, __ptrace_request how) {
  int status = 0;
  int signal = 0;
  for (;;) {
    if (ptrace(how, pid, nullptr, signal) != 0 || waitpid(pid, &status, 0) != pid) {
      return false;
    }
    if (!WIFSTOPPED(status)) return false;
    signal = WSTOPSIG(status);
    if (signal == SIGTRAP) return true;
  }
}

bool is_at_breakpoint(pid_t pid) {
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, pid, nullptr, &registers);
  const long word = ptrace(PTRACE_PEEKTEXT, pid, registers.rip, nullptr);
  return (word & 0xFF) == 0xCC;
}

long count(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);  // stopped by exec
  if (!go_on(pid, PTRACE_CONT)) return -1;
  long steps = 0;
  for (; !is_at_breakpoint(pid); ++steps) {
    if (!go_on(pid, PTRACE_SINGLESTEP)) return -1;
  }
  ptrace(PTRACE_CONT, pid, nullptr, nullptr);  // the second breakpoint
  while (go_on(pid, PTRACE_CONT)) {
  }
  return steps;
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
  const long steps = count(pid);
  if (steps < 0) return EXIT_FAILURE;
  std::printf("%ld\n", steps);
  return EXIT_SUCCESS;
}
