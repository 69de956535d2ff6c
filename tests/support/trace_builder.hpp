// Builds valid and invalid trace files and buffer images byte by byte from format.h,
// without the production code that writes them.
#pragma once

#include <arctrace/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/untrusted_bytes.hpp"
#include "src/protocol/block_writers.hpp"

namespace arctrace::testing {

// Little-endian bytes, appended.
class Bytes {
 public:
  Bytes& u16(uint64_t value) { return number(value, 2); }
  Bytes& u32(uint64_t value) { return number(value, 4); }
  Bytes& u64(uint64_t value) { return number(value, 8); }
  // The bytes of `text`, then zeros up to the next multiple of 4.
  Bytes& padded(std::string_view text) {
    raw(text.data(), text.size());
    while (data_.size() % 4 != 0) data_.push_back(std::byte{0});
    return *this;
  }
  Bytes& raw(const void* from, size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    data_.insert(data_.end(), bytes, bytes + size);
    return *this;
  }
  Bytes& append(const Bytes& other) {
    return raw(other.data_.data(), other.data_.size());
  }
  Bytes& fill(size_t count, uint8_t value) {
    data_.insert(data_.end(), count, std::byte{value});
    return *this;
  }

  size_t size() const { return data_.size(); }
  std::vector<std::byte>& data() { return data_; }
  const std::vector<std::byte>& data() const { return data_; }

 private:
  Bytes& number(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) data_.push_back(std::byte(value >> (8 * i) & 0xFF));
    return *this;
  }

  std::vector<std::byte> data_;
};

// ---- Bodies: what stands after a record's head -----------------------------------

inline Bytes key_body(uint64_t key) { return Bytes().u64(key); }

inline Bytes stack_body(const std::vector<uint64_t>& keys, uint32_t depth) {
  Bytes body;
  body.u32(depth).u32(keys.size());
  for (const uint64_t key : keys) body.u64(key);
  return body;
}
inline Bytes stack_body(const std::vector<uint64_t>& keys) {
  return stack_body(keys, static_cast<uint32_t>(keys.size()));
}

inline Bytes lost_body(uint32_t cause, uint64_t count, uint64_t since_ticks,
                       uint32_t flags = 0) {
  return Bytes().u32(cause).u32(flags).u64(count).u64(since_ticks);
}

// The body of TEXT and MARK.
inline Bytes text_body(std::string_view text) {
  return Bytes().u32(text.size()).padded(text);
}

// One arg of ARGUMENTS or RESULT; `argument` 0: the retval.
struct ArgBytes {
  uint8_t kind, argument;
  std::string bytes;
};
inline ArgBytes number_arg(uint8_t kind, uint8_t argument, uint64_t number, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xFF);
  return {kind, argument, bytes};
}
inline Bytes args_body(const std::vector<ArgBytes>& args) {
  Bytes body;
  body.u32(args.size());
  for (const ArgBytes& arg : args) {
    body.u32(uint32_t{arg.kind} | uint32_t{arg.argument} << 8 | arg.bytes.size() << 16);
    body.padded(arg.bytes);
  }
  return body;
}

inline Bytes counter_body(uint32_t name_id, int64_t value) {
  return Bytes().u32(name_id).u64(static_cast<uint64_t>(value));
}

// The body of EVENT. `payload` is packed; zeros fill it up to a multiple of 4.
inline Bytes event_body(uint32_t event, const Bytes& payload = {}) {
  Bytes body;
  body.u32(event).append(payload);
  return body.padded("");
}

struct ProcessFacts {
  uint32_t process = 1, parent = 0, pid = 100, ppid = 1, uid = 0;
  uint32_t origin = ARCTRACE_ORIGIN_EXEC;
  uint64_t start_ticks = 0;
  std::string executable = "/bin/program";
  std::string command_line = std::string("program\0", 8);
};
inline Bytes process_body(const ProcessFacts& f) {
  Bytes body;
  body.u32(f.process).u32(f.parent).u32(f.pid).u32(f.ppid).u32(f.uid).u32(f.origin);
  body.u64(f.start_ticks).u32(f.executable.size()).u32(f.command_line.size());
  return body.padded(f.executable).padded(f.command_line);
}

