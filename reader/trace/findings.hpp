// The validity rules of SPEC.md, and findings: the breaches of them that a reader met.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arctrace::reader {

enum class Rule : uint8_t {
  kChunkHeader,
  kChunkSequence,
  kBlockChunkSize,
  kRecordsChunkSize,
  kFileCutInChunk,
  kFileFinished,
  kAfterFinished,
  kInputShrank,
  kChunkChecksum,
  kSymbolsChunk,
  kIndex,
  kBlockState,
  kBlockHeader,
  kBlockIndex,
  kBlockHandout,
  kBlockSerial,
  kRecordLength,
  kRecordType,
  kRecordBody,
  kRecordTime,
  kRecordCommitted,
  kRecordClass,
  kRecordWriter,
  kDefinitionProcess,
  kDefinitionId,
  kDefinitionModule,
  kNameDefined,
  kEventPayload,
  kCodeRange,
  kClockSync,
  kSlotCounts,
  kTotals,
  kStackAgrees,
  kFramesOpen,
  kVforkNested,
  kCount
};

struct RuleText {
  std::string_view id;
  std::string_view text;
};

inline constexpr std::array<RuleText, static_cast<size_t>(Rule::kCount)> kRules = {{
    {"F1", "a chunk begins with its magic and a size that is a multiple of 4"},
    {"F2", "chunks are numbered from 0 without gaps"},
    {"F3", "a BLOCK chunk holds a block's header and at most a block"},
    {"F4", "a RECORDS chunk holds at most 16 MiB"},
    {"F5", "the last chunk is complete"},
    {"F6", "a whole file has a SESSION_FINISHED record"},
    {"F7", "no block and no record follows SESSION_FINISHED"},
    {"F8", "the input does not shrink while it is read"},
    {"F9", "a chunk's checksum is that of its bytes, if the file has checksums"},
    {"F10", "a SYMBOLS chunk holds at most 16 MiB, and what its counts and sizes say"},
    {"F11", "an INDEX lists the chunks before it as they are"},
    {"B1", "a block's phase is a known one"},
    {"B2", "a block's header has its magic, a known form and class, and a writer"},
    {"B3", "a block's index is its hand-out number modulo the block count"},
    {"B4", "a hand-out number occurs once, but for copies of open definitions"},
    {"B5", "the serials of a writer's blocks have no gaps and no doubles"},
    {"R1", "a record's length is a multiple of 4, covers its head and ends in the block"},
    {"R2", "a record's type is not 0"},
    {"R3", "a record is long enough for what its type and its own counts say"},
    {"R4", "TIME does not go back"},
    {"R5", "the collector's own records are complete"},
    {"R6", "a record's type belongs into the class of its block"},
    {"R7", "a record's writer has a THREAD definition, if it stands in a data block"},
    {"D1", "a definition's process has a PROCESS definition"},
    {"D2", "an id has one meaning in its process"},
    {"D3", "a module's range is not empty, and what is unloaded was loaded"},
    {"D4", "a name or event id that is used has a definition"},
    {"D5", "an event's payload is as long as its layout says"},
    {"D6", "generated code has bytes, and they end within the address space"},
    {"C1", "clock syncs rise"},
    {"L1", "a slot has not reported more losses than it counted"},
    {"L2", "a whole file has the records that its TOTALS count, or LOST for them"},
    {"S1", "STACK agrees with the records before it, unless some were lost or gave way"},
    {"S2", "EXIT and UNWIND leave frames that are open"},
    {"S3", "VFORK_END follows a VFORK_BEGIN, unless some were lost"},
}};

inline constexpr const RuleText& text_of(Rule rule) {
  return kRules[static_cast<size_t>(rule)];
}

// A breach of a validity rule of SPEC.md.
struct Finding {
  std::string rule;  // "R3"
  std::string message;
  uint64_t chunk = 0;  // as in Record
  uint32_t offset = 0;
};

// Collects findings: keeps a bounded number, and counts all.
class FindingLog {
 public:
  explicit FindingLog(size_t max_kept) : max_kept_(max_kept) {}

  void add(Rule rule, std::string message, uint64_t chunk = 0, uint32_t offset = 0) {
    add({std::string(text_of(rule).id), std::move(message), chunk, offset});
  }
  void add(Finding finding) {
    ++count_;
    if (kept_.size() < max_kept_) kept_.push_back(std::move(finding));
  }

  // Adds the findings of another log: those that it stored, and how many it counted.
  void add_all(std::span<const Finding> kept, uint64_t count) {
    for (const Finding& finding : kept) add(finding);
    count_ += count - std::min<uint64_t>(count, kept.size());
  }

  const std::vector<Finding>& kept() const { return kept_; }
  uint64_t count() const { return count_; }

  // A state of the log: forget(mark()) drops the findings that were added after mark().
  struct Mark {
    size_t kept = 0;
    uint64_t count = 0;
  };
  Mark mark() const { return {kept_.size(), count_}; }
  void forget(Mark to) {
    kept_.resize(to.kept);
    count_ = to.count;
  }

 private:
  size_t max_kept_;
  std::vector<Finding> kept_;
  uint64_t count_ = 0;
};

}  // namespace arctrace::reader
