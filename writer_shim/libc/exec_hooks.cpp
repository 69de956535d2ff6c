// The hooks of exec and posix_spawn. Functions that take a path make the system call
// themselves; those that search PATH, or take a descriptor, call libc's with another
// environment.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <unistd.h>

#include "src/base/raw_syscall.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/libc/session_environment.hpp"

namespace arctrace::shim {
namespace {

using Vector = char* const*;

RealFunction<int(const char*, Vector, Vector)> real_execvpe("execvpe");
RealFunction<int(int, Vector, Vector)> real_fexecve("fexecve");

// Returns as libc's wrappers of system calls do.
int finish(long result) {
  if (result >= 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

int not_supported() { return finish(-ENOSYS); }

// Returns call(environment), which executes the program.
template <class Call>
int become(const arctrace_shim_program& program, Vector environment, const Call& call) {
  return with_session_environment(program, environment, [&call](Vector changed) {
    arctrace_shim_process_end(ARCTRACE_END_EXEC, 0);  // after the exec it is too late
    arctrace_shim_exec(0, 0);
    const int result = call(changed);
    arctrace_shim_process_end(ARCTRACE_END_NONE, 0);
    return result;
  });
}

int execute(const char* path, Vector arguments, Vector environment) {
  const arctrace_shim_program program{AT_FDCWD, path, 0};
  return become(program, environment, [=](Vector changed) {
    return finish(raw_syscall(SYS_execve, sys::pointer_argument(path),
                              sys::pointer_argument(arguments),
                              sys::pointer_argument(changed)));
  });
}

// libc searches PATH, and runs a file without a known format as a script of sh.
int execute_found(const char* file, Vector arguments, Vector environment) {
  auto* real = real_execvpe.get();
  if (real == nullptr) return not_supported();
  const arctrace_shim_program program{AT_FDCWD, file, 1};
  return become(program, environment,
                [=](Vector changed) { return real(file, arguments, changed); });
}

// Calls run(arguments, environment) for execl's list: `first`, then strings up to a null,
// after which comes the environment if `with_environment`.
template <class Run>
int with_listed(const char* first, va_list list, bool with_environment, const Run& run) {
  va_list counting;
  va_copy(counting, list);
  size_t count = 0;
  if (first != nullptr) {
    ++count;
    while (va_arg(counting, const char*) != nullptr) ++count;
  }
  va_end(counting);
  auto** arguments = static_cast<char**>(alloca((count + 1) * sizeof(char*)));
  arguments[0] = const_cast<char*>(first);
  for (size_t i = 1; i <= count; ++i) arguments[i] = va_arg(list, char*);
  return run(arguments, with_environment ? va_arg(list, Vector) : environ);
}

}  // namespace

void find_exec_functions() {
  real_execvpe.get();
  real_fexecve.get();
}

}  // namespace arctrace::shim

using namespace arctrace;  // the C functions below are the namespace's face
using namespace arctrace::shim;

ARCTRACE_HOOK int execve(const char* path, char* const arguments[],
                         char* const environment[]) noexcept {
  return execute(path, arguments, environment);
}

ARCTRACE_HOOK int execv(const char* path, char* const arguments[]) noexcept {
  return execute(path, arguments, environ);
}

ARCTRACE_HOOK int execvp(const char* file, char* const arguments[]) noexcept {
  return execute_found(file, arguments, environ);
}

ARCTRACE_HOOK int execvpe(const char* file, char* const arguments[],
                          char* const environment[]) noexcept {
  return execute_found(file, arguments, environment);
}

ARCTRACE_HOOK int execl(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const int result = with_listed(
      first, list, false, [path](Vector a, Vector e) { return execute(path, a, e); });
  va_end(list);
  return result;
}

ARCTRACE_HOOK int execle(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const int result = with_listed(
      first, list, true, [path](Vector a, Vector e) { return execute(path, a, e); });
  va_end(list);
  return result;
}

ARCTRACE_HOOK int execlp(const char* file, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const int result = with_listed(first, list, false, [file](Vector a, Vector e) {
    return execute_found(file, a, e);
  });
  va_end(list);
  return result;
}

ARCTRACE_HOOK int fexecve(int fd, char* const arguments[],
                          char* const environment[]) noexcept {
  auto* real = real_fexecve.get();
  if (real == nullptr) return not_supported();
  const arctrace_shim_program program{fd, "", 0};
  return become(program, environment,
                [=](Vector changed) { return real(fd, arguments, changed); });
}

ARCTRACE_HOOK int execveat(int fd, const char* path, char* const arguments[],
                           char* const environment[], int flags) noexcept {
  const arctrace_shim_program program{fd, path, 0};
  return become(program, environment, [=](Vector changed) {
    return finish(raw_syscall(SYS_execveat, fd, sys::pointer_argument(path),
                              sys::pointer_argument(arguments),
                              sys::pointer_argument(changed), flags));
  });
}

// posix_spawn: libc's functions are called with another environment.
namespace arctrace::shim {
namespace {

using Vector = char* const*;
using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*,
                  const posix_spawnattr_t*, Vector, Vector);

RealFunction<Spawn> real_spawn("posix_spawn");
RealFunction<Spawn> real_spawnp("posix_spawnp");

int spawn(Spawn* real, bool is_looked_up, pid_t* pid, const char* path,
          const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
          Vector arguments, Vector environment) {
  if (real == nullptr) return ENOSYS;
  const arctrace_shim_program program{AT_FDCWD, path, is_looked_up};
  return with_session_environment(program, environment, [=](Vector changed) {
    pid_t child = 0;
    const uint64_t ticks = arctrace_shim_now();
    const int error = real(&child, path, actions, attributes, arguments, changed);
    if (error == 0) arctrace_shim_exec(static_cast<uint32_t>(child), ticks);
    if (error == 0 && pid != nullptr) *pid = child;
    return error;
  });
}

}  // namespace

void find_spawn_functions() {
  real_spawn.get();
  real_spawnp.get();
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

ARCTRACE_HOOK int posix_spawn(pid_t* pid, const char* path,
                              const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes,
                              char* const arguments[], char* const environment[]) {
  return spawn(real_spawn.get(), false, pid, path, actions, attributes, arguments,
               environment);
}

ARCTRACE_HOOK int posix_spawnp(pid_t* pid, const char* file,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes,
                               char* const arguments[], char* const environment[]) {
  return spawn(real_spawnp.get(), true, pid, file, actions, attributes, arguments,
               environment);
}