inline Bytes thread_body(uint32_t writer, uint32_t process, uint32_t tid,
                         std::string_view name, uint64_t start_ticks = 0) {
  Bytes body;
  body.u32(writer).u32(process).u32(tid).u32(name.size()).u64(start_ticks);
  return body.padded(name);
}

inline Bytes module_body(uint32_t process, uint64_t start, uint64_t end, uint64_t bias,
                         std::string_view path, std::string_view build_id = {},
                         uint32_t flags = 0, uint64_t inode = 0) {
  Bytes body;
  body.u32(process).u32(flags).u64(start).u64(end).u64(bias).u64(0).u64(inode);
  body.u32(build_id.size()).u32(path.size());
  return body.padded(build_id).padded(path);
}

inline Bytes module_gone_body(uint32_t process, uint64_t start) {
  return Bytes().u32(process).u32(0).u64(start);
}

inline Bytes string_body(uint32_t process, uint32_t id, std::string_view text) {
  return Bytes().u32(process).u32(id).u32(text.size()).padded(text);
}

inline Bytes layout_body(uint32_t process, uint32_t id, std::string_view name,
                         const std::vector<std::pair<uint32_t, std::string>>& fields,
                         uint32_t level = 0) {
  Bytes body;
  body.u32(process).u32(id).u32(level).u32(fields.size()).u32(name.size()).padded(name);
  for (const auto& [type, field] : fields) {
    body.u32(type).u32(field.size()).padded(field);
  }
  return body;
}

inline Bytes process_end_body(uint32_t process, uint32_t how, int32_t status) {
  return Bytes().u32(process).u32(how).u32(static_cast<uint32_t>(status));
}

inline Bytes untraced_body(uint32_t process, uint32_t why, std::string_view path) {
  return Bytes()
      .u32(process)
      .u32(why)
      .u32(static_cast<uint32_t>(path.size()))
      .padded(path);
}

inline Bytes jitdump_body(uint32_t process, std::string_view path) {
  return Bytes().u32(process).u32(path.size()).padded(path);
}

inline Bytes code_body(uint32_t process, uint64_t start, uint64_t size, uint64_t since,
                       std::string_view name) {
  Bytes body;
  body.u32(process).u32(name.size()).u64(start).u64(size).u64(since);
  return body.padded(name);
}

inline Bytes code_file_body(uint32_t process, uint32_t kind, uint64_t names,
                            uint64_t left_out, uint32_t flags, std::string_view path) {
  Bytes body;
  body.u32(process).u32(kind).u64(names).u64(left_out).u32(flags).u32(path.size());
  return body.padded(path);
}

inline Bytes system_body(std::string_view host, std::string_view kernel,
                         std::string_view command_line) {
  Bytes body;
  body.u32(ARCTRACE_BYTE_ORDER).u32(4096).u32(2);
  body.u32(host.size()).u32(kernel.size()).u32(command_line.size());
  return body.padded(host).padded(kernel).padded(command_line);
}

inline Bytes clock_sync_body(uint64_t ticks, uint64_t monotonic_ns,
                             uint64_t realtime_ns) {
  return Bytes().u64(ticks).u64(monotonic_ns).u64(realtime_ns);
}

inline Bytes pair_body(uint32_t first, uint32_t second) {  // SESSION, WRITER_END, ...
  return Bytes().u32(first).u32(second);
}

// ---- Records --------------------------------------------------------------------

inline uint32_t word0(uint32_t type, size_t length, bool in_progress = false) {
  return ARCTRACE_WORD0(type, static_cast<uint32_t>(length)) |
         (in_progress ? ARCTRACE_IN_PROGRESS : 0u);
}

inline Bytes full_record(uint32_t type, uint32_t writer, uint64_t ticks,
                         const Bytes& body, bool in_progress = false) {
  Bytes record;
  record.u32(word0(type, ARCTRACE_FULL_HEAD_SIZE + body.size(), in_progress));
  return record.u32(writer).u64(ticks).append(body);
}

