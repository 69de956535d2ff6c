// The robust lock between processes, whose owner may die or exec while it holds the
// lock.
#include "src/os/robust_lock.hpp"

#include <doctest/doctest.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/protocol/block_state.hpp"
#include "tests/support/child.hpp"

namespace arctrace::testing {
namespace {

// A lock word and its list node as they stand in a writer slot.
struct Word {
  RobustWord robust() { return {slot.lock, slot.robust_prev, slot.robust_next}; }
  bool lock() { return robust_lock(robust(), 0, sys::gettid()); }
  uint32_t value() { return IpcAtomics::load_acquire(slot.lock); }
  // Whether it is in the state in which the kernel leaves it: the mark, without the tid.
  bool is_marked() { return value() == kOwnerDied; }

  arctrace_writer_slot slot{};
};

// Words of ours and robust mutexes of the program, in memory that processes share.
struct Shared {
  Word ours[2];
  pthread_mutex_t theirs[3];

  static Shared* make() {
    void* mapping = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(mapping != MAP_FAILED);
    auto* shared = new (mapping) Shared;
    for (int i = 0; i < 3; ++i) {
      pthread_mutexattr_t attributes;
      pthread_mutexattr_init(&attributes);
      pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
      pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
      // Priority inheritance marks its list entries: our words must work beside such a
      // neighbour.
      if (i == 2) pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
      REQUIRE(pthread_mutex_init(&shared->theirs[i], &attributes) == 0);
      pthread_mutexattr_destroy(&attributes);
    }
    return shared;
  }
  static void free(Shared* shared) { munmap(shared, sizeof(Shared)); }

