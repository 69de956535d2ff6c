// Writes the .eh_frame of an image, and its index.
#include "src/recorder/patch_image/image_unwind.hpp"

#include <optional>
#include <utility>

#include "src/base/unwind_bytes.hpp"
#include "src/recorder/patch_image/trampoline.hpp"

namespace arctrace::recorder {
namespace {

constexpr uint64_t kIndexHeadSize = 12;
constexpr uint64_t kIndexEntrySize = 8;
constexpr uint64_t kRecordAlignment = 8;
constexpr uint64_t kReturnAddressSize = 8;

// The rules until the first instruction is undone, while the stack pointer is where that
// instruction has moved it.
std::vector<std::byte> rules_before_undo(const KeptInstruction& kept) {
  ImageBytes out;
  out.add(DW_CFA_def_cfa_offset);
  out.add_uleb(kReturnAddressSize + kept.stack_bytes);
  out.add(DW_CFA_advance_loc1);
  out.add(static_cast<uint8_t>(kGateJumpSize + kept.undo.size()));
  out.add(DW_CFA_def_cfa_offset);
  out.add_uleb(kReturnAddressSize);
  return std::move(out).take();
}

}  // namespace

bool ImageUnwind::add(const FunctionPlan& plan, const TrampolineShape& shape,
                      uint64_t offset) {
  const UnwindTable::Entry* entry = unwind_.find(plan.start);
  if (entry == nullptr) return false;
  std::vector<std::byte> program;
  uint64_t begin = 0;
  if (!shape.kept.undo.empty()) {
    program = rules_before_undo(shape.kept);
    begin = kGateJumpSize + shape.kept.undo.size();
  }
  const auto moved =
      moved_rules_untrusted(unwind_, *entry, plan.start, shape.moved, begin);
  if (!moved) return false;
  program.insert(program.end(), moved->program.begin(), moved->program.end());
  if (ends_with_call(plan) &&
      !add_rules_of_call(*entry, plan, shape, moved->advanced_to, program)) {
    return false;
  }
  const UnwindTable::CommonRules common = unwind_.common_rules(*entry);
  CommonRules own{common.data_alignment,
                  common.return_register,
                  {common.program.begin(), common.program.end()}};
  const auto found = common_.emplace(std::move(own), common_.size()).first;
  rules_.push_back({offset, shape.size, std::move(program), found->second});
  return true;
}

// Adds the rule of the jump of a copied call, which has pushed the return address.
// `advanced_to`: from when on the last rule applies. False: the rule cannot be written.
bool ImageUnwind::add_rules_of_call(const UnwindTable::Entry& entry,
                                    const FunctionPlan& plan,
                                    const TrampolineShape& shape, uint64_t advanced_to,
                                    std::vector<std::byte>& program) const {
  std::vector<FrameRow> rows;
  unwind_.rows_untrusted(entry, rows);
  const uint64_t call =
      plan.start + plan.kept + plan.instructions[plan.instruction_count - 1].offset;
  const FrameRow* at_call = nullptr;
  for (const FrameRow& row : rows) {
    if (row.address <= call) at_call = &row;
  }
  if (at_call == nullptr || at_call->is_expression) return false;
  if (at_call->base_register != kDwarfStackPointer) return true;
  const uint64_t jump = shape.moved[shape.moved.size() - 2].to + kCallPushSize;
  if (jump - advanced_to > UINT8_MAX || at_call->offset < 0) return false;
  ImageBytes out;
  out.add(DW_CFA_advance_loc1);
  out.add(static_cast<uint8_t>(jump - advanced_to));
  out.add(DW_CFA_def_cfa_offset);
  out.add_uleb(static_cast<uint64_t>(at_call->offset) + kReturnAddressSize);
  const std::vector<std::byte> rule = std::move(out).take();
  program.insert(program.end(), rule.begin(), rule.end());
  return true;
}

uint64_t ImageUnwind::index_size() const {
  return kIndexHeadSize + rules_.size() * kIndexEntrySize;
}

uint64_t ImageUnwind::rules_size() const {
  uint64_t size = common_size() + sizeof(uint32_t);  // the terminator
  for (const Rules& one : rules_) size += record_size(one);
  return size;
}

void ImageUnwind::write_index(const Places& places, ImageBytes& out) const {
  out.pad_to(places.index);
  for (const int byte : {1, 0x1b, 0x03, 0x3b}) out.add(static_cast<uint8_t>(byte));
  out.add(distance32(places.index + 4, places.rules));
  out.add(static_cast<uint32_t>(rules_.size()));
  uint64_t record = places.rules + common_size();
  for (const Rules& one : rules_) {
    out.add(distance32(places.index, places.code + one.offset));
    out.add(distance32(places.index, record));
    record += record_size(one);
  }
}

void ImageUnwind::write_rules(const Places& places, ImageBytes& out) const {
  out.pad_to(places.rules);
  std::vector<uint64_t> common_at(common_.size());
  for (const auto& [rules, index] : common_) {
    common_at[index] = out.size();
    out.add_bytes(common_record(rules));
  }
  for (const Rules& one : rules_) {
    const uint64_t end = out.size() + record_size(one);
    out.add(static_cast<uint32_t>(record_size(one) - sizeof(uint32_t)));
    out.add(distance32(common_at[one.common], out.size()));
    out.add(distance32(out.size(), places.code + one.offset));
    out.add(static_cast<uint32_t>(one.size));
    out.add_uleb(0);
    out.add_bytes(one.program);
    out.pad_to(end);
  }
  out.add(uint32_t{0});
}

std::vector<std::byte> ImageUnwind::common_record(const CommonRules& rules) {
  ImageBytes out;
  out.add(uint32_t{0});  // the length
  out.add(uint32_t{0});  // it is a common entry
  out.add(uint8_t{1});   // version
  for (const char c : {'z', 'R', '\0'}) out.add(c);
  out.add_uleb(1);
  out.add_sleb(rules.data_alignment);
  out.add(static_cast<uint8_t>(rules.return_register));
  out.add_uleb(1);
  out.add(uint8_t{0x1b});  // addresses are 32 bits from their own place
  out.add_bytes(rules.program);
  out.align(kRecordAlignment);
  out.set(0, static_cast<uint32_t>(out.size() - sizeof(uint32_t)));
  return std::move(out).take();
}

// The size of a record, with its length field.
uint64_t ImageUnwind::record_size(const Rules& rules) {
  return rounded_up(sizeof(uint32_t) * 4 + 1 + rules.program.size(), kRecordAlignment);
}

uint64_t ImageUnwind::common_size() const {
  uint64_t size = 0;
  for (const auto& [rules, index] : common_) size += common_record(rules).size();
  return size;
}

}  // namespace arctrace::recorder