// One block's image: its header, and the appended records.
class BlockBuilder {
 public:
  // Makes an exclusive block of `writer` (compact form).
  static BlockBuilder exclusive(uint32_t writer, uint64_t serial, uint64_t handout,
                                uint64_t base_ticks, uint32_t process = 1,
                                uint32_t pid = 100, uint32_t tid = 100) {
    BlockBuilder block;
    block.header = {};
    block.header.state = uint64_t{ARCTRACE_PHASE_CLOSED};
    block.header.next = UINT32_MAX;
    block.header.magic = ARCTRACE_BLOCK_MAGIC;
    block.header.form = ARCTRACE_FORM_COMPACT;
    block.header.block_class = ARCTRACE_CLASS_DATA;
    block.header.writer = writer;
    block.header.process = process;
    block.header.pid = pid;
    block.header.tid = tid;
    block.header.serial = serial;
    block.header.handout = handout;
    block.header.base_ticks = base_ticks;
    block.base_ = base_ticks;
    return block;
  }

  // Makes a block for all writers (full form).
  static BlockBuilder shared(uint64_t handout, uint64_t base_ticks,
                             uint16_t block_class = ARCTRACE_CLASS_DATA) {
    BlockBuilder block = exclusive(1, 0, handout, base_ticks);
    block.header.form = ARCTRACE_FORM_FULL;
    block.header.block_class = block_class;
    return block;
  }

  // Appends a record in compact form at `ticks`, after a TIME record if the delta does
  // not fit.
  BlockBuilder& add(uint32_t type, uint64_t ticks, const Bytes& body = {},
                    bool in_progress = false) {
    if (ticks - base_ > UINT32_MAX) time(ticks);
    content.u32(word0(type, ARCTRACE_COMPACT_HEAD_SIZE + body.size(), in_progress));
    content.u32(ticks - base_).append(body);
    return *this;
  }
  BlockBuilder& time(uint64_t ticks) {
    base_ = ticks;
    content.u32(word0(ARCTRACE_TYPE_TIME, 16)).u32(0).u64(ticks);
    return *this;
  }
  BlockBuilder& stack(uint64_t ticks, const std::vector<uint64_t>& keys) {
    return add(ARCTRACE_TYPE_STACK, ticks, stack_body(keys));
  }
  BlockBuilder& enter(uint64_t ticks, uint64_t key) {
    return add(ARCTRACE_TYPE_ENTER, ticks, key_body(key));
  }
  BlockBuilder& exit(uint64_t ticks) { return add(ARCTRACE_TYPE_EXIT, ticks); }

  // Appends a record in full form.
  BlockBuilder& add_full(uint32_t type, uint32_t writer, uint64_t ticks,
                         const Bytes& body = {}, bool in_progress = false) {
    content.append(full_record(type, writer, ticks, body, in_progress));
    return *this;
  }

  BlockBuilder& hole(size_t words) {
    content.fill(words * 4, 0xFF);
    return *this;
  }

  size_t size() const { return ARCTRACE_BLOCK_HEADER_SIZE + content.size(); }
  Bytes image() const { return Bytes().raw(&header, sizeof header).append(content); }

  arctrace_block_header header;
  Bytes content;  // after the header

 private:
  BlockBuilder() = default;

  uint64_t base_ = 0;
};

// A session header of valid geometry; ticks are ns unless changed.
inline arctrace_session_header session_header(uint64_t magic, uint32_t block_size = 4096,
                                              uint32_t block_count = 8,
                                              uint32_t slot_count = 4) {
  arctrace_session_header header{};
  header.magic = magic;
  header.byte_order = ARCTRACE_BYTE_ORDER;
  header.version_major = ARCTRACE_VERSION_MAJOR;
  header.version_minor = ARCTRACE_VERSION_MINOR;
  header.header_size = ARCTRACE_HEADER_SIZE;
  header.slot_size = ARCTRACE_SLOT_SIZE;
  header.slot_count = slot_count;
  header.cpu_slot_size = sizeof(arctrace_cpu_slot);
  header.block_header_size = ARCTRACE_BLOCK_HEADER_SIZE;
  header.block_size = block_size;
  header.block_count = block_count;
  header.slots_offset = ARCTRACE_CPUS_OFFSET;
  const uint64_t slots_end =
      header.slots_offset + uint64_t{slot_count} * ARCTRACE_SLOT_SIZE;
  header.blocks_offset = (slots_end + 4095) / 4096 * 4096;
  const uint64_t end = header.blocks_offset + uint64_t{block_count} * block_size;
  header.total_size = (end + 4095) / 4096 * 4096;
  header.mode = ARCTRACE_MODE_DROP;
  header.scope = ARCTRACE_SCOPE_THREAD;
  header.clock = ARCTRACE_CLOCK_MONOTONIC;
  header.creator_pid = 99;
  header.ticks_per_second = 1'000'000'000;
  header.start_realtime_ns = 1'700'000'000'000'000'000;
  return header;
}

