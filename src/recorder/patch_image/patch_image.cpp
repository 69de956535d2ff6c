// Builds the image, in the order of its addresses: headers, table, what the loader needs,
// functions, names and unwind rules, which are only read; code; slots and the dynamic
// section, which are written, and between them the gates.
#include "src/recorder/patch_image/patch_image.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <arctrace/format.h>
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "src/recorder/patch_image/image_bytes.hpp"
#include "src/recorder/patch_image/image_unwind.hpp"
#include "src/recorder/patch_image/trampoline.hpp"

namespace arctrace::recorder {

namespace {

constexpr uint64_t kStep = uint64_t{64} << 10;
// The kernel maps nothing below this unless it is asked to (vm.mmap_min_addr).
constexpr uint64_t kLowest = kStep;
// The space that stays free for the heap, which grows after the program.
constexpr uint64_t kHeapSpace = uint64_t{1} << 30;
constexpr uint64_t kHighest = uint64_t{1} << 47;
// The largest distance from the first byte of the one to the last of the other; a jump
// reaches 2 GiB.
constexpr uint64_t kReach = (uint64_t{2} << 30) - (uint64_t{64} << 20);

}  // namespace

AddressSpace::AddressSpace(std::string_view maps_untrusted) {
  for (const absl::string_view line : absl::StrSplit(
           absl::string_view(maps_untrusted.data(), maps_untrusted.size()), '\n')) {
    const absl::string_view range = line.substr(0, line.find(' '));
    const size_t dash = range.find('-');
    CodeRange mapped;
    if (dash == absl::string_view::npos ||
        !absl::SimpleHexAtoi(range.substr(0, dash), &mapped.start) ||
        !absl::SimpleHexAtoi(range.substr(dash + 1), &mapped.end)) {
      continue;
    }
    mapped_.push_back(mapped);
  }
  std::sort(mapped_.begin(), mapped_.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.start < b.start; });
}

bool AddressSpace::is_free(CodeRange range) const {
  return std::none_of(mapped_.begin(), mapped_.end(), [&](const CodeRange& mapped) {
    return mapped.start < range.end && range.start < mapped.end;
  });
}

std::optional<uint64_t> AddressSpace::find_space_near(CodeRange module,
                                                      uint64_t size) const {
  if (module.end <= module.start || module.end - module.start > kReach / 2 ||
      size > kReach / 2 || module.end > kHighest) {
    return std::nullopt;
  }
  const uint64_t below_max = kReach - (module.end - module.start);
  for (uint64_t below = size + kStep; below < below_max; below += kStep) {
    if (module.start < below + kLowest) break;
    const uint64_t start = (module.start - below) & ~(kStep - 1);
    if (is_free({start, start + size})) return start;
  }
  for (uint64_t above = kHeapSpace; module.end - module.start + above + size < kReach;
       above += kStep) {
    const uint64_t start = (module.end + above) & ~(kStep - 1);
    if (start + size < kHighest && is_free({start, start + size})) return start;
  }
  return std::nullopt;
}

namespace {

using shim::PatchedFunction;
using shim::PatchSlots;
using shim::PatchTable;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kCodeAlignment = 16;
constexpr auto kTrap = std::byte{0xcc};

// A function of the image. Offsets are from the beginning of the code.
struct Trampoline {
  const FunctionPlan* plan = nullptr;
  uint64_t offset = 0;
  uint64_t copy_at = 0;   // the copies begin there
  uint8_t undo_size = 0;  // the code that undoes the first instruction
};

// The bytes after the table: the PatchSkips of the request, `skips_size` bytes, and its
// PatchAgain.
std::vector<std::byte> bytes_after_table(const PatchRequest& request,
                                         uint64_t& skips_size) {
  ImageBytes out;
  for (const auto& [verdict, skipped] : request.skipped) {
    uint64_t unlisted = skipped.count - skipped.listed.size();
    for (size_t i = 0; i < skipped.listed.size() || unlisted != 0; unlisted = 0) {
      const size_t listed =
          std::min<size_t>(skipped.listed.size() - i, shim::kPatchListedMax);
      out.add(shim::PatchSkips{verdict, static_cast<uint32_t>(listed + unlisted),
                               static_cast<uint32_t>(listed), 0});
      for (const size_t end = i + listed; i < end; ++i) {
        out.add(request.bias + skipped.listed[i]);
      }
    }
  }
  skips_size = out.size();
  for (const shim::PatchAgain& again : request.again) out.add(again);
  return std::move(out).take();
}

class ImageMaker {
 public:
  ImageMaker(const ModuleCode& code, const PatchRequest& request)
      : code_(code), request_(request), unwind_(code) {
    for (const FunctionPlan* function : request.functions) {
      if (add_function(*function)) continue;
      SkippedFunctions& skipped = request_.skipped[ARCTRACE_PATCH_UNMOVED_RULES];
      ++skipped.count;
      skipped.listed.push_back(function->start);
    }
    after_table_ = bytes_after_table(request_, skips_size_);
  }

  std::vector<std::byte> run(const AddressSpace& process) && {
    lay_out();
    const auto low = process.find_space_near(module_range(), size_);
    if (!low) {
      return refused_patch_image(ARCTRACE_PATCH_NO_ROOM, request_);
    }
    low_ = *low;
    if (!reaches_targets()) {
      return refused_patch_image(ARCTRACE_PATCH_NO_ROOM, request_);
    }
    ImageBytes out;
    out.pad_to(shim::kPatchTableOffset);
    out.add(table());
    out.add_bytes(after_table_);
    add_loader_tables(out);
    add_functions(out);
    unwind_.write_index(unwind_at_, out);
    unwind_.write_rules(unwind_at_, out);
    out.pad_to(unwind_at_.code);
    for (const Trampoline& one : trampolines_) add_code(one, out);
    out.pad_to(gates_at_);
    // Nothing is recorded until the shim opens the gates.
    for (const Trampoline& one : trampolines_) {
      out.add(copy_address(one) + (one.undo_size == 0 ? 0 : one.plan->kept));
    }
    out.pad_to(dynamic_at_);
    add_dynamic(out);
    out.pad_to(size_);
    set_headers(out);
    return std::move(out).take();
  }

