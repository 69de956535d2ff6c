// Parses the entries and instructions of .eh_frame, and exception tables.
#include "src/recorder/patch_analysis/unwind_table.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "src/base/unwind_bytes.hpp"

namespace arctrace::recorder {
namespace {

// The limit of rows, more than any function has; a hostile program of instructions ends
// there.
constexpr size_t kRowsMax = size_t{1} << 16;
constexpr size_t kRememberedMax = 16;

// The bytes of a range, as far as the file has them.
std::span<const std::byte> bytes_of(const ModuleCode& module, CodeRange range) {
  const std::span<const std::byte> bytes = module.bytes_at(range.start);
  return bytes.first(std::min<uint64_t>(bytes.size(), range.end - range.start));
}

// Runs the instructions of a common entry, then those of an entry.
class FrameProgram {
 public:
  FrameProgram(uint64_t code_alignment, int64_t data_alignment, uint64_t return_register)
      : code_alignment_(code_alignment),
        data_alignment_(data_alignment),
        return_register_(return_register) {
    row_.has_return_address = false;
  }

  const FrameRow& row() const { return row_; }
  void begin(uint64_t address) {
    initial_ = row_;
    row_.address = address;
  }

  // Appends each row that ends to `rows`, if there is one. False: an instruction is
  // unknown or broken.
  bool run(std::span<const std::byte> program, std::vector<FrameRow>* rows) {
    UnwindBytes in(program, 0);
    while (!in.at_end()) {
      const auto opcode = in.number<uint8_t>();
      const uint8_t operand = opcode & kCfaOperandMask;
      bool known = true;
      switch (opcode & kCfaOpcodeMask) {
        case DW_CFA_advance_loc:
          advance(operand, rows);
          break;
        case DW_CFA_offset:
          offset(operand, static_cast<int64_t>(in.uleb()));
          break;
        case DW_CFA_restore:
          restore(operand);
          break;
        default:
          known = run_extended(opcode, in, rows);
      }
      if (!known || !in.good()) return false;
      if (rows != nullptr && rows->size() >= kRowsMax) return false;
    }
    return true;
  }

 private:
  void advance(uint64_t delta, std::vector<FrameRow>* rows) {
    if (delta == 0) return;
    if (rows != nullptr) rows->push_back(row_);
    row_.address += delta * code_alignment_;
  }

  void offset(uint64_t number, int64_t factored) {
    if (number != return_register_) return;
    row_.has_return_address = true;
    row_.return_offset = static_cast<int64_t>(static_cast<uint64_t>(factored) *
                                              static_cast<uint64_t>(data_alignment_));
  }

  void restore(uint64_t number) {
    if (number != return_register_) return;
    row_.has_return_address = initial_.has_return_address;
    row_.return_offset = initial_.return_offset;
  }

  void lose(uint64_t number) {
    if (number == return_register_) row_.has_return_address = false;
  }

  void set_cfa(uint64_t base, int64_t value) {
    row_.base_register = base;
    row_.offset = value;
    row_.is_expression = false;
  }

  int64_t factored(int64_t value) const {
    return static_cast<int64_t>(static_cast<uint64_t>(value) *
                                static_cast<uint64_t>(data_alignment_));
  }

