#include "src/recorder/patch_image/address_space.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>

#include <algorithm>

namespace arctrace {
namespace {

constexpr uint64_t kStep = uint64_t{64} << 10;
// The kernel maps nothing below this where nobody has asked for it (vm.mmap_min_addr).
constexpr uint64_t kLowest = kStep;
// What is left to the heap, which grows after the program.
constexpr uint64_t kHeapRoom = uint64_t{1} << 30;
constexpr uint64_t kHighest = uint64_t{1} << 47;
// From the first byte of the one to the last of the other; a jump reaches 2 GiB.
constexpr uint64_t kReach = (uint64_t{2} << 30) - (uint64_t{64} << 20);

}  // namespace

AddressSpace::AddressSpace(std::string_view maps_untrusted) {
  for (const absl::string_view line : absl::StrSplit(
           absl::string_view(maps_untrusted.data(), maps_untrusted.size()), '\n')) {
    const absl::string_view range = line.substr(0, line.find(' '));
    const size_t dash = range.find('-');
    CodeRange mapped;
    if (dash == absl::string_view::npos ||
        !absl::SimpleHexAtoi(range.substr(0, dash), &mapped.start) ||
        !absl::SimpleHexAtoi(range.substr(dash + 1), &mapped.end)) {
      continue;
    }
    mapped_.push_back(mapped);
  }
  std::sort(mapped_.begin(), mapped_.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.start < b.start; });
}

bool AddressSpace::is_free(CodeRange range) const {
  return std::none_of(mapped_.begin(), mapped_.end(), [&](const CodeRange& mapped) {
    return mapped.start < range.end && range.start < mapped.end;
  });
}

std::optional<uint64_t> AddressSpace::find_room_near(CodeRange module,
                                                     uint64_t size) const {
  if (module.end <= module.start || module.end - module.start > kReach / 2 ||
      size > kReach / 2 || module.end > kHighest) {
    return std::nullopt;
  }
  const uint64_t below_max = kReach - (module.end - module.start);
  for (uint64_t below = size + kStep; below < below_max; below += kStep) {
    if (module.start < below + kLowest) break;
    const uint64_t start = (module.start - below) & ~(kStep - 1);
    if (is_free({start, start + size})) return start;
  }
  for (uint64_t above = kHeapRoom; module.end - module.start + above + size < kReach;
       above += kStep) {
    const uint64_t start = (module.end + above) & ~(kStep - 1);
    if (start + size < kHighest && is_free({start, start + size})) return start;
  }
  return std::nullopt;
}

}  // namespace arctrace
