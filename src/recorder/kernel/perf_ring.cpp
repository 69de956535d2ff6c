#include "src/recorder/kernel/perf_ring.hpp"

#include <absl/strings/str_cat.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>

#include "src/base/shared_atomics.hpp"
#include "src/recorder/kernel/kernel_writer.hpp"

namespace arctrace {
namespace {

// Holds 16,384 switches. Together with the control page it is what a user without rights
// may lock for each CPU (kernel.perf_event_mlock_kb).
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
  const uint64_t tail = IpcAtomics::load_relaxed(page.data_tail);  // only we store it
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

}  // namespace arctrace