  bool run_extended(uint8_t opcode, UnwindBytes& in, std::vector<FrameRow>* rows) {
    uint64_t number = 0;
    switch (opcode) {
      case DW_CFA_nop:
        return true;
      case DW_CFA_advance_loc1:
        advance(in.number<uint8_t>(), rows);
        return true;
      case DW_CFA_advance_loc2:
        advance(in.number<uint16_t>(), rows);
        return true;
      case DW_CFA_advance_loc4:
        advance(in.number<uint32_t>(), rows);
        return true;
      case DW_CFA_offset_extended:
        number = in.uleb();
        offset(number, static_cast<int64_t>(in.uleb()));
        return true;
      case DW_CFA_offset_extended_sf:
        number = in.uleb();
        offset(number, in.sleb());
        return true;
      case DW_CFA_GNU_negative_offset_extended:
        number = in.uleb();
        offset(number, -static_cast<int64_t>(in.uleb() & INT64_MAX));
        return true;
      case DW_CFA_restore_extended:
        restore(in.uleb());
        return true;
      case DW_CFA_undefined:
      case DW_CFA_same_value:
        lose(in.uleb());
        return true;
      case DW_CFA_register:
      case DW_CFA_val_offset:
        lose(in.uleb());
        in.uleb();
        return true;
      case DW_CFA_val_offset_sf:
        lose(in.uleb());
        in.sleb();
        return true;
      case DW_CFA_expression:
      case DW_CFA_val_expression:
        lose(in.uleb());
        in.skip(in.uleb());
        return true;
      case DW_CFA_remember_state:
        if (remembered_.size() >= kRememberedMax) return false;
        remembered_.push_back(row_);
        return true;
      case DW_CFA_restore_state: {
        if (remembered_.empty()) return false;
        const uint64_t address = row_.address;
        row_ = remembered_.back();
        row_.address = address;
        remembered_.pop_back();
        return true;
      }
      case DW_CFA_def_cfa:
        number = in.uleb();
        set_cfa(number, static_cast<int64_t>(in.uleb()));
        return true;
      case DW_CFA_def_cfa_sf:
        number = in.uleb();
        set_cfa(number, factored(in.sleb()));
        return true;
      case DW_CFA_def_cfa_register:
        row_.base_register = in.uleb();
        return true;
      case DW_CFA_def_cfa_offset:
        row_.offset = static_cast<int64_t>(in.uleb());
        return true;
      case DW_CFA_def_cfa_offset_sf:
        row_.offset = factored(in.sleb());
        return true;
      case DW_CFA_def_cfa_expression:
        in.skip(in.uleb());
        row_.is_expression = true;
        return true;
      case DW_CFA_GNU_args_size:
        in.uleb();
        return true;
      default:
        return false;
    }
  }

  const uint64_t code_alignment_;
  const int64_t data_alignment_;
  const uint64_t return_register_;
  FrameRow row_;
  FrameRow initial_;
  std::vector<FrameRow> remembered_;
};

}  // namespace

UnwindTable::UnwindTable(const ModuleCode& module) : module_(module) {
  const std::span<const std::byte> table = bytes_of(module, module.eh_frame);
  UnwindBytes in(table, module.eh_frame.start);
  bool is_damaged = false;
  uint64_t offset = 0;
  while (!in.at_end()) {
    offset = in.address() - module.eh_frame.start;
    uint64_t length = in.number<uint32_t>();
    if (length == 0 && in.good()) break;  // the terminator
    if (length == UINT32_MAX) length = in.number<uint64_t>();
    if (!in.good() || length > in.rest().size() ||
        !read_record(in.rest().first(length), in.address() - module.eh_frame.start,
                     in.address())) {
      is_damaged = true;
      break;
    }
    // A common entry is known by the offset of its length.
    if (!cies_.empty() && cies_.back().offset == in.address() - module.eh_frame.start) {
      cies_.back().offset = offset;
    }
    in.skip(length);
  }
  if (is_damaged) {
    problem_ = absl::StrCat(".eh_frame is damaged at offset ", offset,
                            ": what follows is not used");
  }
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.range.start < b.range.start;
  });
  uint64_t end = 0;
  std::erase_if(entries_, [&end](const Entry& entry) {
    if (entry.range.start < end) return true;
    end = entry.range.end;
    return false;
  });
}

bool UnwindTable::read_record(std::span<const std::byte> record, uint64_t offset,
                              uint64_t address) {
  UnwindBytes in(record, address);
  const auto id = in.number<uint32_t>();
  if (!in.good()) return false;
  if (id == 0) return read_cie(in.rest(), offset, in.address());
  // The id is the distance from here back to the common entry's length.
  if (id > offset) return false;
  Entry entry;
  const Cie* cie = find_cie(offset - id, entry.cie);
  if (cie == nullptr) return false;
  entry.range.start = in.pointer(cie->pointer_encoding);
  const uint64_t size = in.form(cie->pointer_encoding & kPointerFormMask);
  if (cie->has_augmentation) {
    const uint64_t bytes = in.uleb();
    if (!in.good() || bytes > in.rest().size()) return false;
    if (cie->exception_encoding != kPointerOmitted) {
      UnwindBytes data(in.rest().first(bytes), in.address());
      entry.exception_table = data.pointer(cie->exception_encoding);
      if (!data.good()) return false;
    }
    in.skip(bytes);
  }
  if (!in.good()) return false;
  entry.program = in.rest();
  // Entries of sections that the linker dropped begin at 0 and are about no code.
  if (__builtin_add_overflow(entry.range.start, size, &entry.range.end) || size == 0 ||
      !is_code(entry.range)) {
    return true;
  }
  entries_.push_back(entry);
  return true;
}

