#include "reader/trace/read_ahead.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <system_error>
#include <vector>

namespace arctrace::reader {
namespace {

constexpr size_t kRecordsInBatch = 1024;
constexpr size_t kBytesInBatch = 64u << 10;  // unless one record has more

struct Batch {
  std::vector<Record> records;
  std::vector<std::byte> bodies;  // the records point to them; it never grows

  void clear() {
    records.clear();
    bodies.clear();
  }
};

// Makes batches of records.
class Batches {
 public:
  explicit Batches(ReadAhead<Batch>& ahead) : ahead_(ahead) {}

  bool add(const Record& record) {
    const size_t size = record.body.size();
    const bool has_space = batch_.records.size() < kRecordsInBatch &&
                           size <= batch_.bodies.capacity() - batch_.bodies.size();
    if (!has_space && !put()) return false;
    batch_.bodies.reserve(std::max(size, kBytesInBatch));
    const std::byte* const body = batch_.bodies.data() + batch_.bodies.size();
    batch_.bodies.insert(batch_.bodies.end(), record.body.begin(), record.body.end());
    batch_.records.push_back(record);
    batch_.records.back().body = {body, size};
    return true;
  }

  // Moving the vectors keeps the addresses to which the records point.
  bool put() { return batch_.records.empty() || ahead_.put(batch_); }

 private:
  ReadAhead<Batch>& ahead_;
  Batch batch_;
};

bool has_several_cpus() {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) > 1;
}

std::unique_ptr<ReadAhead<Batch>> start(Trace& trace) {
  if (!has_several_cpus()) return nullptr;
  try {
    return std::make_unique<ReadAhead<Batch>>([&trace](ReadAhead<Batch>& ahead) {
      Batches batches(ahead);
      absl::Status status =
          trace.read([&](const Record& record) { return batches.add(record); });
      if (status.ok()) batches.put();
      return status;
    });
  } catch (const std::system_error&) {
    return nullptr;  // no thread
  }
}

}  // namespace

absl::Status read_concurrently(Trace& trace, const RecordSink& sink) {
  const std::unique_ptr<ReadAhead<Batch>> ahead = start(trace);
  if (ahead == nullptr) return trace.read(sink);
  Batch batch;
  bool goes_on = true;
  while (goes_on && ahead->take(batch)) {
    goes_on = std::all_of(batch.records.begin(), batch.records.end(), sink);
  }
  ahead->stop();
  return ahead->status();
}

}  // namespace arctrace::reader
