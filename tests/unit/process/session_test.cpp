// How a process joins a session, and which buffers it refuses.
#include "src/process/session.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "src/api/shim_interface.h"
#include "src/process/process_identity.hpp"
#include "src/protocol/block_state.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/writer/record.hpp"
#include "tests/support/child.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

constexpr uid_t kOtherUser = 12345;

// Writes a changed copy of the session's file under another name.
template <class Change>
void write_changed_copy(const TestSession& session, const std::string& path,
                        Change&& change) {
  std::vector<std::byte> bytes = read_file(session.path());
  change(bytes);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// Checks what arctrace_attach() returns in a process of its own that has no session
// afterwards.
void check_refused(const std::string& path, int error) {
  CAPTURE(path);
  CHECK_CHILD([&] {
    CHECK(arctrace_attach(path.c_str()) == error);
    CHECK_FALSE(writer::session.joined);
    CHECK(arctrace_enabled(ARCTRACE_GATE_ALL) == 0);
    arctrace_instant(1);  // still a no-op
  });
}

TEST_CASE("session: joined once, the gate is the buffer's") {
  TestSession test(small_buffer(1024, 8));
  CHECK_CHILD([&] {
    CHECK(arctrace_enabled(ARCTRACE_GATE_ALL) == 0);
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    CHECK(arctrace_enabled(ARCTRACE_GATE_EVENTS) == 1);
    CHECK(arctrace_attach(test.path().c_str()) == -EALREADY);
    recorder::set_gate(test.buffer().view(), ARCTRACE_GATE_FUNCTIONS);
    CHECK(arctrace_enabled(ARCTRACE_GATE_EVENTS) == 0);
    CHECK(arctrace_enabled(ARCTRACE_GATE_FUNCTIONS) == 1);
  });
}

TEST_CASE("session: the environment names it") {
  TestSession test(small_buffer(1024, 8));
  CHECK_CHILD([&] {
    unsetenv("ARCTRACE_SESSION");
    CHECK(arctrace_attach(nullptr) == -ENOENT);
    setenv("ARCTRACE_SESSION", "", 1);
    CHECK(arctrace_attach(nullptr) == -ENOENT);
    setenv("ARCTRACE_SESSION", test.path().c_str(), 1);
    CHECK(arctrace_attach(nullptr) == 0);
  });
}

TEST_CASE("session: what is no buffer is refused, whatever it is") {
  TestSession test(small_buffer(1024, 8));
  const TemporaryDirectory directory;
  check_refused(directory.path("missing"), -ENOENT);
  check_refused(directory.path(""), -EISDIR);
  check_refused("/dev/null", -EACCES);

  const std::string link = directory.path("link");
  REQUIRE(symlink(test.path().c_str(), link.c_str()) == 0);
  check_refused(link, -EACCES);
  const std::string fifo = directory.path("fifo");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  check_refused(fifo, -EACCES);

  const std::string copy = directory.path("copy");
  write_changed_copy(test, copy, [](auto& bytes) { bytes.clear(); });
  check_refused(copy, -EPROTO);
  write_changed_copy(test, copy, [](auto& bytes) { bytes.resize(100); });
  check_refused(copy, -EPROTO);
  write_changed_copy(test, copy, [](auto& bytes) { bytes.resize(bytes.size() - 1); });
  check_refused(copy, -EPROTO);
  write_changed_copy(test, copy, [](auto& bytes) { bytes[0] ^= std::byte{1}; });
  check_refused(copy, -EPROTO);
  write_changed_copy(test, copy, [](auto& bytes) {
    const uint32_t blocks = 1u << 24;
    std::memcpy(bytes.data() + offsetof(arctrace_session_header, block_count), &blocks,
                4);
  });
  check_refused(copy, -EPROTO);
  write_changed_copy(test, copy, [](auto& bytes) {
    const uint16_t version = ARCTRACE_VERSION_MAJOR + 1;
    std::memcpy(bytes.data() + offsetof(arctrace_session_header, version_major), &version,
                2);
  });
  check_refused(copy, -EPROTO);
  check_refused(std::string(5000, 'x'), -ENAMETOOLONG);
}

TEST_CASE("session: a failed attempt leaves the way free for a right one") {
  TestSession test(small_buffer(1024, 8));
  CHECK_CHILD([&] {
    CHECK(arctrace_attach("/nowhere/at/all") == -ENOENT);
    CHECK(arctrace_attach("/dev/zero") == -EACCES);
    CHECK(arctrace_attach(test.path().c_str()) == 0);
  });
}

TEST_CASE("session: another user's buffer is refused even if its mode lets us write") {
  if (geteuid() != 0) return testing::skip_case("needs root, to become two users");
  TestSession test(small_buffer(1024, 8));
  CHECK_CHILD([&] {
    REQUIRE(setuid(kOtherUser) == 0);
    CHECK(arctrace_attach(test.path().c_str()) == -EACCES);  // mode 0600
  });
  REQUIRE(chmod(test.path().c_str(), 0666) == 0);
  CHECK_CHILD([&] {
    REQUIRE(setuid(kOtherUser) == 0);
    CHECK(arctrace_attach(test.path().c_str()) == -EACCES);
  });
  REQUIRE(chown(test.path().c_str(), kOtherUser, 0) == 0);
  CHECK_CHILD([&] {
    REQUIRE(setuid(kOtherUser) == 0);
    CHECK(arctrace_attach(test.path().c_str()) == -EACCES);  // anybody may write to it
  });
  REQUIRE(chmod(test.path().c_str(), 0600) == 0);
  CHECK_CHILD([&] {
    REQUIRE(setuid(kOtherUser) == 0);
    CHECK(arctrace_attach(test.path().c_str()) == 0);
  });
  // Root joins only root's sessions, whatever its groups, because the file's owner can
  // truncate it.
  CHECK_CHILD([&] { CHECK(arctrace_attach(test.path().c_str()) == -EACCES); });
  REQUIRE(chmod(test.path().c_str(), 0660) == 0);
  CHECK_CHILD([&] { CHECK(arctrace_attach(test.path().c_str()) == -EACCES); });
  CHECK(recorder::Buffer::open(test.path()).ok());
}

TEST_CASE("session: a shared buffer that is cut off ends the session, not the program") {
  for (const off_t size : {off_t{0}, off_t{4096}, off_t{12288}}) {
    TestSession test(small_buffer(4096, 32));
    REQUIRE(chmod(test.path().c_str(), 0660) == 0);
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      for (int i = 0; i < 1000; ++i) arctrace_instant(1);
      REQUIRE(truncate(test.path().c_str(), size) == 0);
      for (int i = 0; i < 1000; ++i) arctrace_instant(1);
      arctrace_thread_name("still there");
      CHECK_FALSE(writer::session.joined);
      CHECK(arctrace_enabled(ARCTRACE_GATE_ALL) == 0);
      CHECK_CHILD([] { arctrace_instant(1); });
      std::thread([] { arctrace_instant(1); }).join();
    });
  }
}

