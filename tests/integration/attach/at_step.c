/* at_step N kill CMD...: runs CMD and kills it by SIGKILL when it makes its Nth ptrace()
 * call.
 * at_step N late CMD...: keeps CMD waiting for 11 s at that call, as if it got no CPU.
 * at_step N PID CMD...: has all threads of PID stop then (SIGSTOP) and continue: at once,
 * or eight such calls later, or after CMD, by the remainder of N by 3.
 * at_step N -PID CMD...: has CMD itself stop then as by Ctrl-Z (SIGTSTP), and fails if it
 * would stop while it still traces a thread of PID; instead of stopping it continues. If
 * CMD ends by itself, prints how many such calls it made, and has its status. */
#include <dirent.h>
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

static pid_t pid;      /* of CMD */
static pid_t stopped;  /* stopped process; 0: CMD is killed, negative: CMD is stopped */
static long last;      /* the call at which that is done */
static int would_stop; /* CMD, at a stop that it was asked for */
static int has_failed;
static int is_late; /* CMD gets no CPU for a while */

/* Called when CMD is about to make this call. */
static void see_call(long number) {
  if (is_late) {
    if (number == last) sleep(11);
  } else if (number == last && stopped == 0) {
    kill(pid, SIGKILL);
  } else if (number == last && stopped < 0) {
    kill(pid, SIGTSTP);
  } else if (stopped > 0) {
    if (number == last) kill(stopped, SIGSTOP);
    if ((number == last && last % 3 == 0) || (number == last + LATER && last % 3 == 1)) {
      kill(stopped, SIGCONT);
    }
  }
}

/* A number in a file of /proc, behind `name`; `base` as in strtoul(). */
static unsigned long number_in(const char* path, const char* name, int base) {
  char line[256];
  unsigned long number = 0;
  FILE* file = fopen(path, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0)
      number = strtoul(line + strlen(name), NULL, base);
  }
  if (file != NULL) fclose(file);
  return number;
}

static int traces_threads_of(pid_t process) {
  char path[300];
  int found = 0;
  snprintf(path, sizeof path, "/proc/%d/task", process);
  DIR* tasks = opendir(path);
  for (struct dirent* task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
    snprintf(path, sizeof path, "/proc/%d/task/%s/status", process, task->d_name);
    if (task->d_name[0] != '.' && number_in(path, "TracerPid:", 10) != 0) found = 1;
  }
  if (tasks != NULL) closedir(tasks);
  return found;
}

/* The signal that CMD gets in place of one that would stop it unless it has a handler. */
static int instead_of_stop(int signal) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/status", pid);
  if ((number_in(path, "SigCgt:", 16) >> (SIGTSTP - 1) & 1) != 0) return signal;
  would_stop = 1;
  if (traces_threads_of(-stopped)) has_failed = 1;
  kill(pid, SIGCONT); /* its other threads may have stopped */
  return 0;
}

/* Runs CMD to its end; `status` gets how it ended. Returns how many calls it made. */
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
    } else if (signal == SIGTSTP && stopped < 0) {
      signal = instead_of_stop(signal);
    }
    ptrace(PTRACE_SYSCALL, pid, NULL, signal);
  }
}

int main(int count, char** arguments) {
  if (count < 4) return EXIT_FAILURE;
  last = strtol(arguments[1], NULL, 10);
  is_late = strcmp(arguments[2], "late") == 0;
  if (!is_late && strcmp(arguments[2], "kill") != 0) {
    stopped = (pid_t)strtol(arguments[2], NULL, 10);
    if (stopped == 0) return EXIT_FAILURE;
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
  if (stopped > 0) kill(stopped, SIGCONT);
  if (stopped < 0 && calls >= last && !would_stop) has_failed = 1;
  if (has_failed) return EXIT_FAILURE;
  if (!WIFEXITED(status)) return EXIT_SUCCESS;
  printf("%ld\n", calls);
  return WEXITSTATUS(status);
}
