// Writes the code for a patched function, and moves its unwind rules.
#include "src/recorder/patch_image/trampoline.hpp"

#include <algorithm>
#include <span>

#include "src/base/unwind_bytes.hpp"

namespace arctrace::recorder {

// Unwind rules are copied as they are, except for those that advance the address, which
// are written anew.

namespace {

// The operands of an opcode: so many numbers in LEB128, or a block.
enum class Operands : uint8_t { kUnknown, kNone, kOne, kTwo, kBlock, kOneAndBlock };

Operands operands_of(uint8_t opcode) {
  switch (opcode) {
    case DW_CFA_nop:
    case DW_CFA_remember_state:
    case DW_CFA_restore_state:
      return Operands::kNone;
    case DW_CFA_restore_extended:
    case DW_CFA_undefined:
    case DW_CFA_same_value:
    case DW_CFA_def_cfa_register:
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_offset_sf:
    case DW_CFA_GNU_args_size:
      return Operands::kOne;
    case DW_CFA_offset_extended:
    case DW_CFA_register:
    case DW_CFA_def_cfa:
    case DW_CFA_offset_extended_sf:
    case DW_CFA_def_cfa_sf:
    case DW_CFA_val_offset:
    case DW_CFA_val_offset_sf:
    case DW_CFA_GNU_negative_offset_extended:
      return Operands::kTwo;
    case DW_CFA_def_cfa_expression:
      return Operands::kBlock;
    case DW_CFA_expression:
    case DW_CFA_val_expression:
      return Operands::kOneAndBlock;
    default:
      return Operands::kUnknown;
  }
}

// Skips an instruction's operands. False: it is unknown.
bool skip_operands(uint8_t opcode, UnwindBytes& in) {
  switch (opcode & kCfaOpcodeMask) {
    case DW_CFA_offset:
      in.uleb();
      return true;
    case DW_CFA_restore:
      return true;
    default:
      break;
  }
  switch (operands_of(opcode)) {
    case Operands::kNone:
      return true;
    case Operands::kTwo:
      in.uleb();
      [[fallthrough]];
    case Operands::kOne:
      in.uleb();
      return true;
    case Operands::kOneAndBlock:
      in.uleb();
      [[fallthrough]];
    case Operands::kBlock:
      in.skip(in.uleb());
      return true;
    case Operands::kUnknown:
      break;
  }
  return false;
}

// By how much the instruction advances the address, in units of the code alignment;
// nullopt: it does something else.
std::optional<uint64_t> advance_of(uint8_t opcode, UnwindBytes& in) {
  if ((opcode & kCfaOpcodeMask) == DW_CFA_advance_loc) return opcode & kCfaOperandMask;
  switch (opcode) {
    case DW_CFA_advance_loc1:
      return in.number<uint8_t>();
    case DW_CFA_advance_loc2:
      return in.number<uint16_t>();
    case DW_CFA_advance_loc4:
      return in.number<uint32_t>();
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<MovedRules> moved_rules_untrusted(const UnwindTable& unwind,
                                                const UnwindTable::Entry& entry,
                                                uint64_t function,
                                                std::span<const MovedInstruction> moved,
                                                uint64_t begin) {
  const uint64_t alignment = unwind.common_rules(entry).code_alignment;
  std::vector<std::byte> rules;
  UnwindBytes in(entry.program, 0);
  uint64_t address = entry.range.start;
  uint64_t written = begin;  // the offset up to which the written rules have advanced
  uint64_t wanted = begin;
  while (!in.at_end()) {
    const std::span<const std::byte> rest = in.rest();
    const auto opcode = in.number<uint8_t>();
    if (const auto advance = advance_of(opcode, in)) {
      address += *advance * alignment;
      if (!in.good() || address > function + moved.back().from) break;
      if (address <= function + moved.front().from) continue;
      const auto found = std::find_if(
          moved.begin(), moved.end(),
          [&](const MovedInstruction& one) { return function + one.from == address; });
      if (found == moved.end()) return std::nullopt;
      wanted = found->to;
      continue;
    }
    if (!skip_operands(opcode, in) || !in.good()) return std::nullopt;
    if (opcode == DW_CFA_nop) continue;
    if (wanted != written) {
      if (wanted - written > UINT8_MAX) return std::nullopt;
      rules.push_back(std::byte{DW_CFA_advance_loc1});
      rules.push_back(static_cast<std::byte>(wanted - written));
      written = wanted;
    }
    rules.insert(rules.end(), rest.begin(),
                 rest.begin() + static_cast<ptrdiff_t>(rest.size() - in.rest().size()));
  }
  if (!in.good()) return std::nullopt;
  return MovedRules{std::move(rules), written};
}

namespace {

// Jumps where the function's gate says; it needs no landing pad there.
constexpr unsigned char kGateJump[] = {
    0x3e, 0xff, 0x25, 0, 0, 0, 0  // notrack jmp *gate(%rip)
};
static_assert(sizeof kGateJump == kGateJumpSize);

// Has the call recorded. It changes no register but r11, which is saved in the tenth word
// below the return address (writer_shim/arch/x86_64/patched_calls.S).
constexpr unsigned char kRecord[] = {
    0x4c, 0x89, 0x5c, 0x24, 0xb8,        // mov %r11, -72(%rsp)
    0x4c, 0x8b, 0x1d, 0,    0,    0, 0,  // mov entry(%rip), %r11
    0xff, 0x25, 0,    0,    0,    0      // jmp *begins(%rip)
};
static_assert(sizeof kRecord == shim::kPatchRecordSize);
constexpr size_t kEntryEnd = 12;  // where the displacement ends

constexpr size_t kJumpSize = shim::kPatchJumpSize;
constexpr size_t kBranchSize = 6;
// Pushes the word behind the jump that follows: the address to which a call returns. The
// flags and all registers but the stack pointer stay as they are.
constexpr unsigned char kPushReturn[] = {0xff, 0x35, kJumpSize, 0, 0, 0};
static_assert(sizeof kPushReturn == kCallPushSize);

size_t moved_size(const DisplacedInstruction& instruction) {
  switch (instruction.moved_as) {
    case MovedAs::kJump:
      return kJumpSize;
    case MovedAs::kBranch:
      return kBranchSize;
    case MovedAs::kCall:
      return kCallPushSize + kJumpSize;
    default:
      return instruction.length;
  }
}

// The first instruction, which is undone and done again.
std::span<const std::byte> undone(const FunctionPlan& plan) {
  return std::span(plan.undone).first(plan.kept);
}

class TrampolineWriter {
 public:
  TrampolineWriter(const FunctionPlan& plan, const TrampolinePlaces& places,
                   ImageBytes& out)
      : plan_(plan), places_(places), out_(out) {}

  void write() {
    out_.add(kGateJump);
    refer(out_.size(), places_.gate);
    if (plan_.kept_as == KeptAs::kUndone) out_.add_bytes(undo_of(undone(plan_)).undo);
    const uint64_t record = out_.size();
    out_.add(kRecord);
    refer(record + kEntryEnd, places_.entry);
    refer(out_.size(), places_.begins);
    if (plan_.kept_as == KeptAs::kUndone) out_.add_bytes(undone(plan_));
    for (uint8_t i = 0; i < plan_.instruction_count; ++i) {
      add_moved(plan_.instructions[i]);
    }
    const uint64_t behind = places_.bias + plan_.start + plan_.kept + plan_.displaced;
    if (ends_with_call(plan_)) {
      out_.add(behind);
    } else {
      add_jump(kJumpOpcode, behind);
    }
  }

 private:
  // Sets the displacement that ends at the offset `end`.
  void refer(uint64_t end, uint64_t to) {
    out_.set(end - sizeof(uint32_t), distance32(places_.low + end, to));
  }

  void add_jump(uint8_t opcode, uint64_t to) {
    out_.add(opcode);
    out_.add(distance32(places_.low + out_.size() + sizeof(uint32_t), to));
  }

  void add_moved(const DisplacedInstruction& instruction) {
    const std::span<const std::byte> original =
        std::span(plan_.original).subspan(instruction.offset, instruction.length);
    const uint64_t to = places_.bias + instruction.target;
    switch (instruction.moved_as) {
      case MovedAs::kJump:
        return add_jump(kJumpOpcode, to);
      case MovedAs::kBranch: {
        // The condition is in the opcode, which may be the second byte.
        const bool is_long = original[0] == std::byte{0x0f};
        const auto opcode = std::to_integer<uint8_t>(original[is_long ? 1 : 0]);
        out_.add(uint8_t{0x0f});
        return add_jump(static_cast<uint8_t>(0x80 | (opcode & 0x0F)), to);
      }
      case MovedAs::kCall:
        out_.add(kPushReturn);
        return add_jump(kJumpOpcode, to);
      default:
        break;
    }
    const uint64_t begin = out_.size();
    out_.add_bytes(original);
    if (instruction.moved_as == MovedAs::kRipRelative) {
      // The displacement may be followed by an immediate.
      out_.set(begin + instruction.field, distance32(places_.low + out_.size(), to));
    }
  }

  const FunctionPlan& plan_;
  const TrampolinePlaces& places_;
  ImageBytes& out_;
};

}  // namespace

bool ends_with_call(const FunctionPlan& plan) {
  const uint8_t count = plan.instruction_count;
  return count != 0 && plan.instructions[count - 1].moved_as == MovedAs::kCall;
}

TrampolineShape trampoline_shape(const FunctionPlan& plan) {
  TrampolineShape shape;
  shape.copy_at = kGateJumpSize + shim::kPatchRecordSize;
  shape.size = shape.copy_at;
  if (plan.kept_as == KeptAs::kUndone) {
    shape.kept = undo_of(undone(plan));
    shape.copy_at += shape.kept.undo.size();
    shape.size = shape.copy_at;
    shape.moved.push_back({0, shape.size});
    shape.size += plan.kept;
  }
  for (uint8_t i = 0; i < plan.instruction_count; ++i) {
    const DisplacedInstruction& instruction = plan.instructions[i];
    shape.moved.push_back({uint64_t{plan.kept} + instruction.offset, shape.size});
    shape.size += moved_size(instruction);
  }
  shape.moved.push_back({uint64_t{plan.kept} + plan.displaced, shape.size});
  shape.size += ends_with_call(plan) ? sizeof(uint64_t) : kJumpSize;
  return shape;
}

void add_trampoline(const FunctionPlan& plan, const TrampolinePlaces& places,
                    ImageBytes& out) {
  TrampolineWriter(plan, places, out).write();
}

}  // namespace arctrace::recorder
