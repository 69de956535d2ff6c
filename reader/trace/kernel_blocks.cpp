#include "reader/trace/kernel_blocks.hpp"

#include <algorithm>
#include <optional>

#include "reader/trace/record_types.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

std::vector<uint64_t> handouts_of(std::span<const BlockRef> blocks) {
  std::vector<uint64_t> handouts;
  for (const BlockRef& block : blocks) {
    if (block.kind != BlockRef::Kind::kCollector) handouts.push_back(block.handout);
  }
  std::sort(handouts.begin(), handouts.end());
  handouts.erase(std::unique(handouts.begin(), handouts.end()), handouts.end());
  return handouts;
}

// Returns how many of `handouts` come before that one.
uint64_t handouts_before(const std::vector<uint64_t>& handouts, uint64_t handout) {
  return static_cast<uint64_t>(
      std::lower_bound(handouts.begin(), handouts.end(), handout) - handouts.begin());
}

int64_t kernel_time_ns(const ClockMap& clock, uint64_t monotonic_ns) {
  return clock.to_ns(clock.to_ticks(monotonic_ns));
}

}  // namespace

void KernelBlocks::add_untrusted(const BlockRef& block,
                                 std::span<const RawRecord> records) {
  std::optional<uint32_t> cpu;
  Block here{block.handout, UINT64_MAX, 0};
  for (const RawRecord& record : records) {
    if (class_of(record.type) != RecordClass::kKernel) continue;
    if (!cpu.has_value()) {
      cpu = load_part_untrusted<arctrace_kernel_body>(record.body).cpu;
    }
    here.first_monotonic_ns = std::min(here.first_monotonic_ns, record.ticks);
    here.last_monotonic_ns = std::max(here.last_monotonic_ns, record.ticks);
  }
  if (cpu.has_value()) blocks_[*cpu].push_back(here);
}

std::vector<CpuBegin> KernelBlocks::find_begins(std::span<const BlockRef> blocks,
                                                const ClockMap& clock) const {
  const std::vector<uint64_t> handouts = handouts_of(blocks);
  std::vector<CpuBegin> begins;
  for (const auto& [cpu, own] : blocks_) {
    const Block& first = *std::min_element(
        own.begin(), own.end(),
        [](const Block& a, const Block& b) { return a.handout < b.handout; });
    if (handouts_before(handouts, first.handout) == first.handout) continue;
    begins.push_back({cpu, kernel_time_ns(clock, first.first_monotonic_ns)});
  }
  std::sort(begins.begin(), begins.end(),
            [](const CpuBegin& a, const CpuBegin& b) { return a.cpu < b.cpu; });
  return begins;
}

void KernelBlocks::add_missing(std::span<const BlockRef> blocks, const ClockMap& clock,
                               KernelGaps& gaps) const {
  const std::vector<uint64_t> handouts = handouts_of(blocks);
  for (const auto& [cpu, unordered] : blocks_) {
    std::vector<Block> own = unordered;
    std::sort(own.begin(), own.end(),
              [](const Block& a, const Block& b) { return a.handout < b.handout; });
    int64_t known_ns = INT64_MIN;
    uint64_t handout = 0, before = 0;  // up to this one none is missing
    for (const Block& block : own) {
      const uint64_t here = handouts_before(handouts, block.handout);
      if (here - before != block.handout - handout) {
        gaps.add(known_ns, kernel_time_ns(clock, block.first_monotonic_ns), cpu);
      }
      known_ns = kernel_time_ns(clock, block.last_monotonic_ns);
      handout = block.handout;
      before = here;
    }
  }
}

void KernelBlocks::add_ends(uint32_t cpu_count, const ClockMap& clock,
                            KernelGaps& gaps) const {
  for (uint32_t cpu = 0; cpu < cpu_count; ++cpu) {
    if (!blocks_.contains(cpu)) gaps.add(INT64_MIN, INT64_MAX, cpu);
  }
  for (const auto& [cpu, own] : blocks_) {
    int64_t last_ns = INT64_MIN;
    for (const Block& block : own) {
      last_ns = std::max(last_ns, kernel_time_ns(clock, block.last_monotonic_ns));
    }
    gaps.add(last_ns, INT64_MAX, cpu);
  }
}

int64_t KernelBlocks::last_ns(const ClockMap& clock) const {
  int64_t last_ns = INT64_MIN;
  for (const auto& [cpu, own] : blocks_) {
    for (const Block& block : own) {
      last_ns = std::max(last_ns, kernel_time_ns(clock, block.last_monotonic_ns));
    }
  }
  return last_ns;
}

}  // namespace arctrace::reader
