// Reads a buffer's image: its blocks in use, its slots and counters, and the changes of
// its gate.
#include "reader/trace/buffer_state.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "src/protocol/block_state.hpp"
#include "src/protocol/enabled.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace::reader {
namespace {

// Copies a T from `offset`; false if the input is too short for it.
template <class T>
absl::StatusOr<bool> read_struct(Input& input, uint64_t offset, T& out) {
  const absl::StatusOr<size_t> read =
      input.read(offset, std::as_writable_bytes(std::span(&out, 1)));
  if (!read.ok()) return read.status();
  return *read == sizeof out;
}

absl::Status read_slots(Input& input, const Geometry& geometry, FindingLog& findings,
                        BufferState& state) {
  for (uint32_t i = 0; i < geometry.slot_count; ++i) {
    arctrace_writer_slot raw{};
    const absl::StatusOr<bool> whole =
        read_struct(input, geometry.slots_offset + uint64_t{i} * sizeof raw, raw);
    if (!whole.ok()) return whole.status();
    if (!*whole) return absl::OkStatus();
    if (raw.writer == 0 && raw.lock == 0 && raw.written + raw.written_shared == 0) {
      continue;
    }
    BufferState::Slot slot;
    slot.index = i;
    slot.writer = raw.writer;
    slot.process = raw.process;
    slot.pid = raw.pid;
    slot.tid = raw.tid;
    slot.alive = is_live(raw.lock);
    slot.filtered_out = raw.filtered_out;
    slot.written_all = raw.written + raw.written_shared;
    slot.written = slot.written_all - raw.written_before;
    std::copy(std::begin(raw.lost), std::end(raw.lost), slot.lost.begin());
    std::copy(std::begin(raw.reported), std::end(raw.reported), slot.reported.begin());
    for (size_t cause = 0; cause < slot.lost.size(); ++cause) {
      if (slot.reported[cause] <= slot.lost[cause]) continue;
      findings.add(
          Rule::kSlotCounts,
          absl::StrCat("slot ", i, " reported ", slot.reported[cause],
                       " losses of cause ", cause, " and counted ", slot.lost[cause]));
    }
    state.slots.push_back(slot);
  }
  return absl::OkStatus();
}

absl::Status read_cpu_slots(Input& input, const Geometry& geometry, BufferState& state) {
  for (uint32_t cpu = 0; cpu < geometry.cpu_count; ++cpu) {
    arctrace_cpu_slot raw{};
    const absl::StatusOr<bool> whole =
        read_struct(input, ARCTRACE_CPUS_OFFSET + uint64_t{cpu} * sizeof raw, raw);
    if (!whole.ok()) return whole.status();
    if (!*whole) return absl::OkStatus();
    if (raw.lost > raw.reported) state.cpu_losses.push_back({cpu, raw.lost_since});
  }
  return absl::OkStatus();
}

template <class Area>
absl::Status read_filter(Input& input, uint64_t offset,
                         std::vector<std::string>& entries) {
  Area filter{};
  const absl::StatusOr<bool> whole = read_struct(input, offset, filter);
  if (!whole.ok()) return whole.status();
  if (!*whole || filter.size > sizeof filter.text) return absl::OkStatus();
  for_each_filter_entry({reinterpret_cast<const char*>(filter.text), filter.size},
                        [&](std::string_view entry) { entries.emplace_back(entry); });
  return absl::OkStatus();
}

absl::Status read_control(Input& input, BufferState& state) {
  arctrace_control control{};
  const absl::StatusOr<bool> whole = read_struct(input, ARCTRACE_CONTROL_OFFSET, control);
  if (!whole.ok()) return whole.status();
  state.gate = control.gate;
  state.collector_pid = control.collector_pid;
  state.high_water_blocks = control.high_water_blocks;
  state.processes = control.process_next - std::min(control.process_next, 1u);
  state.threads = control.writer_next - std::min(control.writer_next, 1u);
  state.collector_alive = is_live(control.collector_lock);
  state.filtered_out = control.filtered_out;
  std::copy(std::begin(control.lost), std::end(control.lost), state.session_lost.begin());
  absl::Status read =
      read_filter<arctrace_live_filter>(input, ARCTRACE_LIVE_FILTER_OFFSET, state.filter);
  if (!read.ok()) return read;
  return read_filter<arctrace_record_filter>(input, ARCTRACE_RECORD_FILTER_OFFSET,
                                             state.record_filter);
}

}  // namespace