bool UnwindTable::read_cie(std::span<const std::byte> body, uint64_t offset,
                           uint64_t address) {
  UnwindBytes in(body, address);
  Cie cie;
  cie.offset = offset;
  const auto version = in.number<uint8_t>();
  if (version != 1 && version != 3) return false;
  std::string augmentation;
  for (char c = 0; (c = static_cast<char>(in.number<uint8_t>())) != '\0';) {
    augmentation += c;
    if (augmentation.size() > 16) return false;
  }
  cie.code_alignment = in.uleb();
  cie.data_alignment = in.sleb();
  cie.return_register = version == 1 ? in.number<uint8_t>() : in.uleb();
  if (!augmentation.empty()) {
    if (augmentation.front() != 'z') return false;
    cie.has_augmentation = true;
    const uint64_t bytes = in.uleb();
    if (!in.good() || bytes > in.rest().size()) return false;
    UnwindBytes data(in.rest().first(bytes), in.address());
    for (const char c : std::string_view(augmentation).substr(1)) {
      if (c == 'R') {
        cie.pointer_encoding = data.number<uint8_t>();
      } else if (c == 'L') {
        cie.exception_encoding = data.number<uint8_t>();
      } else if (c == 'P') {
        const auto encoding = data.number<uint8_t>();
        data.form(encoding & kPointerFormMask);
      } else if (c != 'S' && c != 'B') {
        break;  // the characters after it are not needed
      }
    }
    if (!data.good()) return false;
    in.skip(bytes);
  }
  if (!in.good()) return false;
  cie.program = in.rest();
  cies_.push_back(cie);
  return true;
}

const UnwindTable::Cie* UnwindTable::find_cie(uint64_t offset, uint32_t& index) const {
  const auto found =
      std::lower_bound(cies_.begin(), cies_.end(), offset,
                       [](const Cie& cie, uint64_t value) { return cie.offset < value; });
  if (found == cies_.end() || found->offset != offset) return nullptr;
  index = static_cast<uint32_t>(found - cies_.begin());
  return &*found;
}

bool UnwindTable::is_code(CodeRange range) const {
  return std::any_of(module_.segments.begin(), module_.segments.end(),
                     [&](const ModuleSegment& segment) {
                       return segment.executable &&
                              segment.range().contains(range.start) &&
                              range.end <= segment.range().end;
                     });
}

const UnwindTable::Entry* UnwindTable::find(uint64_t address) const {
  const auto next = std::upper_bound(
      entries_.begin(), entries_.end(), address,
      [](uint64_t value, const Entry& entry) { return value < entry.range.start; });
  if (next == entries_.begin() || !std::prev(next)->range.contains(address)) {
    return nullptr;
  }
  return &*std::prev(next);
}

void UnwindTable::rows_untrusted(const Entry& entry, std::vector<FrameRow>& rows) const {
  rows.clear();
  const Cie& cie = cies_[entry.cie];
  FrameProgram program(cie.code_alignment, cie.data_alignment, cie.return_register);
  if (!program.run(cie.program, nullptr)) return;
  program.begin(entry.range.start);
  if (program.run(entry.program, &rows)) {
    rows.push_back(program.row());
  } else {
    rows.clear();
  }
}

std::vector<uint64_t> landing_pads_untrusted(const ModuleCode& module, uint64_t address,
                                             uint64_t function, size_t& bytes_left) {
  std::vector<uint64_t> pads;
  UnwindBytes in(module.bytes_at(address), address);
  uint64_t base = function;
  if (const auto encoding = in.number<uint8_t>(); encoding != kPointerOmitted) {
    base = in.pointer(encoding);
  }
  if (const auto types = in.number<uint8_t>(); types != kPointerOmitted) in.uleb();
  const auto sites_encoding = in.number<uint8_t>();
  const uint64_t bytes = in.uleb();
  if (!in.good() || bytes > std::min(in.rest().size(), bytes_left)) return pads;
  bytes_left -= bytes;
  UnwindBytes sites(in.rest().first(bytes), in.address());
  while (!sites.at_end()) {
    for (int i = 0; i < 2; ++i) sites.form(sites_encoding & kPointerFormMask);
    const uint64_t pad = sites.form(sites_encoding & kPointerFormMask);
    sites.uleb();
    if (!sites.good()) break;
    if (pad != 0) pads.push_back(base + pad);
  }
  return pads;
}

}  // namespace arctrace::recorder
