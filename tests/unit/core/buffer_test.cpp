#include "src/collector/buffer.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "src/geometry.hpp"
#include "src/protocol/recycle.hpp"
#include "src/shared_atomics.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

TEST_CASE("buffer: a fresh one is as rule 3 says") {
  BufferOptions options = small_buffer(1024, 8, 20);
  options.cpu_count = 3;
  options.scope = ARCTRACE_SCOPE_SHARED;
  options.mode = ARCTRACE_MODE_STOP;
  options.high_water_percent = 50;
  absl::StatusOr<Buffer> buffer = Buffer::create(options);
  REQUIRE(buffer.ok());
  const arctrace_session_header& header = buffer->header();
  Geometry geometry;
  REQUIRE(read_geometry_untrusted(header, ARCTRACE_SESSION_MAGIC, header.total_size,
                                  geometry) == GeometryError::kNone);
  CHECK(geometry.block_count == 8);
  CHECK(geometry.slot_count == 20);
  CHECK(geometry.cpu_count == 3);
  CHECK(geometry.scope == ARCTRACE_SCOPE_SHARED);
  CHECK(geometry.mode == ARCTRACE_MODE_STOP);
  CHECK(header.creator_pid == static_cast<uint32_t>(getpid()));
  CHECK(header.pinned == 0);
  CHECK(header.ticks_per_second > 1000000);
  CHECK(header.start_realtime_ns > header.start_monotonic_ns);

  const BufferView& view = buffer->view();
  const arctrace_control& control = view.control();
  CHECK(control.gate == 0);
  CHECK(control.process_next == 1);
  CHECK(control.writer_next == 1);
  CHECK(control.high_water_blocks == 4);
  for (uint32_t i = 0; i < 20; ++i) CHECK(view.slot(i).lock == 0);
  for (uint32_t i = 0; i < 8; ++i) {
    CHECK(Recycle<IpcAtomics>::state(view, i).pack() == ARCTRACE_PHASE_FREE);
    CHECK(view.block_header(i).next == 1024);
    for (uint32_t at = 16; at < 1024; ++at) REQUIRE(view.block(i)[at] == std::byte{0xFF});
  }
  struct stat status {};
  REQUIRE(stat(buffer->path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(static_cast<uint64_t>(status.st_size) == header.total_size);
}

TEST_CASE("buffer: two are never alike") {
  absl::StatusOr<Buffer> a = Buffer::create(small_buffer(384, 2));
  absl::StatusOr<Buffer> b = Buffer::create(small_buffer(384, 2));
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  CHECK(a->path() != b->path());
  CHECK(std::memcmp(a->header().session_id, b->header().session_id, 16) != 0);
}

TEST_CASE("buffer: its file goes with it, and moves with it") {
  std::string path;
  {
    absl::StatusOr<Buffer> buffer = Buffer::create(small_buffer(384, 2));
    REQUIRE(buffer.ok());
    path = buffer->path();
    Buffer moved = *std::move(buffer);
    CHECK(moved.path() == path);
    CHECK(exists(path));
    absl::StatusOr<Buffer> other = Buffer::create(small_buffer(384, 2));
    REQUIRE(other.ok());
    moved = *std::move(other);
    CHECK(moved.path() != path);
  }
  CHECK_FALSE(exists(path));
}

TEST_CASE("buffer: what is impossible is said in one line and leaves no file") {
  const TemporaryFolder folder;
  const auto error = [&](auto&& change) {
    BufferOptions options = small_buffer(1024, 8);
    options.directory = folder.path("");
    change(options);
    const absl::StatusOr<Buffer> buffer = Buffer::create(options);
    REQUIRE_FALSE(buffer.ok());
    CHECK(buffer.status().message().find('\n') == std::string::npos);
    CHECK_FALSE(buffer.status().message().empty());
    CHECK(std::system(("test -z \"$(ls " + folder.path("") + ")\"").c_str()) == 0);
    return buffer.status().code();
  };
  using Code = absl::StatusCode;
  CHECK(error([](auto& o) { o.block_size = 0; }) == Code::kInvalidArgument);
  CHECK(error([](auto& o) { o.block_size = 1000; }) == Code::kInvalidArgument);
  CHECK(error([](auto& o) { o.buffer_size = 0; }) == Code::kInvalidArgument);
  CHECK(error([](auto& o) { o.buffer_size = UINT64_MAX; }) == Code::kInvalidArgument);
  CHECK(error([](auto& o) { o.slot_count = 0; }) == Code::kInvalidArgument);
  CHECK(error([](auto& o) { o.cpu_count = 5000; }) == Code::kInvalidArgument);
  CHECK(error([](auto& o) {
          o.block_size = 16u << 20;
          o.buffer_size = uint64_t{16} << 40;
        }) == Code::kResourceExhausted);
  CHECK(error([](auto& o) { o.directory = "/no/such/folder"; }) == Code::kNotFound);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMlockDoesNothing = true;  // the sanitizers see to that
#else
constexpr bool kMlockDoesNothing = false;
#endif

TEST_CASE("buffer: what can't be pinned is a warning, or an error if it must be" *
          doctest::skip(kMlockDoesNothing)) {
  CHECK_CHILD([] {
    if (geteuid() == 0) REQUIRE(setuid(12345) == 0);  // root may pin beyond the limit
    const rlimit limit{4096, 4096};
    REQUIRE(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    BufferOptions options = small_buffer(1024, 64);
    options.pin = PinPolicy::kTry;
    absl::StatusOr<Buffer> tried = Buffer::create(options);
    REQUIRE(tried.ok());
    CHECK(tried->warning().find("RLIMIT_MEMLOCK is 4096") != std::string::npos);
    CHECK(tried->warning().find('\n') == std::string::npos);
    CHECK(tried->header().pinned == 0);
    options.pin = PinPolicy::kRequire;
    CHECK(Buffer::create(options).status().code() ==
          absl::StatusCode::kResourceExhausted);
  });
}

TEST_CASE("buffer: a pinned one is locked, and its header says so") {
  BufferOptions options = small_buffer(1024, 64);
  options.pin = PinPolicy::kTry;
  absl::StatusOr<Buffer> buffer = Buffer::create(options);
  REQUIRE(buffer.ok());
  CHECK(buffer->header().pinned == (buffer->warning().empty() ? 1 : 0));
}

}  // namespace
}  // namespace arctrace::testing
