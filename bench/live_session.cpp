#include "bench/live_session.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "bench/floors.hpp"
#include "src/base/shared_atomics.hpp"

namespace arctrace::bench {
namespace {

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "bench: %s\n", why);
  std::exit(1);
}

uint64_t load(const uint64_t& word) {
  return IpcAtomics::load_acquire(const_cast<uint64_t&>(word));
}

}  // namespace

bool LiveSession::exists() { return std::getenv("ARCTRACE_SESSION") != nullptr; }

LiveSession::LiveSession() {
  if (!exists()) give_up("to be run under arctrace record");
  path_ = std::getenv("ARCTRACE_SESSION");
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  void* base = mmap(nullptr, ARCTRACE_CONTROL_OFFSET + sizeof(arctrace_control),
                    PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (base == MAP_FAILED) give_up("can't map the session's buffer");
  header_ = static_cast<const arctrace_session_header*>(base);
  control_ = reinterpret_cast<const arctrace_control*>(static_cast<std::byte*>(base) +
                                                       ARCTRACE_CONTROL_OFFSET);
  if (header_->clock != kFloorClock) give_up("the session's clock is not the floor's");
}

int64_t LiveSession::rounds_that_fit(uint32_t bytes) const {
  constexpr uint64_t kMost = 1'000'000;
  const uint64_t fit = buffer_size() * 2 / 5 / bytes;
  return static_cast<int64_t>(fit < kMost ? fit : kMost);
}

uint64_t LiveSession::blocks_taken() const { return load(control_->taken); }

bool LiveSession::wait_until_drained() const {
  const uint64_t few = header_->block_count / 20 + 4;
  for (int i = 0; i < 5000; ++i) {
    if (load(control_->taken) - load(control_->freed) <= few) return true;
    usleep(2000);
  }
  return false;
}

void LiveSession::populate() const {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t start = 0;
    uint64_t end = 0;
    if (!line.ends_with(path_) || line.find("rw-s") == std::string::npos ||
        std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &start, &end) != 2) {
      continue;
    }
    if (madvise(reinterpret_cast<void*>(start), end - start, MADV_POPULATE_WRITE) != 0) {
      std::perror("madvise");
    }
    return;
  }
  give_up("the session's buffer is not mapped");
}

void pin_to_cpu(size_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) std::perror("sched_setaffinity");
}

}  // namespace arctrace::bench
