#include "src/recorder/drain/untraced_programs.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <cstring>

#include "src/recorder/file/block_scan.hpp"

namespace arctrace {
namespace {

constexpr size_t kProgramsMax = 256;
constexpr size_t kBodyHead = 12;  // u32 process, why, n

}  // namespace

void UntracedPrograms::note_untrusted(std::span<const std::byte> block) {
  for_each_full_record(
      block, [this](uint16_t type, uint64_t, std::span<const std::byte> body) {
        if (type != ARCTRACE_TYPE_UNTRACED || body.size() < kBodyHead ||
            programs_.size() == kProgramsMax) {
          return;
        }
        uint32_t why = 0;
        uint32_t size = 0;
        std::memcpy(&why, &body[4], sizeof why);
        std::memcpy(&size, &body[8], sizeof size);
        const auto* path = reinterpret_cast<const char*>(body.data()) + kBodyHead;
        programs_.insert(
            {std::string(path, std::min<size_t>(size, body.size() - kBodyHead)), why});
      });
}

}  // namespace arctrace
