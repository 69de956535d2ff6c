/* kill_at_stop N CMD...: runs CMD and kills it by SIGKILL when it makes its Nth ptrace()
 * call. If it ends before, prints how many such calls it made. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* Counts the calls of one thread up to `last`; the process is ended, or has ended. */
static long count_calls(pid_t pid, long last) {
  long calls = 0;
  int is_entry = 1;
  for (;;) {
    int status = 0;
    if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status)) return calls;
    int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      struct user_regs_struct registers;
      ptrace(PTRACE_GETREGS, pid, NULL, &registers);
      calls += is_entry && registers.orig_rax == SYS_ptrace;
      is_entry = !is_entry;
      signal = 0;
      if (calls == last) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        return calls;
      }
    } else if (signal == SIGTRAP) {
      signal = 0;
    }
    ptrace(PTRACE_SYSCALL, pid, NULL, signal);
  }
}

int main(int count, char** arguments) {
  if (count < 3) return EXIT_FAILURE;
  const long last = strtol(arguments[1], NULL, 10);
  const pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execvp(arguments[2], arguments + 2);
    _exit(127);
  }
  waitpid(pid, NULL, 0);
  ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
  printf("%ld\n", count_calls(pid, last));
  return EXIT_SUCCESS;
}
