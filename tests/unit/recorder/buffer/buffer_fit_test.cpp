// The size of a buffer depends on the available memory: of cgroups that are files made
// here, and of directories.
#include "src/recorder/buffer/buffer_fit.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "src/recorder/buffer/available_memory.hpp"

namespace arctrace {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Files that stand in for /proc and /sys.
class FakeRoot {
 public:
  FakeRoot()
      : path_(fs::temp_directory_path() / ("fake-root-" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~FakeRoot() { fs::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;
  FakeRoot& file(const std::string& name, const std::string& text) {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return *this;
  }
  // Adds a cgroup of version 2. `cache`: bytes of files that can be dropped.
  FakeRoot& cgroup(const std::string& path, const std::string& max, uint64_t current,
                   uint64_t cache = 0) {
    const std::string directory = "sys/fs/cgroup" + path + "/";
    file(directory + "memory.max", max + "\n");
    file(directory + "memory.current", std::to_string(current) + "\n");
    return file(directory + "memory.stat", "anon 1\nfile 2\ninactive_file " +
                                               std::to_string(cache) +
                                               "\nactive_file 0\nshmem 99\n");
  }
  std::string path() const { return path_; }

 private:
  fs::path path_;
};

std::string bytes(uint64_t number) { return std::to_string(number); }

// The lowest limit; least_free(): the least free memory within a limit.
uint64_t least_total(const FakeRoot& root) {
  return recorder::cgroup_memory(root.path()).least_total.total;
}
uint64_t least_free(const FakeRoot& root) {
  return recorder::cgroup_memory(root.path()).least_free.free;
}

TEST_CASE("cgroups: no limit, and limits of version 2 at each level") {
  FakeRoot root;
  CHECK(least_total(root) == UINT64_MAX);
  root.file("proc/self/cgroup", "0::/a/b\n");
  CHECK(least_total(root) == UINT64_MAX);
  root.cgroup("/a/b", "max", 5 * kMiB);
  CHECK(least_total(root) == UINT64_MAX);
  CHECK(least_free(root) == UINT64_MAX);
  root.cgroup("/a", bytes(100 * kMiB), 30 * kMiB);
  CHECK(least_total(root) == 100 * kMiB);
  CHECK(least_free(root) == 70 * kMiB);
  CHECK(recorder::cgroup_memory(root.path()).least_total.name ==
        "the memory limit of the cgroup, 100M");
  // Files in the cache are free.
  root.cgroup("/a/b", bytes(90 * kMiB), 40 * kMiB, 35 * kMiB);
  CHECK(least_free(root) == 70 * kMiB);
  root.cgroup("/a/b", bytes(90 * kMiB), 40 * kMiB);
  CHECK(least_free(root) == 50 * kMiB);
}

TEST_CASE("cgroups: the lowest limit need not be the one of which the least is free") {
  FakeRoot root;
  root.file("proc/self/cgroup", "0::/a/b\n");
  root.cgroup("/a", bytes(400 * kMiB), 390 * kMiB);
  root.cgroup("/a/b", bytes(100 * kMiB), 20 * kMiB);
  const recorder::CgroupMemory cgroup = recorder::cgroup_memory(root.path());
  CHECK(cgroup.least_total.total == 100 * kMiB);
  CHECK(cgroup.least_total.name == "the memory limit of the cgroup, 100M");
  CHECK(cgroup.least_free.free == 10 * kMiB);
  CHECK(cgroup.least_free.name == "the memory limit of the cgroup, 400M");
}

TEST_CASE("cgroups: in a container the path may be the host's") {
  FakeRoot root;
  root.file("proc/self/cgroup", "0::/docker/0123\n").cgroup("", bytes(64 * kMiB), kMiB);
  CHECK(least_total(root) == 64 * kMiB);
}

TEST_CASE("cgroups: version 1, whose largest number is no limit") {
  FakeRoot root;
  const std::string directory = "sys/fs/cgroup/memory/x/";
  root.file("proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/x\n0::/y\n")
      .file(directory + "memory.limit_in_bytes", bytes(50 * kMiB))
      .file(directory + "memory.usage_in_bytes", bytes(20 * kMiB))
      .file(directory + "memory.stat", "total_inactive_file " + bytes(4 * kMiB) + "\n");
  CHECK(least_free(root) == 34 * kMiB);
  root.file(directory + "memory.limit_in_bytes", "9223372036854771712");
  CHECK(least_total(root) == UINT64_MAX);
}

// The memory limits of a large machine, and one cgroup's.
recorder::MemorySources with_limit(uint64_t total, uint64_t free) {
  const recorder::AvailableMemory cgroup = {
      total, free, "the memory limit of the cgroup, " + recorder::size_text(total)};
  return {{uint64_t{16} << 30, uint64_t{16} << 30, "the machine's memory, 16384M"},
          {cgroup, cgroup},
          {uint64_t{8} << 30, uint64_t{8} << 30, "the room in /dev/shm, 8192M"}};
}

// Options with a directory that counts as in memory on each machine, because it does not
// exist.
recorder::BufferOptions usual_options() {
  recorder::BufferOptions options;
  options.directory = "/dev/shm/none-such";
  return options;
}

TEST_CASE("fit: the usual size stays where there is room") {
  recorder::BufferOptions options = usual_options();
  const absl::StatusOr<recorder::BufferFit> fit =
      recorder::fit_to_memory(options, with_limit(UINT64_MAX, UINT64_MAX));
  REQUIRE(fit.ok());
  CHECK(options.buffer_size == recorder::BufferOptions().buffer_size);
  CHECK(fit->size == "");
  CHECK(fit->warning == "");
}

TEST_CASE("fit: at most a quarter of the cgroup's limit, unless a size was asked for") {
  for (const uint64_t limit :
       {uint64_t{4}, uint64_t{5}, uint64_t{12}, uint64_t{30}, uint64_t{64}, uint64_t{100},
        uint64_t{280}, uint64_t{512}}) {
    CAPTURE(limit);
    const uint64_t total = (limit + 40) * kMiB;
    recorder::BufferOptions options = usual_options();
    const absl::StatusOr<recorder::BufferFit> fit =
        recorder::fit_to_memory(options, with_limit(total, total));
    REQUIRE(fit.ok());
    const uint64_t taken = recorder::plan_buffer(options)->total_size;
    CHECK(taken <= total / 4);
    CHECK(taken >= total / 16 * (limit < 290 ? 1 : 0));
    CHECK(fit->size.empty() ==
          (options.buffer_size == recorder::BufferOptions().buffer_size));
  }
  const recorder::MemorySources sources = with_limit(100 * kMiB, 100 * kMiB);
  recorder::BufferOptions options = usual_options();
  CHECK(
      recorder::fit_to_memory(options, sources)->size ==
      "the buffer has 16M, not 64M, to take at most a quarter of the memory limit of the "
      "cgroup, 100M; -b sets another size");
  options.buffer_size = 64 * kMiB;
  options.is_size_asked = true;
  const absl::StatusOr<recorder::BufferFit> asked =
      recorder::fit_to_memory(options, sources);
  REQUIRE(asked.ok());
  CHECK(asked->size == "");
  CHECK(options.buffer_size == 64 * kMiB);
}

TEST_CASE("fit: a quarter of the lowest limit, and of another one what is free") {
  recorder::MemorySources sources = with_limit(100 * kMiB, 80 * kMiB);
  sources.cgroup.least_free = {400 * kMiB, 40 * kMiB,
                               "the memory limit of the cgroup, 400M"};
  recorder::BufferOptions options = usual_options();
  CHECK(
      recorder::fit_to_memory(options, sources)->size ==
      "the buffer has 16M, not 64M, to take at most a quarter of the memory limit of the "
      "cgroup, 100M; -b sets another size");
  options.buffer_size = 32 * kMiB;
  options.is_size_asked = true;
  const absl::Status refused = recorder::fit_to_memory(options, sources).status();
  CHECK(std::string(refused.message())
            .find("of the memory limit of the cgroup, 400M, 40M are free") !=
        std::string::npos);
}

TEST_CASE("fit: a quarter of the machine's memory, and of the room in the directory") {
  recorder::MemorySources sources = with_limit(UINT64_MAX, UINT64_MAX);
  sources.machine = {200 * kMiB, 200 * kMiB, "the machine's memory, 200M"};
  recorder::BufferOptions options = usual_options();
  CHECK(recorder::fit_to_memory(options, sources)->size ==
        "the buffer has 32M, not 64M, to take at most a quarter of the machine's memory, "
        "200M; -b sets another size");
  // For the directory only the free space counts.
  sources.directory = {400 * kMiB, 64 * kMiB, "the room in /dev/shm, 64M"};
  options = usual_options();
  CHECK(recorder::fit_to_memory(options, sources)->size ==
        "the buffer has 8M, not 64M, to take at most a quarter of the room in /dev/shm, "
        "64M; -b sets another size");
}

TEST_CASE("fit: what the cgroup has no room for is refused") {
  const recorder::MemorySources sources = with_limit(100 * kMiB, 60 * kMiB);
  recorder::BufferOptions options = usual_options();
  options.buffer_size = 256 * kMiB;
  options.is_size_asked = true;
  const absl::Status status = recorder::fit_to_memory(options, sources).status();
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(status.message())
            .find("of the memory limit of the cgroup, 100M, 60M are free") !=
        std::string::npos);
  options.buffer_size = 32 * kMiB;
  CHECK(recorder::fit_to_memory(options, sources).ok());
}

TEST_CASE("fit: a directory on a disk only if it is named") {
  const recorder::MemorySources sources = with_limit(UINT64_MAX, UINT64_MAX);
  const std::string disk = "/proc";  // is no tmpfs on any machine
  recorder::BufferOptions options;
  options.directory = disk;
  CHECK(recorder::fit_to_memory(options, sources).status().code() ==
        absl::StatusCode::kFailedPrecondition);
  options.is_directory_asked = true;
  options.is_size_asked = true;
  const absl::StatusOr<recorder::BufferFit> fit =
      recorder::fit_to_memory(options, sources);
  REQUIRE(fit.ok());
  CHECK(fit->warning.find("/proc is on a disk") == 0);
}

TEST_CASE("why a directory has no buffer, and what helps") {
  const auto text = [](int error, const char* directory) {
    return std::string(
        recorder::explain_directory(error, 72 * kMiB, directory).message());
  };
  CHECK(
      text(ENOENT, "/dev/shm") ==
      "no buffer in /dev/shm: there is no such directory; as root: mount -t tmpfs tmpfs "
      "/dev/shm; for a container: --shm-size=1g, or --tmpfs /dev/shm:size=1g; or "
      "--buffer-dir=DIR, a directory of a tmpfs");
  CHECK(text(EROFS, "/run/x") ==
        "no buffer in /run/x: it is read-only; or --buffer-dir=DIR, a directory of a "
        "tmpfs");
  CHECK(
      text(ENOSPC, "/dev/shm").find("no room for a buffer of 72M in /dev/shm: it has ") ==
      0);
  // The file itself was refused, not its size.
  CHECK(recorder::explain_directory(ENOSPC, 0, "/dev/shm").message() ==
        "no buffer in /dev/shm: it has no room for another file; remove files there, or "
        "--buffer-dir=DIR, a directory of a tmpfs");
}

}  // namespace
}  // namespace arctrace
