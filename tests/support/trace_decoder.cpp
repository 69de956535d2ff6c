#include "tests/support/trace_decoder.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace arctrace::testing {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, size_t at) {
  T value{};
  if (at + sizeof value <= bytes.size()) {
    std::memcpy(&value, bytes.data() + at, sizeof value);
  }
  return value;
}

class Decoder {
 public:
  explicit Decoder(std::vector<std::byte> bytes) { trace_.bytes = std::move(bytes); }

  DecodedTrace run() {
    if (trace_.bytes.size() < ARCTRACE_HEADER_SIZE) {
      problem("FILE-1", "no whole header");
      return std::move(trace_);
    }
    trace_.header = load<arctrace_session_header>(trace_.bytes, 0);
    if (trace_.header.magic != ARCTRACE_FILE_MAGIC) problem("FILE-1", "wrong magic");
    chunks();
    check_blocks();
    std::sort(
        trace_.blocks.begin(), trace_.blocks.end(),
        [](const auto& a, const auto& b) { return a.header.handout < b.header.handout; });
    return std::move(trace_);
  }

 private:
  void problem(const std::string& rule, const std::string& what) {
    constexpr size_t kEnough = 50;
    if (trace_.problems.size() < kEnough) trace_.problems.push_back(rule + ": " + what);
  }

  void chunks() {
    const std::span<const std::byte> all(trace_.bytes);
    size_t at = ARCTRACE_HEADER_SIZE;
    for (uint64_t sequence = 0; at < all.size(); ++sequence) {
      const auto head = load<arctrace_chunk_header>(all, at);
      where_ = "chunk " + std::to_string(sequence);
      at += sizeof head;
      if (at > all.size() || head.size > all.size() - at) {
        return problem("F5", where_ + " is cut off");
      }
      if (head.magic != ARCTRACE_CHUNK_MAGIC || head.size % 4 != 0) {
        return problem("F1", where_ + " has no right head");
      }
      if (head.sequence != sequence) problem("F2", where_ + " out of sequence");
      const std::span<const std::byte> payload = all.subspan(at, head.size);
      const bool is_block = head.kind == ARCTRACE_CHUNK_BLOCK;
      const bool is_known = is_block || head.kind == ARCTRACE_CHUNK_RECORDS;
      if (trace_.finished && is_known) problem("F7", where_ + " follows the end");
      if (is_block) {
        block(head, payload);
      } else if (is_known) {
        records_chunk(payload);
      }
      at += head.size;
    }
    if (!trace_.finished) problem("F6", "not finished");
  }

  void records_chunk(std::span<const std::byte> payload) {
    std::vector<DecodedRecord> records;
    walk(payload, 0, ARCTRACE_FORM_FULL, 0, records);
    for (const DecodedRecord& record : records) {
      if (record.in_progress)
        problem("R5", where_ + ": a collector's record in progress");
      if (record.type < ARCTRACE_TYPE_SYSTEM && record.type != ARCTRACE_TYPE_LOST) {
        problem("R6", where_ + ": type " + std::to_string(record.type));
      }
      trace_.finished = record.type == ARCTRACE_TYPE_SESSION &&
                        record.u32(0) == ARCTRACE_SESSION_FINISHED;
      trace_.collector.push_back(record);
    }
  }

  void block(const arctrace_chunk_header& head, std::span<const std::byte> payload) {
    if (payload.size() < ARCTRACE_BLOCK_HEADER_SIZE ||
        payload.size() > trace_.header.block_size) {
      return problem("F3", where_ + " has a size that no block has");
    }
    DecodedBlock block;
    block.header = load<arctrace_block_header>(payload, 0);
    block.flags = head.flags;
    const arctrace_block_header& h = block.header;
    if (h.magic != ARCTRACE_BLOCK_MAGIC || h.writer == 0 ||
        (h.process == 0 && h.writer != ARCTRACE_WRITER_KERNEL) ||
        (h.form != exclusive_form() && h.form != ARCTRACE_FORM_FULL) ||
        (h.block_class != ARCTRACE_CLASS_DATA &&
         h.block_class != ARCTRACE_CLASS_DEFINITIONS)) {
      return problem("B2", where_ + " has no right block header");
    }
    if (h.handout % trace_.header.block_count != head.index) {
      problem("B3", where_ + " is not the block that its hand-out gave");
    }
    block.has_hole =
        walk(payload, ARCTRACE_BLOCK_HEADER_SIZE, h.form, h.base_ticks, block.records);
    if (block.is_compact()) {
      for (DecodedRecord& record : block.records) record.writer = h.writer;
      check_compact(block);
    }
    for (const DecodedRecord& record : block.records) {
      const bool definition =
          record.type >= ARCTRACE_TYPE_PROCESS && record.type < ARCTRACE_TYPE_SWITCH;
      if (record.type != ARCTRACE_TYPE_PAD &&
          definition != (h.block_class == ARCTRACE_CLASS_DEFINITIONS)) {
        problem("R6", where_ + ": type " + std::to_string(record.type));
      }
    }
    keep(std::move(block));
  }

