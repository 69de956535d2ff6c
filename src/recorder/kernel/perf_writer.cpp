// Opens and reads perf's rings, parses their records, and appends records to the CPUs'
// blocks.
#include "src/recorder/kernel/perf_writer.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/cpu_chain.hpp"
#include "src/recorder/kernel/kernel_writer.hpp"

namespace arctrace::recorder {

namespace {

// The ring has space for 16,384 switches. Together with the control page it is the memory
// that a user without rights may lock for each CPU (kernel.perf_event_mlock_kb).
constexpr uint64_t kRingSize = uint64_t{512} << 10;
constexpr uint64_t kRingSizeMin = uint64_t{16} << 10;

perf_event_attr wanted_events() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;  // counts nothing; only the records below are wanted
  attr.context_switch = 1;
  attr.task = 1;  // fork and exit
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.sample_id_all = 1;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.read_format = PERF_FORMAT_LOST;
  attr.exclude_kernel = 1;  // otherwise the event needs rights
  attr.exclude_hv = 1;
  // The recorder itself never executes a program, but its children do. So the event
  // begins with them.
  attr.inherit = 1;
  attr.disabled = 1;
  attr.enable_on_exec = 1;
  return attr;
}

uint64_t page_size() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

perf_event_mmap_page& control(std::byte* base) {
  return *reinterpret_cast<perf_event_mmap_page*>(base);
}

// The meaning of perf_event_open()'s error here.
std::string reason(int error) {
  int paranoid = 0;
  if ((error == EACCES || error == EPERM) &&
      std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> paranoid && paranoid > 2) {
    return absl::StrCat("kernel.perf_event_paranoid is ", paranoid, ", above 2");
  }
  if (error == EINVAL) return "it does not count its losses (before Linux 6.0)";
  return std::strerror(error);
}

}  // namespace

