#include "reader/symbols/variable_types.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <dwarf.h>

#include <string_view>
#include <utility>

#include "reader/symbols/dwarf_data.hpp"

namespace arctrace::reader {
namespace {

// Entries of a module that are read, which takes a second or two.
constexpr uint64_t kEntriesMax = uint64_t{1} << 23;

using Variables = absl::flat_hash_map<uint64_t, Dwarf_Die>;  // by address

// Finds the variables in static storage of one unit after the other.
class VariableSearch {
 public:
  explicit VariableSearch(Variables& found) : found_(found) {}

  void search(Dwarf* dwarf) {
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    uint8_t type = 0;
    while (dwarf_get_units(dwarf, unit, &unit, nullptr, &type, &die, nullptr) == 0) {
      last_ = 0;
      if (type == DW_UT_compile) search_scope(&die, 0);
    }
  }

 private:
  void search_scope(Dwarf_Die* scope, int nesting) {
    Dwarf_Die child;
    if (nesting > kDwarfNestingMax || dwarf_child(scope, &child) != 0) return;
    do {
      // A hostile sibling may be an entry before this one; so each is visited only once.
      if (dwarf_dieoffset(&child) <= last_ || ++entries_ > kEntriesMax) return;
      last_ = dwarf_dieoffset(&child);
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_variable) {
        consider(&child);
      } else if (tag == DW_TAG_namespace || tag == DW_TAG_subprogram ||
                 tag == DW_TAG_lexical_block) {
        search_scope(&child, nesting + 1);
      }
    } while (dwarf_siblingof(&child, &child) == 0);
  }

  void consider(Dwarf_Die* variable) {
    Dwarf_Attribute location;
    Dwarf_Op* steps = nullptr;
    size_t count = 0;
    if (dwarf_attr(variable, DW_AT_location, &location) != nullptr &&
        dwarf_getlocation(&location, &steps, &count) == 0 && count == 1 &&
        steps[0].atom == DW_OP_addr) {
      found_.try_emplace(steps[0].number, *variable);
    }
  }

  Variables& found_;
  Dwarf_Off last_ = 0;  // the offset of the entry that was visited last
  uint64_t entries_ = 0;
};

// The number of elements of an array with one dimension; nullopt: it has more, or it is
// not known.
std::optional<uint64_t> element_count(Dwarf_Die* array, DwarfBudget& budget) {
  std::optional<uint64_t> count;
  Dwarf_Die child;
  for (int more = dwarf_child(array, &child); more == 0 && budget.spend();
       more = dwarf_siblingof(&child, &child)) {
    if (dwarf_tag(&child) != DW_TAG_subrange_type) continue;
    if (count.has_value()) return std::nullopt;
    count = dwarf_hasattr(&child, DW_AT_count) != 0
                ? unsigned_attribute(&child, DW_AT_count)
                : unsigned_attribute(&child, DW_AT_upper_bound) + 1;
  }
  return count;
}

// The size of a peeled type in bytes; 0: it is not known.
uint64_t size_of(Dwarf_Die* type, int nesting, DwarfBudget& budget) {
  const uint64_t size = unsigned_attribute(type, DW_AT_byte_size);
  if (size != 0 || dwarf_tag(type) != DW_TAG_array_type || nesting > kDwarfNestingMax) {
    return size;
  }
  Dwarf_Die element;
  if (!budget.spend() || !peeled_type_of(type, &element)) return 0;
  return element_count(type, budget).value_or(0) * size_of(&element, nesting + 1, budget);
}

// Sets `type` to that of the element at `offset`, and the offset to that within it.
bool enter_array(Dwarf_Die* type, uint64_t& offset, std::string& path,
                 DwarfBudget& budget) {
  const std::optional<uint64_t> count = element_count(type, budget);
  Dwarf_Die element;
  if (!count.has_value() || !peeled_type_of(type, &element)) return false;
  const uint64_t size = size_of(&element, 0, budget);
  if (size == 0 || offset / size >= *count) return false;
  absl::StrAppend(&path, "[", offset / size, "]");
  offset %= size;
  *type = element;
  return true;
}

enum class Entered : uint8_t { kNo, kMember, kLibrarysOwn };

// Does the same for the member of a structure, or the base of a class.
Entered enter_member(Dwarf_Die* type, uint64_t& offset, std::string& path,
                     DwarfBudget& budget) {
  Dwarf_Die child;
  for (int more = dwarf_child(type, &child); more == 0 && budget.spend();
       more = dwarf_siblingof(&child, &child)) {
    const int tag = dwarf_tag(&child);
    Dwarf_Die part;
    if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
        dwarf_hasattr(&child, DW_AT_external) != 0 || !peeled_type_of(&child, &part)) {
      continue;
    }
    const uint64_t start = unsigned_attribute(&child, DW_AT_data_member_location);
    if (offset < start || offset - start >= size_of(&part, 0, budget)) continue;
    const char* name = dwarf_diename(&child);
    if (tag == DW_TAG_member && name != nullptr) {
      if (*name == '_') return Entered::kLibrarysOwn;
      absl::StrAppend(&path, ".", name);
    }
    offset -= start;
    *type = part;
    return Entered::kMember;
  }
  return Entered::kNo;
}

}  // namespace

