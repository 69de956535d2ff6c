// How buffers are created, sized, pinned, opened and removed.
#include "src/recorder/buffer/buffer.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "tests/support/child.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

TEST_CASE("buffer: a fresh one is as BUF-3 says") {
  recorder::BufferOptions options = small_buffer(1024, 8, 20);
  options.cpu_count = 3;
  options.scope = ARCTRACE_SCOPE_SHARED;
  options.mode = ARCTRACE_MODE_STOP;
  options.high_water_percent = 50;
  absl::StatusOr<recorder::Buffer> buffer = recorder::Buffer::create(options);
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
  CHECK(control.high_water_blocks == 0);  // for a buffer that nobody drains
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

// How many kB of the buffer's mapping are in huge pages.
uint64_t huge_kb(const recorder::Buffer& buffer) {
  const auto base = reinterpret_cast<uintptr_t>(buffer.view().base());
  std::ifstream maps("/proc/self/smaps");
  bool is_ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) is_ours = std::stoull(line, nullptr, 16) == base;
    if (is_ours && line.starts_with("ShmemPmdMapped:")) {
      return std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return 0;
}

TEST_CASE("buffer: of huge pages if it can be, and of small ones if wanted") {
  recorder::BufferOptions options;
  options.buffer_size = 8 << 20;
  options.pin = recorder::PinPolicy::kNo;
  options.huge_pages = true;
  absl::StatusOr<recorder::Buffer> asked = recorder::Buffer::create(options);
  REQUIRE(asked.ok());
  if (!asked->warning().empty()) {
    testing::skip_case(asked->warning());
    return;
  }
  CHECK(huge_kb(*asked) == 8 << 10);
  options.huge_pages.reset();
  absl::StatusOr<recorder::Buffer> usual = recorder::Buffer::create(options);
  REQUIRE(usual.ok());
  CHECK(huge_kb(*usual) == 8 << 10);
  options.huge_pages = false;
  absl::StatusOr<recorder::Buffer> small = recorder::Buffer::create(options);
  REQUIRE(small.ok());
  CHECK(huge_kb(*small) == 0);
}

TEST_CASE("buffer: two are never alike") {
  absl::StatusOr<recorder::Buffer> a = recorder::Buffer::create(small_buffer(384, 2));
  absl::StatusOr<recorder::Buffer> b = recorder::Buffer::create(small_buffer(384, 2));
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  CHECK(a->path() != b->path());
  CHECK(std::memcmp(a->header().session_id, b->header().session_id, 16) != 0);
}

TEST_CASE("buffer: its file goes with it, and moves with it") {
  std::string path;
  {
    absl::StatusOr<recorder::Buffer> buffer =
        recorder::Buffer::create(small_buffer(384, 2));
    REQUIRE(buffer.ok());
    path = buffer->path();
    recorder::Buffer moved = *std::move(buffer);
    CHECK(moved.path() == path);
    CHECK(exists(path));
    absl::StatusOr<recorder::Buffer> other =
        recorder::Buffer::create(small_buffer(384, 2));
    REQUIRE(other.ok());
    moved = *std::move(other);
    CHECK(moved.path() != path);
  }
  CHECK_FALSE(exists(path));
}

TEST_CASE("buffer: who still has one that has gone keeps only its first pages") {
  struct stat before {
  }, after{};
  std::byte* base = nullptr;
  uint64_t size = 0, blocks = 0;
  int file = -1;
  {
    const absl::StatusOr<recorder::Buffer> buffer =
        recorder::Buffer::create(small_buffer(4096, 64));
    REQUIRE(buffer.ok());
    size = buffer->view().geometry().total_size;
    blocks = buffer->view().geometry().blocks_offset;
    file = open(buffer->path().c_str(), O_RDWR | O_CLOEXEC);
    base = static_cast<std::byte*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    REQUIRE(base != MAP_FAILED);
    REQUIRE(fstat(file, &before) == 0);
    CHECK(std::memcmp(base, buffer->view().base(), blocks) == 0);
  }
  REQUIRE(fstat(file, &after) == 0);
  CHECK(after.st_size == before.st_size);
  CHECK(static_cast<uint64_t>(before.st_blocks) * 512 >= size - blocks);
  CHECK(static_cast<uint64_t>(before.st_blocks - after.st_blocks) * 512 >= size - blocks);
  CHECK(std::memcmp(base, "ARCTRACE", 8) == 0);
  CHECK(base[blocks] == std::byte{0});
  base[size - 1] = std::byte{1};  // does no harm
  munmap(base, size);
  close(file);
}

TEST_CASE("buffer: small ones have small blocks, if nothing else is said") {
  const auto block_size = [](uint64_t size, std::optional<uint32_t> asked = {}) {
    recorder::BufferOptions options;
    options.buffer_size = size;
    options.block_size = asked;
    return recorder::plan_buffer(options)->block_size;
  };
  constexpr uint64_t kKiB = 1024;
  CHECK(block_size(uint64_t{64} << 20) == 64 * kKiB);
  CHECK(block_size(4096 * kKiB) == 64 * kKiB);
  CHECK(block_size(4095 * kKiB) == 32 * kKiB);
  CHECK(block_size(1024 * kKiB) == 16 * kKiB);
  CHECK(block_size(256 * kKiB) == 8 * kKiB);
  CHECK(block_size(16 * kKiB) == 8 * kKiB);
  CHECK(block_size(1024 * kKiB, 64u << 10) == 64 * kKiB);
}

TEST_CASE("buffer: what is impossible is reported in one line and leaves no file") {
  const TemporaryDirectory directory;
  const auto error = [&](auto&& change) {
    recorder::BufferOptions options = small_buffer(1024, 8);
    options.directory = directory.path("");
    change(options);
    const absl::StatusOr<recorder::Buffer> buffer = recorder::Buffer::create(options);
    REQUIRE_FALSE(buffer.ok());
    CHECK(buffer.status().message().find('\n') == std::string::npos);
    CHECK_FALSE(buffer.status().message().empty());
    CHECK(std::system(("test -z \"$(ls " + directory.path("") + ")\"").c_str()) == 0);
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
  CHECK(error([](auto& o) { o.directory = "/no/such/directory"; }) == Code::kNotFound);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMlockDoesNothing = true;  // the sanitizers disable it
#else
constexpr bool kMlockDoesNothing = false;
#endif

TEST_CASE("buffer: what can't be pinned is a warning, or an error if it must be" *
          doctest::skip(kMlockDoesNothing)) {
  CHECK_CHILD([] {
    if (geteuid() == 0) REQUIRE(setuid(12345) == 0);  // root may pin beyond the limit
    const rlimit limit{4096, 4096};
    REQUIRE(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    recorder::BufferOptions options = small_buffer(1024, 64);
    options.pin = recorder::PinPolicy::kTry;
    {
      absl::StatusOr<recorder::Buffer> tried = recorder::Buffer::create(options);
      REQUIRE(tried.ok());
      CHECK(tried->warning().find("RLIMIT_MEMLOCK is 4096") != std::string::npos);
      CHECK(tried->warning().find('\n') == std::string::npos);
      CHECK(tried->header().pinned == 4);  // KiB
    }
    options.pin = recorder::PinPolicy::kAuto;
    {
      const absl::StatusOr<recorder::Buffer> quiet = recorder::Buffer::create(options);
      REQUIRE(quiet.ok());
      CHECK(quiet->warning() == "");
      CHECK(quiet->header().pinned == 4);
      // The limit applies to all that the process has locked.
      const absl::StatusOr<recorder::Buffer> second = recorder::Buffer::create(options);
      REQUIRE(second.ok());
      CHECK(second->header().pinned == 0);
    }
    options.pin = recorder::PinPolicy::kRequire;
    CHECK(recorder::Buffer::create(options).status().code() ==
          absl::StatusCode::kResourceExhausted);
  });
}

TEST_CASE("buffer: a pinned one is locked, and its header says so") {
  recorder::BufferOptions options = small_buffer(1024, 64);
  options.pin = recorder::PinPolicy::kTry;
  absl::StatusOr<recorder::Buffer> buffer = recorder::Buffer::create(options);
  REQUIRE(buffer.ok());
  CHECK(buffer->header().pinned == (buffer->warning().empty() ? 1 : 0));
}

TEST_CASE("buffer: its header is a private copy") {
  absl::StatusOr<recorder::Buffer> buffer =
      recorder::Buffer::create(small_buffer(1024, 8));
  REQUIRE(buffer.ok());
  CHECK(std::memcmp(buffer->view().base(), &buffer->header(), sizeof buffer->header()) ==
        0);
  absl::StatusOr<recorder::Buffer> opened = recorder::Buffer::open(buffer->path());
  REQUIRE(opened.ok());
  std::memset(buffer->view().base(), 0x55, ARCTRACE_HEADER_SIZE);
  for (const recorder::Buffer* one : {&*buffer, &*opened}) {
    CHECK(one->header().magic == ARCTRACE_SESSION_MAGIC);
    CHECK(one->header().block_count == 8);
  }
}

TEST_CASE("buffer: opened to be read it can't be written") {
  const absl::StatusOr<recorder::Buffer> buffer =
      recorder::Buffer::create(small_buffer(1024, 8));
  REQUIRE(buffer.ok());
  const std::string ended = run_in_child([&] {
    absl::StatusOr<recorder::Buffer> opened =
        recorder::Buffer::open(buffer->path(), BufferAccess::kRead);
    REQUIRE(opened.ok());
    REQUIRE(opened->view().control().writer_next == 1);
    signal(SIGSEGV, SIG_DFL);  // not doctest's handler
    recorder::set_gate(opened->view(), 1);
  });
  CHECK(ended == "signal 11");
  CHECK(buffer->view().control().gate == 0);
}

TEST_CASE("buffer: a copy has no more blocks than there are bytes for") {
  const absl::StatusOr<recorder::Buffer> small =
      recorder::Buffer::create(small_buffer(1024, 8));
  REQUIRE(small.ok());
  arctrace_session_header header = small->header();
  Geometry claimed = small->view().geometry();
  claimed.block_count = 1u << 20;
  claimed.block_size = ARCTRACE_BLOCK_SIZE_MAX;
  REQUIRE(layout_geometry(claimed) == GeometryError::kNone);
  header.block_count = claimed.block_count;
  header.block_size = claimed.block_size;
  header.total_size = claimed.total_size;
  const TemporaryDirectory directory;
  const int fd =
      open(directory.path("image").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(pwrite(fd, &header, sizeof header, 0) == sizeof header);
  for (const uint64_t blocks : {uint64_t{0}, uint64_t{1}, uint64_t{3}}) {
    const uint64_t size = claimed.blocks_offset + blocks * claimed.block_size;
    REQUIRE(ftruncate(fd, static_cast<off_t>(size)) == 0);
    const absl::StatusOr<recorder::Buffer> copy =
        recorder::Buffer::copy_untrusted(fd, 0, UINT64_MAX, "x");
    REQUIRE(copy.ok());
    CHECK(copy->view().geometry().block_count == blocks);
    CHECK(copy->view().geometry().total_size == size);
    CHECK(copy->header().block_count == claimed.block_count);
  }
  close(fd);
}

}  // namespace
}  // namespace arctrace::testing