absl::StatusOr<BlockIndex> index_buffer_untrusted(Input& input, const Geometry& geometry,
                                                  FindingLog& findings,
                                                  BufferState& state) {
  if (absl::Status status = read_control(input, state); !status.ok()) return status;
  state.pinned_bytes = std::min(input.pinned_bytes_untrusted(), geometry.total_size);
  // Slots are read before blocks: a writer that is seen dead here has written all its
  // records.
  if (absl::Status status = read_slots(input, geometry, findings, state); !status.ok()) {
    return status;
  }
  if (absl::Status status = read_cpu_slots(input, geometry, state); !status.ok()) {
    return status;
  }
  // After the slots, this tells whether each had only one owner.
  uint32_t slot_next = UINT32_MAX;
  const absl::StatusOr<bool> has_next = read_struct(
      input, ARCTRACE_CONTROL_OFFSET + offsetof(arctrace_control, slot_next), slot_next);
  if (!has_next.ok()) return has_next.status();
  state.each_slot_has_one_owner = slot_next < geometry.slot_count;
  const bool any_alive = std::any_of(state.slots.begin(), state.slots.end(),
                                     [](const auto& slot) { return slot.alive; });
  uint64_t handouts = UINT64_MAX;
  const absl::StatusOr<bool> has_handouts = read_struct(
      input, ARCTRACE_CONTROL_OFFSET + offsetof(arctrace_control, next), handouts);
  if (!has_handouts.ok()) return has_handouts.status();
  BlockIndex index;
  for (uint32_t i = 0; i < geometry.block_count; ++i) {
    const uint64_t offset = geometry.blocks_offset + uint64_t{i} * geometry.block_size;
    arctrace_block_header header{};
    const absl::StatusOr<bool> whole = read_struct(input, offset, header);
    if (!whole.ok()) return whole.status();
    if (!*whole) {
      findings.add(Rule::kInputShrank, absl::StrCat("the buffer ends before block ", i,
                                                    " of ", geometry.block_count));
      index.ends_early = true;
      break;
    }
    const uint64_t phase = header.state & 0xFF;
    if (phase < ARCTRACE_PHASE_FREE || phase > ARCTRACE_PHASE_RESETTING) {
      ++state.blocks_by_phase[0];
      findings.add(Rule::kBlockState, absl::StrCat("phase ", phase), i);
      continue;
    }
    ++state.blocks_by_phase[phase];
    // A block without its magic has no records: its owner stores the magic before the
    // first record, and a thread that refills the block wipes the magic first.
    if (phase == ARCTRACE_PHASE_FREE || phase == ARCTRACE_PHASE_RESETTING ||
        header.magic == ARCTRACE_FILL) {
      continue;
    }
    BlockRef ref;
    ref.chunk = i;
    ref.in_buffer = true;
    ref.changes = any_alive;
    ref.offset = offset;
    ref.size = static_cast<uint32_t>(
        std::min<uint64_t>(geometry.block_size, input.size() - offset) & ~3ull);
    ref.cut = ref.size < geometry.block_size;
    ref.live =
        any_alive && (phase == ARCTRACE_PHASE_OWNED || phase == ARCTRACE_PHASE_SHARED);
    if (!read_block_header_untrusted(header, geometry, i, ref, findings)) continue;
    // A block that was handed out since the listing began is skipped: an earlier block of
    // its writer may have been missed.
    if (any_alive && ref.handout >= handouts) continue;
    index.blocks.push_back(ref);
    index.bytes += ref.size;
  }
  drop_doubles(index, DoublesOf::kFile, findings);
  return index;
}

namespace {

class Records {
 public:
  template <class Body>
  void add(uint16_t type, uint64_t ticks, const Body& body, std::string text = "") {
    while (text.size() % 4 != 0) text += '\0';
    const size_t length = sizeof(arctrace_full_head) + sizeof body + text.size();
    const arctrace_full_head head{
        .word0 = ARCTRACE_WORD0(type, length), .writer = 0, .ticks = ticks};
    append(std::as_bytes(std::span(&head, 1)));
    append(std::as_bytes(std::span(&body, 1)));
    append(std::as_bytes(std::span(text)));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(std::span<const std::byte> part) {
    bytes_.insert(bytes_.end(), part.begin(), part.end());
  }
  std::vector<std::byte> bytes_;
};

}  // namespace

absl::StatusOr<std::vector<std::byte>> records_of_control_events_untrusted(
    Input& input, const Geometry& geometry) {
  std::vector<uint64_t> copy(ARCTRACE_CPUS_OFFSET / sizeof(uint64_t));
  const auto bytes = std::as_writable_bytes(std::span(copy));
  const absl::StatusOr<size_t> got = input.read(0, bytes);
  if (!got.ok()) return got.status();
  Records records;
  if (*got == bytes.size()) {
    const BufferView view(bytes.data(), geometry);
    for_each_gate_change_untrusted(
        view, 0, [&](uint64_t ticks, uint32_t recorded, const std::string& filter) {
          const arctrace_enabled_body body{
              .gate = recorded, .filter_size = static_cast<uint32_t>(filter.size())};
          records.add(ARCTRACE_TYPE_ENABLED, ticks, body, filter);
        });
    for_each_control_event_untrusted(execs(view), 0, [&](uint64_t ticks, uint32_t value) {
      const ExecEvent exec = ExecEvent::unpack(value);
      records.add(ARCTRACE_TYPE_EXEC, ticks,
                  arctrace_exec_body{
                      .pid = exec.pid, .reserved = 0, .within_ticks = exec.within_ticks});
    });
  }
  return records.take();
}

}  // namespace arctrace::reader