absl::StatusOr<PerfRing> PerfRing::open(uint32_t cpu) {
  perf_event_attr attr = wanted_events();
  const long event =
      syscall(SYS_perf_event_open, &attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (event < 0) {
    const int error = errno;
    if (error == ENODEV) return absl::NotFoundError("offline");
    return absl::FailedPreconditionError(
        absl::StrCat("perf_event_open is refused: ", reason(error)));
  }
  PerfRing ring(cpu, static_cast<int>(event));
  if (absl::Status mapped = ring.map(); !mapped.ok()) return mapped;
  return ring;
}

absl::Status PerfRing::map() {
  for (uint64_t size = kRingSize; size >= kRingSizeMin; size /= 2) {
    void* base =
        mmap(nullptr, page_size() + size, PROT_READ | PROT_WRITE, MAP_SHARED, event_, 0);
    if (base != MAP_FAILED) {
      base_ = static_cast<std::byte*>(base);
      ring_size_ = size;
      return absl::OkStatus();
    }
    if (errno != EPERM) break;  // EPERM: more than may be locked
  }
  const int error = errno;
  return absl::FailedPreconditionError(
      absl::StrCat("perf's memory is refused: ", std::strerror(error),
                   error == EPERM ? " (kernel.perf_event_mlock_kb)" : ""));
}

std::span<const std::byte> PerfRing::take() {
  perf_event_mmap_page& page = control(base_);
  // P2 acquire, matches the kernel's release of data_head: the records before it.
  const auto head = IpcAtomics::load_acquire(page.data_head);
  const uint64_t tail = IpcAtomics::load_relaxed(page.data_tail);  // only stored here
  const uint64_t size = std::min<uint64_t>(head - tail, ring_size_);
  const std::byte* ring = base_ + page_size();
  const uint64_t begin = tail % ring_size_;
  const uint64_t first = std::min(size, ring_size_ - begin);
  taken_.resize(size);
  std::copy_n(ring + begin, first, taken_.begin());
  std::copy_n(ring, size - first, taken_.begin() + static_cast<std::ptrdiff_t>(first));
  // P1 release, matches the kernel's read of data_tail: the copy is done before the
  // kernel stores there again.
  IpcAtomics::store_release(page.data_tail, head);
  return taken_;
}

uint64_t PerfRing::lost() const {
  struct {
    uint64_t value, lost;
  } counts{};
  return read(event_, &counts, sizeof counts) == sizeof counts ? counts.lost : 0;
}

void PerfRing::disable() { ioctl(event_, PERF_EVENT_IOC_DISABLE, 0); }

PerfRing::PerfRing(PerfRing&& other) noexcept
    : cpu_(other.cpu_),
      event_(std::exchange(other.event_, -1)),
      base_(std::exchange(other.base_, nullptr)),
      ring_size_(other.ring_size_) {}

PerfRing::~PerfRing() {
  if (base_ != nullptr) munmap(base_, page_size() + ring_size_);
  if (event_ >= 0) close(event_);
}

absl::StatusOr<std::vector<PerfRing>> open_perf_rings() {
  if (!learn_time_namespace()) {
    return absl::FailedPreconditionError(kUnknownTimeNamespace);
  }
  const absl::StatusOr<uint32_t> cpus = possible_cpus();
  if (!cpus.ok()) return cpus.status();
  std::vector<PerfRing> rings;
  for (uint32_t cpu = 0; cpu < *cpus; ++cpu) {
    absl::StatusOr<PerfRing> ring = PerfRing::open(cpu);
    if (absl::IsNotFound(ring.status())) continue;
    if (!ring.ok()) return ring.status();
    rings.push_back(*std::move(ring));
  }
  return rings;
}

namespace {

using Kind = PerfRecord::Kind;

// The end of each record.
struct SampleId {
  uint32_t pid, tid;
  uint64_t time;
  uint32_t cpu, reserved;
};

// The body of PERF_RECORD_FORK and PERF_RECORD_EXIT.
struct TaskBody {
  uint32_t pid, parent_pid, tid, parent_tid;
  uint64_t time;
};

// The body of PERF_RECORD_COMM; then the name and zeros, a multiple of 8 bytes.
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

namespace {

using Kind = PerfRecord::Kind;

constexpr uint32_t kUnknown = ARCTRACE_SWITCH_UNKNOWN;

}  // namespace

PerfWriter::PerfWriter(const BufferView& view, std::vector<PerfRing> rings)
    : view_(view), last_poll_ns_(read_monotonic_ns()) {
  sources_.reserve(rings.size());
  for (PerfRing& ring : rings) {
    if (ring.cpu() < view.geometry().cpu_count) sources_.push_back({std::move(ring)});
  }
}

void PerfWriter::poll() {
  if (is_finished_) return;
  // Relaxed, because the gate publishes no other memory here.
  const bool is_on =
      (IpcAtomics::load_relaxed(view_.control().gate) & ARCTRACE_GATE_KERNEL) != 0;
  const uint64_t now_ns = read_monotonic_ns();
  for (Source& source : sources_) copy(source, is_on);
  last_poll_ns_ = now_ns;
}

void PerfWriter::finish() {
  for (Source& source : sources_) source.ring.disable();
  poll();
  is_finished_ = true;
}

void PerfWriter::copy(Source& source, bool is_on) {
  std::span<const std::byte> bytes = source.ring.take();
  const uint64_t lost = std::max(source.ring.lost(), source.lost_counted);
  if (is_on) {
    while (const auto record = next_perf_record_untrusted(bytes)) {
      write(source, *record);
    }
    count_losses(source.ring.cpu(), lost - source.lost_counted, last_poll_ns_);
  }
  source.lost_counted = lost;
}

void PerfWriter::write(Source& source, const PerfRecord& record) {
  switch (record.kind) {
    case Kind::kSwitchIn:
      return append(source, ARCTRACE_TYPE_SWITCH_IN, record, arctrace_switch_in_body{});
    case Kind::kPreempted:
    case Kind::kBlocked: {
      arctrace_switch_body body{};
      body.prev_state = record.kind == Kind::kPreempted ? 0 : kUnknown;
      body.next_tid = body.next_tgid = kUnknown;
      return append(source, ARCTRACE_TYPE_SWITCH, record, body);
    }
    case Kind::kFork: {
      arctrace_forked_body body{};
      body.child_tid = record.child.tid;
      body.child_tgid = record.child.pid;
      return append(source, ARCTRACE_TYPE_FORKED, record, body);
    }
    case Kind::kExec: {
      arctrace_execed_body body{};
      std::memcpy(body.program, record.name.data(), sizeof body.program);
      return append(source, ARCTRACE_TYPE_EXECED, record, body);
    }
    case Kind::kExit:
      return append(source, ARCTRACE_TYPE_EXITED, record, arctrace_exited_body{});
    case Kind::kOther:
      break;
  }
}

// Reserves space for a record. After all blocks were found taken, it searches again only
// when one has been freed (WRT-2).
SharedReservation PerfWriter::reserve(Source& source, uint32_t length) {
  const uint64_t freed = IpcAtomics::load_relaxed(view_.control().freed);
  if (source.full_at == freed) return {};
  const SharedReservation got =
      CpuChain<IpcAtomics>::reserve(view_, source.ring.cpu(), length, read_ticks(view_));
  source.full_at.reset();
  if (got.record == nullptr) source.full_at = freed;
  return got;
}

// Appends a record as begin_record() and end_record() of bpf/append.h do. Fills in the
// cpu and tgid of `body`.
template <class Body>
void PerfWriter::append(Source& source, uint16_t type, const PerfRecord& record,
                        Body body) {
  const uint32_t cpu = source.ring.cpu();
  constexpr auto length = static_cast<uint32_t>(ARCTRACE_FULL_HEAD_SIZE + sizeof body);
  const SharedReservation got =
      record.thread.is_known() ? reserve(source, length) : SharedReservation{};
  if (got.record == nullptr) {
    count_losses(cpu, 1, record.time_ns);
    return;
  }
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  IpcAtomics::store_relaxed(word_at(got.record), word0 | ARCTRACE_IN_PROGRESS);  // H1
  std::atomic_signal_fence(std::memory_order_seq_cst);
  auto* head = reinterpret_cast<arctrace_full_head*>(got.record);
  head->writer = ARCTRACE_WRITER_KERNEL | record.thread.tid;
  head->ticks = record.time_ns;
  body.cpu = cpu;
  body.tgid = record.thread.pid;
  std::memcpy(got.record + sizeof *head, &body, sizeof body);
  IpcAtomics::store_release(word_at(got.record), word0);  // I1
  CpuChain<IpcAtomics>::release(view_, cpu);
}

void PerfWriter::count_losses(uint32_t cpu, uint64_t count, uint64_t since_ns) {
  if (count == 0) return;
  arctrace_cpu_slot& slot = view_.cpu_slot(cpu);
  if (IpcAtomics::load_relaxed(slot.lost) == IpcAtomics::load_relaxed(slot.reported)) {
    IpcAtomics::store_relaxed(slot.lost_since, since_ns);
  }
  IpcAtomics::fetch_add_relaxed(slot.lost, count);
}

}  // namespace arctrace::recorder
