#include "reader/symbols/function_types.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include <memory>
#include <utility>

#include "reader/symbols/argument_registers.hpp"
#include "reader/symbols/dwarf_data.hpp"

namespace arctrace::reader {
namespace {

// `entry`: the address of the function, if it is defined.
FunctionTypes types_of(Dwarf_Die* function, std::optional<uint64_t> entry,
                       DwarfBudget& budget) {
  FunctionTypes types;
  ArgumentRegisters registers;
  Dwarf_Die type;
  if (peeled_type_of(function, &type)) {
    if (const auto scalar = scalar_type(&type, budget)) {
      types.retval = {"", scalar->kind, scalar->size, 0, scalar->enumerators};
    }
    if (returns_in_memory(&type, budget)) registers.add_address_of_result();
  }
  Dwarf_Die child;
  for (int more = dwarf_child(function, &child); more == 0 && budget.spend();
       more = dwarf_siblingof(&child, &child)) {
    if (dwarf_tag(&child) != DW_TAG_formal_parameter) continue;
    if (!peeled_type_of(&child, &type)) break;
    std::optional<ScalarType> scalar = scalar_type(&type, budget);
    const bool is_vector = scalar && scalar->kind == TypedArg::Kind::kFloat;
    const std::optional<uint32_t> usual =
        registers.add(&type, scalar.has_value(), budget);
    if (!usual) break;
    if (!scalar || *usual == 0) continue;
    // The `this` of a constructor is not a string yet.
    if (scalar->kind == TypedArg::Kind::kStdString &&
        dwarf_hasattr_integrate(&child, DW_AT_artificial) != 0) {
      scalar->kind = TypedArg::Kind::kPointer;
    }
    const uint32_t position =
        entry ? position_at_entry(&child, *entry, *usual, is_vector) : *usual;
    if (position == 0) continue;
    const char* name = dwarf_diename(&child);
    types.args.push_back({name == nullptr ? "" : name, scalar->kind, scalar->size,
                          position, scalar->enumerators});
  }
  return types;
}

std::string linker_name(Dwarf_Die* function) {
  Dwarf_Attribute attribute;
  const char* name = nullptr;
  if (dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute) != nullptr) {
    name = dwarf_formstring(&attribute);
  }
  if (name == nullptr) name = dwarf_diename(function);
  return name == nullptr ? "" : name;
}

class Finder {
 public:
  Finder(const std::set<uint64_t>& defined, const std::set<std::string>& declared)
      : defined_(defined), declared_(declared) {}

  void search(Dwarf* dwarf) {
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    uint8_t type = 0;
    while (dwarf_get_units(dwarf, unit, &unit, nullptr, &type, &die, nullptr) == 0) {
      last_ = 0;
      if (type == DW_UT_compile) search_scope(&die, 0);
    }
  }
  ModuleTypes take() { return std::move(found_); }

 private:
  void search_scope(Dwarf_Die* scope, int nesting) {
    Dwarf_Die child;
    if (nesting > kDwarfNestingMax || dwarf_child(scope, &child) != 0) return;
    do {
      // A hostile sibling may be an entry before this one; so each is visited only once.
      if (dwarf_dieoffset(&child) <= last_) return;
      last_ = dwarf_dieoffset(&child);
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_subprogram) consider(&child);
      if (tag == DW_TAG_namespace || is_aggregate(tag)) search_scope(&child, nesting + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
  }

  // Returns the address at which a wanted function is entered, which is the start of one
  // of its parts.
  std::optional<uint64_t> wanted_entry(Dwarf_Die* function) {
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    ptrdiff_t next = 0;
    while (budget_.spend() &&
           (next = dwarf_ranges(function, next, &base, &start, &end)) > 0) {
      if (defined_.contains(start)) return start;
    }
    return std::nullopt;
  }

  void consider(Dwarf_Die* function) {
    budget_.begin_function();
    if (dwarf_hasattr(function, DW_AT_declaration) != 0) {
      if (declared_.empty()) return;
      const std::string name = linker_name(function);
      if (declared_.contains(name)) keep(found_.declared, name, function, std::nullopt);
    } else if (const auto entry = wanted_entry(function)) {
      keep(found_.defined, *entry, function, entry);
    }
  }

  // Adds types to a map; of several for one key the first stay.
  template <class Map>
  void keep(Map& map, const typename Map::key_type& key, Dwarf_Die* function,
            std::optional<uint64_t> entry) {
    if (map.contains(key)) return;
    FunctionTypes types = types_of(function, entry, budget_);
    if (!budget_.is_spent()) map.emplace(key, std::move(types));
  }

  const std::set<uint64_t>& defined_;
  const std::set<std::string>& declared_;
  ModuleTypes found_;
  DwarfBudget budget_;
  Dwarf_Off last_ = 0;  // the offset of the entry that was visited last
};

// Returns false if the file has no DWARF data, or not what libdw needs.
bool search_file(const ElfFile& file, const std::string& path,
                 const DebugFiles& debug_files, Finder& finder) {
  if (!file.has_section(".debug_info")) return false;
  std::optional<ElfFile> supplementary_file;
  DwarfHandle supplementary;
  const DwarfHandle dwarf(begin_dwarf_untrusted(file));
  if (dwarf == nullptr || !find_supplementary_untrusted(
                              file, dwarf.get(), path, debug_files, supplementary_file)) {
    return false;
  }
  if (supplementary_file) {
    supplementary.reset(begin_dwarf_untrusted(*supplementary_file));
    if (supplementary == nullptr) return false;
    dwarf_setalt(dwarf.get(), supplementary.get());
  }
  finder.search(dwarf.get());
  return true;
}

}  // namespace

ModuleTypes read_function_types_untrusted(const std::string& path,
                                          const DebugFiles& debug_files,
                                          const std::set<uint64_t>& defined,
                                          const std::set<std::string>& declared) {
  const absl::StatusOr<ElfFile> file = ElfFile::open_untrusted(path);
  GElf_Ehdr header;
  if (!file.ok() || gelf_getehdr(file->handle(), &header) == nullptr ||
      header.e_machine != EM_X86_64) {
    return {};
  }
  Finder finder(defined, declared);
  if (!search_file(*file, path, debug_files, finder)) {
    if (const auto debug = debug_files.find_untrusted(path, *file)) {
      search_file(debug->elf, debug->path, debug_files, finder);
    }
  }
  return finder.take();
}

}  // namespace arctrace::reader