TEST_CASE("session: other bus errors do what they did") {
  TestSession test(small_buffer(4096, 32));
  REQUIRE(chmod(test.path().c_str(), 0660) == 0);
  static volatile sig_atomic_t handled;
  struct sigaction own {};
  own.sa_handler = [](int) { handled = handled + 1; };
  const auto status_of = [](const std::function<void()>& run) {
    const pid_t pid = fork();
    if (pid == 0) {
      signal(SIGBUS, SIG_DFL);  // AddressSanitizer has a handler of its own
      run();
      _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  };
  const auto attach = [&] {
    if (arctrace_attach(test.path().c_str()) != 0) _exit(9);
  };
  CHECK(WTERMSIG(status_of([&] { attach(), raise(SIGBUS); })) == SIGBUS);
  CHECK(WTERMSIG(status_of([&] {
          attach();
          const int fd = open(test.path().c_str(), O_RDONLY);
          struct stat status {};
          fstat(fd, &status);
          auto* page = static_cast<volatile char*>(
              mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, status.st_size + 4096));
          (void)*page;  // lies after the end of the file, and not in the buffer's mapping
        })) == SIGBUS);
  CHECK(status_of([&] {
          sigaction(SIGBUS, &own, nullptr);
          attach();
          raise(SIGBUS);
          if (handled != 1) _exit(8);
        }) == 0);
}

