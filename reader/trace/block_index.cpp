#include "reader/trace/block_index.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <utility>

#include "reader/trace/live_copy.hpp"

namespace arctrace::reader {
namespace {

const char* header_problem(const arctrace_block_header& h) {
  if (h.magic != ARCTRACE_BLOCK_MAGIC) return "its magic is wrong";
  if (h.form != ARCTRACE_FORM_COMPACT && h.form != ARCTRACE_FORM_FULL) {
    return "its form is not known";
  }
  if (h.block_class != ARCTRACE_CLASS_DATA &&
      h.block_class != ARCTRACE_CLASS_DEFINITIONS) {
    return "its class is not known";
  }
  if (h.form == ARCTRACE_FORM_COMPACT) {
    if (h.block_class != ARCTRACE_CLASS_DATA) return "definitions in compact form";
    if (h.writer == 0 || (h.writer & ARCTRACE_WRITER_KERNEL) != 0) {
      return "an exclusive block has no such writer";
    }
  }
  return nullptr;
}

}  // namespace

bool read_block_header_untrusted(const arctrace_block_header& h, const Geometry& geometry,
                                 uint64_t block_index, BlockRef& ref,
                                 FindingLog& findings) {
  if (const char* problem = header_problem(h); problem != nullptr) {
    findings.add(Rule::kBlockHeader, problem, ref.chunk);
    return false;
  }
  if (h.handout % geometry.block_count != block_index) {
    findings.add(Rule::kBlockIndex,
                 absl::StrCat("hand-out ", h.handout, " gives block ",
                              h.handout % geometry.block_count, ", not ", block_index),
                 ref.chunk);
  }
  if (h.form == ARCTRACE_FORM_COMPACT) {
    ref.kind = BlockRef::Kind::kExclusive;
  } else if (h.block_class == ARCTRACE_CLASS_DATA) {
    ref.kind = BlockRef::Kind::kShared;
  } else {
    ref.kind = BlockRef::Kind::kDefinitions;
  }
  ref.writer = h.writer;
  ref.process = h.process;
  ref.pid = h.pid;
  ref.tid = h.tid;
  ref.serial = h.serial;
  ref.handout = h.handout;
  ref.base_ticks = h.base_ticks;
  return true;
}

absl::StatusOr<size_t> copy_block_untrusted(Input& input, const BlockRef& ref,
                                            uint32_t begin, std::span<std::byte> out,
                                            FindingLog& findings) {
  const absl::StatusOr<size_t> read = ref.changes
                                          ? read_live_untrusted(input, ref, begin, out)
                                          : input.read(ref.offset + begin, out);
  if (!read.ok()) return read.status();
  if (*read < out.size()) {
    findings.add(Rule::kInputShrank, "the block is no longer all there", ref.chunk,
                 begin);
  }
  if (ref.in_buffer) {
    // A thread that recycles a block wipes its header before its records: if the header
    // is the same after the copy, so were the records in it.
    arctrace_block_header now{};
    const absl::StatusOr<size_t> header =
        input.read(ref.offset, std::as_writable_bytes(std::span(&now, 1)));
    if (!header.ok()) return header.status();
    if (*header < sizeof now || now.magic != ARCTRACE_BLOCK_MAGIC ||
        now.handout != ref.handout) {
      return size_t{0};
    }
  }
  return *read & ~size_t{3};
}

void drop_doubles(BlockIndex& index, DoublesOf of, FindingLog& findings) {
  absl::flat_hash_map<uint64_t, size_t> kept_at;  // hand-out -> index in `kept`
  std::vector<BlockRef> kept;
  kept.reserve(index.blocks.size());
  for (BlockRef& ref : index.blocks) {
    if (ref.kind != BlockRef::Kind::kCollector) {
      const auto [entry, is_new] = kept_at.try_emplace(ref.handout, kept.size());
      if (!is_new) {
        BlockRef& other = kept[entry->second];
        const bool is_copy = other.live || (of == DoublesOf::kParts && ref.live);
        if (is_copy && ref.kind == BlockRef::Kind::kDefinitions) {
          // The collector copies open definitions again and again, each time all of them;
          // the file may be cut off inside the last copy.
          if (ref.size >= other.size) other = ref;
          continue;
        }
        findings.add(Rule::kBlockHandout,
                     absl::StrCat("hand-out ", ref.handout, " stands at ", other.chunk,
                                  " too; the longer one counts"),
                     ref.chunk);
        if (ref.size > other.size) other = ref;
        continue;
      }
    }
    kept.push_back(ref);
  }
  index.blocks = std::move(kept);
}

}  // namespace arctrace::reader
