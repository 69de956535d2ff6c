/* at_step N kill CMD...: runs CMD and kills it by SIGKILL when it makes its Nth ptrace()
 * call.
 * at_step N PID CMD...: has all threads of PID stop then (SIGSTOP) and go on: at once, or
 * eight such calls later, or after CMD, by the remainder of N by 3.
 * If CMD ends by itself, prints how many such calls it made, and has its status. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LATER = 8 };

static pid_t pid;     /* of CMD */
static pid_t stopped; /* who is stopped; 0: CMD is killed */
static long last;     /* the call at which that is done */

/* CMD is about to make this call. */
static void see_call(long number) {
  if (number == last && stopped == 0) {
    kill(pid, SIGKILL);
  } else if (stopped != 0) {
    if (number == last) kill(stopped, SIGSTOP);
    if ((number == last && last % 3 == 0) || (number == last + LATER && last % 3 == 1)) {
      kill(stopped, SIGCONT);
    }
  }
}

/* Runs CMD to its end, which `status` tells; returns how many calls it made. */
static long see_calls(int* status) {
  long calls = 0;
  int is_entry = 1;
  for (;;) {
    if (waitpid(pid, status, 0) < 0 || !WIFSTOPPED(*status)) return calls;
    int signal = WSTOPSIG(*status);
    if (signal == (SIGTRAP | 0x80)) {
      struct user_regs_struct registers;
      ptrace(PTRACE_GETREGS, pid, NULL, &registers);
      if (is_entry && registers.orig_rax == SYS_ptrace) see_call(++calls);
      is_entry = !is_entry;
      signal = 0;
    } else if (signal == SIGTRAP) {
      signal = 0;
    }
    ptrace(PTRACE_SYSCALL, pid, NULL, signal);
  }
}

int main(int count, char** arguments) {
  if (count < 4) return EXIT_FAILURE;
  last = strtol(arguments[1], NULL, 10);
  if (strcmp(arguments[2], "kill") != 0) {
    stopped = (pid_t)strtol(arguments[2], NULL, 10);
    if (stopped <= 0) return EXIT_FAILURE;
  }
  pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execvp(arguments[3], arguments + 3);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
  const long calls = see_calls(&status);
  if (stopped != 0) kill(stopped, SIGCONT);
  if (!WIFEXITED(status)) return EXIT_SUCCESS;
  printf("%ld\n", calls);
  return WEXITSTATUS(status);
}
