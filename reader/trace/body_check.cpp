#include "reader/trace/body_check.hpp"

#include <arctrace/format.h>

#include <bit>

#include "reader/trace/bytes.hpp"
#include "reader/trace/call_args.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {
namespace {

constexpr const char* kSizesTooLarge = "its sizes are larger than the record";

const char* lost_problem(std::span<const std::byte> body) {
  const auto lost = load_part_untrusted<arctrace_lost_body>(body);
  return lost.cause >= ARCTRACE_LOST_CAUSES ? "its cause is not one" : nullptr;
}

// `rest`: of the body, after the fixed part.
const char* texts_problem(const BodyLayout& layout, std::span<const std::byte> body,
                          BodyReader& rest) {
  for (const BodyText& text : layout.texts()) {
    rest.bytes(load_part_untrusted<uint32_t>(body.subspan(text.size_offset)));
  }
  return rest.ok() ? nullptr : kSizesTooLarge;
}

// `body` begins with the record's arctrace_stack_body.
const char* stack_problem(std::span<const std::byte> body, const BodyReader& rest) {
  const auto stack = load_part_untrusted<arctrace_stack_body>(body);
  if (stack.count > stack.depth) return "it tells more frames than there are";
  return uint64_t{stack.count} * sizeof(uint64_t) > rest.rest().size()
             ? "its count is larger than the record"
             : nullptr;
}

const char* patches_problem(std::span<const std::byte> body, const BodyReader& rest) {
  const auto patches = load_part_untrusted<arctrace_patches_body>(body);
  if (patches.listed > patches.count) return "it lists more functions than there are";
  return uint64_t{patches.listed} * sizeof(uint64_t) > rest.rest().size()
             ? "its count is larger than the record"
             : nullptr;
}

const char* hook_costs_problem(std::span<const std::byte> body, const BodyReader& rest) {
  const uint64_t count = load_part_untrusted<arctrace_hook_costs_body>(body).count;
  return count * sizeof(arctrace_hook_cost) > rest.rest().size()
             ? "its count is larger than the record"
             : nullptr;
}

const char* arg_problem(const arctrace_arg_head& head) {
  const bool is_short_float = head.kind == ARCTRACE_VALUE_FLOAT && head.size < 4;
  return is_number_kind(head.kind) &&
                 (head.size > 8 || !std::has_single_bit(unsigned{head.size}) ||
                  is_short_float)
             ? "a number's size is not one"
             : nullptr;
}

const char* args_problem(std::span<const std::byte> body, BodyReader& rest) {
  const uint32_t count = load_part_untrusted<arctrace_args_body>(body).count;
  for (uint32_t i = 0; i < count; ++i) {
    const auto head = rest.read<arctrace_arg_head>();
    rest.bytes(head.size);
    if (!rest.ok()) return kSizesTooLarge;
    if (const char* problem = arg_problem(head)) return problem;
  }
  return nullptr;
}

const char* layout_problem(std::span<const std::byte> body, BodyReader& rest) {
  const uint32_t count =
      load_part_untrusted<arctrace_event_layout_body>(body).field_count;
  for (uint32_t i = 0; i < count; ++i) {
    const auto field = rest.read<arctrace_layout_field>();
    rest.bytes(field.name_size);
    if (!rest.ok()) return kSizesTooLarge;
    if (field.type < ARCTRACE_FIELD_U8 || field.type > ARCTRACE_FIELD_STRING) {
      return "a field's type is not known";
    }
  }
  return nullptr;
}

}  // namespace

const char* body_problem_untrusted(uint16_t type, std::span<const std::byte> body) {
  const BodyLayout* layout = body_layout(type);
  if (layout == nullptr) return nullptr;
  if (body.size() < layout->size()) return "it is too short for its type";
  if (layout->is_fixed()) {
    return type == ARCTRACE_TYPE_LOST ? lost_problem(body) : nullptr;
  }
  BodyReader rest(body.subspan(layout->size()));
  if (const char* problem = texts_problem(*layout, body, rest)) return problem;
  switch (type) {
    case ARCTRACE_TYPE_STACK:
      return stack_problem(body, rest);
    case ARCTRACE_TYPE_COROUTINE:
      return stack_problem(body.subspan(offsetof(arctrace_coroutine_body, depth)), rest);
    case ARCTRACE_TYPE_INHERITED:
      return stack_problem(body.subspan(offsetof(arctrace_inherited_body, depth)), rest);
    case ARCTRACE_TYPE_PATCHES:
      return patches_problem(body, rest);
    case ARCTRACE_TYPE_HOOK_COSTS:
      return hook_costs_problem(body, rest);
    case ARCTRACE_TYPE_ARGUMENTS:
    case ARCTRACE_TYPE_RESULT:
      return args_problem(body, rest);
    case ARCTRACE_TYPE_EVENT_LAYOUT:
      return layout_problem(body, rest);
    default:
      return nullptr;
  }
}

}  // namespace arctrace::reader