// A trace file: the header, and chunks.
class FileBuilder {
 public:
  explicit FileBuilder(uint32_t block_size = 4096)
      : header(session_header(ARCTRACE_FILE_MAGIC, block_size)) {}

  FileBuilder& block(const BlockBuilder& block, uint16_t flags = 0, uint32_t index = 0,
                     uint64_t written_ticks = 0) {
    return chunk(ARCTRACE_CHUNK_BLOCK, block.image(), flags, index, written_ticks);
  }
  FileBuilder& records(const Bytes& records) {
    return chunk(ARCTRACE_CHUNK_RECORDS, records);
  }
  FileBuilder& chunk(uint16_t kind, const Bytes& payload, uint16_t flags = 0,
                     uint32_t index = 0, uint64_t written_ticks = 0) {
    chunks.u32(ARCTRACE_CHUNK_MAGIC).u16(kind).u16(flags).u32(payload.size()).u32(index);
    chunks.u64(sequence_++).u64(written_ticks).append(payload);
    return *this;
  }
  // Adds PROCESS and THREAD of one program with one thread, as its definitions block.
  FileBuilder& program(const ProcessFacts& process, uint32_t writer,
                       std::string_view thread_name, uint64_t handout) {
    return block(
        BlockBuilder::shared(handout, process.start_ticks, ARCTRACE_CLASS_DEFINITIONS)
            .add_full(ARCTRACE_TYPE_PROCESS, writer, process.start_ticks,
                      process_body(process))
            .add_full(ARCTRACE_TYPE_THREAD, writer, process.start_ticks,
                      thread_body(writer, process.process, process.pid, thread_name,
                                  process.start_ticks)));
  }
  FileBuilder& finish(uint64_t ticks) {
    return records(full_record(ARCTRACE_TYPE_SESSION, ARCTRACE_WRITER_COLLECTOR, ticks,
                               pair_body(ARCTRACE_SESSION_FINISHED, 0)));
  }

  // Adds WRITERS, if there are blocks that it lists, and INDEX, of all chunks so far,
  // with the facts of exclusive blocks.
  FileBuilder& index() {
    const Bytes writers = listed_writers();
    if (writers.size() != 0) chunk(ARCTRACE_CHUNK_WRITERS, writers);
    header.index_offset = ARCTRACE_HEADER_SIZE + chunks.size();
    const std::vector<std::byte> bytes = chunks.data();
    Bytes entries;
    for (size_t at = 0; at < bytes.size();) {
      const std::span<const std::byte> rest = std::span(bytes).subspan(at);
      const auto chunk = load_part_untrusted<arctrace_chunk_header>(rest);
      at += sizeof chunk + chunk.size;
      arctrace_index_entry entry{};
      entry.size = chunk.size;
      entry.kind = chunk.kind;
      entry.flags = chunk.flags;
      entry.ticks = chunk.ticks;
      if (chunk.kind == ARCTRACE_CHUNK_BLOCK) {
        const std::span<const std::byte> image = rest.subspan(sizeof chunk, chunk.size);
        const auto block = load_part_untrusted<arctrace_block_header>(image);
        entry.index = chunk.index;
        entry.form = static_cast<uint8_t>(block.form);
        entry.block_class = static_cast<uint8_t>(block.block_class);
        entry.writer = block.writer;
        entry.process = block.process;
        entry.pid = block.pid;
        entry.tid = block.tid;
        entry.serial = block.serial;
        entry.handout = block.handout;
        entry.base_ticks = block.base_ticks;
        if (block.form == ARCTRACE_FORM_COMPACT) entry.facts = facts_of(image);
      }
      entries.raw(&entry, sizeof entry);
    }
    return chunk(ARCTRACE_CHUNK_INDEX, entries);
  }

  std::vector<std::byte> file() const {
    Bytes bytes;
    bytes.raw(&header, sizeof header).fill(ARCTRACE_HEADER_SIZE - sizeof header, 0);
    return bytes.append(chunks).data();
  }

  arctrace_session_header header;
  Bytes chunks;

