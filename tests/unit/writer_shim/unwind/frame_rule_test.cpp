// Compares rules for a caller's frame from unwind tables with libdw's.
#include "writer_shim/unwind/frame_rule.hpp"

#include <doctest/doctest.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/random.hpp"
#include "writer_shim/unwind/unwind_program.hpp"

namespace arctrace::shim {
namespace {

constexpr uint64_t kSeed = 20261122;

struct Segment {
  uintptr_t start = 0;
  size_t size = 0;
};

struct Module {
  std::string path;
  uintptr_t bias = 0;
  Segment code;
  Segment tables;  // the segments of .eh_frame_hdr and .eh_frame
  uintptr_t header = 0;
};

// The modules of this process that are files.
std::vector<Module> modules() {
  std::vector<Module> found;
  const auto visit = [](dl_phdr_info* info, size_t /*size*/, void* data) {
    Module module;
    module.bias = info->dlpi_addr;
    module.path = info->dlpi_name[0] == '\0' ? "/proc/self/exe" : info->dlpi_name;
    const auto begin = info->dlpi_phdr;
    const auto end = begin + info->dlpi_phnum;
    const auto header = std::find_if(
        begin, end, [](const auto& p) { return p.p_type == PT_GNU_EH_FRAME; });
    if (header == end || access(module.path.c_str(), R_OK) != 0) return 0;
    module.header = module.bias + header->p_vaddr;
    for (auto p = begin; p != end; ++p) {
      if (p->p_type != PT_LOAD) continue;
      const Segment segment{module.bias + p->p_vaddr, p->p_memsz};
      if ((p->p_flags & PF_X) != 0) module.code = segment;
      if (module.header - segment.start < segment.size) module.tables = segment;
    }
    static_cast<std::vector<Module>*>(data)->push_back(module);
    return 0;
  };
  dl_iterate_phdr(visit, &found);
  return found;
}

// The rules of one module's tables by elfutils, which shares no code with ours.
class Oracle {
 public:
  explicit Oracle(const Module& module) : bias_(module.bias) {
    elf_version(EV_CURRENT);
    fd_ = open(module.path.c_str(), O_RDONLY | O_CLOEXEC);
    elf_ = elf_begin(fd_, ELF_C_READ_MMAP, nullptr);
    cfi_ = dwarf_getcfi_elf(elf_);
  }
  Oracle(const Oracle&) = delete;
  ~Oracle() {
    dwarf_cfi_end(cfi_);
    elf_end(elf_);
    close(fd_);
  }

  // Empty: there are no rules for this address. Fields that FrameRule can't express are
  // kUnknown.
  std::optional<FrameRule> rule_at(uintptr_t pc) const {
    Dwarf_Frame* frame = nullptr;
    if (cfi_ == nullptr || dwarf_cfi_addrframe(cfi_, pc - bias_, &frame) != 0) {
      return std::nullopt;
    }
    FrameRule rule;
    set_base(frame, rule);
    set_frame_pointer(frame, rule);
    Dwarf_Op memory[3];
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (dwarf_frame_register(frame, machine::kReturnAddressRegister, memory, &ops,
                             &count) == 0) {
      rule.return_address_offset = cfa_offset(ops, count).value_or(0);
    }
    std::free(frame);
    return rule;
  }

 private:
  // The offset of DW_OP_call_frame_cfa, and DW_OP_plus_uconst if it is not 0.
  static std::optional<int32_t> cfa_offset(const Dwarf_Op* ops, size_t count) {
    if (count == 0 || count > 2 || ops[0].atom != DW_OP_call_frame_cfa) return {};
    if (count == 1) return 0;
    if (ops[1].atom != DW_OP_plus_uconst) return {};
    return static_cast<int32_t>(ops[1].number);
  }

  struct Place {
    uint64_t base_register;
    int32_t offset;
  };
  static std::optional<Place> place(const Dwarf_Op& op) {
    if (op.atom == DW_OP_bregx) return Place{op.number, static_cast<int32_t>(op.number2)};
    if (op.atom < DW_OP_breg0 || op.atom > DW_OP_breg31) return {};
    return Place{uint64_t{op.atom} - DW_OP_breg0, static_cast<int32_t>(op.number)};
  }

  static void set_base(Dwarf_Frame* frame, FrameRule& rule) {
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count == 0) return;
    const std::optional<Place> base = place(ops[0]);
    const bool is_saved = count == 2 && ops[1].atom == DW_OP_deref;
    if (!base || (count != 1 && !is_saved)) return;
    if (base->base_register == machine::kFramePointerRegister) {
      rule.base = is_saved ? FrameRule::Base::kSaved : FrameRule::Base::kFramePointer;
    } else if (base->base_register == machine::kStackPointerRegister && !is_saved) {
      rule.base = FrameRule::Base::kStackPointer;
    }
    rule.offset = base->offset;
  }

