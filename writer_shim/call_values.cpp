#include "writer_shim/call_values.hpp"

#include <arctrace/format.h>

#include "src/shim_interface.h"
#include "writer_shim/function_patterns.hpp"
#include "writer_shim/text.hpp"

namespace arctrace::shim {
namespace {

struct WellKnown {
  const char* name;
  const char* values;
};

constexpr WellKnown kWellKnown[] = {
    {"_Exit", "1b40"},
    {"__fprintf_chk", "1g803h800b40"},
    {"__fxstat", "1b402b403g800b41"},
    {"__fxstat64", "1b402b403g800b41"},
    {"__lxstat", "1b402h803g800b41"},
    {"__lxstat64", "1b402h803g800b41"},
    {"__open64_2", "1h802m400b41"},
    {"__open_2", "1h802m400b41"},
    {"__printf_chk", "2h800b40"},
    {"__read_chk", "1b402g803c804c800b81"},
    {"__xstat", "1b402h803g800b41"},
    {"__xstat64", "1b402h803g800b41"},
    {"_exit", "1b40"},
    {"accept", "1b402g803g800b41"},
    {"accept4", "1b402g803g804s400b41"},
    {"access", "1h802n400b41"},
    {"aligned_alloc", "1c802c800g82"},
    {"atoi", "1h800b40"},
    {"bind", "1b402g803c400b41"},
    {"brk", "1g800b41"},
    {"calloc", "1c802c800g82"},
    {"chdir", "1h800b41"},
    {"chmod", "1h802e400b41"},
    {"clock_getres", "1u402g800b41"},
    {"clock_gettime", "1u402g800b41"},
    {"clock_nanosleep", "1u402d403g804g800k40"},
    {"close", "1b400b41"},
    {"closedir", "1g800b41"},
    {"connect", "1b402g803c400b41"},
    {"creat", "1h802e400b41"},
    {"creat64", "1h802e400b41"},
    {"dlclose", "1g800b40"},
    {"dlopen", "1h802d400g80"},
    {"dlsym", "1g802h800g80"},
    {"dup", "1b400b41"},
    {"dup2", "1b402b400b41"},
    {"dup3", "1b402b403m400b41"},
    {"epoll_create1", "1d400b41"},
    {"epoll_ctl", "1b402b403b404g800b41"},
    {"epoll_wait", "1b402g803b404b400b41"},
    {"eventfd", "1c402d400b41"},
    {"execv", "1h802g800b41"},
    {"execve", "1h802g803g800b41"},
    {"execvp", "1h802g800b41"},
    {"exit", "1b40"},
    {"faccessat", "1l402h803n404d400b41"},
    {"fchmod", "1b402e400b41"},
    {"fclose", "1g800b41"},
    {"fcntl", "1b402b400b41"},
    {"fcntl64", "1b402b400b41"},
    {"fdatasync", "1b400b41"},
    {"fdopen", "1b402h800g82"},
    {"fflush", "1g800b41"},
    {"fgets", "1g802b403g800g80"},
    {"flock", "1b402d400b41"},
    {"fopen", "1h802h800g82"},
    {"fopen64", "1h802h800g82"},
    {"fork", "0b41"},
    {"fprintf", "1g802h800b40"},
    {"fputs", "1h802g800b40"},
    {"fread", "1g802c803c804g800c80"},
    {"free", "1g80"},
    {"freopen", "1h802h803g800g82"},
    {"freopen64", "1h802h803g800g82"},
    {"fseek", "1g802b803q400b41"},
    {"fseeko", "1g802b803q400b41"},
    {"fstat", "1b402g800b41"},
    {"fstat64", "1b402g800b41"},
    {"fstatat", "1l402h803g804d400b41"},
    {"fstatat64", "1l402h803g804d400b41"},
    {"fsync", "1b400b41"},
    {"ftruncate", "1b402b800b41"},
    {"ftruncate64", "1b402b800b41"},
    {"fwrite", "1g802c803c804g800c80"},
    {"getaddrinfo", "1h802h803g804g800b40"},
    {"getcwd", "1g802c800g82"},
    {"getenv", "1h800h80"},
    {"getpid", "0b40"},
    {"getppid", "0b40"},
    {"getsockopt", "1b402b403b404g805g800b41"},
    {"ioctl", "1b402d403g800b41"},
    {"kill", "1b402t400b41"},
    {"link", "1h802h800b41"},
    {"listen", "1b402b400b41"},
    {"lseek", "1b402b803q400b81"},
    {"lseek64", "1b402b803q400b81"},
    {"lstat", "1h802g800b41"},
    {"lstat64", "1h802g800b41"},
    {"madvise", "1g802c803b400b41"},
    {"malloc", "1c800g82"},
    {"memalign", "1c802c800g82"},
    {"memcmp", "1g802g803c800b40"},
    {"memcpy", "1g802g803c800g80"},
    {"memmove", "1g802g803c800g80"},
    {"memset", "1g802b403c800g80"},
    {"mkdir", "1h802e400b41"},
    {"mkdirat", "1l402h803e400b41"},
    {"mmap", "1g802c803o404p405b406b800g81"},
    {"mmap64", "1g802c803o404p405b406b800g81"},
    {"mprotect", "1g802c803o400b41"},
    {"mremap", "1g802c803c804d400g81"},
    {"munmap", "1g802c800b41"},
    {"nanosleep", "1g802g800b41"},
    {"open", "1h802m403e400b41"},
    {"open64", "1h802m403e400b41"},
    {"openat", "1l402h803m404e400b41"},
    {"openat64", "1l402h803m404e400b41"},
    {"opendir", "1h800g82"},
    {"pclose", "1g800b41"},
    {"perror", "1h80"},
    {"pipe", "1g800b41"},
    {"pipe2", "1g802m400b41"},
    {"poll", "1g802c803b400b41"},
    {"popen", "1h802h800g82"},
    {"posix_memalign", "1g802c803c800k40"},
    {"posix_spawn", "1g802h803g800k40"},
    {"posix_spawnp", "1g802h803g800k40"},
    {"pread", "1b402g803c804b800b81"},
    {"pread64", "1b402g803c804b800b81"},
    {"printf", "1h800b40"},
    {"pthread_cond_broadcast", "1g800k40"},
    {"pthread_cond_signal", "1g800k40"},
    {"pthread_cond_timedwait", "1g802g803g800k40"},
    {"pthread_cond_wait", "1g802g800k40"},
    {"pthread_create", "1g802g803g804g800k40"},
    {"pthread_join", "1d802g800k40"},
    {"pthread_mutex_lock", "1g800k40"},
    {"pthread_mutex_timedlock", "1g802g800k40"},
    {"pthread_mutex_trylock", "1g800k40"},
    {"pthread_mutex_unlock", "1g800k40"},
    {"pthread_rwlock_rdlock", "1g800k40"},
    {"pthread_rwlock_unlock", "1g800k40"},
    {"pthread_rwlock_wrlock", "1g800k40"},
    {"pthread_spin_lock", "1g800k40"},
    {"pthread_spin_unlock", "1g800k40"},
    {"puts", "1h800b40"},
    {"pwrite", "1b402g803c804b800b81"},
    {"pwrite64", "1b402g803c804b800b81"},
    {"raise", "1t400b41"},
    {"read", "1b402g803c800b81"},
    {"readdir", "1g800g80"},
    {"readdir64", "1g800g80"},
    {"readlink", "1h802g803c800b81"},
    {"readv", "1b402g803b400b81"},
    {"realloc", "1g802c800g82"},
    {"reallocarray", "1g802c803c800g82"},
    {"realpath", "1h802g800g82"},
    {"recv", "1b402g803c804d400b81"},
    {"recvfrom", "1b402g803c804d405g806c400b81"},
    {"recvmsg", "1b402g803d400b81"},
    {"remove", "1h800b41"},
    {"rename", "1h802h800b41"},
    {"rmdir", "1h800b41"},
    {"sched_yield", "0b41"},
    {"secure_getenv", "1h800h80"},
    {"select", "1b402g803g804g805g800b41"},
    {"sem_post", "1g800b41"},
    {"sem_trywait", "1g800b41"},
    {"sem_wait", "1g800b41"},
    {"send", "1b402g803c804d400b81"},
    {"sendfile", "1b402b403g804c800b81"},
    {"sendfile64", "1b402b403g804c800b81"},
    {"sendmsg", "1b402g803d400b81"},
    {"sendto", "1b402g803c804d405g806c400b81"},
    {"setenv", "1h802h803b400b41"},
    {"setsockopt", "1b402b403b404g805c400b41"},
    {"shutdown", "1b402b400b41"},
    {"sigaction", "1t402g803g800b41"},
    {"signal", "1t402g800g81"},
    {"sleep", "1c400c40"},
    {"socket", "1r402s403b400b41"},
    {"socketpair", "1r402s403b404g800b41"},
    {"stat", "1h802g800b41"},
    {"stat64", "1h802g800b41"},
    {"strcasecmp", "1h802h800b40"},
    {"strcat", "1g802h800g80"},
    {"strchr", "1h802b400h80"},
    {"strcmp", "1h802h800b40"},
    {"strcpy", "1g802h800g80"},
    {"strdup", "1h800h82"},
    {"strlen", "1h800c80"},
    {"strncasecmp", "1h802h803c800b40"},
    {"strncmp", "1h802h803c800b40"},
    {"strncpy", "1g802h803c800g80"},
    {"strndup", "1h802c800h82"},
    {"strrchr", "1h802b400h80"},
    {"strstr", "1h802h800h80"},
    {"strtol", "1h802g803b400b80"},
    {"strtoul", "1h802g803b400b80"},
    {"symlink", "1h802h800b41"},
    {"syscall", "1b800b81"},
    {"system", "1h800b41"},
    {"truncate", "1h802b800b41"},
    {"truncate64", "1h802b800b41"},
    {"unlink", "1h800b41"},
    {"unlinkat", "1l402h803d400b41"},
    {"unsetenv", "1h800b41"},
    {"usleep", "1c400b41"},
    {"vfork", "0b41"},
    {"wait", "1g800b41"},
    {"waitpid", "1b402g803d400b41"},
    {"write", "1b402g803c800b81"},
    {"writev", "1b402g803b400b81"},
};

const ShimOptions* chosen;  // null: no values
constinit arctrace_shim_values all[ARCTRACE_SHIM_VALUES_MAX]{};
uint32_t values_used = 1;  // the first is none's

bool is_same(const arctrace_shim_value& a, const arctrace_shim_value& b) {
  return a.kind == b.kind && a.argument == b.argument && a.size == b.size &&
         a.failure == b.failure;
}

bool is_same(const arctrace_shim_values& a, const arctrace_shim_values& b) {
  bool same = a.argument_count == b.argument_count && is_same(a.result, b.result);
  for (uint32_t i = 0; same && i < a.argument_count; ++i) {
    same = is_same(a.arguments[i], b.arguments[i]);
  }
  return same;
}

bool is_size(uint8_t size) { return size == 1 || size == 2 || size == 4 || size == 8; }

// Takes what `text` says of values in the place of what there was of the same sort.
void read_values(const char* text, arctrace_shim_values& values) {
  bool is_first = true;
  while (text[0] != '\0' && text[1] != '\0' && text[2] != '\0' && text[3] != '\0') {
    const arctrace_shim_value value = {
        static_cast<uint8_t>(text[1] - 'a'), static_cast<uint8_t>(text[0] - '0'),
        static_cast<uint8_t>(text[2] - '0'), static_cast<uint8_t>(text[3] - '0')};
    text += 4;
    if (value.argument > ARCTRACE_SHIM_ARGUMENTS_MAX || !is_size(value.size) ||
        value.kind < ARCTRACE_VALUE_SIGNED || value.kind > ARCTRACE_VALUE_CLOCK) {
      return;
    }
    if (value.argument == 0) {
      values.result = value;
      continue;
    }
    if (is_first) values.argument_count = 0;
    is_first = false;
    if (values.argument_count == ARCTRACE_SHIM_ARGUMENTS_MAX) return;
    values.arguments[values.argument_count++] = value;
  }
}

// 0: there are too many.
uint32_t number_of(const arctrace_shim_values& values) {
  for (uint32_t i = 1; i < values_used; ++i) {
    if (is_same(all[i], values)) return i;
  }
  if (values_used == ARCTRACE_SHIM_VALUES_MAX) return 0;
  all[values_used] = values;
  return values_used++;
}

// A copy that gcc has made of a function, and changed its parameters.
bool has_other_parameters(const char* name) {
  constexpr const char* kMarks[] = {".isra.", ".constprop.", ".part."};
  for (; *name != '\0'; ++name) {
    for (const char* mark : kMarks) {
      if (starts_with(name, mark)) return true;
    }
  }
  return false;
}

}  // namespace

void choose_values(const ShimOptions& options) {
  chosen = &options;
  arctrace_shim_set_values(all);
}

bool have_values() { return chosen != nullptr; }

uint32_t values_of(const char* name, Callee callee) {
  if (chosen == nullptr || has_other_parameters(name)) return 0;
  arctrace_shim_values values{};
  if (chosen->auto_values && callee == Callee::kOfLibrary) {
    for (const WellKnown& known : kWellKnown) {
      if (equal(known.name, name)) read_values(known.values, values);
    }
  }
  const uint64_t patterns = matching_values(name);
  for (size_t i = 0; i < chosen->pattern_count; ++i) {
    if ((patterns >> i & 1) != 0) read_values(chosen->patterns[i].values, values);
  }
  if (values.argument_count == 0 && values.result.kind == 0) return 0;
  return number_of(values);
}

}  // namespace arctrace::shim