TEST_CASE("session: a process has one identity, a fork child another with its parent") {
  TestSession test(small_buffer(4096, 32));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    arctrace_instant(1);
    const writer::ProcessState* process = writer::current_process(0);
    REQUIRE(process != nullptr);
    CHECK(process->id == 1);
    CHECK(process->pid == static_cast<uint32_t>(getpid()));
    CHECK(process->origin == ARCTRACE_ORIGIN_EXEC);
    CHECK_CHILD([&] {
      arctrace_instant(2);
      const writer::ProcessState* child = writer::current_process(0);
      REQUIRE(child != nullptr);
      CHECK(child->id == 2);
      CHECK(child->parent_id == 1);
      CHECK(child->pid == static_cast<uint32_t>(getpid()));
      CHECK(child->origin == ARCTRACE_ORIGIN_FORK);
      CHECK_CHILD([&] {
        arctrace_instant(3);
        CHECK(writer::current_process(0)->parent_id == 2);
      });
    });
    CHECK(writer::current_process(0)->id == 1);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_PROCESS).size() == 3);
  CHECK(trace.of_type(ARCTRACE_TYPE_INSTANT).size() == 3);
}

TEST_CASE("session: of threads that attach at once none is lost silently") {
  TestSession test(small_buffer(1024, 64, 64));
  CHECK_CHILD([&] {
    REQUIRE(writer::join_session(test.path().c_str()) == 0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) threads.emplace_back([] { arctrace_instant(7); });
    for (std::thread& thread : threads) thread.join();
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.written() + trace.lost() == 16);
}

TEST_CASE("session: a process leaves one that is over, and joins another") {
  TestSession first(small_buffer(1024, 64));
  TestSession second(small_buffer(1024, 64));
  constexpr uint32_t kIdentity = 5;
  IpcAtomics::store_relaxed(second.view().control().process_next, kIdentity);
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(first.path().c_str()) == 0);
    const uint32_t name = arctrace_define_name("kept");
    std::barrier is_next(2);
    std::thread other([&] {
      arctrace_thread_name("other");
      arctrace_enter(name);
      arctrace_instant(name);
      is_next.arrive_and_wait();
      is_next.arrive_and_wait();
      arctrace_instant(name);
      is_next.arrive_and_wait();
    });
    is_next.arrive_and_wait();
    uintptr_t return_slot = 1234;
    CHECK(arctrace_shim_call_begin(ARCTRACE_FRAME_NAME_BIT | name, &return_slot, 0, 0) ==
          1);
    CHECK(arctrace_shim_forget_session() == -EBUSY);
    CHECK(arctrace_shim_end_session() == -EBUSY);
    // The process acts as a fork child that has not recorded yet.
    writer::begin_forked_process(static_cast<uint32_t>(getpid()), 77);
    REQUIRE(unlink(first.path().c_str()) == 0);
    REQUIRE(arctrace_shim_end_session() == 0);
    CHECK(arctrace_enabled(ARCTRACE_GATE_ALL) == 0);
    arctrace_instant(name);  // a no-op
    REQUIRE(arctrace_shim_forget_session() == 0);
    CHECK(arctrace_shim_forget_session() == 0);  // there is nothing more to do
    REQUIRE(arctrace_shim_join(second.path().c_str(), [] {
              CHECK(arctrace_enabled(ARCTRACE_GATE_ALL) == 0);
              return false;
            }) == 0);
    CHECK(arctrace_shim_join(second.path().c_str(), [] { return false; }) == -EALREADY);
    CHECK(writer::current_process(0)->id == kIdentity);
    CHECK(writer::current_process(0)->origin == ARCTRACE_ORIGIN_EXEC);
    CHECK(writer::current_process(0)->forked_ticks == 0);
    CHECK(writer::thread_local_state.state->attached);
    arctrace_shim_call_end(&return_slot, 0);  // a call of the abandoned session
    CHECK(return_slot == 1234);
    arctrace_enter(name);
    arctrace_exit(name);
    is_next.arrive_and_wait();
    is_next.arrive_and_wait();
    other.join();
  });
  const DecodedTrace before = first.finish();
  CHECK(joined(before.problems) == "");
  CHECK(before.of_type(ARCTRACE_TYPE_INSTANT).size() == 1);
  const DecodedTrace trace = second.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.lost() == 0);
  CHECK(trace.of_type(ARCTRACE_TYPE_PROCESS).size() == 1);
  CHECK(trace.of_type(ARCTRACE_TYPE_INSTANT).size() == 1);
  CHECK(trace.of_type(ARCTRACE_TYPE_ENTER).size() == 1);
  CHECK(trace.of_type(ARCTRACE_TYPE_EXIT_NAMED).size() == 0);
  CHECK(trace.of_type(ARCTRACE_TYPE_STRING).size() == 1);
  CHECK(trace.of_type(ARCTRACE_TYPE_THREAD).size() == 2);
}

