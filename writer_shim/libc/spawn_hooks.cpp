// libc's functions are called with another environment.
#include "writer_shim/libc/spawn_hooks.hpp"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>

#include "writer_shim/libc/exec_hooks.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/libc/session_environment.hpp"

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