  static void set_frame_pointer(Dwarf_Frame* frame, FrameRule& rule) {
    Dwarf_Op memory[3];
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    rule.frame_pointer = FrameRule::FramePointer::kUnknown;
    if (dwarf_frame_register(frame, machine::kFramePointerRegister, memory, &ops,
                             &count) != 0) {
      return;
    }
    if (count == 0) {
      if (ops == nullptr) rule.frame_pointer = FrameRule::FramePointer::kSame;
    } else if (const auto offset = cfa_offset(ops, count)) {
      rule.frame_pointer = FrameRule::FramePointer::kAtCfa;
      rule.frame_pointer_offset = *offset;
    } else if (const auto at = place(ops[0]);
               count == 1 && at && at->base_register == machine::kFramePointerRegister) {
      rule.frame_pointer = FrameRule::FramePointer::kAtItself;
      rule.frame_pointer_offset = at->offset;
    }
  }

  uintptr_t bias_;
  int fd_ = -1;
  Elf* elf_ = nullptr;
  Dwarf_CFI* cfi_ = nullptr;
};

void compare(const FrameRule& ours, const FrameRule& theirs) {
  REQUIRE(ours.base == theirs.base);
  if (ours.base == FrameRule::Base::kUnknown) return;
  REQUIRE(ours.offset == theirs.offset);
  REQUIRE(ours.frame_pointer == theirs.frame_pointer);
  REQUIRE(ours.return_address_offset == theirs.return_address_offset);
  if (ours.frame_pointer == FrameRule::FramePointer::kAtCfa ||
      ours.frame_pointer == FrameRule::FramePointer::kAtItself) {
    REQUIRE(ours.frame_pointer_offset == theirs.frame_pointer_offset);
  }
}

}  // namespace

TEST_CASE("frame_rule: the same as elfutils reads, all over this process") {
  CAPTURE(kSeed);
  testing::Random random(kSeed);
  size_t compared[4] = {};
  for (const Module& module : modules()) {
    CAPTURE(module.path);
    const Oracle oracle(module);
    for (int i = 0; i < 5000; ++i) {
      const uintptr_t pc = module.code.start + random.next() % module.code.size;
      CAPTURE(pc - module.bias);
      const std::optional<FrameRule> theirs = oracle.rule_at(pc);
      const FrameRule ours = find_frame_rule(pc);
      if (!theirs) {
        REQUIRE(ours.base == FrameRule::Base::kUnknown);
        continue;
      }
      compare(ours, *theirs);
      ++compared[static_cast<size_t>(ours.base)];
    }
  }
  CHECK(compared[static_cast<size_t>(FrameRule::Base::kStackPointer)] > 1000);
  CHECK(compared[static_cast<size_t>(FrameRule::Base::kFramePointer)] > 100);
}

// Inaccessible memory begins where the tables end.
TEST_CASE("frame_rule: damaged tables are not read past their end") {
  CAPTURE(kSeed);
  testing::Random random(kSeed);
  const std::vector<Module> all = modules();
  const auto libc = std::find_if(all.begin(), all.end(), [](const Module& module) {
    return module.path.find("/libc.so") != std::string::npos;
  });
  REQUIRE(libc != all.end());
  const Module& module = *libc;
  const size_t size = module.tables.size;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t room = (size + page - 1) / page * page;
  void* const mapped =
      mmap(nullptr, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  std::byte* const first = static_cast<std::byte*>(mapped) + page;
  REQUIRE(mprotect(first, room, PROT_READ | PROT_WRITE) == 0);
  std::byte* const copy = first + (room - size);
  const auto low = reinterpret_cast<uintptr_t>(copy);
  const size_t header = module.header - module.tables.start;
  size_t known = 0;
  for (int round = 0; round < 40; ++round) {
    std::memcpy(copy, reinterpret_cast<const void*>(module.tables.start), size);
    // The first table is not damaged; then more and more bytes are.
    for (size_t i = 0; i < size * static_cast<size_t>(round) / 400; ++i) {
      // The search table's head must stay, or nothing at all could be read.
      const size_t at = random.next() % size;
      if (at < header || at >= header + 12)
        copy[at] = static_cast<std::byte>(random.next());
    }
    for (int i = 0; i < 1000; ++i) {
      const uintptr_t pc = module.code.start + random.next() % module.code.size -
                           module.tables.start + low;
      const FrameRule rule = find_frame_rule_in(copy + header, low, low + size, pc);
      known += rule.base != FrameRule::Base::kUnknown;
    }
  }
  CHECK(known > 1000);
  munmap(mapped, room + 2 * page);
}

}  // namespace arctrace::shim
