// The rules by which a function can be patched or not (patch_plan.hpp).
#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "src/recorder/patch_analysis/code_sweep.hpp"
#include "src/recorder/patch_analysis/instruction.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recorder/patch_analysis/unwind_table.hpp"

namespace arctrace::recorder {

namespace {

constexpr uint8_t kPush = 0x50;  // and a register in the low three bits
constexpr uint8_t kPop = 0x58;
constexpr uint8_t kStackPointer = 4;
constexpr auto kOtherRegisters = std::byte{0x41};  // before the opcode: r8 to r15
constexpr auto kLoadAddress = std::byte{0x8d};

uint8_t number(std::byte byte) { return std::to_integer<uint8_t>(byte); }

bool is_push(std::byte opcode) { return (number(opcode) & 0xf8) == kPush; }

std::byte pop_of(std::byte push) {
  return static_cast<std::byte>(kPop | (number(push) & 7));
}

// sub $N,%rsp is undone by lea N(%rsp),%rsp, which does not change the flags.
KeptInstruction undo_of_subtraction(std::span<const std::byte> bytes, bool is_short) {
  KeptInstruction kept;
  int32_t subtracted = 0;
  if (is_short) {
    // A positive value of one byte equals the number with its sign.
    subtracted = number(bytes[3]) <= INT8_MAX ? number(bytes[3]) : 0;
  } else {
    std::memcpy(&subtracted, &bytes[3], sizeof subtracted);
  }
  if (subtracted <= 0) return kept;
  kept.stack_bytes = static_cast<uint64_t>(subtracted);
  const auto modrm = std::byte{static_cast<uint8_t>(is_short ? 0x64 : 0xa4)};
  kept.undo = {bytes[0], kLoadAddress, modrm, std::byte{0x24}};
  kept.undo.insert(kept.undo.end(), bytes.begin() + 3, bytes.end());
  return kept;
}

}  // namespace

KeptInstruction undo_of(std::span<const std::byte> bytes) {
  constexpr std::byte kShortSubtraction[] = {std::byte{0x48}, std::byte{0x83},
                                             std::byte{0xec}};
  constexpr std::byte kSubtraction[] = {std::byte{0x48}, std::byte{0x81},
                                        std::byte{0xec}};
  const auto begins = [bytes](const std::byte(&opcode)[3]) {
    return std::equal(std::begin(opcode), std::end(opcode), bytes.begin());
  };
  switch (bytes.size()) {
    case 1:
      if (!is_push(bytes[0]) || number(bytes[0]) == (kPush | kStackPointer)) break;
      return {{pop_of(bytes[0])}, sizeof(uint64_t)};
    case 2:
      if (bytes[0] != kOtherRegisters || !is_push(bytes[1])) break;
      return {{bytes[0], pop_of(bytes[1])}, sizeof(uint64_t)};
    case 4:
      if (begins(kShortSubtraction)) return undo_of_subtraction(bytes, true);
      break;
    case 7:
      if (begins(kSubtraction)) return undo_of_subtraction(bytes, false);
      break;
    default:
      break;
  }
  return {};
}

namespace {

using Flow = Instruction::Flow;

// "f.cold", "f.cold.1", but not a name such as "main.coldStart".
bool has_part_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".cold";
  for (size_t at = name.find(kSuffix); at != std::string_view::npos;
       at = name.find(kSuffix, at + 1)) {
    const std::string_view rest = name.substr(at + kSuffix.size());
    if (rest.empty() || rest.front() == '.') return true;
  }
  return false;
}

class FunctionAnalysis {
 public:
  FunctionAnalysis(const ModuleCode& module, const CodeMarks& marks,
                   SweptFunction& function)
      : module_(module), marks_(marks), function_(function) {}

