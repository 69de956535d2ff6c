def sub(p, a, b, n=1):
    s=open(p).read(); assert a in s, (p,a); s=s.replace(a,b,n); open(p,'w').write(s)
p='src/recorder/file/trace_file.hpp'
sub(p,'''  // Appends one chunk whose payload is `first`, then `rest`. After a failure (disk full)
  // nothing more is written and the file ends after the last whole chunk.
  void write_chunk(arctrace_chunk_kind kind, uint16_t flags, uint32_t index,
                   uint64_t ticks, std::span<const std::byte> first,
                   std::span<const std::byte> rest = {});
''','''  // Appends one chunk whose payload is `first`, then `rest`. After a failure (disk full)
  // nothing more is written and the file ends after the last whole chunk. Of a block,
  // `first` has at least the header; `facts` (ARCTRACE_FACT_*) are for the index.
  void write_chunk(arctrace_chunk_kind kind, uint16_t flags, uint32_t index,
                   uint64_t ticks, std::span<const std::byte> first,
                   std::span<const std::byte> rest = {}, uint16_t facts = 0);

  // Appends the index of the chunks so far, by which readers of a range find its blocks.
  // To be called once, last, after the file is finished. A file of very many chunks, or
  // without room, has none.
  void write_index(uint64_t ticks);
''')
sub(p,'''  std::vector<std::byte> header_;
''','''  std::vector<std::byte> header_;
  std::vector<arctrace_index_entry> index_;  // by sequence
''')
sub(p,'#include <arctrace/format.h>\n','#include <arctrace/format.h>\n#include <arctrace/format/index.h>\n')
p='src/recorder/file/trace_file.cpp'
sub(p,'''                            std::span<const std::byte> rest) {
  if (error_ == 0 && bytes_ == 0''','''                            std::span<const std::byte> rest, uint16_t facts) {
  if (error_ == 0 && bytes_ == 0''')
sub(p,'''  chunk.ticks = ticks;
  chunk.ticks = ticks;
''','''  chunk.ticks = ticks;
''') if open(p).read().count('  chunk.ticks = ticks;\n')>1 else None
sub(p,'''  append(parts);
  if (error_ == 0) ++sequence_;
}
''','''  const uint64_t offset = bytes_;
  append(parts);
  if (error_ != 0) return;
  ++sequence_;
  if (index_.size() <= ARCTRACE_INDEX_ENTRIES_MAX) {
    index_.push_back(index_entry(offset, chunk, first, facts));
  }
}

void TraceFile::write_index(uint64_t ticks) {
  if (error_ != 0 || index_.empty() || index_.size() > ARCTRACE_INDEX_ENTRIES_MAX ||
      index_.size() != sequence_) {
    return;
  }
  const std::vector<arctrace_index_entry> entries = std::move(index_);
  index_.clear();
  arctrace_index_end end{};
  end.offset = bytes_;
  end.count = static_cast<uint32_t>(entries.size());
  end.entry_size = sizeof entries.front();
  end.magic = ARCTRACE_INDEX_MAGIC;
  write_chunk(static_cast<arctrace_chunk_kind>(ARCTRACE_CHUNK_INDEX), 0, 0, ticks,
              std::as_bytes(std::span(entries)), std::as_bytes(std::span(&end, 1)));
  // The trace is whole without it.
  if (lacks_room()) clear_error();
}
''')
sub(p,'''// Whether a signal that ends programs''','''// The payload of a block begins with its header.
arctrace_index_entry index_entry(uint64_t offset, const arctrace_chunk_header& chunk,
                                 std::span<const std::byte> payload, uint16_t facts) {
  arctrace_index_entry entry{};
  entry.offset = offset;
  entry.size = chunk.size;
  entry.kind = chunk.kind;
  entry.flags = chunk.flags;
  entry.ticks = chunk.ticks;
  if (chunk.kind != ARCTRACE_CHUNK_BLOCK) return entry;
  const auto header = load_part_untrusted<arctrace_block_header>(payload);
  entry.index = chunk.index;
  entry.facts = facts;
  entry.form = static_cast<uint8_t>(header.form);
  entry.block_class = static_cast<uint8_t>(header.block_class);
  entry.writer = header.writer;
  entry.process = header.process;
  entry.pid = header.pid;
  entry.tid = header.tid;
  entry.serial = header.serial;
  entry.handout = header.handout;
  entry.base_ticks = header.base_ticks;
  return entry;
}

// Whether a signal that ends programs''')
sub(p,'#include "src/base/checksum.hpp"\n','#include "src/base/checksum.hpp"\n#include "src/base/untrusted_bytes.hpp"\n')
sub(p,'''  bytes_ = 0;
  sequence_ = 0;
}''','''  bytes_ = 0;
  sequence_ = 0;
  index_.clear();
}''')
sub(p,'''  sequence_ = cut.back().header.sequence;
''','''  sequence_ = cut.back().header.sequence;
  index_.resize(std::min<size_t>(index_.size(), sequence_));
''')
sub(p,'''  sequence_ = sequence_before;
''','''  sequence_ = sequence_before;
  index_.resize(std::min<size_t>(index_.size(), sequence_));
''')
sub(p,'''      header_(std::move(other.header_)),
''','''      header_(std::move(other.header_)),
      index_(std::move(other.index_)),
''')
sub(p,'''  std::swap(header_, other.header_);
''','''  std::swap(header_, other.header_);
  std::swap(index_, other.index_);
''')
p='src/recorder/file/block_scan.hpp'
sub(p,'''  bool has_own = false;
};''','''  bool has_own = false;
  uint16_t facts = 0;  // ARCTRACE_FACT_*, of an exclusive block
};''')
p='src/recorder/file/block_scan.cpp'
sub(p,'''    offset += length;
    end = offset;
  }
''','''    if (is_compact && (word0 & ARCTRACE_IN_PROGRESS) == 0) {
      add_facts_untrusted(static_cast<uint16_t>(type),
                          block.subspan(offset + head, std::max(length, head) - head),
                          contents.facts);
    }
    offset += length;
    end = offset;
  }
''')
sub(p,'''  const uint32_t head =
      copy_block_header(*reinterpret_cast<arctrace_block_header*>(block.data())).form ==
              ARCTRACE_FORM_COMPACT
          ? ARCTRACE_COMPACT_HEAD_SIZE
          : ARCTRACE_FULL_HEAD_SIZE;
''','''  const bool is_compact =
      copy_block_header(*reinterpret_cast<arctrace_block_header*>(block.data())).form ==
      ARCTRACE_FORM_COMPACT;
  const uint32_t head =
      is_compact ? ARCTRACE_COMPACT_HEAD_SIZE : ARCTRACE_FULL_HEAD_SIZE;
  if (is_compact) contents.facts = ARCTRACE_FACT_KNOWN;
''')
# callers: pass contents.facts; write_index after SESSION finished
