// Reads segments, sections, symbols and relocations of an ELF file.
#include "src/recording/patching/module_code_file.hpp"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <elf.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "reader/symbols/debug_files.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/symbols/symbol_file.hpp"
#include "src/base/checksum.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/base/unwind_bytes.hpp"
#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recorder/patch_analysis/plan_file.hpp"

namespace arctrace::recording {
namespace {

// The limit is more than the largest programs have; a hostile file may claim any number.
// Segments may share a page of the file, not more.
constexpr uint64_t kLoadedBytesMax = uint64_t{1} << 30;
constexpr size_t kSegmentsMax = 64;
constexpr uint64_t kSharedBytesMax = kSegmentsMax * (uint64_t{64} << 10);
// The limit of pointers in relocations: more than any program has, and few enough for
// memory.
constexpr size_t kPointersMax = size_t{1} << 26;

const char* machine_name(uint16_t machine) {
  switch (machine) {
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "32-bit x86";
    case EM_ARM:
      return "32-bit ARM";
    case EM_RISCV:
      return "RISC-V";
    case EM_PPC64:
      return "POWER";
    case EM_S390:
      return "s390";
    case EM_MIPS:
      return "MIPS";
    case EM_BPF:
      return "BPF";
    default:
      return "another architecture";
  }
}

class ModuleReader {
 public:
  ModuleReader(const reader::ElfFile& elf, std::string name)
      : elf_(elf), name_(std::move(name)) {}

  absl::StatusOr<ModuleCodeFile> run() && {
    if (absl::Status status = check_kind(); !status.ok()) return status;
    file_.build_id = elf_.build_id();
    read_sections();
    if (absl::Status status = read_segments(); !status.ok()) return status;
    find_eh_frame();
    read_dynamic();
    return std::move(file_);
  }

 private:
  absl::Status refuse(std::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": ", std::string(why)));
  }

  absl::Status check_kind() {
    const reader::ElfHeader header = elf_.header();
    if (header.machine != EM_X86_64 || !header.is_64_bit) {
      const bool is_x32 = header.machine == EM_X86_64;
      return refuse(absl::StrCat("it is for ",
                                 is_x32 ? "x32" : machine_name(header.machine),
                                 "; so far only programs for x86-64 can be analysed"));
    }
    if (header.type != ET_EXEC && header.type != ET_DYN) {
      return refuse(header.type == ET_REL
                        ? "not linked yet; name the program or library it becomes part of"
                        : "neither an executable nor a shared object");
    }
    file_.code.has_fixed_addresses = header.type == ET_EXEC;
    file_.code.pointers.push_back(header.entry);
    return absl::OkStatus();
  }

  // Reads facts that only section headers have; files can do without them.
  void read_sections() {
    elf_.for_each_section([this](const reader::ElfSection& section) {
      uint64_t end = 0;
      if ((section.flags & SHF_ALLOC) == 0 ||
          __builtin_add_overflow(section.address, section.size, &end)) {
        return true;
      }
      const std::string name = section.name;
      if (name == ".eh_frame" && section.type != SHT_NOBITS) {
        file_.code.eh_frame = {section.address, end};
      }
      if (absl::StartsWith(name, ".plt") || name == ".iplt") {
        file_.code.stubs.push_back({section.address, end});
      }
      is_debug_file_ |= name == ".text" && section.type == SHT_NOBITS;
      return true;
    });
  }

  absl::Status read_segments() {
    uint64_t loaded = 0;
    bool fits = true;
    elf_.for_each_segment([&](const reader::ElfSegment& segment) {
      if (segment.type == PT_GNU_EH_FRAME) eh_frame_header_ = segment.address;
      if (segment.type == PT_DYNAMIC) dynamic_ = segment.address;
      if (segment.type == PT_LOAD) loaded += add_segment(segment);
      fits = loaded <= std::min(kLoadedBytesMax, elf_.size() + kSharedBytesMax) &&
             file_.code.segments.size() <= kSegmentsMax;
      return fits;
    });
    if (!fits) return refuse("its segments are too large, or too many");
    auto& segments = file_.code.segments;
    std::sort(segments.begin(), segments.end(),
              [](const recorder::ModuleSegment& a, const recorder::ModuleSegment& b) {
                return a.address < b.address;
              });
    uint64_t end = 0;
    std::erase_if(segments, [&end](const recorder::ModuleSegment& segment) {
      if (segment.address < end) return true;
      end = segment.range().end;
      return false;
    });
    if (is_debug_file_) return refuse("a debug file, without code; name the program");
    if (std::none_of(
            segments.begin(), segments.end(),
            [](const recorder::ModuleSegment& segment) { return segment.executable; })) {
      return refuse("it has no code, or none that can be read");
    }
    return absl::OkStatus();
  }