  // Open definitions are copied as they grow, so a later chunk replaces an earlier one.
  void keep(DecodedBlock block) {
    const auto [at_index, is_new] =
        place_of_.try_emplace(block.header.handout, trace_.blocks.size());
    if (!is_new) {
      DecodedBlock& known = trace_.blocks[at_index->second];
      if (known.flags == ARCTRACE_CHUNK_LIVE_COPY &&
          block.header.block_class == ARCTRACE_CLASS_DEFINITIONS &&
          known.records.size() <= block.records.size()) {
        known = std::move(block);
      } else {
        problem("B4", "hand-out " + std::to_string(block.header.handout));
      }
      return;
    }
    trace_.blocks.push_back(std::move(block));
  }

  // REC-14: a session has exclusive blocks of one form.
  uint16_t exclusive_form() const {
    return trace_.header.stamps == 0 ? ARCTRACE_FORM_COMPACT : ARCTRACE_FORM_BARE;
  }

  // Returns whether there was a hole before the last record.
  bool walk(std::span<const std::byte> bytes, size_t from, uint16_t form, uint64_t base,
            std::vector<DecodedRecord>& out) {
    const bool compact = form == ARCTRACE_FORM_COMPACT;
    const bool full = form == ARCTRACE_FORM_FULL;
    const uint32_t head = compact ? ARCTRACE_COMPACT_HEAD_SIZE
                          : full  ? ARCTRACE_FULL_HEAD_SIZE
                                  : ARCTRACE_BARE_HEAD_SIZE;
    bool hole = false;
    bool hole_before_record = false;
    for (size_t at = from; at < bytes.size();) {
      const auto word0 = load<uint32_t>(bytes, at);
      if (word0 == ARCTRACE_FILL) {
        hole = true;
        at += 4;
        continue;
      }
      const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
      DecodedRecord record;
      record.type =
          static_cast<uint16_t>(word0 >> ARCTRACE_TYPE_SHIFT & ARCTRACE_TYPE_MASK);
      record.in_progress = (word0 & ARCTRACE_IN_PROGRESS) != 0;
      record.offset = static_cast<uint32_t>(at);
      const std::string where = where_ + " offset " + std::to_string(at) + ", type " +
                                std::to_string(record.type);
      if (length < head || length % 4 != 0 || length > bytes.size() - at) {
        problem("R1", where + ": length " + std::to_string(length));
        return hole;
      }
      if (record.type == 0) problem("R2", where);
      if (hole) hole_before_record = true;
      record.body = bytes.subspan(at + head, length - head);
      record.writer = full ? load<uint32_t>(bytes, at + 4) : 0;
      record.ticks = full      ? load<uint64_t>(bytes, at + 8)
                     : compact ? base + load<uint32_t>(bytes, at + 4)
                               : base;
      if (!full && record.type == ARCTRACE_TYPE_TIME && !record.in_progress) {
        if (record.u64(0) < base) problem("R4", where);
        base = record.u64(0);
      }
      out.push_back(record);
      at += length;
    }
    return hole_before_record;
  }

  // REC-9 and REC-10; an exclusive block can have no hole before its last record.
  void check_compact(const DecodedBlock& block) {
    if (block.has_hole) problem("DEAD-2", where_ + ": a hole in an exclusive block");
    bool opened = false;
    uint64_t previous = 0;
    for (const DecodedRecord& record : block.records) {
      if (record.in_progress) continue;
      if (!opened && record.type != ARCTRACE_TYPE_LOST &&
          record.type != ARCTRACE_TYPE_STACK) {
        problem("REC-9", where_ + " does not begin with LOST and STACK");
      }
      if (opened &&
          (record.type == ARCTRACE_TYPE_LOST || record.type == ARCTRACE_TYPE_STACK)) {
        problem("REC-9", where_ + " has LOST or STACK inside");
      }
      opened = opened || record.type != ARCTRACE_TYPE_LOST;
      if (record.ticks < previous) problem("REC-10", where_ + ": ticks decrease");
      previous = record.ticks;
    }
  }

  void check_blocks() {
    std::map<uint32_t, std::set<uint64_t>> serials;
    for (const DecodedBlock& block : trace_.blocks) {
      const arctrace_block_header& h = block.header;
      if (block.is_compact() && !serials[h.writer].insert(h.serial).second) {
        problem("B5", "a serial twice, at hand-out " + std::to_string(h.handout));
      }
    }
    // The oldest blocks are overwritten, except those that a writer still had then.
    if (trace_.header.mode == ARCTRACE_MODE_OVERWRITE) return;
    for (const auto& [writer, numbers] : serials) {
      if (*numbers.rbegin() + 1 != numbers.size()) {
        problem("B5", "gap in the serials of writer " + std::to_string(writer));
      }
    }
  }

  DecodedTrace trace_;
  std::map<uint64_t, size_t> place_of_;  // hand-out -> index of its block
  std::string where_;
};

}  // namespace

