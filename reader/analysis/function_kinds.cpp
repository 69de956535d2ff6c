#include "reader/analysis/function_kinds.hpp"

#include <algorithm>
#include <array>

#include "src/base/function_names.hpp"

namespace arctrace::reader {
namespace {

constexpr std::string_view kSeparator = ", ";

struct NamesOfKind {
  FunctionKind kind;
  std::string_view names;  // with kSeparator between them
};

constexpr NamesOfKind kNamesOfKinds[] = {
    {FunctionKind::kAllocation,
     "aligned_alloc, asprintf, calloc, cfree, free, malloc, malloc_trim, "
     "malloc_usable_size, memalign, operator delete, operator delete[], "
     "operator new, operator new[], posix_memalign, pvalloc, realloc, "
     "reallocarray, strdup, strndup, valloc, vasprintf, wcsdup"},
    {FunctionKind::kCondition,
     "cnd_broadcast, cnd_signal, cnd_timedwait, cnd_wait, pthread_barrier_wait, "
     "pthread_cond_broadcast, pthread_cond_clockwait, pthread_cond_signal, "
     "pthread_cond_timedwait, pthread_cond_wait, "
     "std::condition_variable::notify_all, std::condition_variable::notify_one, "
     "std::condition_variable::wait"},
    {FunctionKind::kFile,
     "access, chdir, chmod, chown, closedir, eaccess, euidaccess, faccessat, "
     "fallocate, fchdir, fchmod, fchmodat, fchown, fchownat, fdopendir, fstat, "
     "fstatat, fstatfs, fstatvfs, ftruncate, fts_close, fts_open, fts_read, ftw, "
     "futimens, fxstat, fxstatat, getcwd, getdents, glob, lchown, link, linkat, "
     "lstat, lxstat, mkdir, mkdirat, mkdtemp, mkfifo, mknod, mknodat, nftw, "
     "opendir, posix_fallocate, readdir, readdir_r, readlink, readlinkat, "
     "realpath, remove, rename, renameat, renameat2, rewinddir, rmdir, scandir, "
     "stat, statfs, statvfs, statx, symlink, symlinkat, truncate, umask, unlink, "
     "unlinkat, utime, utimensat, utimes, xstat"},
    {FunctionKind::kFutex,
     "futex, futex_abstimed_wait64, futex_abstimed_wait_cancelable64, futex_wait, "
     "futex_wake, lll_lock_wait, lll_lock_wait_private, lll_lock_wake"},
    {FunctionKind::kIo,
     "aio_read, aio_suspend, aio_write, close, close_range, closefrom, "
     "copy_file_range, creat, dprintf, dup, dup2, dup3, fclose, fcloseall, fcntl, "
     "fdatasync, fdopen, fflush, fflush_unlocked, fgetc, fgetc_unlocked, fgets, "
     "fgets_unlocked, fgetwc, fgetws, fopen, fopen64, fprintf, fputc, "
     "fputc_unlocked, fputs, fputs_unlocked, fputwc, fputws, fread, "
     "fread_unlocked, freopen, fscanf, fseek, fseeko, fsync, ftell, ftello, "
     "fwprintf, fwrite, fwrite_unlocked, getc, getc_unlocked, getchar, "
     "getchar_unlocked, getdelim, getline, getwc, getwchar, io_getevents, "
     "io_submit, ioctl, lio_listio, lseek, mkostemp, mkstemp, open, openat, "
     "overflow, perror, pipe, pipe2, posix_fadvise, pread, preadv, preadv2, "
     "printf, putc, putc_unlocked, putchar, putchar_unlocked, puts, putwc, "
     "putwchar, pwrite, pwritev, pwritev2, read, readahead, readv, rewind, scanf, "
     "sendfile, splice, sync, sync_file_range, syncfs, tcdrain, tcflush, tee, "
     "tmpfile, uflow, ungetc, vdprintf, vfprintf, vfscanf, vfwprintf, vmsplice, "
     "vprintf, vscanf, vwprintf, wprintf, write, writev"},
    {FunctionKind::kLoader,
     "dl_iterate_phdr, dladdr, dladdr1, dlclose, dlmopen, dlopen, dlsym, dlvsym"},
    {FunctionKind::kLock,
     "call_once, cxa_guard_acquire, cxa_guard_release, flock, flockfile, "
     "ftrylockfile, funlockfile, lockf, mtx_lock, mtx_timedlock, mtx_trylock, "
     "mtx_unlock, pthread_mutex_clocklock, pthread_mutex_lock, "
     "pthread_mutex_timedlock, pthread_mutex_trylock, pthread_mutex_unlock, "
     "pthread_once, pthread_rwlock_clockrdlock, pthread_rwlock_clockwrlock, "
     "pthread_rwlock_rdlock, pthread_rwlock_timedrdlock, "
     "pthread_rwlock_timedwrlock, pthread_rwlock_tryrdlock, "
     "pthread_rwlock_trywrlock, pthread_rwlock_unlock, pthread_rwlock_wrlock, "
     "pthread_spin_lock, pthread_spin_trylock, pthread_spin_unlock"},
    {FunctionKind::kMemory,
     "brk, madvise, memfd_create, mincore, mlock, mlock2, mlockall, mmap, "
     "mprotect, mremap, msync, munlock, munlockall, munmap, pkey_mprotect, "
     "posix_madvise, sbrk, shm_open, shm_unlink, shmat, shmctl, shmdt, shmget"},
    {FunctionKind::kNetwork,
     "accept, accept4, bind, connect, freeaddrinfo, getaddrinfo, gethostbyaddr, "
     "gethostbyname, gethostbyname2, gethostbyname_r, getifaddrs, getnameinfo, "
     "getpeername, getsockname, getsockopt, if_nametoindex, listen, recv, "
     "recvfrom, recvmmsg, recvmsg, res_nquery, res_nsearch, res_query, res_search, "
     "send, sendmmsg, sendmsg, sendto, setsockopt, shutdown, socket, socketpair"},
    {FunctionKind::kPoll,
     "epoll_create, epoll_create1, epoll_ctl, epoll_pwait, epoll_pwait2, "
     "epoll_wait, eventfd, eventfd_read, eventfd_write, inotify_add_watch, "
     "inotify_init, inotify_init1, inotify_rm_watch, poll, ppoll, pselect, select, "
     "signalfd, timerfd_create, timerfd_gettime, timerfd_settime"},
    {FunctionKind::kProcess,
     "_Exit, _exit, abort, clone, clone3, daemon, execl, execle, execlp, execv, "
     "execve, execveat, execvp, execvpe, exit, fexecve, fork, getpid, getppid, "
     "pclose, popen, posix_spawn, posix_spawnp, prctl, ptrace, quick_exit, "
     "setpgid, setsid, system, vfork, wait, wait3, wait4, waitid, waitpid"},
    {FunctionKind::kSemaphore,
     "mq_close, mq_open, mq_receive, mq_send, mq_timedreceive, mq_timedsend, "
     "msgrcv, msgsnd, sem_clockwait, sem_close, sem_open, sem_post, sem_timedwait, "
     "sem_trywait, sem_wait, semctl, semget, semop, semtimedop"},
    {FunctionKind::kSignal,
     "alarm, kill, killpg, pthread_kill, pthread_sigmask, pthread_sigqueue, raise, "
     "setitimer, sigaction, sigaltstack, signal, sigpending, sigprocmask, "
     "sigqueue, tgkill, timer_create, timer_settime"},
    {FunctionKind::kSleep,
     "clock_nanosleep, nanosleep, pause, pthread_yield, sched_yield, sigsuspend, "
     "sigtimedwait, sigwait, sigwaitinfo, sleep, std::this_thread::sleep_for, "
     "thrd_sleep, thrd_yield, usleep"},
    {FunctionKind::kThread,
     "pthread_cancel, pthread_clockjoin_np, pthread_create, pthread_detach, "
     "pthread_exit, pthread_join, pthread_timedjoin_np, pthread_tryjoin_np, "
     "std::thread::_M_start_thread, std::thread::detach, std::thread::join, "
     "thrd_create, thrd_detach, thrd_exit, thrd_join"},
    {FunctionKind::kTime,
     "clock, clock_getres, clock_gettime, getrusage, gettimeofday, gmtime, "
     "gmtime_r, localtime, localtime_r, mktime, strftime, time, times, "
     "timespec_get"},
};

struct Entry {
  std::string_view name;
  FunctionKind kind;
};

constexpr bool by_name(const Entry& a, const Entry& b) { return a.name < b.name; }
constexpr bool same_name(const Entry& a, const Entry& b) { return a.name == b.name; }

constexpr size_t count_names() {
  size_t count = 0;
  for (const NamesOfKind& row : kNamesOfKinds) {
    count += 1 + static_cast<size_t>(std::count(row.names.begin(), row.names.end(), ','));
  }
  return count;
}

// All names with their kinds, sorted by name.
constexpr std::array<Entry, count_names()> entries_by_name() {
  std::array<Entry, count_names()> entries{};
  size_t filled = 0;
  for (const NamesOfKind& row : kNamesOfKinds) {
    std::string_view rest = row.names;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(kSeparator));
      entries[filled++] = Entry{name, row.kind};
      rest.remove_prefix(std::min(rest.size(), name.size() + kSeparator.size()));
    }
  }
  std::sort(entries.begin(), entries.end(), by_name);
  return entries;
}