  // Adds a segment. Returns how many bytes were read.
  uint64_t add_segment(const reader::ElfSegment& segment) {
    const uint64_t file_size = elf_.size();
    const uint64_t there =
        segment.offset < file_size
            ? std::min<uint64_t>(segment.file_size, file_size - segment.offset)
            : 0;
    uint64_t end = 0;
    if (there < segment.file_size && file_.findings.empty()) {
      file_.findings.emplace_back("the file is cut off: what is there was analysed");
    }
    if (there == 0 || there > kLoadedBytesMax || is_debug_file_ ||
        __builtin_add_overflow(segment.address, there, &end)) {
      return 0;
    }
    const std::string text = elf_.bytes(segment.offset, there);
    if (text.empty()) return 0;
    const auto bytes = std::as_bytes(std::span(text));
    file_.code.segments.push_back(
        {segment.address, {bytes.begin(), bytes.end()}, (segment.flags & PF_X) != 0});
    return there;
  }

  // Without section headers, the table's address is in its index.
  void find_eh_frame() {
    if (file_.code.eh_frame.start != 0 || eh_frame_header_ == 0) return;
    UnwindBytes in(file_.code.bytes_at(eh_frame_header_), eh_frame_header_);
    in.number<uint8_t>();  // the version
    const auto encoding = in.number<uint8_t>();
    in.number<uint16_t>();  // encodings of the next fields
    const uint64_t start = in.pointer(encoding);
    if (!in.good()) return;
    file_.code.eh_frame = {start, start + file_.code.bytes_at(start).size()};
  }

  uint64_t word_at(uint64_t address) const {
    return load_part_untrusted<uint64_t>(file_.code.bytes_at(address));
  }

  void add_pointer(uint64_t address) {
    if (file_.code.pointers.size() < kPointersMax) file_.code.pointers.push_back(address);
  }

  // Reads the addresses that the loader writes into the module's data.
  void read_dynamic() {
    uint64_t rela = 0;
    uint64_t rela_size = 0;
    uint64_t relr = 0;
    uint64_t relr_size = 0;
    uint64_t symbols = 0;
    std::span<const std::byte> entries = file_.code.bytes_at(dynamic_);
    if (dynamic_ == 0) return;
    for (; entries.size() >= sizeof(Elf64_Dyn);
         entries = entries.subspan(sizeof(Elf64_Dyn))) {
      const auto entry = load_part_untrusted<Elf64_Dyn>(entries);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_RELA) rela = entry.d_un.d_ptr;
      if (entry.d_tag == DT_RELASZ) rela_size = entry.d_un.d_val;
      if (entry.d_tag == kDtRelr) relr = entry.d_un.d_ptr;
      if (entry.d_tag == kDtRelrSize) relr_size = entry.d_un.d_val;
      if (entry.d_tag == DT_SYMTAB) symbols = entry.d_un.d_ptr;
    }
    read_rela(rela, rela_size, symbols);
    read_relr(relr, relr_size);
  }

  void read_rela(uint64_t address, uint64_t size, uint64_t symbols) {
    std::span<const std::byte> table = file_.code.bytes_at(address);
    table = table.first(std::min<uint64_t>(table.size(), size));
    for (; table.size() >= sizeof(Elf64_Rela);
         table = table.subspan(sizeof(Elf64_Rela))) {
      const auto entry = load_part_untrusted<Elf64_Rela>(table);
      const auto addend = static_cast<uint64_t>(entry.r_addend);
      switch (ELF64_R_TYPE(entry.r_info)) {
        case R_X86_64_IRELATIVE:
          if (file_.code.resolvers.size() < kPointersMax) {
            file_.code.resolvers.push_back(addend);
          }
          [[fallthrough]];
        case R_X86_64_RELATIVE:
          add_pointer(addend);
          break;
        case R_X86_64_64: {
          const uint64_t at = symbols + ELF64_R_SYM(entry.r_info) * sizeof(Elf64_Sym);
          const auto symbol = load_part_untrusted<Elf64_Sym>(file_.code.bytes_at(at));
          if (symbol.st_shndx != SHN_UNDEF) add_pointer(symbol.st_value + addend);
          break;
        }
        default:
          break;
      }
    }
  }

  // A word is the address of a pointer, or with its lowest bit set says which of the next
  // 63 words are pointers.
  void read_relr(uint64_t address, uint64_t size) {
    std::span<const std::byte> table = file_.code.bytes_at(address);
    table = table.first(std::min<uint64_t>(table.size(), size));
    uint64_t next = 0;
    for (; table.size() >= sizeof(uint64_t); table = table.subspan(sizeof(uint64_t))) {
      const auto word = load_part_untrusted<uint64_t>(table);
      if ((word & 1) == 0) {
        add_pointer(word_at(word));
        next = word + 8;
        continue;
      }
      for (unsigned bit = 1; bit < 64; ++bit) {
        if ((word >> bit & 1) != 0) add_pointer(word_at(next + uint64_t{bit - 1} * 8));
      }
      next += uint64_t{63} * 8;
    }
  }

  // glibc has it since 2.36.
  static constexpr int64_t kDtRelr = 36;
  static constexpr int64_t kDtRelrSize = 35;

  const reader::ElfFile& elf_;
  const std::string name_;
  ModuleCodeFile file_;
  bool is_debug_file_ = false;
  uint64_t eh_frame_header_ = 0;
  uint64_t dynamic_ = 0;
};

