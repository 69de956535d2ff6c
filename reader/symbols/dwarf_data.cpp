#include "reader/symbols/dwarf_data.hpp"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

namespace arctrace::reader {
namespace {

// The limit for all debug sections together, which libdw reads into memory and unpacks.
constexpr uint64_t kDebugBytesMax = uint64_t{4} << 30;

// Calls visit(name, section, header) for each debug section until a call returns false.
// Returns true if none did, and all section headers could be read.
template <typename Visit>
bool for_debug_sections(Elf* elf, Visit visit) {
  size_t names_index = 0;
  if (elf_getshdrstrndx(elf, &names_index) != 0) return false;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) return false;
    const char* text = elf_strptr(elf, names_index, header.sh_name);
    if (text == nullptr) return false;
    const std::string_view name(text);
    if (header.sh_type != SHT_NOBITS && name.find("debug_") != std::string_view::npos &&
        !visit(name, section, header)) {
      return false;
    }
  }
  return true;
}

// Whether the debug sections, once unpacked, are small enough to be read. Sections packed
// in the old GNU way (.zdebug_*, given up by 2016) are refused, because their size is not
// in the header.
bool has_readable_size(Elf* elf) {
  uint64_t total = 0;
  return for_debug_sections(
      elf, [&total](std::string_view name, Elf_Scn* section, const GElf_Shdr& header) {
        uint64_t size = header.sh_size;
        if ((header.sh_flags & SHF_COMPRESSED) != 0) {
          GElf_Chdr packed;
          if (gelf_getchdr(section, &packed) == nullptr) return false;
          size = packed.ch_size;
        }
        return !name.starts_with(".z") && !__builtin_add_overflow(total, size, &total) &&
               total <= kDebugBytesMax;
      });
}

// Whether the last strings of .debug_str and .debug_line_str end. libdw (0.188) trusts
// that they do, and would read past the section. REQUIRES: libdw has unpacked the
// sections.
bool has_terminated_strings(Elf* elf) {
  return for_debug_sections(
      elf, [](std::string_view name, Elf_Scn* section, const GElf_Shdr&) {
        if (name.ends_with(".dwo")) name.remove_suffix(4);
        if (!name.ends_with("_str")) return true;
        const Elf_Data* data = elf_getdata(section, nullptr);
        if (data == nullptr || data->d_buf == nullptr || data->d_size == 0) return true;
        return static_cast<const char*>(data->d_buf)[data->d_size - 1] == '\0';
      });
}

}  // namespace

Dwarf* begin_dwarf_untrusted(const ElfFile& file) {
  if (!has_readable_size(file.handle())) return nullptr;
  Dwarf* dwarf = dwarf_begin_elf(file.handle(), DWARF_C_READ, nullptr);
  if (dwarf != nullptr && !has_terminated_strings(file.handle())) {
    dwarf_end(dwarf);
    return nullptr;
  }
  return dwarf;
}

bool find_supplementary_untrusted(const ElfFile& file, Dwarf* dwarf,
                                  const std::string& path, const DebugFiles& debug_files,
                                  std::optional<ElfFile>& found) {
  const char* name = nullptr;
  const void* bytes = nullptr;
  const ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &bytes);
  if (size <= 0) return !file.has_section(".gnu_debugaltlink");
  const std::span view(static_cast<const std::byte*>(bytes), static_cast<size_t>(size));
  auto supplementary = debug_files.find_supplementary_untrusted(
      path, name, BuildId(view.begin(), view.end()));
  if (!supplementary || supplementary->elf.has_section(".gnu_debugaltlink")) return false;
  found.emplace(std::move(supplementary->elf));
  return true;
}

using Kind = TypedArg::Kind;

bool type_of(Dwarf_Die* die, Dwarf_Die* type) {
  Dwarf_Attribute attribute;
  return dwarf_attr_integrate(die, DW_AT_type, &attribute) != nullptr &&
         dwarf_formref_die(&attribute, type) != nullptr;
}

