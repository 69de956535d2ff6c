#include "tests/stress/neighbour.hpp"

#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/stress/cuts.hpp"
#include "tests/support/child.hpp"

namespace arctrace::testing {

Neighbour::Neighbour(const TestSession& test) {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  pid_ = start_child([&] {
    close(ends[0]);
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    char request = 0;
    for (uint64_t number = 0; read(ends[1], &request, 1) == 1;) {
      const uint64_t end = number + kBatch;
      while (number < end) write_checked(kEvent, number++);
      REQUIRE(write(ends[1], &request, 1) == 1);
    }
  });
  close(ends[1]);
  socket_ = ends[0];
}

void Neighbour::write_batch() {
  char token = 0;
  REQUIRE(write(socket_, &token, 1) == 1);
  REQUIRE(read(socket_, &token, 1) == 1);
  written_ += kBatch;
}

void Neighbour::end() {
  if (socket_ < 0) return;
  close(socket_);
  socket_ = -1;
  CHECK(wait_for_child(pid_) == "");
}

}  // namespace arctrace::testing