void add_names(const reader::FunctionTable& table, recorder::ModuleCode& code) {
  for (const auto& range : table.named_ranges()) {
    code.functions.push_back(
        {{range.start, range.end}, std::string(range.name), range.is_sized});
  }
}

// Two checksums: of the loaded bytes, and of the names.
uint64_t stamp_of(const recorder::ModuleCode& code) {
  Checksum bytes;
  for (const recorder::ModuleSegment& segment : code.segments) bytes.add(segment.bytes);
  Checksum names;
  for (const recorder::NamedFunction& function : code.functions) {
    names.add(std::as_bytes(std::span(&function.range, 1)));
    names.add(std::as_bytes(std::span(function.name)));
  }
  return uint64_t{bytes.value()} << 32 | names.value();
}

}  // namespace

absl::StatusOr<ModuleCodeFile> read_module_code_untrusted(const std::string& path) {
  const absl::StatusOr<reader::ElfFile> elf = reader::ElfFile::open_untrusted(path);
  if (!elf.ok()) return elf.status();
  absl::StatusOr<ModuleCodeFile> file = ModuleReader(*elf, path).run();
  if (!file.ok()) return file;
  const reader::DebugFiles debug_files{reader::SymbolOptions()};
  const auto symbols =
      reader::SymbolFile::open_untrusted(path, elf->build_id(), debug_files);
  if (symbols.ok()) add_names(symbols->functions(), file->code);
  file->stamp = stamp_of(file->code);
  return file;
}

absl::StatusOr<ModuleCodeFile> module_code_of_bytes_untrusted(std::string bytes,
                                                              const std::string& name) {
  const auto elf = reader::ElfFile::from_bytes_untrusted(std::move(bytes), name);
  if (!elf.ok()) return elf.status();
  absl::StatusOr<ModuleCodeFile> file = ModuleReader(*elf, name).run();
  if (!file.ok()) return file;
  const std::vector<reader::ElfSymbolTable> tables = elf->function_symbols();
  add_names(reader::FunctionTable(elf->load_segments(), tables), file->code);
  file->stamp = stamp_of(file->code);
  return file;
}

absl::StatusOr<PlannedModule> plan_module(const std::string& path, bool use_cache) {
  absl::StatusOr<ModuleCodeFile> file = read_module_code_untrusted(path);
  if (!file.ok()) return file.status();
  const recorder::PlanCache cache = recorder::PlanCache::of_user();
  if (use_cache) {
    if (auto kept = cache.load(file->build_id, file->stamp)) {
      return PlannedModule{std::move(file->code), *std::move(kept)};
    }
  }
  recorder::PatchPlan plan = recorder::analyse_patches_untrusted(file->code);
  plan.findings.insert(plan.findings.begin(), file->findings.begin(),
                       file->findings.end());
  plan.build_id = std::move(file->build_id);
  plan.stamp = file->stamp;
  if (use_cache) cache.save(plan);
  return PlannedModule{std::move(file->code), std::move(plan)};
}

}  // namespace arctrace::recording