uint32_t DecodedRecord::u32(size_t at) const { return load<uint32_t>(body, at); }
uint64_t DecodedRecord::u64(size_t at) const { return load<uint64_t>(body, at); }

std::string DecodedRecord::text(size_t at, size_t size) const {
  if (at >= body.size()) return {};
  return {reinterpret_cast<const char*>(body.data()) + at,
          std::min(size, body.size() - at)};
}

bool DecodedRecord::is_users() const {
  return (type >= ARCTRACE_TYPE_ENTER && type <= ARCTRACE_TYPE_RESULT) ||
         (type >= ARCTRACE_TYPE_EVENT && type <= ARCTRACE_TYPE_MARK);
}

std::vector<DecodedRecord> DecodedTrace::of_type(uint16_t type) const {
  std::vector<DecodedRecord> found;
  for (const DecodedBlock& block : blocks) {
    for (const DecodedRecord& record : block.records) {
      if (record.type == type && !record.in_progress) found.push_back(record);
    }
  }
  for (const DecodedRecord& record : collector) {
    if (record.type == type) found.push_back(record);
  }
  return found;
}

std::vector<DecodedRecord> DecodedTrace::of_writer(uint32_t writer) const {
  std::vector<DecodedRecord> found;
  for (const DecodedBlock& block : blocks) {
    for (const DecodedRecord& record : block.records) {
      if (record.writer == writer && record.is_users() && !record.in_progress) {
        found.push_back(record);
      }
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
  return found;
}

uint64_t DecodedTrace::lost(uint32_t writer) const {
  uint64_t sum = 0;
  for (const DecodedRecord& record : of_type(ARCTRACE_TYPE_LOST)) {
    if (record.writer == writer) sum += record.u64(8);
  }
  return sum;
}

uint64_t DecodedTrace::lost() const {
  uint64_t sum = 0;
  for (const DecodedRecord& record : of_type(ARCTRACE_TYPE_LOST)) sum += record.u64(8);
  return sum;
}

uint64_t DecodedTrace::written() const {
  uint64_t sum = 0;
  for (const DecodedBlock& block : blocks) {
    for (const DecodedRecord& record : block.records) {
      sum += record.is_users() && !record.in_progress ? 1u : 0u;
    }
  }
  return sum;
}

uint64_t DecodedTrace::torn() const {
  uint64_t sum = 0;
  for (const DecodedBlock& block : blocks) {
    for (const DecodedRecord& record : block.records) {
      sum += record.is_users() && record.in_progress ? 1u : 0u;
    }
  }
  return sum;
}

DecodedTrace decode_trace(std::vector<std::byte> bytes) {
  return Decoder(std::move(bytes)).run();
}

std::vector<std::string> undefined_uses(const DecodedTrace& trace) {
  std::set<uint32_t> processes;
  std::map<uint32_t, uint32_t> process_of;  // by writer
  std::set<std::pair<uint32_t, uint32_t>> names;
  std::set<std::pair<uint32_t, uint32_t>> events;
  for (const auto& record : trace.of_type(ARCTRACE_TYPE_PROCESS)) {
    processes.insert(record.u32(0));
  }
  for (const auto& record : trace.of_type(ARCTRACE_TYPE_THREAD)) {
    process_of[record.u32(0)] = record.u32(4);
  }
  for (const auto& record : trace.of_type(ARCTRACE_TYPE_STRING)) {
    names.emplace(record.u32(0), record.u32(4));
  }
  for (const auto& record : trace.of_type(ARCTRACE_TYPE_EVENT_LAYOUT)) {
    events.emplace(record.u32(0), record.u32(4));
  }
  std::set<std::string> missing;
  for (const DecodedBlock& block : trace.blocks) {
    for (const DecodedRecord& record : block.records) {
      if (record.in_progress || record.type == ARCTRACE_TYPE_PAD) continue;
      if (record.type >= ARCTRACE_TYPE_PROCESS) {
        const uint32_t process =
            record.type == ARCTRACE_TYPE_THREAD ? record.u32(4) : record.u32(0);
        if (!processes.contains(process)) {
          missing.insert("D1: process " + std::to_string(process));
        }
        continue;
      }
      const auto writer = process_of.find(record.writer);
      if (writer == process_of.end()) {
        missing.insert("R7: writer " + std::to_string(record.writer));
        continue;
      }
      const std::pair used(writer->second, record.u32(0));
      if (record.type == ARCTRACE_TYPE_EVENT && !events.contains(used)) {
        missing.insert("D4: event " + std::to_string(used.second));
      }
      if ((record.type == ARCTRACE_TYPE_INSTANT ||
           record.type == ARCTRACE_TYPE_COUNTER) &&
          !names.contains(used)) {
        missing.insert("D4: name " + std::to_string(used.second));
      }
    }
  }
  return {missing.begin(), missing.end()};
}

std::string joined(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) text += problem + "\n";
  return text;
}

}  // namespace arctrace::testing