TEST_CASE("session: joined by a descriptor, it has no path and ends with its collector") {
  TestSession test(small_buffer(1024, 64));
  arctrace_control& control = test.view().control();
  const auto collector = static_cast<uint32_t>(getpid());
  IpcAtomics::store_relaxed(control.collector_lock, collector);
  CHECK_CHILD([&] {
    const int fd = open(test.path().c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE(unlink(test.path().c_str()) == 0);
    REQUIRE(arctrace_shim_join_handed(fd, nullptr) == 0);
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);  // it is still there
    CHECK(arctrace_shim_join_handed(fd, nullptr) == -EALREADY);
    CHECK(std::string(arctrace_shim_session()).empty());
    arctrace_instant(arctrace_define_name("handed"));
    CHECK(arctrace_shim_state_of_session() == ARCTRACE_SHIM_GOES_ON);
    CHECK(arctrace_shim_end_session() == -EBUSY);
    IpcAtomics::store_relaxed(control.collector_lock, kOwnerDied);
    CHECK(arctrace_shim_state_of_session() == ARCTRACE_SHIM_REMOVED);
    IpcAtomics::store_relaxed(control.collector_lock, uint32_t{0});
    CHECK(arctrace_shim_state_of_session() == ARCTRACE_SHIM_REMOVED);
    CHECK(arctrace_shim_end_session() == 0);
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.of_type(ARCTRACE_TYPE_INSTANT).size() == 1);
}

TEST_CASE("session: what is no buffer is refused as a descriptor, too") {
  CHECK_CHILD([&] {
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(arctrace_shim_join_handed(fd, nullptr) == -EPROTO);
    CHECK(arctrace_shim_join_handed(999, nullptr) == -EBADF);
    CHECK_FALSE(writer::session.joined);
  });
}

TEST_CASE("session: over when its file is gone, or the collector that made it has died") {
  TestSession test(small_buffer(1024, 64));
  arctrace_control& control = test.view().control();
  CHECK_CHILD([&] {
    CHECK(arctrace_shim_state_of_session() == ARCTRACE_SHIM_GOES_ON);  // there is none
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    CHECK(arctrace_shim_state_of_session() == ARCTRACE_SHIM_GOES_ON);
    // A named session, whose collectors come and go, was made by another process.
    IpcAtomics::store_relaxed(control.collector_lock, kOwnerDied);
    IpcAtomics::store_relaxed(control.collector_pid, writer::session.creator + 1);
    CHECK(arctrace_shim_state_of_session() == ARCTRACE_SHIM_GOES_ON);
    CHECK(arctrace_shim_end_session() == -EBUSY);
    IpcAtomics::store_relaxed(control.collector_pid, writer::session.creator);
    CHECK(arctrace_shim_state_of_session() == ARCTRACE_SHIM_ABANDONED);
    IpcAtomics::store_relaxed(control.collector_lock, uint32_t{1234});
    REQUIRE(unlink(test.path().c_str()) == 0);
    CHECK(arctrace_shim_state_of_session() == ARCTRACE_SHIM_GOES_ON);
    IpcAtomics::store_relaxed(control.collector_lock, uint32_t{0});
    CHECK(arctrace_shim_state_of_session() == ARCTRACE_SHIM_REMOVED);
    CHECK(arctrace_shim_end_session() == 0);
  });
}

// A child that joins a session, writes a record, and then does a step each time it is
// told to; it ends when nobody tells it any more.
class JoinedChild {
 public:
  JoinedChild(const std::string& session, const std::function<bool()>& step) {
    REQUIRE(pipe2(told_.data(), O_CLOEXEC) == 0);
    REQUIRE(pipe2(done_.data(), O_CLOEXEC) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(told_[1]);
      bool did = arctrace_attach(session.c_str()) == 0;
      arctrace_instant(1);
      char byte = 0;
      do {
        did = did && write(done_[1], &byte, 1) == 1;
        if (read(told_[0], &byte, 1) != 1) _exit(did ? 0 : 1);
        did = did && step();
      } while (did);
      _exit(1);
    }
    close(told_[0]);
    close(done_[1]);
    await_step();
  }
  JoinedChild(const JoinedChild&) = delete;
  JoinedChild& operator=(const JoinedChild&) = delete;
  ~JoinedChild() {
    close(told_[1]);
    close(done_[0]);
    int status = 0;
    CHECK(waitpid(pid_, &status, 0) == pid_);
    CHECK(status == 0);
  }

  void do_step() {
    const char byte = 0;
    REQUIRE(write(told_[1], &byte, 1) == 1);
    await_step();
  }

 private:
  void await_step() {
    char byte = 0;
    REQUIRE(read(done_[0], &byte, 1) == 1);
  }

  std::array<int, 2> told_{}, done_{};
  pid_t pid_ = 0;
};

TEST_CASE("session: who has left one is no writer of it any more, and others are") {
  TestSession session(small_buffer(1024, 64));
  const auto leave = [] {
    return arctrace_shim_end_session() == 0 && arctrace_shim_forget_session() == 0;
  };
  const auto writers = [&] { return recorder::distinct_processes(session.view()); };
  JoinedChild leaves(session.path(), leave);
  CHECK(writers() == 1);
  {
    const JoinedChild stays(session.path(), leave);
    CHECK(writers() == 2);
    REQUIRE(unlink(session.path().c_str()) == 0);
    leaves.do_step();
    CHECK(writers() == 1);
  }
  CHECK(writers() == 0);
}

TEST_CASE("session: the lock of a slot stays in memory when its session is left") {
  TestSession first(small_buffer(1024, 64));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(first.path().c_str()) == 0);
    std::barrier is_next(2);
    pid_t tid = 0;
    std::thread other([&] {
      arctrace_instant(1);
      tid = gettid();
      is_next.arrive_and_wait();
      is_next.arrive_and_wait();
    });
    is_next.arrive_and_wait();
    REQUIRE(unlink(first.path().c_str()) == 0);
    REQUIRE(arctrace_shim_end_session() == 0);
    REQUIRE(arctrace_shim_forget_session() == 0);
    // The kernel removes the id from the lock when the thread ends.
    uint32_t index = 0;
    while (index + 1 < writer::session.view.geometry().slot_count &&
           IpcAtomics::load_acquire(writer::session.view.slot(index).lock) !=
               static_cast<uint32_t>(tid)) {
      ++index;
    }
    uint32_t& lock = writer::session.view.slot(index).lock;
    CHECK(IpcAtomics::load_acquire(lock) == static_cast<uint32_t>(tid));
    is_next.arrive_and_wait();
    other.join();
    CHECK((IpcAtomics::load_acquire(lock) & kOwnerDied) != 0);
  });
}