constexpr std::array kEntries = entries_by_name();
static_assert(std::adjacent_find(kEntries.begin(), kEntries.end(), same_name) ==
              kEntries.end());

constexpr std::array<std::string_view, kFunctionKinds> kNames = {
    "allocation", "condition", "file",    "futex", "io",      "loader",
    "lock",       "memory",    "network", "poll",  "process", "semaphore",
    "signal",     "sleep",     "thread",  "time"};

// The libraries whose functions of these names are the ones meant.
constexpr std::array<std::string_view, 8> kModules = {
    "ld-linux",   "libc-2", "libc.so",   "libjemalloc",
    "libpthread", "librt",  "libstdc++", "libtcmalloc"};

bool is_system_library(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return path.empty() ||
         std::any_of(kModules.begin(), kModules.end(),
                     [&](std::string_view m) { return file.starts_with(m); });
}

std::optional<FunctionKind> find(std::string_view name) {
  const auto found =
      std::lower_bound(kEntries.begin(), kEntries.end(), Entry{name, {}}, by_name);
  if (found == kEntries.end() || found->name != name) return std::nullopt;
  return found->kind;
}

bool strip_front(std::string_view& name, std::string_view what) {
  if (!name.starts_with(what)) return false;
  name.remove_prefix(what.size());
  return true;
}

void strip_back(std::string_view& name, std::string_view what) {
  if (name.ends_with(what)) name.remove_suffix(what.size());
}

// The name without the additions of libc for fortified, large-file, standard and internal
// variants.
std::string_view plain_name(std::string_view name) {
  if (strip_front(name, "__")) {
    for (const std::string_view prefix : {"isoc99_", "isoc23_", "libc_", "GI_"}) {
      strip_front(name, prefix);
    }
    strip_back(name, "_chk");
    strip_back(name, "_2");  // __open_2
  }
  strip_back(name, "64");
  return name;
}

}  // namespace

std::string_view kind_name(FunctionKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::optional<FunctionKind> function_kind(const Function& function) {
  if (!is_system_library(function.module)) return std::nullopt;
  const std::string_view name = without_parameters(function.name);
  const auto found = find(name);
  return found ? found : find(plain_name(name));
}

}  // namespace arctrace::reader
