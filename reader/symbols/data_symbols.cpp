#include "reader/symbols/data_symbols.hpp"

#include <absl/strings/str_cat.h>
#include <gelf.h>

#include <algorithm>

#include "reader/symbols/demangle.hpp"

namespace arctrace::reader {
namespace {

constexpr uint64_t kTableBytesMax = uint64_t{64} << 20;

void add_variables_untrusted(const ElfFile& file,
                             std::vector<DataSymbols::Variable>& variables) {
  for (Elf_Scn* section = elf_nextscn(file.handle(), nullptr); section != nullptr;
       section = elf_nextscn(file.handle(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_size > kTableBytesMax ||
        (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM)) {
      continue;
    }
    Elf_Data* const data = elf_getdata(section, nullptr);
    if (data == nullptr || data->d_type != ELF_T_SYM) continue;
    const size_t count =
        data->d_size / gelf_fsize(file.handle(), ELF_T_SYM, 1, EV_CURRENT);
    for (size_t i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      if (GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF ||
          symbol.st_size == 0) {
        continue;
      }
      const char* name = elf_strptr(file.handle(), header.sh_link, symbol.st_name);
      if (name == nullptr || *name == '\0') continue;
      variables.push_back({symbol.st_value, symbol.st_size, name});
    }
  }
}

}  // namespace

DataSymbols::DataSymbols(SymbolOptions options)
    : other_roots_(options.other_roots), debug_files_(std::move(options)) {}

const DataSymbols::Variable* DataSymbols::find(const std::string& path,
                                               const BuildId& build_id,
                                               uint64_t address) {
  const std::vector<Variable>& variables = module(path, build_id).variables;
  auto found = std::upper_bound(
      variables.begin(), variables.end(), address,
      [](uint64_t wanted, const Variable& variable) { return wanted < variable.start; });
  if (found == variables.begin()) return nullptr;
  --found;
  return address - found->start < found->size ? &*found : nullptr;
}

std::string DataSymbols::name_in(const std::string& path, const BuildId& build_id,
                                 const std::string& linker_name, uint64_t start,
                                 uint64_t address) {
  std::string name = demangle_untrusted(linker_name);
  std::unique_ptr<VariableTypes>& types = module(path, build_id).types;
  if (types == nullptr) {
    types = std::make_unique<VariableTypes>();
    types->read_untrusted(path, build_id, debug_files_);
  }
  const std::optional<std::string> member = types->member_at(start, address - start);
  if (member.has_value()) return name + *member;
  return address == start ? name : absl::StrCat(name, "+0x", absl::Hex(address - start));
}

DataSymbols::Module& DataSymbols::module(const std::string& path,
                                         const BuildId& build_id) {
  const auto [known, is_new] = modules_.try_emplace({path, build_id});
  if (is_new) known->second.variables = read_untrusted(path, build_id);
  return known->second;
}

std::vector<DataSymbols::Variable> DataSymbols::read_untrusted(
    const std::string& path, const BuildId& build_id) const {
  std::vector<Variable> variables;
  const auto matches = [&](const absl::StatusOr<ElfFile>& file) {
    return file.ok() && (build_id.empty() || file->build_id() == build_id);
  };
  absl::StatusOr<ElfFile> file = ElfFile::open_untrusted(path);
  for (const std::string& root : other_roots_) {
    if (matches(file)) break;
    file = ElfFile::open_untrusted(root + path);
  }
  std::optional<DebugFile> debug;
  if (matches(file)) {
    add_variables_untrusted(*file, variables);
    debug = debug_files_.find_untrusted(path, *file);
  } else {
    debug = debug_files_.find_by_build_id_untrusted(build_id);
  }
  if (!debug && !(matches(file) && file->has_section(".symtab"))) {
    debug = debug_files_.download_untrusted(build_id);
  }
  if (debug) add_variables_untrusted(debug->elf, variables);
  std::stable_sort(variables.begin(), variables.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  return variables;
}

}  // namespace arctrace::reader
