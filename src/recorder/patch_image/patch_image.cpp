// The image, in the order of its addresses: headers, table, what the loader asks for,
// functions, names and unwind rules, which are only read; code; slots and the dynamic
// section, which are written.
#include "src/recorder/patch_image/patch_image.hpp"

#include <arctrace/format.h>
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "src/recorder/patch_analysis/unwind_table.hpp"
#include "src/recorder/patch_image/moved_unwind.hpp"

namespace arctrace {
namespace {

using shim::PatchedFunction;
using shim::PatchSlots;
using shim::PatchTable;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kCodeAlignment = 16;

// The code to which the jump at a function's entry leads. The first jump goes where the
// function's gate says; it needs no landing pad there. The rest changes no register but
// r11, which is kept in the tenth word below the return address
// (writer_shim/arch/x86_64/patched_calls.S).
constexpr unsigned char kTrampoline[] = {
    0x3e, 0xff, 0x25, 0,    0,    0, 0,  // notrack jmp *gate(%rip)
    0x4c, 0x89, 0x5c, 0x24, 0xb8,        // mov %r11, -72(%rsp)
    0x4c, 0x8b, 0x1d, 0,    0,    0, 0,  // mov entry(%rip), %r11
    0xff, 0x25, 0,    0,    0,    0      // jmp *begins(%rip)
};
constexpr size_t kGateEnd = 7;    // where the displacement of `gate` ends
constexpr size_t kEntryEnd = 19;  // of `entry`
constexpr size_t kBeginsEnd = sizeof kTrampoline;
static_assert(sizeof kTrampoline == kGateEnd + shim::kPatchRecordSize);
constexpr unsigned char kJump = 0xe9;
constexpr size_t kJumpSize = shim::kPatchJumpSize;
constexpr size_t kBranchSize = 6;
constexpr auto kTrap = std::byte{0xcc};

uint64_t rounded_up(uint64_t value, uint64_t to) { return (value + to - 1) & ~(to - 1); }

size_t moved_size(const DisplacedInstruction& instruction) {
  switch (instruction.moved_as) {
    case MovedAs::kJump:
      return kJumpSize;
    case MovedAs::kBranch:
      return kBranchSize;
    default:
      return instruction.length;
  }
}

// A function of the image. Offsets are from the beginning of the code.
struct Trampoline {
  const FunctionPlan* plan = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;
  std::vector<std::byte> rules;
  size_t common_rules = 0;  // index
};

// What a common entry of our own has.
struct CommonRules {
  int64_t data_alignment;
  uint64_t return_register;
  std::vector<std::byte> program;
  auto key() const { return std::tie(data_alignment, return_register, program); }
  bool operator<(const CommonRules& other) const { return key() < other.key(); }
};

// Bytes of which each is written once, at increasing offsets.
class Bytes {
 public:
  template <class Part>
  void add(const Part& part) {
    const auto bytes = std::as_bytes(std::span(&part, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void add_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void add_uleb(uint64_t value) {
    for (; value >= 0x80; value >>= 7) add(static_cast<uint8_t>(value | 0x80));
    add(static_cast<uint8_t>(value));
  }
  void add_sleb(int64_t value) {
    for (;; value >>= 7) {
      const auto low = static_cast<uint8_t>(value & 0x7F);
      const bool is_last = (value >> 6) == 0 || (value >> 6) == -1;
      add(static_cast<uint8_t>(is_last ? low : low | 0x80));
      if (is_last) return;
    }
  }
  // At an offset that was added already.
  template <class Part>
  void set(uint64_t at, const Part& part) {
    std::memcpy(bytes_.data() + at, &part, sizeof part);
  }
  void pad_to(uint64_t size, std::byte with = std::byte{0}) { bytes_.resize(size, with); }
  void align(uint64_t to) { pad_to(rounded_up(size(), to)); }
  uint64_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// The PatchLeft of the request.
std::vector<std::byte> left_bytes(const PatchRequest& request) {
  Bytes out;
  for (const auto& [verdict, left] : request.left) {
    uint64_t unlisted = left.count - left.listed.size();
    for (size_t i = 0; i < left.listed.size() || unlisted != 0; unlisted = 0) {
      const size_t listed =
          std::min<size_t>(left.listed.size() - i, shim::kPatchListedMax);
      out.add(shim::PatchLeft{verdict, static_cast<uint32_t>(listed + unlisted),
                              static_cast<uint32_t>(listed), 0});
      for (const size_t end = i + listed; i < end; ++i) {
        out.add(request.bias + left.listed[i]);
      }
    }
  }
  return std::move(out).take();
}

class ImageMaker {
 public:
  ImageMaker(const ModuleCode& code, const PatchRequest& request)
      : code_(code), request_(request), unwind_(code) {
    for (const FunctionPlan* function : request.functions) {
      if (add_trampoline(*function)) continue;
      LeftFunctions& left = request_.left[ARCTRACE_PATCH_UNMOVED_RULES];
      ++left.count;
      left.listed.push_back(function->start);
    }
    left_ = left_bytes(request_);
  }

  std::vector<std::byte> run(const AddressSpace& process) && {
    lay_out();
    const auto low = process.find_room_near(module_range(), size_);
    if (!low) {
      return refused_patch_image(ARCTRACE_PATCH_NO_ROOM, request_);
    }
    low_ = *low;
    if (!reaches_targets()) {
      return refused_patch_image(ARCTRACE_PATCH_NO_ROOM, request_);
    }
    Bytes out;
    out.pad_to(shim::kPatchTableOffset);
    out.add(table());
    out.add_bytes(left_);
    add_loader_tables(out);
    add_functions(out);
    add_unwind_index(out);
    add_unwind_rules(out);
    out.pad_to(code_at_);
    for (const Trampoline& one : trampolines_) add_code(one, out);
    out.pad_to(gates_at_);
    for (const Trampoline& one : trampolines_) out.add(copy_address(one));
    out.pad_to(dynamic_at_);
    add_dynamic(out);
    out.pad_to(size_);
    set_headers(out);
    return std::move(out).take();
  }

 private:
  // False: its unwind rules cannot be moved.
  bool add_trampoline(const FunctionPlan& plan) {
    const UnwindTable::Entry* entry = unwind_.find(plan.start);
    if (entry == nullptr) return false;
    std::vector<MovedInstruction> moved;
    uint64_t size = sizeof kTrampoline;
    for (uint8_t i = 0; i < plan.instruction_count; ++i) {
      moved.push_back({uint64_t{plan.kept} + plan.instructions[i].offset, size});
      size += moved_size(plan.instructions[i]);
    }
    moved.push_back({uint64_t{plan.kept} + plan.displaced, size});
    size += kJumpSize;
    auto rules = moved_rules_untrusted(unwind_, *entry, plan.start, moved);
    if (!rules) return false;
    const UnwindTable::CommonRules common = unwind_.common_rules(*entry);
    CommonRules own{common.data_alignment,
                    common.return_register,
                    {common.program.begin(), common.program.end()}};
    const auto found = common_.emplace(std::move(own), common_.size()).first;
    trampolines_.push_back({&plan, code_size_, size, *std::move(rules), found->second});
    code_size_ = rounded_up(code_size_ + size, kCodeAlignment);
    return true;
  }

  CodeRange module_range() const {
    CodeRange range{code_.segments.front().address, code_.segments.back().range().end};
    return {request_.bias + range.start, request_.bias + range.end};
  }

  // Whether what the copies refer to is within 32 bits of the image.
  bool reaches_targets() const {
    const auto is_near = [](uint64_t from, uint64_t to) {
      const auto distance = static_cast<int64_t>(to - from);
      return distance == static_cast<int32_t>(distance);
    };
    for (const Trampoline& one : trampolines_) {
      for (uint8_t i = 0; i < one.plan->instruction_count; ++i) {
        const DisplacedInstruction& moved = one.plan->instructions[i];
        if (moved.moved_as == MovedAs::kCopy) continue;
        const uint64_t to = request_.bias + moved.target;
        if (!is_near(low_, to) || !is_near(low_ + size_, to)) return false;
      }
    }
    return true;
  }

  // The size of the records of unwind rules, each with its length.
  static uint64_t rule_size(const Trampoline& one) {
    return rounded_up(sizeof(uint32_t) * 4 + 1 + one.rules.size(), 8);
  }
  static std::vector<std::byte> common_record(const CommonRules& rules) {
    Bytes out;
    out.add(uint32_t{0});  // the length
    out.add(uint32_t{0});  // it is a common entry
    out.add(uint8_t{1});   // version
    for (const char c : {'z', 'R', '\0'}) out.add(c);
    out.add_uleb(1);
    out.add_sleb(rules.data_alignment);
    out.add(static_cast<uint8_t>(rules.return_register));
    out.add_uleb(1);
    out.add(uint8_t{0x1b});  // addresses are 32 bits from where they stand
    out.add_bytes(rules.program);
    out.align(8);
    out.set(0, static_cast<uint32_t>(out.size() - sizeof(uint32_t)));
    return std::move(out).take();
  }

  void lay_out() {
    uint64_t at = shim::kPatchTableOffset + sizeof(PatchTable) + left_.size();
    hash_at_ = at;
    symbols_at_ = hash_at_ + sizeof(uint32_t) * 4;
    functions_at_ = rounded_up(symbols_at_ + sizeof(Elf64_Sym), 8);
    names_at_ = functions_at_ + trampolines_.size() * sizeof(PatchedFunction);
    names_size_ = 1;
    for (const Trampoline& one : trampolines_) {
      if (!one.plan->name.empty()) names_size_ += one.plan->name.size() + 1;
    }
    index_at_ = rounded_up(names_at_ + names_size_, 8);
    index_size_ = 12 + trampolines_.size() * 8;
    rules_at_ = rounded_up(index_at_ + index_size_, 8);
    at = rules_at_;
    for (const auto& [rules, index] : common_) at += common_record(rules).size();
    for (const Trampoline& one : trampolines_) at += rule_size(one);
    read_only_size_ = at + sizeof(uint32_t);  // the terminator
    code_at_ = rounded_up(read_only_size_, kPage);
    data_at_ = rounded_up(code_at_ + code_size_, kPage);
    slots_at_ = data_at_;
    // The slots become read-only.
    gates_at_ = rounded_up(
        slots_at_ + sizeof(PatchSlots) + trampolines_.size() * sizeof(uint64_t), kPage);
    dynamic_at_ = rounded_up(gates_at_ + trampolines_.size() * sizeof(uint64_t), 16);
    size_ = rounded_up(dynamic_at_ + kDynamicEntries * sizeof(Elf64_Dyn), kPage);
  }

  PatchTable table() const {
    PatchTable table{};
    std::memcpy(table.magic, shim::kPatchMagic, sizeof table.magic);
    table.bytes = size_;
    table.low = low_;
    table.high = low_ + size_;
    table.functions = low_ + functions_at_;
    table.slots = low_ + slots_at_;
    table.gates = low_ + gates_at_;
    table.names = low_ + names_at_;
    table.names_size = names_size_;
    table.code_low = UINT64_MAX;
    for (const ModuleSegment& segment : code_.segments) {
      if (!segment.executable) continue;
      table.code_low = std::min(table.code_low, request_.bias + segment.address);
      table.code_high = std::max(table.code_high, request_.bias + segment.range().end);
    }
    table.left_size = left_.size();
    table.matched = request_.matched;
    table.function_count = static_cast<uint32_t>(trampolines_.size());
    return table;
  }

  // No symbols: only what the loader looks at in any module.
  static void add_loader_tables(Bytes& out) {
    for (const uint32_t word : {1U, 1U, 0U, 0U}) out.add(word);
    out.add(Elf64_Sym{});
  }

  // The distance that stands at the end of the instruction that ends at `end`.
  static uint32_t distance(uint64_t end, uint64_t to) {
    return static_cast<uint32_t>(to - end);
  }

  uint64_t code_address(const Trampoline& one) const {
    return low_ + code_at_ + one.offset;
  }

  uint64_t copy_address(const Trampoline& one) const {
    return code_address(one) + sizeof kTrampoline;
  }

  void add_functions(Bytes& out) const {
    out.pad_to(functions_at_);
    uint64_t name = 1;
    for (const Trampoline& one : trampolines_) {
      const FunctionPlan& plan = *one.plan;
      PatchedFunction function{};
      function.function = request_.bias + plan.start;
      function.at = function.function + plan.kept;
      function.copy = copy_address(one);
      function.is_named = request_.named.contains(&plan) ? 1 : 0;
      function.size = plan.size;
      if (!plan.name.empty()) {
        function.name = static_cast<uint32_t>(name);
        name += plan.name.size() + 1;
      }
      function.covered = plan.displaced;
      function.entry_only = plan.entry_only ? 1 : 0;
      function.jump[0] = kJump;
      const uint32_t to = distance(function.at + kJumpSize, code_address(one));
      std::memcpy(function.jump + 1, &to, sizeof to);
      std::memcpy(function.original, plan.original.data(), plan.displaced);
      out.add(function);
    }
    out.add('\0');
    for (const Trampoline& one : trampolines_) {
      if (one.plan->name.empty()) continue;
      out.add_bytes(std::as_bytes(std::span(one.plan->name)));
      out.add('\0');
    }
  }

  uint64_t first_rule_at() const {
    uint64_t at = rules_at_;
    for (const auto& [rules, index] : common_) at += common_record(rules).size();
    return at;
  }

  // .eh_frame_hdr: the addresses of the code, ascending, with those of their rules.
  void add_unwind_index(Bytes& out) const {
    out.pad_to(index_at_);
    for (const int byte : {1, 0x1b, 0x03, 0x3b}) out.add(static_cast<uint8_t>(byte));
    out.add(distance(index_at_ + 4, rules_at_));
    out.add(static_cast<uint32_t>(trampolines_.size()));
    uint64_t rule = first_rule_at();
    for (const Trampoline& one : trampolines_) {
      out.add(distance(index_at_, code_at_ + one.offset));
      out.add(distance(index_at_, rule));
      rule += rule_size(one);
    }
  }

  void add_unwind_rules(Bytes& out) const {
    out.pad_to(rules_at_);
    std::vector<uint64_t> common_at(common_.size());
    for (const auto& [rules, index] : common_) {
      common_at[index] = out.size();
      out.add_bytes(common_record(rules));
    }
    for (const Trampoline& one : trampolines_) {
      const uint64_t end = out.size() + rule_size(one);
      out.add(static_cast<uint32_t>(rule_size(one) - sizeof(uint32_t)));
      out.add(distance(common_at[one.common_rules], out.size()));
      out.add(distance(out.size(), code_at_ + one.offset));
      out.add(static_cast<uint32_t>(one.size));
      out.add_uleb(0);
      out.add_bytes(one.rules);
      out.pad_to(end);
    }
    out.add(uint32_t{0});
  }

  void add_code(const Trampoline& one, Bytes& out) const {
    out.pad_to(code_at_ + one.offset, kTrap);
    const auto index = static_cast<uint64_t>(&one - trampolines_.data());
    const uint64_t begin = out.size();
    out.add(kTrampoline);
    out.set(begin + kGateEnd - 4,
            distance(begin + kGateEnd, gates_at_ + index * sizeof(uint64_t)));
    const uint64_t entry =
        slots_at_ + offsetof(PatchSlots, entries) + index * sizeof(uint64_t);
    out.set(begin + kEntryEnd - 4, distance(begin + kEntryEnd, entry));
    out.set(begin + kBeginsEnd - 4, distance(begin + kBeginsEnd, slots_at_));
    const FunctionPlan& plan = *one.plan;
    for (uint8_t i = 0; i < plan.instruction_count; ++i) {
      add_moved(plan, plan.instructions[i], out);
    }
    add_jump(kJump, request_.bias + plan.start + plan.kept + plan.displaced, out);
  }

  void add_moved(const FunctionPlan& plan, const DisplacedInstruction& instruction,
                 Bytes& out) const {
    const std::span<const std::byte> original =
        std::span(plan.original).subspan(instruction.offset, instruction.length);
    const uint64_t to = request_.bias + instruction.target;
    switch (instruction.moved_as) {
      case MovedAs::kJump:
        return add_jump(kJump, to, out);
      case MovedAs::kBranch: {
        // The condition is in the opcode, which may be the second byte.
        const bool is_long = original[0] == std::byte{0x0f};
        const auto opcode = std::to_integer<uint8_t>(original[is_long ? 1 : 0]);
        out.add(uint8_t{0x0f});
        return add_jump(static_cast<uint8_t>(0x80 | (opcode & 0x0F)), to, out);
      }
      default:
        break;
    }
    const uint64_t begin = out.size();
    out.add_bytes(original);
    if (instruction.moved_as == MovedAs::kRipRelative) {
      out.set(begin + instruction.field, distance(low_ + out.size(), to));
    }
  }

  void add_jump(uint8_t opcode, uint64_t to, Bytes& out) const {
    out.add(opcode);
    out.add(distance(low_ + out.size() + 4, to));
  }

  static constexpr size_t kDynamicEntries = 6;

  void add_dynamic(Bytes& out) const {
    const auto add = [&out](int64_t tag, uint64_t value) {
      Elf64_Dyn entry{};
      entry.d_tag = tag;
      entry.d_un.d_val = value;
      out.add(entry);
    };
    add(DT_HASH, low_ + hash_at_);
    add(DT_SYMTAB, low_ + symbols_at_);
    add(DT_SYMENT, sizeof(Elf64_Sym));
    add(DT_STRTAB, low_ + names_at_);
    add(DT_STRSZ, 1);
    add(DT_NULL, 0);
  }

  void set_headers(Bytes& out) const {
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_type = ET_DYN;
    head.e_machine = EM_X86_64;
    head.e_version = EV_CURRENT;
    head.e_phoff = sizeof head;
    head.e_ehsize = sizeof head;
    head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_shentsize = sizeof(Elf64_Shdr);
    uint64_t at = sizeof head;
    const auto add = [&](uint32_t type, uint32_t flags, uint64_t begin, uint64_t size,
                         uint64_t alignment) {
      Elf64_Phdr header{};
      header.p_type = type;
      header.p_flags = flags;
      header.p_offset = begin;
      header.p_vaddr = header.p_paddr = size == 0 ? 0 : low_ + begin;
      header.p_filesz = header.p_memsz = size;
      header.p_align = alignment;
      out.set(at, header);
      at += sizeof header;
      ++head.e_phnum;
    };
    add(PT_LOAD, PF_R, 0, read_only_size_, kPage);
    add(PT_LOAD, PF_R | PF_X, code_at_, code_size_, kPage);
    add(PT_LOAD, PF_R | PF_W, data_at_, size_ - data_at_, kPage);
    add(PT_DYNAMIC, PF_R | PF_W, dynamic_at_, kDynamicEntries * sizeof(Elf64_Dyn), 8);
    add(PT_GNU_EH_FRAME, PF_R, index_at_, index_size_, 4);
    add(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16);
    out.set(0, head);
  }

  const ModuleCode& code_;
  PatchRequest request_;
  const UnwindTable unwind_;
  std::vector<std::byte> left_;  // what follows the table
  std::vector<Trampoline> trampolines_;
  std::map<CommonRules, size_t> common_;
  uint64_t code_size_ = 0;
  uint64_t low_ = 0;  // the address of the image
  // Offsets from there, and sizes.
  uint64_t hash_at_ = 0, symbols_at_ = 0, functions_at_ = 0, names_at_ = 0;
  uint64_t names_size_ = 0, index_at_ = 0, index_size_ = 0, rules_at_ = 0;
  uint64_t read_only_size_ = 0, code_at_ = 0, data_at_ = 0, slots_at_ = 0;
  uint64_t gates_at_ = 0;
  uint64_t dynamic_at_ = 0, size_ = 0;
};

}  // namespace

std::vector<std::byte> make_patch_image(const ModuleCode& code,
                                        const PatchRequest& request,
                                        const AddressSpace& process) {
  if (request.functions.empty() || code.segments.empty()) {
    return refused_patch_image(ARCTRACE_PATCH_DONE, request);
  }
  return ImageMaker(code, request).run(process);
}

std::vector<std::byte> refused_patch_image(uint32_t refusal,
                                           const PatchRequest& request) {
  const std::vector<std::byte> left = left_bytes(request);
  PatchTable table{};
  std::memcpy(table.magic, shim::kPatchMagic, sizeof table.magic);
  table.bytes = shim::kPatchTableOffset + sizeof table + left.size();
  table.left_size = left.size();
  table.refusal = refusal;
  table.matched = request.matched;
  Bytes out;
  out.pad_to(shim::kPatchTableOffset);
  out.add(table);
  out.add_bytes(left);
  return std::move(out).take();
}

}  // namespace arctrace
