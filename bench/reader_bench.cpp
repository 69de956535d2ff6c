// Measures how many records a second Trace::read hands out to a sink that does nothing,
// of a synthetic trace of calls, by the number of threads and by how their records
// interleave.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "reader/trace/trace.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::bench {
namespace {

using testing::BlockBuilder;

constexpr uint32_t kBlockSize = 64u << 10;
constexpr uint64_t kRecords = 20'000'000;
constexpr uint32_t kCallLength = 16 + 8;  // ENTER and EXIT

struct Shape {
  uint32_t threads;
  uint64_t run;  // records of one thread before the next one's, in time
  bool shared;   // all in one chain of blocks of full form
};

// A trace file that is removed with this object.
class SyntheticTrace {
 public:
  explicit SyntheticTrace(const Shape& shape) : shape_(shape) {
    const char* directory = std::getenv("TMPDIR");
    path_ = std::string(directory != nullptr ? directory : "/tmp") +
            "/arctrace_reader_bench.data";
    file_ = std::fopen(path_.c_str(), "wb");
    if (file_ == nullptr) std::abort();
    write(testing::FileBuilder(kBlockSize).file());
    if (shape.shared) {
      write_shared();
    } else {
      write_exclusive();
    }
    std::fclose(file_);
  }
  SyntheticTrace(const SyntheticTrace&) = delete;
  SyntheticTrace& operator=(const SyntheticTrace&) = delete;
  ~SyntheticTrace() { std::remove(path_.c_str()); }

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }

 private:
  void write(const std::vector<std::byte>& bytes) {
    bytes_ += bytes.size();
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) std::abort();
  }

  void write_block(const BlockBuilder& block) {
    testing::Bytes chunk;
    const testing::Bytes image = block.image();
    chunk.u32(ARCTRACE_CHUNK_MAGIC).u16(ARCTRACE_CHUNK_BLOCK).u16(0).u32(image.size());
    chunk.u32(block.header.handout % 8).u64(sequence_++).u64(0).append(image);
    write(chunk.data());
  }

  // The ticks of a thread's n-th record: each thread in turn writes a run, 10 ticks
  // apart.
  uint64_t ticks_of(uint32_t thread, uint64_t n) const {
    const uint64_t round = n / shape_.run;
    return ((round * shape_.threads + thread) * shape_.run + n % shape_.run) * 10;
  }

  void write_exclusive() {
    const uint64_t per_thread = kRecords / shape_.threads / 2 * 2;
    uint64_t handout = 0;
    std::vector<uint64_t> done(shape_.threads);
    for (uint64_t serial = 0; done.back() < per_thread; ++serial) {
      for (uint32_t thread = 0; thread < shape_.threads; ++thread) {
        uint64_t& n = done[thread];
        BlockBuilder block =
            BlockBuilder::exclusive(thread + 1, serial, handout++, ticks_of(thread, n));
        block.stack(ticks_of(thread, n), {});
        while (n < per_thread && block.size() + kCallLength <= kBlockSize) {
          block.enter(ticks_of(thread, n), 0x400000 + n % 64 * 16);
          block.exit(ticks_of(thread, n + 1));
          n += 2;
        }
        write_block(block);
      }
    }
  }

  void write_shared() {
    uint64_t n = 0;
    for (uint64_t handout = 0; n < kRecords; ++handout) {
      BlockBuilder block = BlockBuilder::shared(handout, n * 10);
      while (n < kRecords && block.size() + 24 + 16 <= kBlockSize) {
        const auto writer = static_cast<uint32_t>(n / shape_.run % shape_.threads + 1);
        // One record in 64 was stamped later than the next one.
        const uint64_t late = n % 64 == 0 ? 15 : 0;
        block.add_full(ARCTRACE_TYPE_ENTER, writer, n * 10 + late,
                       testing::key_body(0x400000 + n % 64 * 16));
        block.add_full(ARCTRACE_TYPE_EXIT, writer, (n + 1) * 10);
        n += 2;
      }
      write_block(block);
    }
  }

  Shape shape_;
  std::string path_;
  std::FILE* file_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t sequence_ = 0;
};

void read_trace(benchmark::State& state) {
  const SyntheticTrace file({static_cast<uint32_t>(state.range(0)),
                             static_cast<uint64_t>(state.range(1)), state.range(2) != 0});
  uint64_t records = 0;
  for (auto _ : state) {
    absl::StatusOr<reader::Trace> trace = reader::Trace::open(file.path());
    if (!trace.ok() || !trace->read([](const reader::Record&) { return true; }).ok()) {
      state.SkipWithError("the trace cannot be read");
      break;
    }
    records += trace->summary().records;
  }
  state.SetItemsProcessed(static_cast<int64_t>(records));
  state.SetBytesProcessed(static_cast<int64_t>(file.bytes()) * state.iterations());
}

BENCHMARK(read_trace)
    ->ArgNames({"threads", "run", "shared"})
    ->Args({1, 2, 0})
    ->Args({8, 256, 0})
    ->Args({8, 2, 0})
    ->Args({64, 2, 0})
    ->Args({8, 2, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace arctrace::bench
