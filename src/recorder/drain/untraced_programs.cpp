#include "src/recorder/drain/untraced_programs.hpp"

#include <arctrace/format.h>

#include <algorithm>

#include "src/base/untrusted_bytes.hpp"
#include "src/recorder/file/block_scan.hpp"

namespace arctrace {
namespace {

constexpr size_t kProgramsMax = 256;

}  // namespace

void UntracedPrograms::note_untrusted(std::span<const std::byte> block) {
  for_each_full_record(block, [this](uint16_t type, uint64_t,
                                     std::span<const std::byte> body) {
    if (type != ARCTRACE_TYPE_UNTRACED || body.size() < sizeof(arctrace_untraced_body) ||
        programs_.size() == kProgramsMax) {
      return;
    }
    const auto untraced = load_part_untrusted<arctrace_untraced_body>(body);
    const std::span<const std::byte> path = body.subspan(sizeof untraced);
    programs_.insert({std::string(reinterpret_cast<const char*>(path.data()),
                                  std::min<size_t>(untraced.path_size, path.size())),
                      untraced.why});
  });
}

}  // namespace arctrace
