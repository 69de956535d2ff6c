// The record types: their names, the class of blocks that each belongs into, and the
// fields of its body.
#pragma once

#include <arctrace/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "reader/trace/record.hpp"

namespace arctrace::reader {

enum class RecordClass : uint8_t {
  kFiller,      // PAD, TIME: of the block, not of the trace
  kStream,      // STACK, LOST: keep a thread's stream whole
  kData,        // what a program recorded: ENTER ... MARK, and unknown ones below 32
  kDefinition,  // PROCESS ... UNTRACED, and unknown ones below 48
  kCollector,   // SYSTEM ..., and unknown ones below 64
  kKernel,      // 64 and above
};

inline RecordClass class_of(uint16_t type) {
  if (type >= 64) return RecordClass::kKernel;
  if (type >= ARCTRACE_TYPE_SYSTEM) return RecordClass::kCollector;
  if (type >= ARCTRACE_TYPE_PROCESS) return RecordClass::kDefinition;
  if (type >= ARCTRACE_TYPE_ENTER) return RecordClass::kData;
  if (type >= ARCTRACE_TYPE_STACK) return RecordClass::kStream;
  return RecordClass::kFiller;
}

// A field of the fixed part of a body, as the type's struct has it.
struct BodyField {
  enum class Type : uint8_t { kU8, kU16, kU32, kU64, kS32, kS64, kChar };

  std::string_view name;
  Type type = Type::kU32;
  uint16_t offset = 0;  // in the body
  uint16_t count = 0;   // elements, if it is an array; else 0
};

// Bytes that follow the fixed part, with zeros up to a multiple of 4.
struct BodyText {
  std::string_view name;
  uint16_t size_offset = 0;  // in the body: the u32 that says how many bytes there are
};

// The layout of a type's bodies: a fixed part, then texts, then elements.
class BodyLayout {
 public:
  static constexpr size_t kFieldsMax = 11;
  static constexpr size_t kTextsMax = 3;

  constexpr BodyLayout() = default;
  // The fixed part is a struct of `size` bytes, which `fields` cover without gaps.
  consteval BodyLayout(uint32_t size, std::initializer_list<BodyField> fields);
  consteval BodyLayout with(BodyText text) const;
  // Returns the layout with elements. The field `count` says how many there are.
  consteval BodyLayout with_elements(std::string_view count,
                                     std::initializer_list<BodyField> element) const;

  uint32_t size() const { return size_; }
  std::span<const BodyField> fields() const { return {fields_.data(), field_count_}; }
  std::span<const BodyText> texts() const { return {texts_.data(), text_count_}; }
  // Whether there is only the fixed part.
  bool is_fixed() const { return text_count_ == 0 && element_size_ == 0; }
  // The field with the number of elements; empty: there are none.
  std::string_view count() const { return count_; }
  // The fixed part of an element. If its last field is a size, so many bytes follow it.
  std::span<const BodyField> element() const { return {element_.data(), element_size_}; }

 private:
  uint32_t size_ = 0;
  uint8_t field_count_ = 0, text_count_ = 0, element_size_ = 0;
  std::array<BodyField, kFieldsMax> fields_;
  std::array<BodyText, kTextsMax> texts_;
  std::string_view count_;
  std::array<BodyField, 3> element_;
};

// All types that have names are below this number.
inline constexpr uint16_t kKnownTypes = 96;

// Returns "ENTER", ...; empty for an unknown type.
std::string_view type_name(uint16_t type);
// Finds a type by name, in any case, or number; nullopt if `name` is neither.
std::optional<uint16_t> type_of_name(std::string_view name);

// Returns nullptr for an unknown type.
const BodyLayout* body_layout(uint16_t type);

// Reads the part after the texts of a PROCESS body, as far as it exists.
inline arctrace_process_fork read_process_fork(BodyReader& reader) {
  arctrace_process_fork fork{};
  if (!reader.rest().empty()) fork.forker = reader.read<uint32_t>();
  if (!reader.rest().empty()) fork.forked_ticks = reader.read<uint64_t>();
  return fork;
}

// Reads the part after a SIGNAL body; 0 if there is none.
inline arctrace_signal_place read_signal_place(std::span<const std::byte> body) {
  if (body.size() < sizeof(arctrace_signal_body) + sizeof(arctrace_signal_place)) {
    return {};
  }
  return load_part_untrusted<arctrace_signal_place>(
      body.subspan(sizeof(arctrace_signal_body)));
}

// Reads the part after the session's TOTALS; 0 if there is none.
inline uint64_t read_filtered_out(BodyReader reader) {
  reader.read<arctrace_totals_body>();
  if (reader.rest().size() < sizeof(arctrace_totals_filtered)) return 0;
  return reader.read<arctrace_totals_filtered>().filtered_out;
}

// Reads the part after a writer's TOTALS; all 0 if there is none.
inline arctrace_totals_owner read_totals_owner(BodyReader& reader) {
  reader.read<arctrace_totals_body>();
  if (reader.rest().size() < sizeof(arctrace_totals_owner)) return {};
  return reader.read<arctrace_totals_owner>();
}

}  // namespace arctrace::reader