  FunctionPlan run() && {
    plan_.start = function_.range.start;
    plan_.size = function_.range.end - function_.range.start;
    const std::span<const std::byte> bytes = module_.bytes_at(plan_.start);
    code_ = bytes.first(std::min<uint64_t>(bytes.size(), plan_.size));
    const PatchVerdict verdict = judge();
    if (verdict != PatchVerdict::kPatchable) {
      FunctionPlan skipped;
      skipped.start = plan_.start;
      skipped.size = plan_.size;
      skipped.verdict = verdict;
      plan_ = skipped;
    } else {
      plan_.entry_only = function_.uses_return_address;
      plan_.may_last = function_.may_last;
      const auto displaced = code_.subspan(plan_.kept, plan_.displaced);
      if (plan_.kept_as == KeptAs::kUndone) {
        std::copy_n(code_.begin(), plan_.kept, plan_.undone.begin());
      }
      std::copy(displaced.begin(), displaced.end(), plan_.original.begin());
    }
    plan_.name = std::move(function_.name);
    return std::move(plan_);
  }

 private:
  PatchVerdict judge() {
    Instruction first;
    if (!decode_untrusted(code_, plan_.start, first)) return PatchVerdict::kNotCode;
    // The label of indirect calls stays the first instruction.
    if (first.is_endbr) {
      plan_.kept = first.length;
      if (!decode_untrusted(code_.subspan(plan_.kept), patched(), first)) {
        return code_.size() == plan_.kept ? PatchVerdict::kTooShort
                                          : PatchVerdict::kNotCode;
      }
    }
    if (first.flow == Flow::kIndirectJump && first.is_rip_relative) {
      return PatchVerdict::kSlotStub;
    }
    if (is_part()) return PatchVerdict::kPart;
    PatchVerdict verdict = judge_frame();
    if (verdict == PatchVerdict::kPatchable && !keep(first)) verdict = displace();
    if (verdict != PatchVerdict::kPatchable) return verdict;
    if (function_.has_unknown_targets) return PatchVerdict::kUnknownTargets;
    return function_.is_not_code ? PatchVerdict::kNotCode : PatchVerdict::kPatchable;
  }

  uint64_t patched() const { return plan_.start + plan_.kept; }

  // Without a name, a part can't be distinguished from a function of which all calls are
  // tail calls. Both are skipped.
  bool is_part() const {
    if (!function_.name.empty()) return has_part_name(function_.name);
    const uint8_t marks = marks_.at(plan_.start);
    return (marks & kMarkOtherJump) != 0 && (marks & (kMarkCalled | kMarkPointed)) == 0;
  }

  // The return address must be at the top of the stack.
  PatchVerdict judge_frame() const {
    if (!function_.entry_row) return PatchVerdict::kNoFrameInfo;
    const FrameRow& row = *function_.entry_row;
    const bool is_call_frame = !row.is_expression && row.has_return_address &&
                               row.base_register == kDwarfStackPointer &&
                               row.offset == 8 && row.return_offset == -8;
    return is_call_frame ? PatchVerdict::kPatchable : PatchVerdict::kOtherFrame;
  }

  // Keeps the first instruction before the jump. False: it cannot stay, or there is no
  // space for the jump after it.
  bool keep(const Instruction& first) {
    if (plan_.kept != 0) return false;
    const FunctionPlan before = plan_;
    const std::span<const std::byte> bytes = code_.first(first.length);
    if (!undo_of(bytes).undo.empty()) {
      plan_.kept_as = KeptAs::kUndone;
    } else if (first.flow == Flow::kNext && changes_own_registers_untrusted(bytes)) {
      plan_.kept_as = KeptAs::kStays;
    } else {
      return false;
    }
    plan_.kept = first.length;
    if (displace() == PatchVerdict::kPatchable) return true;
    plan_ = before;
    return false;
  }

