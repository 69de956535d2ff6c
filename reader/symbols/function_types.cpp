#include "reader/symbols/function_types.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "reader/symbols/dwarf_data.hpp"

namespace arctrace::reader {
namespace {

using Kind = TypedValue::Kind;

constexpr int kNestingMax = 32;                  // of scopes, of types
constexpr uint32_t kIntegers = 6, kVectors = 8;  // registers that arguments are passed in

// ---- Types ------------------------------------------------------------------

// The type of a parameter, a function's result, a member. False: there is none.
bool type_of(Dwarf_Die* die, Dwarf_Die* type) {
  Dwarf_Attribute attribute;
  return dwarf_attr_integrate(die, DW_AT_type, &attribute) != nullptr &&
         dwarf_formref_die(&attribute, type) != nullptr;
}

// What a typedef, a const and the like stand for. False: it is not known.
bool peel(Dwarf_Die* type) {
  for (int i = 0; i < kNestingMax; ++i) {
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

bool is_named(Dwarf_Die* die, std::string_view name) {
  const char* found = dwarf_diename(die);
  return found != nullptr && name == found;
}

bool is_pointer(int tag) {
  return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
         tag == DW_TAG_rvalue_reference_type || tag == DW_TAG_unspecified_type;
}

bool is_aggregate(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
         tag == DW_TAG_union_type;
}

// std::__cxx11::basic_string<char>: that of libstdc++ since gcc 5.
bool is_std_string(Dwarf_Die* type) {
  const char* name = dwarf_diename(type);
  if (name == nullptr || !std::string_view(name).starts_with("basic_string<char,")) {
    return false;
  }
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(type, &scopes);
  bool found = false;
  for (int i = 0; i < count; ++i) found = found || is_named(&scopes[i], "__cxx11");
  std::free(scopes);  // as libdw wants it
  return found;
}

bool has_own_copies(Dwarf_Die* type, int nesting);

bool is_passed_by_reference(Dwarf_Die* type, int nesting = 0) {
  if (!is_aggregate(dwarf_tag(type))) return false;
  switch (unsigned_attribute(type, DW_AT_calling_convention)) {
    case DW_CC_pass_by_reference:
      return true;
    case DW_CC_pass_by_value:
      return false;
    default:  // gcc does not always say it
      return is_std_string(type) || has_own_copies(type, nesting);
  }
}

// Whether `function`, of the class `type`, is a destructor or takes another object of it,
// and not as the compiler would have made it.
bool makes_own_copies(Dwarf_Die* function, Dwarf_Die* type, std::string_view name) {
  const char* found = dwarf_diename(function);
  if (found == nullptr || dwarf_hasattr(function, DW_AT_artificial) != 0 ||
      unsigned_attribute(function, DW_AT_defaulted) == DW_DEFAULTED_in_class) {
    return false;
  }
  if (*found == '~') return true;
  if (name != found) return false;
  Dwarf_Die parameter;
  for (int more = dwarf_child(function, &parameter); more == 0;
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

// Whether an object can't just be copied byte by byte, because of itself, its bases or
// its members.
bool has_own_copies(Dwarf_Die* type, int nesting) {
  if (nesting > kNestingMax) return false;
  const char* whole = dwarf_diename(type);
  std::string_view name = whole == nullptr ? "" : whole;
  name = name.substr(0, name.find('<'));
  Dwarf_Die child;
  for (int more = dwarf_child(type, &child); more == 0;
       more = dwarf_siblingof(&child, &child)) {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_subprogram && (makes_own_copies(&child, type, name) ||
                                     dwarf_hasattr(&child, DW_AT_virtuality) != 0)) {
      return true;
    }
    Dwarf_Die part;
    if ((tag == DW_TAG_member || tag == DW_TAG_inheritance) &&
        dwarf_hasattr(&child, DW_AT_external) == 0 && peeled_type_of(&child, &part) &&
        is_passed_by_reference(&part, nesting + 1)) {
      return true;
    }
  }
  return false;
}

struct Scalar {
  Kind kind;
  uint32_t size;
};

std::optional<Scalar> base_type(Dwarf_Die* type) {
  const auto size = static_cast<uint32_t>(unsigned_attribute(type, DW_AT_byte_size));
  switch (unsigned_attribute(type, DW_AT_encoding)) {
    case DW_ATE_boolean:
      return Scalar{Kind::kBool, size};
    case DW_ATE_float:
      return Scalar{Kind::kFloat, size};
    case DW_ATE_signed:
      return Scalar{Kind::kSigned, size};
    case DW_ATE_signed_char:
      return Scalar{is_named(type, "char") ? Kind::kChar : Kind::kSigned, size};
    case DW_ATE_unsigned:
    case DW_ATE_UTF:
      return Scalar{Kind::kUnsigned, size};
    case DW_ATE_unsigned_char:
      return Scalar{is_named(type, "char") ? Kind::kChar : Kind::kUnsigned, size};
    default:
      return std::nullopt;
  }
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

// Nothing: it is none that we record.
std::optional<Scalar> scalar_type(Dwarf_Die* type) {
  const int tag = dwarf_tag(type);
  std::optional<Scalar> found;
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
  } else if (is_passed_by_reference(type) && is_std_string(type)) {
    found = {Kind::kStdString, 8};
  }
  if (!found) return found;
  const bool is_size =
      found->kind == Kind::kFloat
          ? found->size == 4 || found->size == 8
          : found->size == 1 || found->size == 2 || found->size == 4 || found->size == 8;
  return is_size ? found : std::nullopt;
}

// ---- Registers --------------------------------------------------------------

// How many registers of each class a value takes; neither: it is in memory.
struct Registers {
  uint32_t integers = 0, vectors = 0;
};

// What stands in each eight bytes of an aggregate.
enum class Content { kNothing, kVector, kInteger };
using Contents = std::array<Content, 2>;

// Adds what is at `offset`. False: such an aggregate is passed in memory.
bool add_contents(Dwarf_Die* type, uint64_t offset, int nesting, Contents& contents) {
  if (nesting > kNestingMax || !peel(type)) return false;
  Dwarf_Word size = 0;
  if (dwarf_aggregate_size(type, &size) != 0 || offset + size > 16) return false;
  const int tag = dwarf_tag(type);
  if (tag == DW_TAG_array_type) {
    Dwarf_Die element;
    Dwarf_Word element_size = 0;
    if (!peeled_type_of(type, &element) ||
        dwarf_aggregate_size(&element, &element_size) != 0 || element_size == 0) {
      return false;
    }
    for (uint64_t at = 0; at < size; at += element_size) {
      if (!add_contents(&element, offset + at, nesting + 1, contents)) return false;
    }
    return true;
  }
  if (is_aggregate(tag)) {
    Dwarf_Die member;
    for (int more = dwarf_child(type, &member); more == 0;
         more = dwarf_siblingof(&member, &member)) {
      const int member_tag = dwarf_tag(&member);
      if (member_tag != DW_TAG_member && member_tag != DW_TAG_inheritance) continue;
      if (dwarf_hasattr(&member, DW_AT_external) != 0) continue;  // static
      Dwarf_Die inner;
      if (!type_of(&member, &inner)) return false;
      const uint64_t bits = unsigned_attribute(&member, DW_AT_data_bit_offset);
      const uint64_t at = unsigned_attribute(&member, DW_AT_data_member_location);
      if (!add_contents(&inner, offset + at + bits / 64 * 8, nesting + 1, contents)) {
        return false;
      }
    }
    return true;
  }
  const std::optional<Scalar> scalar = scalar_type(type);
  if (!scalar) return false;
  Content& content = contents[offset / 8];
  content = scalar->kind == Kind::kFloat && content != Content::kInteger
                ? Content::kVector
                : Content::kInteger;
  return true;
}

// Nothing: not known, so that nothing is known of what comes behind either.
std::optional<Registers> registers_of(Dwarf_Die* type) {
  if (const auto scalar = scalar_type(type)) {
    return scalar->kind == Kind::kFloat ? Registers{0, 1} : Registers{1, 0};
  }
  const int tag = dwarf_tag(type);
  if (is_passed_by_reference(type)) return Registers{1, 0};
  Dwarf_Word size = 0;
  if (dwarf_aggregate_size(type, &size) != 0) return std::nullopt;
  if (is_aggregate(tag)) {
    Contents contents{};
    if (!add_contents(type, 0, 0, contents)) return Registers{};
    Registers registers;
    for (const Content content : contents) {
      registers.integers += content == Content::kInteger ? 1 : 0;
      registers.vectors += content == Content::kVector ? 1 : 0;
    }
    return registers;
  }
  if (tag == DW_TAG_ptr_to_member_type) {
    return Registers{static_cast<uint32_t>(size / 8), 0};
  }
  const uint64_t encoding = unsigned_attribute(type, DW_AT_encoding);
  if (tag != DW_TAG_base_type) return std::nullopt;
  if (encoding == DW_ATE_complex_float && size <= 16) {
    return Registers{0, static_cast<uint32_t>(size / 8)};
  }
  const bool is_integer = encoding == DW_ATE_signed || encoding == DW_ATE_unsigned;
  if (is_integer && size == 16) return Registers{2, 0};
  return Registers{};  // long double
}

// Whether the function gets the address of its result, as a first argument.
bool returns_in_memory(Dwarf_Die* type) {
  if (is_passed_by_reference(type)) return true;
  if (!is_aggregate(dwarf_tag(type))) return false;
  Contents contents{};
  return !add_contents(type, 0, 0, contents);
}

// The number among those of its class of the register `dwarf_register`; 0: it is neither.
uint32_t argument_register(uint64_t dwarf_register, bool is_vector) {
  constexpr std::array<uint64_t, kIntegers> kOrder = {5, 4, 1, 2, 8, 9};
  constexpr uint64_t kXmm0 = 17;
  if (is_vector) {
    const bool is_one = dwarf_register >= kXmm0 && dwarf_register < kXmm0 + kVectors;
    return is_one ? static_cast<uint32_t>(dwarf_register - kXmm0) + 1 : 0;
  }
  for (uint32_t i = 0; i < kIntegers; ++i) {
    if (kOrder[i] == dwarf_register) return i + 1;
  }
  return 0;
}

// Where the parameter of a function that begins at `entry` really is then, which an
// optimizer may have chosen; `usual`: by the convention. 0: nowhere.
uint32_t place_at_entry(Dwarf_Die* parameter, uint64_t entry, uint32_t usual,
                        bool is_vector) {
  Dwarf_Attribute attribute;
  Dwarf_Op* operations = nullptr;
  size_t count = 0;
  if (dwarf_attr(parameter, DW_AT_location, &attribute) == nullptr) return 0;
  bool found = dwarf_getlocation_addr(&attribute, entry, &operations, &count, 1) == 1;
  if (!found) {
    // clang says it from behind the hook on.
    constexpr Dwarf_Addr kHookMax = 16;
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    found =
        dwarf_getlocations(&attribute, 0, &base, &start, &end, &operations, &count) > 0 &&
        start >= entry && start - entry <= kHookMax;
  }
  if (!found || count == 0) return 0;
  const uint8_t operation = operations[0].atom;
  if (operation >= DW_OP_reg0 && operation <= DW_OP_reg31 && count == 1) {
    return argument_register(operation - DW_OP_reg0, is_vector);
  }
  // Where it will be stored, in code that is not optimized.
  const bool is_indirect = count == 2 && operations[1].atom == DW_OP_deref;
  if (operation == DW_OP_fbreg) return count == 1 || is_indirect ? usual : 0;
  if (operation < DW_OP_breg0 || operation > DW_OP_breg31) return 0;
  // What the register points to, of what is passed by reference; or a part of it.
  const uint32_t place = argument_register(operation - DW_OP_breg0, is_vector);
  const bool is_whole = count == 1 || operations[count - 1].atom == DW_OP_stack_value;
  if (place != 0) return operations[0].number == 0 && is_whole ? place : 0;
  return count == 1 || is_indirect ? usual : 0;  // of the frame
}

// ---- Functions --------------------------------------------------------------

// `entry`: of one that is defined.
FunctionTypes types_of(Dwarf_Die* function, std::optional<uint64_t> entry) {
  FunctionTypes types;
  Registers used;
  Dwarf_Die type;
  if (peeled_type_of(function, &type)) {
    if (const auto scalar = scalar_type(&type)) {
      types.result = {"", scalar->kind, scalar->size, 0};
    }
    if (returns_in_memory(&type)) used.integers = 1;
  }
  Dwarf_Die child;
  for (int more = dwarf_child(function, &child); more == 0;
       more = dwarf_siblingof(&child, &child)) {
    if (dwarf_tag(&child) != DW_TAG_formal_parameter) continue;
    if (!peeled_type_of(&child, &type)) break;
    const std::optional<Registers> needed = registers_of(&type);
    if (!needed) break;
    if (used.integers + needed->integers > kIntegers ||
        used.vectors + needed->vectors > kVectors) {
      continue;  // on the stack
    }
    used.integers += needed->integers;
    used.vectors += needed->vectors;
    const std::optional<Scalar> scalar = scalar_type(&type);
    if (!scalar) continue;
    const bool is_vector = scalar->kind == Kind::kFloat;
    uint32_t place = is_vector ? used.vectors : used.integers;
    if (entry) place = place_at_entry(&child, *entry, place, is_vector);
    if (place == 0) continue;
    const char* name = dwarf_diename(&child);
    types.arguments.push_back(
        {name == nullptr ? "" : name, scalar->kind, scalar->size, place});
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
      if (type == DW_UT_compile) search_scope(&die, 0);
    }
  }
  ModuleTypes take() { return std::move(found_); }

 private:
  void search_scope(Dwarf_Die* scope, int nesting) {
    Dwarf_Die child;
    if (nesting > kNestingMax || dwarf_child(scope, &child) != 0) return;
    do {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_subprogram) consider(&child);
      if (tag == DW_TAG_namespace || is_aggregate(tag)) search_scope(&child, nesting + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
  }

  // Where a wanted function is entered: where one of its parts begins.
  std::optional<uint64_t> wanted_entry(Dwarf_Die* function) const {
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    ptrdiff_t next = 0;
    while ((next = dwarf_ranges(function, next, &base, &start, &end)) > 0) {
      if (defined_.contains(start)) return start;
    }
    return std::nullopt;
  }

  void consider(Dwarf_Die* function) {
    if (dwarf_hasattr(function, DW_AT_declaration) != 0) {
      if (declared_.empty()) return;
      const std::string name = linker_name(function);
      if (declared_.contains(name)) {
        found_.declared.try_emplace(name, types_of(function, std::nullopt));
      }
    } else if (const auto entry = wanted_entry(function)) {
      found_.defined.try_emplace(*entry, types_of(function, entry));
    }
  }

  const std::set<uint64_t>& defined_;
  const std::set<std::string>& declared_;
  ModuleTypes found_;
};

struct DwarfEnd {
  void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};
using DwarfHandle = std::unique_ptr<Dwarf, DwarfEnd>;

// False: it has none.
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
