#include "reader/trace/key_scan.hpp"

#include <arctrace/format.h>

#include <array>
#include <span>
#include <vector>

#include "reader/trace/record.hpp"

namespace arctrace::reader {
namespace {

// Each pass reads one of so many blocks.
constexpr size_t kPasses = 16;

class KeyScan {
 public:
  KeyScan(const Definitions& definitions, UsedKeys& keys, UsedKeys* locks)
      : definitions_(definitions), keys_(keys), locks_(locks) {}

  void walk(std::span<const std::byte> bytes, const BlockRef& block) {
    const bool is_compact = block.kind == BlockRef::Kind::kExclusive;
    const ProcessIndex process =
        is_compact ? process_of(definitions_.find_thread(block.writer)) : kNoIndex;
    RecordCursor cursor(block.form, block.base_ticks, is_compact && block.live);
    cursor.set_window(bytes, block.records_offset(), true);
    RawRecord record;
    while (cursor.next_untrusted(record) == RecordCursor::Result::kRecord) {
      if (record.in_progress) continue;
      note(record, process, is_compact);
    }
  }

  bool has_space() const { return keys_.size() < kUsedKeysMax; }

 private:
  ProcessIndex process_of(ThreadIndex index) const {
    const Thread* thread = definitions_.thread(index);
    return thread == nullptr ? kNoIndex : thread->process;
  }

  void note(const RawRecord& record, ProcessIndex process, bool is_compact) {
    BodyReader reader(record.body);
    const auto of_writer = [&] {
      return is_compact ? process : process_of(definitions_.find_thread(record.writer));
    };
    switch (record.type) {
      case ARCTRACE_TYPE_ENTER:
        add(of_writer(), reader.read<uint64_t>());
        if (locks_ != nullptr) add_locks(of_writer(), reader);
        break;
      case ARCTRACE_TYPE_EXIT_NAMED:
        add(of_writer(), reader.read<uint64_t>());
        break;
      case ARCTRACE_TYPE_COROUTINE:
        reader.read<uint32_t>();
        [[fallthrough]];
      case ARCTRACE_TYPE_STACK: {
        reader.read<uint32_t>();
        const auto count = reader.read<uint32_t>();
        add_all(of_writer(), reader, count, 0);
        break;
      }
      case ARCTRACE_TYPE_WAITING: {
        const auto body = reader.read<arctrace_waiting_body>();
        add_all(definitions_.find_process(body.process), reader, body.count,
                sizeof(arctrace_waiting_call) - sizeof(uint64_t));
        break;
      }
      case ARCTRACE_TYPE_INHERITED: {
        const auto body = reader.read<arctrace_inherited_body>();
        add_all(definitions_.find_process(body.process), reader, body.count, 0);
        break;
      }
      case ARCTRACE_TYPE_PATCHES: {
        const auto body = reader.read<arctrace_patches_body>();
        add_all(definitions_.find_process(body.process), reader, body.listed, 0);
        break;
      }
      default:
        break;
    }
  }

  // Adds the rest of an ENTER, whose first two words are locks.
  void add_locks(ProcessIndex process, BodyReader& reader) {
    for (int i = 0; i < 2; ++i) {
      const auto address = reader.read<uint64_t>();
      if (!reader.ok() || process == kNoIndex) return;
      if (locks_->size() < kUsedKeysMax) locks_->emplace(process, address);
    }
  }

  // Adds `count` keys, each followed by `gap` bytes.
  void add_all(ProcessIndex process, BodyReader& reader, uint32_t count, uint32_t gap) {
    for (uint32_t i = 0; i < count && !reader.rest().empty(); ++i) {
      const auto key = reader.read<uint64_t>();
      if (!reader.ok()) return;
      reader.bytes(gap);
      add(process, key);
    }
  }

  void add(ProcessIndex process, uint64_t key) {
    if (process == kNoIndex || key == 0) return;
    // A small cache in front of the set, for the functions that are called all the time.
    Recent& recent = recent_[(key * 0x9E3779B97F4A7C15u) >> (64 - kRecentBits)];
    if (recent.key == key && recent.process == process) return;
    recent = {key, process};
    if (has_space()) keys_.emplace(process, key);
  }

  struct Recent {
    uint64_t key = 0;
    ProcessIndex process = kNoIndex;
  };
  static constexpr unsigned kRecentBits = 10;

  const Definitions& definitions_;
  UsedKeys& keys_;
  UsedKeys* const locks_;
  std::array<Recent, size_t{1} << kRecentBits> recent_{};
};

}  // namespace

absl::StatusOr<bool> scan_keys_untrusted(Input& input, const Trace& trace,
                                         const std::function<bool()>& goes_on,
                                         UsedKeys& keys, UsedKeys* locks) {
  const std::span<const BlockRef> blocks = trace.blocks();
  KeyScan scan(trace.definitions(), keys, locks);
  std::vector<std::byte> bytes;
  FindingLog ignored(0);
  for (size_t pass = 0; pass < kPasses; ++pass) {
    for (size_t i = pass; i < blocks.size(); i += kPasses) {
      const BlockRef& block = blocks[i];
      if (block.kind == BlockRef::Kind::kCollector || block.of_kernel()) continue;
      if (!goes_on() || !scan.has_space()) return false;
      bytes.resize(block.size - block.records_offset());
      const absl::StatusOr<size_t> there =
          copy_block_untrusted(input, block, block.records_offset(), bytes, ignored);
      if (!there.ok()) return there.status();
      scan.walk(std::span(bytes).first(*there), block);
    }
  }
  return scan.has_space();
}

}  // namespace arctrace::reader