// The handles end in the reverse order of their beginnings.
struct VariableTypes::Data {
  // Returns whether the file has DWARF data that can be read.
  bool open(ElfFile elf, const std::string& path, const DebugFiles& debug_files) {
    if (!elf.has_section(".debug_info")) return false;
    file.emplace(std::move(elf));
    dwarf.reset(begin_dwarf_untrusted(*file));
    if (dwarf == nullptr ||
        !find_supplementary_untrusted(*file, dwarf.get(), path, debug_files,
                                      supplementary_file)) {
      return false;
    }
    if (supplementary_file) {
      supplementary.reset(begin_dwarf_untrusted(*supplementary_file));
      if (supplementary == nullptr) return false;
      dwarf_setalt(dwarf.get(), supplementary.get());
    }
    VariableSearch(variables).search(dwarf.get());
    return true;
  }

  std::optional<ElfFile> file, supplementary_file;
  DwarfHandle supplementary, dwarf;
  Variables variables;
};

VariableTypes::VariableTypes() = default;
VariableTypes::~VariableTypes() = default;

void VariableTypes::read_untrusted(const std::string& path, const BuildId& build_id,
                                   const DebugFiles& debug_files) {
  data_ = std::make_unique<Data>();
  absl::StatusOr<ElfFile> file = ElfFile::open_untrusted(path);
  std::optional<DebugFile> debug;
  if (file.ok() && (build_id.empty() || file->build_id() == build_id)) {
    debug = debug_files.find_untrusted(path, *file);
    if (data_->open(*std::move(file), path, debug_files)) return;
  } else {
    debug = debug_files.find_by_build_id_untrusted(build_id);
  }
  if (!debug) debug = debug_files.download_untrusted(build_id);
  data_ = std::make_unique<Data>();
  if (debug) data_->open(std::move(debug->elf), debug->path, debug_files);
}

std::optional<std::string> VariableTypes::member_at(uint64_t start, uint64_t offset) {
  const auto variable = data_->variables.find(start);
  Dwarf_Die type;
  if (variable == data_->variables.end() || !peeled_type_of(&variable->second, &type)) {
    return std::nullopt;
  }
  DwarfBudget budget;
  std::string path;
  for (int nesting = 0; nesting < kDwarfNestingMax && budget.spend(); ++nesting) {
    if (dwarf_tag(&type) == DW_TAG_array_type) {
      if (!enter_array(&type, offset, path, budget)) return std::nullopt;
      continue;
    }
    if (!is_aggregate(dwarf_tag(&type))) break;
    const Entered entered = enter_member(&type, offset, path, budget);
    if (entered == Entered::kLibrarysOwn) break;
    if (entered == Entered::kNo) return std::nullopt;
  }
  if (budget.is_spent()) return std::nullopt;
  return path;
}

}  // namespace arctrace::reader
