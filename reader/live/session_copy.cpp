#include "reader/live/session_copy.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "reader/live/chunk_input.hpp"
#include "reader/trace/buffer_state.hpp"
#include "reader/trace/record.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/buffer/clock.hpp"

namespace arctrace::reader {
namespace {

// A block that was closed and unchanged in so many updates has no writer any more.
constexpr uint32_t kUnchangedEnough = 2;
// After so many updates without it, a block that is gone from the buffer will never be in
// the file.
constexpr uint32_t kMissingEnough = 50;
constexpr uint32_t kRecordsChunkMax = 16u << 20;

uint32_t phase_untrusted(std::span<const std::byte> block) {
  return load_part_untrusted<uint64_t>(block) & 0xFF;
}

// Cuts off the 0xff after the last record, whose own last words may be 0xff too.
void trim(std::vector<std::byte>& block) {
  const auto header = load_part_untrusted<arctrace_block_header>(block);
  RecordCursor cursor(header.form, 0, false);
  const std::span<const std::byte> records = std::span(block).subspan(
      std::min<size_t>(block.size(), ARCTRACE_BLOCK_HEADER_SIZE));
  cursor.set_window(records, ARCTRACE_BLOCK_HEADER_SIZE, true);
  RawRecord record;
  size_t end = ARCTRACE_BLOCK_HEADER_SIZE;
  RecordCursor::Result result = RecordCursor::Result::kRecord;
  while ((result = cursor.next_untrusted(record)) == RecordCursor::Result::kRecord) {
    end = cursor.offset();
  }
  if (result == RecordCursor::Result::kEnd) block.resize(std::min(end, block.size()));
}

// Whether the parts that readers use are the same.
bool same_records(std::span<const std::byte> a, std::span<const std::byte> b) {
  constexpr size_t kFrom = offsetof(arctrace_block_header, magic);
  return a.size() == b.size() &&
         std::equal(a.begin() + kFrom, a.end(), b.begin() + kFrom);
}

}  // namespace

SessionCopy::SessionCopy(std::unique_ptr<Input> buffer,
                         const arctrace_session_header& header, SessionHeader facts)
    : buffer_(std::move(buffer)),
      header_(header),
      session_(std::move(facts.session)),
      geometry_(facts.geometry) {
  header_.magic = ARCTRACE_FILE_MAGIC;
  header_.features_required = 0;  // the chunks of the copy have no checksums
}

absl::StatusOr<SessionCopy> SessionCopy::create(std::unique_ptr<Input> buffer) {
  absl::StatusOr<SessionHeader> facts = read_session_header_untrusted(*buffer);
  if (!facts.ok()) return facts.status();
  if (!facts->session.raw) {
    return absl::InvalidArgumentError(
        absl::StrCat(buffer->name(), " is a trace file, not a live session"));
  }
  arctrace_session_header header{};
  const auto got = buffer->read(0, std::as_writable_bytes(std::span(&header, 1)));
  if (!got.ok()) return got.status();
  return SessionCopy(std::move(buffer), header, *std::move(facts));
}

void SessionCopy::add_file(std::unique_ptr<Input> file, bool with_data) {
  files_.push_back({std::move(file), ARCTRACE_HEADER_SIZE, with_data});
}

// Data are copied before definitions, because what a record needs was defined before it
// was written. The buffer is copied before the file, because a block is in the file
// before it leaves the buffer. So the data that come from the file may be newer than the
// definitions that came from the buffer, and both are searched for definitions once more.
// In overwrite mode definitions may give way as soon as the data do, so definitions are
// copied first, too (SPEC.md LIVE-4).
absl::Status SessionCopy::update() {
  now_ticks_ = read_ticks(geometry_.clock);
  absl::flat_hash_set<uint64_t> seen;
  const bool give_way = session_.mode == ARCTRACE_MODE_OVERWRITE;
  if (give_way) {
    if (absl::Status s = copy_buffer(true, false, seen); !s.ok()) return s;
  }
  if (absl::Status s = copy_buffer(false, false, seen); !s.ok()) return s;
  if (absl::Status s = copy_buffer(true, give_way, seen); !s.ok()) return s;
  if (files_.empty()) {
    if (absl::Status s = copy_control_events(); !s.ok()) return s;
  } else {
    for (File& file : files_) {
      if (absl::Status s = copy_file(file); !s.ok()) return s;
    }
    if (absl::Status s = copy_buffer(true, true, seen); !s.ok()) return s;
    for (File& file : files_) {
      if (absl::Status s = copy_later_definitions(file); !s.ok()) return s;
    }
  }
  note_missing(seen);
  find_missed(seen);
  return absl::OkStatus();
}

absl::Status SessionCopy::copy_buffer(bool definitions, bool again,
                                      absl::flat_hash_set<uint64_t>& seen) {
  FindingLog unused(0);
  BufferState state;
  absl::StatusOr<BlockIndex> index =
      index_buffer_untrusted(*buffer_, geometry_, unused, state);
  if (!index.ok()) return index.status();
  state_ = std::move(state);
  for (const BlockRef& ref : index->blocks) {
    seen.insert(ref.handout);
    if ((ref.kind == BlockRef::Kind::kDefinitions) != definitions) continue;
    if (absl::Status s = copy_block_untrusted(ref, again); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status SessionCopy::copy_block_untrusted(const BlockRef& ref, bool again) {
  if (forgotten_.contains(ref.handout)) return absl::OkStatus();
  const auto known = blocks_.find(ref.handout);
  if (known != blocks_.end() && known->second.is_whole) return absl::OkStatus();
  std::vector<std::byte> bytes(ref.size);
  FindingLog unused(0);
  const absl::StatusOr<size_t> there =
      reader::copy_block_untrusted(*buffer_, ref, 0, bytes, unused);
  if (!there.ok()) return there.status();
  bytes.resize(*there);
  if (bytes.size() < ARCTRACE_BLOCK_HEADER_SIZE) return absl::OkStatus();
  trim(bytes);
  if (bytes.size() <= ARCTRACE_BLOCK_HEADER_SIZE) return absl::OkStatus();
  Kept& kept = blocks_[ref.handout];
  kept.ref = ref;
  kept.index = static_cast<uint32_t>(ref.chunk);
  const bool is_closed = phase_untrusted(bytes) == ARCTRACE_PHASE_CLOSED;
  const bool is_same = kept.bytes != nullptr && same_records(*kept.bytes, bytes);
  if (is_same && again) return absl::OkStatus();
  kept.unchanged = is_closed && is_same ? kept.unchanged + 1 : 0;
  if (!is_same) {
    kept.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  }
  if (kept.unchanged >= kUnchangedEnough) {
    kept.is_whole = true;
    kept.whole_ticks = now_ticks_;
  }
  return absl::OkStatus();
}

absl::Status SessionCopy::copy_control_events() {
  absl::StatusOr<std::vector<std::byte>> records =
      records_of_control_events_untrusted(*buffer_, geometry_);
  if (!records.ok()) return records.status();
  control_events_.ref.kind = BlockRef::Kind::kCollector;
  if (control_events_.bytes != nullptr && *control_events_.bytes == *records)
    return absl::OkStatus();
  // Control events that gave way to newer ones will not come again.
  std::set<ControlEventKey> present;
  RecordCursor cursor(ARCTRACE_FORM_FULL, 0, false);
  cursor.set_window(*records, 0, true);
  RawRecord record;
  while (cursor.next_untrusted(record) == RecordCursor::Result::kRecord) {
    present.emplace(record.type, record.ticks,
                    load_part_untrusted<uint32_t>(record.body));
  }
  std::erase_if(taken_control_events_,
                [&](const ControlEventKey& event) { return !present.contains(event); });
  control_events_.bytes =
      std::make_shared<const std::vector<std::byte>>(*std::move(records));
  return absl::OkStatus();
}

absl::Status SessionCopy::copy_file(File& file) {
  for (;;) {
    const absl::StatusOr<bool> more = copy_chunk_untrusted(file, file.offset, false);
    if (!more.ok()) return more.status();
    if (!*more) break;
  }
  file.with_data = true;
  return absl::OkStatus();
}

absl::Status SessionCopy::copy_later_definitions(File& file) {
  for (uint64_t offset = file.offset;;) {
    const absl::StatusOr<bool> more = copy_chunk_untrusted(file, offset, true);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
  }
}

// Copies the chunk at `offset`, and moves `offset` to the next one. Returns false if the
// file does not have the whole chunk yet.
absl::StatusOr<bool> SessionCopy::copy_chunk_untrusted(File& file, uint64_t& offset,
                                                       bool only_definitions) {
  arctrace_chunk_header chunk{};
  const absl::StatusOr<size_t> head =
      file.input->read(offset, std::as_writable_bytes(std::span(&chunk, 1)));
  if (!head.ok()) return head.status();
  const bool is_block = chunk.kind == ARCTRACE_CHUNK_BLOCK;
  const uint32_t size_max = is_block ? geometry_.block_size : kRecordsChunkMax;
  if (*head < sizeof chunk || chunk.magic != ARCTRACE_CHUNK_MAGIC ||
      chunk.size % 4 != 0 || chunk.size > size_max) {
    return false;
  }
  const uint64_t payload = offset + sizeof chunk;
  const uint64_t next = payload + chunk.size;
  BlockRef ref;
  ref.kind = BlockRef::Kind::kCollector;
  ref.flags = chunk.flags;
  ref.live = (chunk.flags & ARCTRACE_CHUNK_LIVE_COPY) != 0;
  if (is_block) {
    arctrace_block_header header{};
    const absl::StatusOr<size_t> got =
        file.input->read(payload, std::as_writable_bytes(std::span(&header, 1)));
    if (!got.ok()) return got.status();
    if (*got < sizeof header) return false;
    FindingLog unused(0);
    const bool is_data_wanted =
        read_block_header_untrusted(header, geometry_, chunk.index, ref, unused) &&
        !forgotten_.contains(ref.handout);
    met_.insert(ref.handout);
    const bool is_old = !file.with_data && ref.kind != BlockRef::Kind::kDefinitions &&
                        !blocks_.contains(ref.handout);
    if (is_old) forgotten_.try_emplace(ref.handout, 0);
    if (!is_data_wanted || is_old) {
      offset = next;
      return true;
    }
  }
  if (only_definitions && ref.kind != BlockRef::Kind::kDefinitions) {
    offset = next;
    return true;
  }
  auto bytes = std::make_shared<std::vector<std::byte>>(chunk.size);
  const absl::StatusOr<size_t> got = file.input->read(payload, *bytes);
  if (!got.ok()) return got.status();
  if (*got < chunk.size) return false;
  offset = next;
  if (!is_block) {
    records_.push_back(std::make_unique<Kept>());
    records_.back()->bytes = std::move(bytes);
    records_.back()->ref = ref;
    return true;
  }
  Kept& kept = blocks_[ref.handout];
  if (kept.is_whole || (kept.bytes != nullptr && bytes->size() < kept.bytes->size())) {
    return true;
  }
  kept.bytes = std::move(bytes);
  kept.ref = ref;
  kept.index = chunk.index;
  kept.is_whole = !ref.live;
  kept.whole_ticks = now_ticks_;
  return true;
}

void SessionCopy::note_missing(const absl::flat_hash_set<uint64_t>& seen) {
  for (auto& [handout, kept] : blocks_) {
    kept.missing = seen.contains(handout) ? 0 : kept.missing + 1;
    if (kept.is_whole || kept.missing == 0) continue;
    if (!files_.empty() && kept.missing < kMissingEnough) continue;
    kept.is_whole = true;
    kept.whole_ticks = now_ticks_;
  }
  // A forgotten block can be met again as long as the buffer, or soon the file, has it.
  for (auto& [handout, missing] : forgotten_) {
    missing = seen.contains(handout) ? 0 : missing + 1;
  }
  absl::erase_if(forgotten_,
                 [](const auto& entry) { return entry.second > kMissingEnough; });
}

// A block that was handed out before the last update has been met by then: in the buffer,
// or in the file, where it is before it leaves the buffer. The numbers are untrusted,
// because others wrote them: they are counted, and no loop runs over their range.
void SessionCopy::find_missed(const absl::flat_hash_set<uint64_t>& seen) {
  met_.insert(seen.begin(), seen.end());
  missed_ticks_ = UINT64_MAX;
  if (newest_.handout > checked_.handout) {
    const auto met = std::count_if(met_.begin(), met_.end(), [&](uint64_t handout) {
      return handout > checked_.handout && handout <= newest_.handout;
    });
    const uint64_t all = newest_.handout - checked_.handout;
    if (static_cast<uint64_t>(met) != all) missed_ticks_ = checked_.ticks;
  }
  const uint64_t newest =
      seen.empty() ? newest_.handout : *std::max_element(seen.begin(), seen.end());
  // Nothing is counted that was there before the first update.
  const bool is_first = newest_.ticks == 0;
  checked_ = newest_;
  newest_ = {std::max(newest, newest_.handout), now_ticks_};
  if (is_first) checked_ = newest_;
  absl::erase_if(met_, [&](uint64_t handout) { return handout <= checked_.handout; });
}

absl::StatusOr<Trace> SessionCopy::trace() {
  auto input = std::make_unique<ChunkInput>(buffer_->name(), header_);
  by_chunk_.clear();
  const auto add = [&](Kept& kept, arctrace_chunk_kind kind) {
    if (kept.bytes == nullptr || kept.bytes->empty()) return;
    const bool is_live = kind == ARCTRACE_CHUNK_BLOCK && !kept.is_whole;
    const uint16_t flags = is_live ? uint16_t{ARCTRACE_CHUNK_LIVE_COPY} : kept.ref.flags;
    input->add(kind, flags, kept.index, kept.bytes);
    by_chunk_.push_back(&kept);
  };
  add(control_events_, ARCTRACE_CHUNK_RECORDS);
  for (const std::unique_ptr<Kept>& kept : records_) add(*kept, ARCTRACE_CHUNK_RECORDS);
  for (auto& [handout, kept] : blocks_) add(kept, ARCTRACE_CHUNK_BLOCK);
  OpenOptions options;
  options.max_findings = 0;
  options.live = {state_.cpu_losses, state_.collector_alive, missed_ticks_};
  return Trace::open(std::move(input), options);
}

SessionCopy::Taken SessionCopy::take(const Record& record) {
  if (record.chunk >= by_chunk_.size()) return {};
  Kept& kept = *by_chunk_[record.chunk];
  if (&kept == &control_events_) {
    const ControlEventKey event(record.type, record.ticks,
                                load_part_untrusted<uint32_t>(record.body));
    return {taken_control_events_.insert(event).second, record.after_gap};
  }
  const size_t at = record.offset / 4;
  if (kept.taken.size() <= at) kept.taken.resize(kept.bytes->size() / 4 + 1);
  if (at >= kept.taken.size() || kept.taken[at]) return {};
  kept.taken[at] = true;
  Taken taken{true, record.after_gap};
  if (kept.ref.kind != BlockRef::Kind::kExclusive || kept.has_taken) return taken;
  // The blocks before it may have been forgotten since then.
  kept.has_taken = true;
  const auto [next, is_first] = next_serial_.try_emplace(kept.ref.writer, 0);
  const bool is_gap = kept.ref.serial > next->second;
  if (is_gap && !is_first) missed_blocks_ += kept.ref.serial - next->second;
  taken.after_gap = is_gap;
  next->second = std::max(next->second, kept.ref.serial + 1);
  return taken;
}

void SessionCopy::forget(uint64_t ticks) {
  by_chunk_.clear();
  for (auto at = blocks_.begin(); at != blocks_.end();) {
    const Kept& kept = at->second;
    const bool is_over = kept.is_whole && kept.whole_ticks <= ticks &&
                         kept.ref.kind != BlockRef::Kind::kDefinitions;
    if (is_over) forgotten_.try_emplace(at->first, 0);
    at = is_over ? blocks_.erase(at) : std::next(at);
  }
}

}  // namespace arctrace::reader