  // The result of the next lock of mutex `i`.
  int found(int i) {
    const int result = pthread_mutex_lock(&theirs[i]);
    if (result == EOWNERDEAD) pthread_mutex_consistent(&theirs[i]);
    if (result == 0 || result == EOWNERDEAD) pthread_mutex_unlock(&theirs[i]);
    return result;
  }
};

robust_list_head* list_head() {
  robust_list_head* head = nullptr;
  size_t size = 0;
  REQUIRE(syscall(SYS_get_robust_list, 0, &head, &size) == 0);
  return head;
}

TEST_CASE("robust lock: the word holds the tid while the thread lives, then the mark") {
  Word word;
  std::thread([&] {
    CHECK(word.lock());
    CHECK(word.value() == sys::gettid());
    CHECK(is_live(word.value()));
  }).join();
  CHECK(word.is_marked());
}

TEST_CASE("robust lock: a word that is not as expected is left, and so is the list") {
  Word word;
  word.slot.lock = 77;
  const robust_list* first = list_head()->list.next;
  CHECK_FALSE(robust_lock(word.robust(), 0, 5));
  CHECK(word.slot.lock == 77);
  CHECK(word.slot.robust_next == 0);
  CHECK(list_head()->list.next == first);
  CHECK(list_head()->list_op_pending == nullptr);
}

TEST_CASE("robust lock: what the thread had pending stays pending") {
  std::thread([] {
    Word word;
    robust_list theirs{};
    list_head()->list_op_pending = &theirs;
    CHECK(word.lock());
    CHECK(list_head()->list_op_pending == &theirs);
    list_head()->list_op_pending = nullptr;
    list_head()->list.next = &list_head()->list;  // unlinks `word`
  }).join();
}

TEST_CASE("robust lock: a dead owner's word is taken over, and dies again") {
  Word word;
  for (const uint32_t expected : {0u, kOwnerDied}) {
    std::thread([&] {
      CHECK(robust_lock(word.robust(), expected, sys::gettid()));
    }).join();
    CHECK(word.is_marked());
  }
}

// Each process dies in its own way, while it holds our words and the program's mutexes.
void check_death(const char* how, const std::function<void()>& die,
                 const std::string& expected) {
  CAPTURE(how);
  Shared* shared = Shared::make();
  const int pid = start_child([&] {
    CHECK(pthread_mutex_lock(&shared->theirs[0]) == 0);
    CHECK(shared->ours[0].lock());
    CHECK(pthread_mutex_lock(&shared->theirs[1]) == 0);
    CHECK(pthread_mutex_lock(&shared->theirs[2]) == 0);
    CHECK(shared->ours[1].lock());
    die();
  });
  CHECK(wait_for_child(pid) == expected);
  CHECK(shared->ours[0].is_marked());
  CHECK(shared->ours[1].is_marked());
  for (int i = 0; i < 3; ++i) CHECK(shared->found(i) == EOWNERDEAD);
  Shared::free(shared);
}

TEST_CASE("robust lock: every way to die marks our words and the program's mutexes") {
  check_death(
      "SIGKILL", [] { kill(getpid(), SIGKILL); }, "signal 9");
  check_death(
      "_exit", [] { _exit(3); }, "exit code 3");
  check_death(
      "thread exit of the only thread", [] { syscall(SYS_exit, 0); }, "");
}

TEST_CASE("robust lock: exec marks the words though the process lives on") {
  Shared* shared = Shared::make();
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const int pid = start_child([&] {
    CHECK(shared->ours[0].lock());
    dup2(pipe_ends[0], STDIN_FILENO);
    close(pipe_ends[1]);
    execl("/bin/cat", "cat", nullptr);
  });
  close(pipe_ends[0]);
  while (shared->ours[0].value() == 0 || is_live(shared->ours[0].value())) usleep(1000);
  CHECK(shared->ours[0].is_marked());
  CHECK(kill(pid, 0) == 0);
  int status = 0;
  CHECK(waitpid(pid, &status, WNOHANG) == 0);
  close(pipe_ends[1]);  // lets cat end
  CHECK(wait_for_child(pid) == "");
  Shared::free(shared);
}

TEST_CASE("robust lock: the program's mutexes unlock in any order around ours") {
  // theirs[0], ours, theirs[1], theirs[2] are locked in this order; then unlocked.
  const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                            {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    for (int unlocked = 0; unlocked <= 3; ++unlocked) {
      CAPTURE(order[0]);
      CAPTURE(order[1]);
      CAPTURE(unlocked);
      Shared* shared = Shared::make();
      const int pid = start_child([&] {
        pthread_mutex_lock(&shared->theirs[0]);
        CHECK(shared->ours[0].lock());
        pthread_mutex_lock(&shared->theirs[1]);
        pthread_mutex_lock(&shared->theirs[2]);
        CHECK(shared->ours[1].lock());
        for (int i = 0; i < unlocked; ++i) {
          CHECK(pthread_mutex_unlock(&shared->theirs[order[i]]) == 0);
        }
        kill(getpid(), SIGKILL);
      });
      CHECK(wait_for_child(pid) == "signal 9");
      CHECK(shared->ours[0].is_marked());
      CHECK(shared->ours[1].is_marked());
      for (int i = 0; i < 3; ++i) {
        CHECK(shared->found(order[i]) == (i < unlocked ? 0 : EOWNERDEAD));
      }
      Shared::free(shared);
    }
  }
}

TEST_CASE("robust lock: a fork child holds nothing of its parent's") {
  Shared* shared = Shared::make();
  std::thread([&] {
    CHECK(shared->ours[0].lock());
    const int pid = fork();  // a fork of one thread, as in run_in_child()
    if (pid == 0)
      _exit(has_robust_list() && list_head()->list.next == &list_head()->list ? 0 : 1);
    CHECK(wait_for_child(pid) == "");
    CHECK(is_live(shared->ours[0].value()));
  }).join();
  Shared::free(shared);
}

TEST_CASE("robust lock: a child of a raw fork registers libc's list again") {
  REQUIRE(has_robust_list());
  const auto pid = static_cast<int>(syscall(SYS_fork));
  if (pid == 0) {
    Word word;
    const bool locked = has_robust_list() && word.lock() && is_live(word.value());
    syscall(SYS_exit_group, locked ? 0 : 1);
  }
  CHECK(wait_for_child(pid) == "");
}

// The test is a program of its own, because the first thread that asks determines for all
// where libc's lists are.
TEST_CASE("robust lock: a thread whose libc has no list yet uses ours until then") {
  const int pid = start_child([] {
    execl("/proc/self/exe", "shared_test", "--no-skip", "--test-case=robust lock alone*",
          nullptr);
  });
  CHECK(wait_for_child(pid) == "");
}

TEST_CASE("robust lock alone: our list, and the move to libc's" * doctest::skip()) {
  constexpr int kWordsMax = 8;  // the most words of our own list
  struct Words {
    Word all[kWordsMax + 1];
    Word later;
  };
  void* mapping = mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapping != MAP_FAILED);
  auto* words = new (mapping) Words;
  const int pid = start_child([&] {
    robust_list_head* const theirs = list_head();
    REQUIRE(syscall(SYS_set_robust_list, nullptr, sizeof *theirs) == 0);
    follow_robust_list();  // there is nothing to move
    CHECK(list_head() == nullptr);
    for (int i = 0; i < kWordsMax; ++i) CHECK(words->all[i].lock());
    CHECK_FALSE(words->all[kWordsMax].lock());
    CHECK(words->all[kWordsMax].value() == 0);
    const robust_list_head* const ours = list_head();
    CHECK(ours != theirs);
    follow_robust_list();  // libc still has none
    CHECK(list_head() == ours);

    REQUIRE(syscall(SYS_set_robust_list, theirs, sizeof *theirs) == 0);
    // A fork child does not hold its parent's words.
    const int child = fork();
    if (child == 0) {
      follow_robust_list();
      _exit(list_head()->list.next == &list_head()->list ? 0 : 1);
    }
    CHECK(wait_for_child(child) == "");
    CHECK(theirs->list.next == &theirs->list);
    follow_robust_list();
    CHECK(list_head() == theirs);
    CHECK(theirs->list.next != &theirs->list);
    CHECK(words->later.lock());
  });
  CHECK(wait_for_child(pid) == "");
  for (int i = 0; i < kWordsMax; ++i) CHECK(words->all[i].is_marked());
  CHECK(words->later.is_marked());
  munmap(mapping, sizeof(Words));
}

}  // namespace
}  // namespace arctrace::testing
