// Measures what the first touch of the buffer's pages costs a process, and what would
// make it cheaper, in short processes that write a few records and in long ones that go
// through the whole buffer. The benchmark creates its session itself: the writer's real
// code runs in forked children.
#include <absl/status/statusor.h>
#include <arctrace/arctrace.h>
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "src/process/session.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/drain.hpp"

namespace arctrace::bench {
namespace {

constexpr uint64_t kBufferSize = 64 << 20;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kFaultAround = 64
                                  << 10;  // what one read fault maps (fault_around_bytes)
constexpr uint32_t kRecordSize = ARCTRACE_COMPACT_HEAD_SIZE + 4;

void check(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::_Exit(1);
}

template <class Value>
Value must(absl::StatusOr<Value> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "first_pass: %s\n", std::string(value.status().message()).c_str());
  std::_Exit(1);
}

// A buffer whose blocks go back to the writers after each child.
class OwnSession {
 public:
  OwnSession(uint64_t buffer_size, bool huge_pages)
      : buffer_(must(recorder::Buffer::create(
            {.buffer_size = buffer_size, .huge_pages = huge_pages}))),
        file_(must(
            recorder::TraceFile::create("/dev/null", recorder::SpecialFile::kWriteInto))),
        drain_(buffer_.view(), file_) {
    recorder::set_gate(buffer_.view(), ARCTRACE_GATE_ALL);
  }
  const recorder::Buffer& buffer() const { return buffer_; }
  void drain() {
    while (drain_.round() > 0) {
    }
  }

 private:
  recorder::Buffer buffer_;
  recorder::TraceFile file_;
  recorder::Drain drain_;
};

// Maps the file once more, such that (address + offset) is a multiple of `alignment`.
std::byte* map_aligned(const std::string& path, uint64_t size, uint64_t offset,
                       uint64_t alignment) {
  void* room = mmap(nullptr, size + alignment, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(room != MAP_FAILED, "mmap");
  const uint64_t first = reinterpret_cast<uint64_t>(room) + offset;
  const uint64_t place = (first + alignment - 1) / alignment * alignment - offset;
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* base = mmap(reinterpret_cast<void*>(place), size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, fd, 0);
  check(base != MAP_FAILED, "mmap");
  close(fd);
  return static_cast<std::byte*>(base);
}

enum class Way {
  kNothing,      // no session at all: what the process itself costs
  kAsIs,         // what the library does
  kPopulateAll,  // at the start; on a shared mapping MAP_POPULATE is this
  kPopulateAllWrite,
  kPopulateBlock,  // before the first record of each block
  kBestMapping,    // at an address where the read of a block's state maps the whole block
  kWorstMapping    // at an address where the read maps the block's first page only
};

struct Load {
  Way way;
  uint64_t records;  // 0: nine tenths of what fits
};

void populate(const BufferView& view, Way way) {
  const int advice =
      way == Way::kPopulateAllWrite ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  check(madvise(view.base(), view.geometry().total_size, advice) == 0, "madvise");
}

// The child: joins, writes, ends.
[[noreturn]] void run_child(const OwnSession& own, const Load& load) {
  if (load.way == Way::kNothing) std::_Exit(0);
  check(arctrace_attach(own.buffer().path().c_str()) == 0, "attach");
  const Geometry& geometry = writer::session.view.geometry();
  if (load.way == Way::kBestMapping || load.way == Way::kWorstMapping) {
    const uint64_t shift = load.way == Way::kWorstMapping ? kPage : 0;
    writer::session.view =
        BufferView(map_aligned(own.buffer().path(), geometry.total_size,
                               geometry.blocks_offset + shift, kFaultAround),
                   geometry);
  }
  if (load.way == Way::kPopulateAll || load.way == Way::kPopulateAllWrite) {
    populate(writer::session.view, load.way);
  }
  const uint64_t capacity = uint64_t{geometry.block_count} * geometry.block_size;
  uint64_t left = load.records != 0 ? load.records : capacity / 10 * 9 / kRecordSize;
  const uint64_t per_block = geometry.block_size / kRecordSize;
  while (left > 0) {
    if (load.way == Way::kPopulateBlock) {
      const uint64_t next = writer::session.view.control().next % geometry.block_count;
      const auto page = reinterpret_cast<uint64_t>(
                            writer::session.view.block(static_cast<uint32_t>(next))) &
                        ~(kPage - 1);
      madvise(reinterpret_cast<void*>(page), geometry.block_size, MADV_POPULATE_READ);
    }
    for (uint64_t i = left < per_block ? left : per_block; i > 0; --i, --left) {
      arctrace_instant(1);
    }
  }
  std::_Exit(arctrace_lost(nullptr) == 0 ? 0 : 1);
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Makes a buffer as the recorder does.
template <bool huge_pages>
void create(benchmark::State& state) {
  for (auto _ : state) {
    const double start = cpu_seconds();
    const OwnSession session(kBufferSize, huge_pages);
    state.SetIterationTime(cpu_seconds() - start);
  }
}

void add_creation(const char* name, void (*create)(benchmark::State&)) {
  benchmark::RegisterBenchmark(name, create)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

void measure(benchmark::State& state, OwnSession& own, const Load& load) {
  for (auto _ : state) {
    const pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid == 0) run_child(own, load);
    int status = 0;
    rusage used{};
    check(wait4(pid, &status, 0, &used) == pid, "wait4");
    if (status != 0) state.SkipWithError("the child failed, or lost records");
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    state.SetIterationTime(seconds(used.ru_utime) + seconds(used.ru_stime));
    state.counters["faults"] = static_cast<double>(used.ru_minflt);
    own.drain();
  }
}

void add(const char* name, OwnSession& own, Way way) {
  const auto add_load = [&](const char* load_name, uint64_t records) {
    benchmark::RegisterBenchmark((std::string(name) + "/" + load_name).c_str(),
                                 [&own, way, records](benchmark::State& state) {
                                   measure(state, own, {way, records});
                                 })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  };
  add_load("100", 100);
  add_load("100k", 100'000);
  add_load("all", 0);
}

}  // namespace
}  // namespace arctrace::bench

int main(int argc, char** argv) {
  using namespace arctrace::bench;
  benchmark::Initialize(&argc, argv);
  OwnSession ordinary(kBufferSize, false);
  OwnSession small(kBufferSize / 8, false);
  OwnSession huge(kBufferSize, true);
  add_creation("create/small_pages", create<false>);
  add_creation("create/as_is", create<true>);
  add("nothing", ordinary, Way::kNothing);
  add("small_pages", ordinary, Way::kAsIs);
  add("populate_all", ordinary, Way::kPopulateAll);
  add("populate_all_write", ordinary, Way::kPopulateAllWrite);
  add("populate_block", ordinary, Way::kPopulateBlock);
  add("best_mapping", ordinary, Way::kBestMapping);
  add("worst_mapping", ordinary, Way::kWorstMapping);
  add("small_buffer", small, Way::kAsIs);
  add("as_is", huge, Way::kAsIs);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