 private:
  // The payload of WRITERS; full blocks must have no damage.
  Bytes listed_writers() const {
    const std::vector<std::byte> bytes = chunks.data();
    Bytes lists;
    for (size_t at = 0; at < bytes.size();) {
      const std::span<const std::byte> rest = std::span(bytes).subspan(at);
      const auto chunk = load_part_untrusted<arctrace_chunk_header>(rest);
      at += sizeof chunk + chunk.size;
      if (chunk.kind != ARCTRACE_CHUNK_BLOCK) continue;
      const std::span<const std::byte> image = rest.subspan(sizeof chunk, chunk.size);
      if (!has_listed_writers(load_part_untrusted<arctrace_block_header>(image)))
        continue;
      BlockWriters writers;
      uint32_t length = 0;
      for (size_t record = ARCTRACE_BLOCK_HEADER_SIZE; record < image.size();
           record += length) {
        const auto head = load_part_untrusted<arctrace_full_head>(image.subspan(record));
        length = head.word0 & ARCTRACE_LENGTH_MASK;
        writers.add_untrusted(head.writer, head.ticks, head.word0 >> ARCTRACE_TYPE_SHIFT,
                              image.subspan(record + sizeof head, length - sizeof head));
      }
      const std::span<const arctrace_block_writer> sorted = writers.sorted();
      const arctrace_block_writers list{
          chunk.sequence, static_cast<uint32_t>(sorted.size()), writers.last_ticks()};
      lists.raw(&list, sizeof list).raw(sorted.data(), sorted.size_bytes());
    }
    return lists;
  }

  // The facts of a compact block, which must have no damage.
  static uint16_t facts_of(std::span<const std::byte> image) {
    uint16_t facts = ARCTRACE_FACT_KNOWN;
    uint32_t length = 0;
    for (size_t at = ARCTRACE_BLOCK_HEADER_SIZE; at < image.size(); at += length) {
      const auto word0 = load_part_untrusted<uint32_t>(image.subspan(at));
      length = word0 & ARCTRACE_LENGTH_MASK;
      facts |=
          facts_of_record_untrusted(word0 >> ARCTRACE_TYPE_SHIFT & ARCTRACE_TYPE_MASK,
                                    image.subspan(at + ARCTRACE_COMPACT_HEAD_SIZE,
                                                  length - ARCTRACE_COMPACT_HEAD_SIZE));
    }
    return facts;
  }

  uint64_t sequence_ = 0;
};

// A buffer's image: header, control page, slots, blocks in place.
class BufferBuilder {
 public:
  explicit BufferBuilder(uint32_t block_size = 4096, uint32_t block_count = 8,
                         uint32_t slot_count = 4)
      : header(
            session_header(ARCTRACE_SESSION_MAGIC, block_size, block_count, slot_count)),
        slots(slot_count),
        blocks(block_count) {}

  // Puts the block there in `phase`; its image must fit a block.
  BufferBuilder& block(uint32_t index, const BlockBuilder& block, uint32_t phase) {
    BlockBuilder copy = block;
    copy.header.state = phase;
    control.next = std::max(control.next, block.header.handout + 1);
    blocks.at(index) = copy.image();
    return *this;
  }

  std::vector<std::byte> image() const {
    Bytes bytes;
    bytes.raw(&header, sizeof header).fill(ARCTRACE_HEADER_SIZE - sizeof header, 0);
    bytes.raw(&control, sizeof control);
    bytes.fill(ARCTRACE_CPUS_OFFSET - bytes.size(), 0);
    for (const arctrace_writer_slot& slot : slots) bytes.raw(&slot, sizeof slot);
    bytes.fill(header.blocks_offset - bytes.size(), 0);
    for (const Bytes& block : blocks) {
      if (block.size() == 0) {
        Bytes free;
        free.u64(ARCTRACE_PHASE_FREE).u64(UINT32_MAX);
        bytes.append(free).fill(header.block_size - free.size(), 0xFF);
      } else {
        bytes.append(block).fill(header.block_size - block.size(), 0xFF);
      }
    }
    bytes.fill(header.total_size - bytes.size(), 0);
    return bytes.data();
  }

  arctrace_session_header header;
  arctrace_control control{};
  std::vector<arctrace_writer_slot> slots;
  std::vector<Bytes> blocks;
};

}  // namespace arctrace::testing
