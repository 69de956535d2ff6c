#include "reader/trace/kernel_blocks.hpp"

#include <algorithm>

#include "reader/trace/record_types.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {

void KernelBlocks::add_untrusted(const BlockRef& block,
                                 std::span<const RawRecord> records) {
  for (const RawRecord& record : records) {
    if (class_of(record.type) != RecordClass::kKernel) continue;
    const uint32_t cpu = load_part_untrusted<arctrace_kernel_body>(record.body).cpu;
    const First here{block.handout, record.ticks};
    const auto [known, is_new] = first_.try_emplace(cpu, here);
    if (!is_new && here.handout < known->second.handout) known->second = here;
    return;
  }
}

std::vector<CpuBegin> KernelBlocks::find_begins(std::span<const BlockRef> blocks,
                                                const ClockMap& clock) const {
  std::vector<uint64_t> handouts;
  for (const BlockRef& block : blocks) {
    if (block.kind != BlockRef::Kind::kCollector) handouts.push_back(block.handout);
  }
  std::sort(handouts.begin(), handouts.end());
  handouts.erase(std::unique(handouts.begin(), handouts.end()), handouts.end());
  std::vector<CpuBegin> begins;
  for (const auto& [cpu, first] : first_) {
    const auto before = std::lower_bound(handouts.begin(), handouts.end(), first.handout);
    if (static_cast<uint64_t>(before - handouts.begin()) == first.handout) continue;
    begins.push_back({cpu, clock.to_ns(clock.to_ticks(first.monotonic_ns))});
  }
  std::sort(begins.begin(), begins.end(),
            [](const CpuBegin& a, const CpuBegin& b) { return a.cpu < b.cpu; });
  return begins;
}

}  // namespace arctrace::reader