bool peel(Dwarf_Die* type) {
  for (int i = 0; i < kDwarfNestingMax; ++i) {
    switch (dwarf_tag(type)) {
      case DW_TAG_typedef:
      case DW_TAG_const_type:
      case DW_TAG_volatile_type:
      case DW_TAG_restrict_type:
      case DW_TAG_atomic_type: {
        Dwarf_Die inner;
        if (!type_of(type, &inner)) return false;
        *type = inner;
        break;
      }
      default:
        return true;
    }
  }
  return false;
}

bool peeled_type_of(Dwarf_Die* die, Dwarf_Die* type) {
  return type_of(die, type) && peel(type);
}

uint64_t unsigned_attribute(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr_integrate(die, name, &attribute) == nullptr) return 0;
  return dwarf_formudata(&attribute, &value) == 0 ? value : 0;
}

bool is_aggregate(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
         tag == DW_TAG_union_type;
}

namespace {

bool is_named(Dwarf_Die* die, std::string_view name) {
  const char* found = dwarf_diename(die);
  return found != nullptr && name == found;
}

bool is_pointer(int tag) {
  return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
         tag == DW_TAG_rvalue_reference_type || tag == DW_TAG_unspecified_type;
}

// std::__cxx11::basic_string<char>, which libstdc++ has had since gcc 5.
bool is_std_string(Dwarf_Die* type) {
  const char* name = dwarf_diename(type);
  if (name == nullptr || !std::string_view(name).starts_with("basic_string<char,")) {
    return false;
  }
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(type, &scopes);
  bool found = false;
  for (int i = 0; i < count; ++i) found = found || is_named(&scopes[i], "__cxx11");
  std::free(scopes);  // libdw leaves that to its caller
  return found;
}

bool has_own_copies(Dwarf_Die* type, int nesting, DwarfBudget& budget);

bool is_by_reference(Dwarf_Die* type, int nesting, DwarfBudget& budget) {
  if (!is_aggregate(dwarf_tag(type))) return false;
  switch (unsigned_attribute(type, DW_AT_calling_convention)) {
    case DW_CC_pass_by_reference:
      return true;
    case DW_CC_pass_by_value:
      return false;
    default:  // gcc does not always give the attribute
      return is_std_string(type) || has_own_copies(type, nesting, budget);
  }
}

// Whether `function`, a member of the class `type`, is a destructor or a copy or move
// constructor that the compiler did not make.
bool makes_own_copies(Dwarf_Die* function, Dwarf_Die* type, std::string_view name,
                      DwarfBudget& budget) {
  const char* found = dwarf_diename(function);
  if (found == nullptr || dwarf_hasattr(function, DW_AT_artificial) != 0 ||
      unsigned_attribute(function, DW_AT_defaulted) == DW_DEFAULTED_in_class) {
    return false;
  }
  if (*found == '~') return true;
  if (name != found) return false;
  Dwarf_Die parameter;
  for (int more = dwarf_child(function, &parameter); more == 0 && budget.spend();
       more = dwarf_siblingof(&parameter, &parameter)) {
    Dwarf_Die reference;
    Dwarf_Die other;
    if (dwarf_tag(&parameter) == DW_TAG_formal_parameter &&
        dwarf_hasattr(&parameter, DW_AT_artificial) == 0 &&
        peeled_type_of(&parameter, &reference) &&
        dwarf_tag(&reference) != DW_TAG_pointer_type &&
        is_pointer(dwarf_tag(&reference)) && peeled_type_of(&reference, &other)) {
      return dwarf_dieoffset(&other) == dwarf_dieoffset(type);
    }
  }
  return false;
}

// Whether an object cannot be copied byte by byte, because of its class, its bases or its
// members.
bool has_own_copies(Dwarf_Die* type, int nesting, DwarfBudget& budget) {
  if (nesting > kDwarfNestingMax) return false;
  const char* whole = dwarf_diename(type);
  std::string_view name = whole == nullptr ? "" : whole;
  name = name.substr(0, name.find('<'));
  Dwarf_Die child;
  for (int more = dwarf_child(type, &child); more == 0 && budget.spend();
       more = dwarf_siblingof(&child, &child)) {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_subprogram && (makes_own_copies(&child, type, name, budget) ||
                                     dwarf_hasattr(&child, DW_AT_virtuality) != 0)) {
      return true;
    }
    Dwarf_Die part;
    if ((tag == DW_TAG_member || tag == DW_TAG_inheritance) &&
        dwarf_hasattr(&child, DW_AT_external) == 0 && peeled_type_of(&child, &part) &&
        is_by_reference(&part, nesting + 1, budget)) {
      return true;
    }
  }
  return false;
}