TEST_CASE("session: no thread leaves one while another is in a writer call") {
  TestSession first(small_buffer(1024, 64));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(first.path().c_str()) == 0);
    arctrace_instant(1);
    REQUIRE(unlink(first.path().c_str()) == 0);
    REQUIRE(arctrace_shim_end_session() == 0);
    {
      const writer::WriterCall writer_call;
      CHECK(arctrace_shim_forget_session() == -EAGAIN);
    }
    CHECK(arctrace_shim_forget_session() == 0);
  });
}

TEST_CASE("session: one with the clock of another machine is refused") {
  recorder::BufferOptions options = small_buffer(1024, 16);
#if defined(__aarch64__)
  options.clock = ARCTRACE_CLOCK_TSC;
#else
  options.clock = ARCTRACE_CLOCK_CNTVCT;
#endif
  TestSession test(options);
  check_refused(test.path(), -EPROTO);
}

TEST_CASE("session: the order of joining is the buffer's, then the gate's") {
  CHECK_CHILD([] {
    CHECK(writer::current_process(0) == nullptr);
    CHECK(arctrace_lost(nullptr) == 0);
    arctrace_flush();
    arctrace_detach();
    arctrace_thread_name("nobody");
    arctrace_commit(nullptr);
    CHECK(arctrace_reserve(1, 8) == nullptr);
  });
}

}  // namespace
}  // namespace arctrace::testing
