// What the kernel says of processes, and who owns their buffer.
#include "src/recorder/attach/process_status.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/support/skip.hpp"

namespace arctrace::recorder {
namespace {

// A child of another user, which waits for its end.
class ChildOf {
 public:
  explicit ChildOf(uid_t user) {
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      if (setresuid(user, user, user) != 0) _exit(1);
      (void)!write(ready[1], "", 1);
      for (;;) pause();
    }
    char byte = 0;
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~ChildOf() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ChildOf(const ChildOf&) = delete;
  ChildOf& operator=(const ChildOf&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST_CASE("process status: what this process is") {
  const StatusFields status = read_status(getpid());
  CHECK(number_of(status, "Pid") == getpid());
  CHECK(number_of(status, "NoSuchKey") == 0);
  CHECK(text_of(status, "NoSuchKey") == "");
  CHECK(user_of(status) == geteuid());
  CHECK(read_status(999'999'999).empty());
  CHECK_FALSE(user_of(read_status(999'999'999)).has_value());
}

TEST_CASE("process status: the buffer is ours for our own processes") {
  CHECK(*buffer_owner_for({}) == -1);
  CHECK(*buffer_owner_for({getpid(), getppid()}) == -1);
  CHECK(*buffer_owner_for({999'999'999}) == -1);
}

TEST_CASE("process status: root's buffer is the other user's, of one only") {
  if (geteuid() != 0) {
    testing::skip_case("needs root");
    return;
  }
  const ChildOf one(12345);
  const ChildOf same(12345);
  const ChildOf other(54321);
  CHECK(*buffer_owner_for({one.pid(), same.pid()}) == 12345);
  for (const pid_t second : {other.pid(), getpid()}) {
    const absl::StatusOr<int64_t> owner = buffer_owner_for({one.pid(), second});
    REQUIRE_FALSE(owner.ok());
    const std::string message(owner.status().message());
    CHECK(message.find("record those of one user at a time") != std::string::npos);
    CHECK(message.find(std::to_string(second)) != std::string::npos);
  }
}

}  // namespace
}  // namespace arctrace::recorder
