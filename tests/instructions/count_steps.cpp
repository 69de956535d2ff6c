// count_steps [--places FILE] CMD...: runs CMD, each of whose counted calls stands
// between two breakpoints (int3), in any thread or child, and prints how many
// instructions each call executes. FILE gets a line "PATH OFFSET" for each of these
// instructions: the program or library that has it, and its offset in that file. Exit
// status 1 if there are no calls.
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace {

// One thread's stop.
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

uint64_t instruction_pointer(pid_t tid) {
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, tid, nullptr, &registers);
  return registers.rip;
}

bool is_at_breakpoint(pid_t tid) {
  const long word = ptrace(PTRACE_PEEKTEXT, tid, instruction_pointer(tid), nullptr);
  return (word & 0xFF) == 0xCC;
}

// Writes a line for each address that lies in a mapping of a file.
void write_places(pid_t tid, const std::set<uint64_t>& addresses, std::ostream& places) {
  std::ifstream maps("/proc/" + std::to_string(tid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uint64_t begin = 0, end = 0, offset = 0;
    char dash = 0;
    std::string rights, device, inode, path;
    words >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> inode;
    if (!(words >> path) || path[0] != '/') continue;
    for (auto at = addresses.lower_bound(begin); at != addresses.end() && *at < end;
         ++at) {
      places << path << ' ' << *at - begin + offset << '\n';
    }
  }
}

// Lets the thread do one step. Returns false if the thread has ended.
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

// Whether a thread that got SIGTRAP is behind a breakpoint, not at another event.
bool is_after_breakpoint(pid_t tid) {
  siginfo_t info{};
  if (ptrace(PTRACE_GETSIGINFO, tid, nullptr, &info) != 0) return false;
  return info.si_code == SI_KERNEL;
}

// Prints the steps of one thread up to its next breakpoint.
bool count(pid_t tid, std::ostream* places) {
  long steps = 0;
  std::set<uint64_t> addresses;
  for (; !is_at_breakpoint(tid); ++steps) {
    if (places != nullptr) addresses.insert(instruction_pointer(tid));
    if (!step(tid)) return false;
  }
  if (places != nullptr) write_places(tid, addresses, *places);
  step(tid);  // the breakpoint itself
  std::printf("%ld\n", steps);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::ofstream file;
  if (argc > 3 && std::strcmp(argv[1], "--places") == 0) {
    file.open(argv[2]);
    argv += 2;
    argc -= 2;
  }
  std::ostream* const places = file.is_open() ? &file : nullptr;
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
      if (is_after_breakpoint(stop.tid)) {
        calls += count(stop.tid, places) ? 1 : 0;
      }
    } else if (signal == SIGSTOP) {
      signal = 0;  // a thread begins
    }
    ptrace(PTRACE_CONT, stop.tid, nullptr, signal);
  }
  return calls > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