 private:
  // Adds a function. False: its unwind rules cannot be moved.
  bool add_function(const FunctionPlan& plan) {
    const TrampolineShape shape = trampoline_shape(plan);
    if (!unwind_.add(plan, shape, code_size_)) return false;
    trampolines_.push_back(
        {&plan, code_size_, shape.copy_at, static_cast<uint8_t>(shape.kept.undo.size())});
    code_size_ = rounded_up(code_size_ + shape.size, kCodeAlignment);
    return true;
  }

  CodeRange module_range() const {
    CodeRange range{code_.segments.front().address, code_.segments.back().range().end};
    return {request_.bias + range.start, request_.bias + range.end};
  }

  // Whether all addresses to which the copies refer are within 32 bits of the image.
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

  void lay_out() {
    uint64_t at = shim::kPatchTableOffset + sizeof(PatchTable) + after_table_.size();
    hash_at_ = at;
    symbols_at_ = hash_at_ + sizeof(uint32_t) * 4;
    functions_at_ = rounded_up(symbols_at_ + sizeof(Elf64_Sym), 8);
    names_at_ = functions_at_ + trampolines_.size() * sizeof(PatchedFunction);
    names_size_ = 1;
    for (const Trampoline& one : trampolines_) {
      if (!one.plan->name.empty()) names_size_ += one.plan->name.size() + 1;
    }
    unwind_at_.index = rounded_up(names_at_ + names_size_, 8);
    unwind_at_.rules = rounded_up(unwind_at_.index + unwind_.index_size(), 8);
    read_only_size_ = unwind_at_.rules + unwind_.rules_size();
    unwind_at_.code = rounded_up(read_only_size_, kPage);
    data_at_ = rounded_up(unwind_at_.code + code_size_, kPage);
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
    table.skips_size = skips_size_;
    table.again_count = request_.again.size();
    table.matched = request_.matched;
    table.function_count = static_cast<uint32_t>(trampolines_.size());
    return table;
  }

  // There are no symbols, only the tables that the loader reads of any module.
  static void add_loader_tables(ImageBytes& out) {
    for (const uint32_t word : {1U, 1U, 0U, 0U}) out.add(word);
    out.add(Elf64_Sym{});
  }

  uint64_t code_address(const Trampoline& one) const {
    return low_ + unwind_at_.code + one.offset;
  }

  uint64_t copy_address(const Trampoline& one) const {
    return code_address(one) + one.copy_at;
  }

  void add_functions(ImageBytes& out) const {
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
      function.undo_size = one.undo_size;
      function.entry_only = plan.entry_only ? 1 : 0;
      function.jump[0] = kJumpOpcode;
      const uint32_t to =
          distance32(function.at + shim::kPatchJumpSize, code_address(one));
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

  void add_code(const Trampoline& one, ImageBytes& out) const {
    out.pad_to(unwind_at_.code + one.offset, kTrap);
    const auto index = static_cast<uint64_t>(&one - trampolines_.data());
    TrampolinePlaces places;
    places.low = low_;
    places.bias = request_.bias;
    places.gate = low_ + gates_at_ + index * sizeof(uint64_t);
    places.entry =
        low_ + slots_at_ + offsetof(PatchSlots, entries) + index * sizeof(uint64_t);
    places.begins = low_ + slots_at_ + offsetof(PatchSlots, begins);
    add_trampoline(*one.plan, places, out);
  }

  static constexpr size_t kDynamicEntries = 6;

  void add_dynamic(ImageBytes& out) const {
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

  void set_headers(ImageBytes& out) const {
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
    add(PT_LOAD, PF_R | PF_X, unwind_at_.code, code_size_, kPage);
    add(PT_LOAD, PF_R | PF_W, data_at_, size_ - data_at_, kPage);
    add(PT_DYNAMIC, PF_R | PF_W, dynamic_at_, kDynamicEntries * sizeof(Elf64_Dyn), 8);
    add(PT_GNU_EH_FRAME, PF_R, unwind_at_.index, unwind_.index_size(), 4);
    add(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16);
    out.set(0, head);
  }

  const ModuleCode& code_;
  PatchRequest request_;
  ImageUnwind unwind_;
  std::vector<std::byte> after_table_;
  uint64_t skips_size_ = 0;
  std::vector<Trampoline> trampolines_;
  uint64_t code_size_ = 0;
  uint64_t low_ = 0;  // the address of the image
  // Offsets from that address, and sizes.
  uint64_t hash_at_ = 0, symbols_at_ = 0, functions_at_ = 0, names_at_ = 0;
  ImageUnwind::Places unwind_at_;
  uint64_t names_size_ = 0, read_only_size_ = 0, data_at_ = 0, slots_at_ = 0;
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
  PatchTable table{};
  const std::vector<std::byte> after_table = bytes_after_table(request, table.skips_size);
  std::memcpy(table.magic, shim::kPatchMagic, sizeof table.magic);
  table.bytes = shim::kPatchTableOffset + sizeof table + after_table.size();
  table.again_count = request.again.size();
  table.refusal = refusal;
  table.matched = request.matched;
  ImageBytes out;
  out.pad_to(shim::kPatchTableOffset);
  out.add(table);
  out.add_bytes(after_table);
  return std::move(out).take();
}

}  // namespace arctrace::recorder