  // Takes whole instructions until they cover the jump.
  PatchVerdict displace() {
    const std::span<const std::byte> code = code_.subspan(plan_.kept);
    if (code.size() < kPatchJumpBytes) return PatchVerdict::kTooShort;
    size_t done = 0;
    while (done < kPatchJumpBytes) {
      Instruction instruction;
      if (!decode_untrusted(code.subspan(done), patched() + done, instruction)) {
        return PatchVerdict::kNotCode;
      }
      const PatchVerdict verdict = judge_moved(instruction, done);
      if (verdict != PatchVerdict::kPatchable) return verdict;
      add_displaced(instruction, done);
      done += instruction.length;
    }
    plan_.displaced = static_cast<uint8_t>(done);
    return judge_targets();
  }

  static PatchVerdict judge_moved(const Instruction& instruction, size_t done) {
    switch (instruction.flow) {
      case Flow::kCall:
        // It returns to the code behind the bytes, if it is the last one.
        if (!instruction.is_direct_call || done + instruction.length < kPatchJumpBytes) {
          return PatchVerdict::kCall;
        }
        break;
      case Flow::kShortBranch:
      case Flow::kTransaction:
        return PatchVerdict::kNotMovable;
      case Flow::kTrap:
        return PatchVerdict::kEndsEarly;
      case Flow::kJump:
      case Flow::kIndirectJump:
      case Flow::kReturn:
        // The code after it belongs to other paths.
        if (done + instruction.length < kPatchJumpBytes) return PatchVerdict::kEndsEarly;
        break;
      default:
        break;
    }
    return instruction.is_movable ? PatchVerdict::kPatchable : PatchVerdict::kNotMovable;
  }

  void add_displaced(const Instruction& instruction, size_t offset) {
    DisplacedInstruction& moved = plan_.instructions[plan_.instruction_count++];
    moved.offset = static_cast<uint8_t>(offset);
    moved.length = instruction.length;
    if (instruction.is_rip_relative) {
      moved.moved_as = MovedAs::kRipRelative;
      moved.field = instruction.field;
    } else if (instruction.flow == Flow::kJump) {
      moved.moved_as = MovedAs::kJump;
    } else if (instruction.flow == Flow::kBranch) {
      moved.moved_as = MovedAs::kBranch;
    } else if (instruction.flow == Flow::kCall) {
      moved.moved_as = MovedAs::kCall;
    }
    if (moved.moved_as != MovedAs::kCopy) moved.target = instruction.target;
  }

  PatchVerdict judge_targets() const {
    constexpr uint8_t kLoops = kMarkOwnJump | kMarkTable | kMarkLandingPad;
    if (((marks_.at(plan_.start) | marks_.at(patched())) & kLoops) != 0) {
      return PatchVerdict::kLoopsToEntry;
    }
    uint8_t inside = 0;
    const uint64_t end = patched() + plan_.displaced;
    for (uint64_t at = plan_.start + 1; at < end; ++at) inside |= marks_.at(at);
    if ((inside & (kMarkCalled | kMarkOwnJump | kMarkOtherJump)) != 0) {
      return PatchVerdict::kEnteredInside;
    }
    return inside != 0 ? PatchVerdict::kPointedInside : PatchVerdict::kPatchable;
  }

  const ModuleCode& module_;
  const CodeMarks& marks_;
  SweptFunction& function_;
  FunctionPlan plan_;
  std::span<const std::byte> code_;
};

}  // namespace

PatchPlan analyse_patches_untrusted(const ModuleCode& module) {
  PatchPlan plan;
  const UnwindTable unwind(module);
  if (!unwind.problem().empty()) plan.findings.push_back(unwind.problem());
  if (unwind.entries().empty()) {
    plan.findings.push_back("there is no call frame information that can be used");
  }
  CodeSweep sweep = sweep_code_untrusted(module, unwind);
  plan.functions.reserve(sweep.functions.size());
  for (SweptFunction& function : sweep.functions) {
    plan.functions.push_back(FunctionAnalysis(module, sweep.marks, function).run());
  }
  return plan;
}

}  // namespace arctrace::recorder
