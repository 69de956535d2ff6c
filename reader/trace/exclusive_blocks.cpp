#include "reader/trace/exclusive_blocks.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <tuple>

namespace arctrace::reader {

std::vector<std::vector<BlockRef>> group_exclusive(std::span<const BlockRef> blocks) {
  std::vector<std::vector<BlockRef>> exclusive;
  absl::flat_hash_map<uint32_t, size_t> index_of;  // writer -> index into `exclusive`
  for (const BlockRef& block : blocks) {
    if (block.kind != BlockRef::Kind::kExclusive) continue;
    const auto [entry, is_new] = index_of.try_emplace(block.writer, exclusive.size());
    if (is_new) exclusive.emplace_back();
    exclusive[entry->second].push_back(block);
  }
  for (std::vector<BlockRef>& list : exclusive) {
    std::sort(list.begin(), list.end(), [](const BlockRef& a, const BlockRef& b) {
      return std::tie(a.serial, a.handout) < std::tie(b.serial, b.handout);
    });
  }
  return exclusive;
}

void check_serials(std::span<const BlockRef> blocks, const Session& session,
                   FindingLog& findings) {
  const bool may_have_gaps = session.raw || !session.finished || session.resumed ||
                             session.mode == ARCTRACE_MODE_OVERWRITE;
  uint64_t expected = session.resumed ? blocks.front().serial : 0;
  for (const BlockRef& block : blocks) {
    if (block.serial < expected || (block.serial > expected && !may_have_gaps)) {
      findings.add(Rule::kBlockSerial,
                   absl::StrCat("writer ", block.writer, ": serial ", block.serial,
                                " where ", expected, " should be"),
                   block.chunk);
    }
    expected = block.serial + 1;
  }
}

}  // namespace arctrace::reader
