// Finds frame rules in unwind tables. All reading is through UnwindBytes, within the
// bounds of the module: tables are checked like any other input.
#include "writer_shim/elf/loaded_objects.hpp"
#include "writer_shim/unwind/frame_rule.hpp"
#include "writer_shim/unwind/unwind_program.hpp"

namespace arctrace::shim {
namespace {

// An entry of .eh_frame, from its id on; empty if it has the 64-bit form.
UnwindBytes entry_at(uintptr_t at, uintptr_t low, uintptr_t high) {
  if (at < low) at = high;
  UnwindBytes bytes = UnwindBytes::mapped(at, high);
  const auto length = bytes.number<uint32_t>();
  if (length == UINT32_MAX) bytes.fail();
  return bytes.part(length);
}

// Reads the common entry up to its instructions, which stay in `bytes`.
UnwindCie take_cie(UnwindBytes& bytes) {
  UnwindCie cie;
  if (bytes.number<uint32_t>() != 0) bytes.fail();
  const auto version = bytes.number<uint8_t>();
  if (version != 1 && version != 3) bytes.fail();
  char letters[8] = {};
  size_t count = 0;
  for (;;) {
    const auto letter = bytes.number<char>();
    if (letter == '\0') break;
    if (count == sizeof letters) bytes.fail();
    if (!bytes.good()) return cie;
    letters[count++] = letter;
  }
  cie.code_alignment = bytes.uleb();
  cie.data_alignment = bytes.sleb();
  if (version == 1) {
    bytes.number<uint8_t>();
  } else {
    bytes.uleb();
  }
  if (count == 0) return cie;
  if (letters[0] != 'z') bytes.fail();
  cie.has_augmentation = true;
  UnwindBytes data = bytes.part(bytes.uleb());
  for (size_t i = 1; i < count; ++i) {
    switch (letters[i]) {
      case 'R':
        cie.encoding = data.number<uint8_t>();
        break;
      case 'P':
        data.form(data.number<uint8_t>() & kPointerFormMask);
        break;
      case 'L':
        data.number<uint8_t>();
        break;
      case 'S':  // a signal frame: the rule is that of the address itself
      case 'B':  // aarch64: signed return addresses
        break;
      default:
        data.fail();
    }
  }
  if (!data.good()) bytes.fail();
  return cie;
}

bool fits(int64_t offset) { return offset >= INT32_MIN && offset <= INT32_MAX; }

FrameRule rule_of_row(const UnwindRow& row, uintptr_t function, uintptr_t size) {
  FrameRule rule;
  rule.function = function;
  rule.function_end = function + size;
  if (row.is_unknown || !fits(row.offset) || !fits(row.frame_pointer.offset) ||
      !fits(row.return_address.offset)) {
    return rule;
  }
  if (row.base_register == machine::kFramePointerRegister) {
    rule.base = row.is_saved ? FrameRule::Base::kSaved : FrameRule::Base::kFramePointer;
  } else if (row.base_register == machine::kStackPointerRegister && !row.is_saved) {
    rule.base = FrameRule::Base::kStackPointer;
  }
  rule.offset = static_cast<int32_t>(row.offset);
  rule.frame_pointer = row.frame_pointer.where;
  rule.frame_pointer_offset = static_cast<int32_t>(row.frame_pointer.offset);
  if (row.return_address.where == SavedAt::kAtCfa) {
    rule.return_address_offset = static_cast<int32_t>(row.return_address.offset);
  }
  return rule;
}

FrameRule rule_of_fde(uintptr_t at, uintptr_t low, uintptr_t high, uintptr_t pc) {
  UnwindBytes fde = entry_at(at, low, high);
  const uintptr_t id_address = fde.address();
  const auto id = fde.number<uint32_t>();
  if (!fde.good() || id == 0 || id > id_address - low) return {};
  UnwindBytes cie_bytes = entry_at(id_address - id, low, high);
  const UnwindCie cie = take_cie(cie_bytes);
  if (!cie_bytes.good()) return {};
  const uintptr_t begin = fde.pointer(cie.encoding);
  const uintptr_t size = fde.form(cie.encoding & kPointerFormMask);
  if (cie.has_augmentation) fde.part(fde.uleb());
  if (!fde.good() || pc - begin >= size) return {};
  UnwindProgram program(cie, begin, pc);
  if (!program.run(cie_bytes)) return {};
  program.keep_initial();
  if (!program.run(fde)) return {};
  return rule_of_row(program.row(), begin, size);
}

}  // namespace

FrameRule find_frame_rule_in(const std::byte* eh_frame_hdr, uintptr_t low, uintptr_t high,
                             uintptr_t pc) {
  const auto header = reinterpret_cast<uintptr_t>(eh_frame_hdr);
  if (header < low || header >= high) return {};
  UnwindBytes bytes = UnwindBytes::mapped(header, high);
  const auto version = bytes.number<uint8_t>();
  const auto eh_frame_encoding = bytes.number<uint8_t>();
  const auto count_encoding = bytes.number<uint8_t>();
  const auto table_encoding = bytes.number<uint8_t>();
  // Linkers make a sorted table in this form only.
  if (version != 1 || table_encoding != (kPointerFromTable | kPointerSigned4)) return {};
  bytes.pointer(eh_frame_encoding);
  const uint64_t count = bytes.pointer(count_encoding);
  struct Entry {
    int32_t code;
    int32_t fde;
  };
  if (!bytes.good() || count == 0 || count > bytes.rest().size() / sizeof(Entry))
    return {};
  const uintptr_t table = bytes.address();
  const auto entry = [&](uint64_t index) {
    Entry value;
    __builtin_memcpy(&value, reinterpret_cast<const void*>(table + index * sizeof(Entry)),
                     sizeof value);
    return value;
  };
  const auto wanted = static_cast<int64_t>(pc - header);
  uint64_t first = 0;  // entries before it begin at or before pc
  uint64_t last = count;
  while (first < last) {
    const uint64_t middle = first + (last - first) / 2;
    if (entry(middle).code <= wanted) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  if (first == 0) return {};
  const auto fde = static_cast<uintptr_t>(int64_t{entry(first - 1).fde});
  return rule_of_fde(header + fde, low, high, pc);
}

FrameRule find_frame_rule(uintptr_t pc) {
  const LoadedObject object = find_loaded_object(pc);
  if (object.eh_frame_hdr == nullptr) return {};
  return find_frame_rule_in(object.eh_frame_hdr, object.range.low, object.range.high, pc);
}

}  // namespace arctrace::shim
