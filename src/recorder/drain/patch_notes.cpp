#include "src/recorder/drain/patch_notes.hpp"

#include <arctrace/format.h>

#include "src/base/untrusted_bytes.hpp"
#include "src/recorder/file/block_scan.hpp"

namespace arctrace {
namespace {

constexpr size_t kFunctionsMax = 65536;
constexpr uint32_t kVerdictsEnd = 256;

}  // namespace

void PatchNotes::note_untrusted(std::span<const std::byte> block) {
  for_each_full_record(block, [this](uint16_t type, uint64_t,
                                     std::span<const std::byte> body) {
    if (type != ARCTRACE_TYPE_PATCHES || body.size() < sizeof(arctrace_patches_body)) {
      return;
    }
    const auto patches = load_part_untrusted<arctrace_patches_body>(body);
    if (patches.verdict == ARCTRACE_PATCH_SMALL) refusals_.insert(patches.verdict);
    if (patches.verdict >= ARCTRACE_PATCH_NO_ROOM && patches.verdict < kVerdictsEnd) {
      (patches.listed == 0 ? refusals_ : library_refusals_).insert(patches.verdict);
    }
    if (patches.verdict != ARCTRACE_PATCH_FLOODED) return;
    body = body.subspan(sizeof patches);
    for (uint32_t i = 0; i < patches.listed && body.size() >= sizeof(uint64_t) &&
                         switched_off_.size() < kFunctionsMax;
         ++i) {
      switched_off_.insert(load_part_untrusted<uint64_t>(body));
      body = body.subspan(sizeof(uint64_t));
    }
  });
}

}  // namespace arctrace