std::optional<ScalarType> base_type(Dwarf_Die* type) {
  const auto size = static_cast<uint32_t>(unsigned_attribute(type, DW_AT_byte_size));
  switch (unsigned_attribute(type, DW_AT_encoding)) {
    case DW_ATE_boolean:
      return ScalarType{Kind::kBool, size};
    case DW_ATE_float:
      return ScalarType{Kind::kFloat, size};
    case DW_ATE_signed:
      return ScalarType{Kind::kSigned, size};
    case DW_ATE_signed_char:
      return ScalarType{is_named(type, "char") ? Kind::kChar : Kind::kSigned, size};
    case DW_ATE_unsigned:
    case DW_ATE_UTF:
      return ScalarType{Kind::kUnsigned, size};
    case DW_ATE_unsigned_char:
      return ScalarType{is_named(type, "char") ? Kind::kChar : Kind::kUnsigned, size};
    default:
      return std::nullopt;
  }
}

std::vector<Enumerator> enumerators_of(Dwarf_Die* type, DwarfBudget& budget) {
  constexpr size_t kEnumeratorsMax = 64;
  std::vector<Enumerator> found;
  Dwarf_Die child;
  for (int more = dwarf_child(type, &child);
       more == 0 && found.size() < kEnumeratorsMax && budget.spend();
       more = dwarf_siblingof(&child, &child)) {
    const char* name = dwarf_diename(&child);
    if (dwarf_tag(&child) != DW_TAG_enumerator || name == nullptr) continue;
    // libdw extends the sign of negative ones.
    found.push_back(
        {name, static_cast<int64_t>(unsigned_attribute(&child, DW_AT_const_value))});
  }
  return found;
}

Kind pointer_kind(Dwarf_Die* pointer) {
  Dwarf_Die pointee;
  if (!peeled_type_of(pointer, &pointee)) return Kind::kPointer;
  const bool is_reference = dwarf_tag(pointer) != DW_TAG_pointer_type;
  if (is_aggregate(dwarf_tag(&pointee))) {
    return is_std_string(&pointee) ? Kind::kStdString : Kind::kPointer;
  }
  const bool is_char =
      dwarf_tag(&pointee) == DW_TAG_base_type && is_named(&pointee, "char");
  return is_char && !is_reference ? Kind::kString : Kind::kPointer;
}

}  // namespace

bool is_passed_by_reference(Dwarf_Die* type, DwarfBudget& budget) {
  return is_by_reference(type, 0, budget);
}

std::optional<ScalarType> scalar_type(Dwarf_Die* type, DwarfBudget& budget) {
  const int tag = dwarf_tag(type);
  std::optional<ScalarType> found;
  if (is_pointer(tag)) {
    found = {pointer_kind(type), 8};
  } else if (tag == DW_TAG_base_type) {
    found = base_type(type);
  } else if (tag == DW_TAG_enumeration_type) {
    Dwarf_Die underlying;
    if (peeled_type_of(type, &underlying)) found = base_type(&underlying);
    if (!found) {
      const auto size = static_cast<uint32_t>(unsigned_attribute(type, DW_AT_byte_size));
      found = {Kind::kUnsigned, size};
    }
    found->enumerators = enumerators_of(type, budget);
  } else if (is_passed_by_reference(type, budget) && is_std_string(type)) {
    found = {Kind::kStdString, 8};
  }
  if (!found) return found;
  const bool is_size =
      found->kind == Kind::kFloat
          ? found->size == 4 || found->size == 8
          : found->size == 1 || found->size == 2 || found->size == 4 || found->size == 8;
  return is_size ? found : std::nullopt;
}

}  // namespace arctrace::reader
