#include "src/recorder/attach/priorities.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace arctrace {
namespace {

sched_param lowest_real_time() {
  sched_param lowest{};
  lowest.sched_priority = 1;
  return lowest;
}

// Is told of each thread before its priority changes. Only system calls: other threads of
// the parent may have held locks.
[[noreturn]] void guard(int from_parent) {
  // What ends the parent is not to end it: neither a terminal's signals nor its own.
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  HurriedThread::Before before;
  ssize_t size = 0;
  while ((size = read(from_parent, &before, sizeof before)) == sizeof before ||
         (size < 0 && errno == EINTR)) {
  }
  if (before.tid != 0) sched_setscheduler(before.tid, before.policy, &before.parameters);
  _exit(0);
}

}  // namespace

RealTimePriority::RealTimePriority() {
  const sched_param lowest = lowest_real_time();
  has_changed_ = pthread_getschedparam(pthread_self(), &policy_, &before_) == 0 &&
                 pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest) == 0;
}

RealTimePriority::~RealTimePriority() {
  if (has_changed_) pthread_setschedparam(pthread_self(), policy_, &before_);
}

HurriedThread::HurriedThread(const RealTimePriority& own) {
  int ends[2];
  if (!own.was_had() || pipe2(ends, O_CLOEXEC) != 0) return;
  guard_ = fork();
  if (guard_ == 0) {
    close(ends[1]);
    guard(ends[0]);
  }
  close(ends[0]);
  to_guard_ = ends[1];
}

HurriedThread::~HurriedThread() {
  calm();
  if (to_guard_ >= 0) close(to_guard_);
  while (guard_ > 0 && waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void HurriedThread::hurry(pid_t tid) {
  Before before;
  before.tid = tid;
  before.policy = sched_getscheduler(tid);
  const int policy = before.policy & ~SCHED_RESET_ON_FORK;
  if (guard_ < 0 ||
      (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE) ||
      sched_getparam(tid, &before.parameters) != 0 ||
      write(to_guard_, &before, sizeof before) != sizeof before) {
    return;
  }
  // What it starts meanwhile has the usual priority.
  const sched_param lowest = lowest_real_time();
  if (sched_setscheduler(tid, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0) {
    before_ = before;
  }
}

void HurriedThread::calm() {
  if (before_.tid == 0) return;
  sched_setscheduler(before_.tid, before_.policy, &before_.parameters);
  before_ = Before{};
}

}  // namespace arctrace
