#include "src/recorder/kernel/perf_record.hpp"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstring>

namespace arctrace {
namespace {

using Kind = PerfRecord::Kind;

// Each record ends with this.
struct SampleId {
  uint32_t pid, tid;
  uint64_t time;
  uint32_t cpu, reserved;
};

// PERF_RECORD_FORK and PERF_RECORD_EXIT.
struct TaskBody {
  uint32_t pid, parent_pid, tid, parent_tid;
  uint64_t time;
};

// PERF_RECORD_COMM; then the name and zeros, a multiple of 8 bytes.
struct CommBody {
  uint32_t pid, tid;
};

// False: the bytes are too few.
template <class Part>
bool read_part(std::span<const std::byte> bytes, Part& out) {
  if (bytes.size() < sizeof out) return false;
  std::memcpy(&out, bytes.data(), sizeof out);
  return true;
}

Kind switch_kind(uint16_t misc) {
  if ((misc & PERF_RECORD_MISC_SWITCH_OUT) == 0) return Kind::kSwitchIn;
  return (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0 ? Kind::kPreempted
                                                           : Kind::kBlocked;
}

// `body` is the record without its head and its SampleId. The thread that it names may be
// another than the one that ran.
void read_body(const perf_event_header& head, std::span<const std::byte> body,
               PerfRecord& record) {
  TaskBody task{};
  CommBody comm{};
  switch (head.type) {
    case PERF_RECORD_SWITCH:
      record.kind = switch_kind(head.misc);
      break;
    case PERF_RECORD_FORK:
      if (!read_part(body, task)) return;
      record.kind = Kind::kFork;
      record.thread = {task.parent_pid, task.parent_tid};
      record.child = {task.pid, task.tid};
      break;
    case PERF_RECORD_EXIT:
      if (!read_part(body, task)) return;
      record.kind = Kind::kExit;
      record.thread = {task.pid, task.tid};
      break;
    case PERF_RECORD_COMM: {
      if ((head.misc & PERF_RECORD_MISC_COMM_EXEC) == 0 || !read_part(body, comm)) return;
      record.kind = Kind::kExec;
      record.thread = {comm.pid, comm.tid};
      const auto name = body.subspan(sizeof comm);
      std::memcpy(record.name.data(), name.data(),
                  std::min(name.size(), record.name.size()));
      break;
    }
    default:
      break;
  }
}

}  // namespace

std::optional<PerfRecord> next_perf_record_untrusted(std::span<const std::byte>& bytes) {
  perf_event_header head{};
  if (!read_part(bytes, head) || head.size < sizeof head || head.size > bytes.size()) {
    return std::nullopt;
  }
  const std::span<const std::byte> body = bytes.first(head.size).subspan(sizeof head);
  bytes = bytes.subspan(head.size);
  PerfRecord record;
  SampleId id{};
  if (body.size() < sizeof id) return record;
  read_part(body.last(sizeof id), id);
  record.thread = {id.pid, id.tid};
  record.time_ns = id.time;
  read_body(head, body.first(body.size() - sizeof id), record);
  return record;
}

}  // namespace arctrace
