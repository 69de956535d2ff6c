// SPEC.md against the code: the reader decodes its test vectors, and its tables are those
// of format.h, of the record bodies' structs, and of the reader's rules.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "reader/trace/record_types.hpp"
#include "reader/trace/rules.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/spec/spec_text.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

std::string hex(const std::vector<std::byte>& bytes) {
  std::string text;
  char digits[4];
  for (const std::byte byte : bytes) {
    std::snprintf(digits, sizeof digits, " %02x", std::to_integer<unsigned>(byte));
    text += digits;
  }
  return text;
}

// What a reader finds in a vector, in the words of SPEC.md.
std::vector<std::string> found_in(const Vector& vector) {
  FileBuilder file;
  const ProcessFacts process;
  file.program(process, 1, "main", 0);
  BlockBuilder definitions = BlockBuilder::shared(1, 0, ARCTRACE_CLASS_DEFINITIONS);
  for (const uint32_t writer : {7u, 8u, 9u}) {
    definitions.add_full(ARCTRACE_TYPE_THREAD, 1, 0, thread_body(writer, 1, 100, "t"));
  }
  definitions.add_full(ARCTRACE_TYPE_STRING, 1, 0, string_body(1, 1, "one"));
  definitions.add_full(ARCTRACE_TYPE_STRING, 1, 0, string_body(1, 2, "two"));
  definitions.add_full(ARCTRACE_TYPE_STRING, 1, 0, string_body(1, 3, "three"));
  definitions.add_full(ARCTRACE_TYPE_EVENT_LAYOUT, 1, 0,
                       layout_body(1, 2, "event", {{ARCTRACE_FIELD_U64, "x"}}));
  file.block(definitions, 0, 1);
  BlockBuilder block = vector.compact ? BlockBuilder::exclusive(7, 0, 2, 1000)
                                      : BlockBuilder::shared(2, 0);
  block.content.raw(vector.content.data(), vector.content.size());
  file.block(block, 0, 2);
  file.finish(UINT64_MAX / 2);

  reader::Trace trace = open_bytes(file.file());
  std::vector<std::string> found;
  const std::vector<CollectedRecord> all = collect(trace);
  for (uint64_t i = 0; i < trace.summary().torn; ++i) found.emplace_back("torn");
  for (const CollectedRecord& r : all) {
    if (r.record.type >= ARCTRACE_TYPE_PROCESS) continue;
    found.push_back(std::string(reader::type_name(r.record.type)) + " " +
                    std::to_string(r.record.ticks) + " " + std::to_string(r.writer) +
                    hex(r.body));
  }
  for (const std::string& rule : rules_of(trace)) found.push_back("breach " + rule);
  return found;
}

TEST_CASE("the test vectors of SPEC.md decode as it says") {
  const std::vector<Vector> vectors = spec_vectors();
  REQUIRE(vectors.size() >= 6);
  for (const Vector& vector : vectors) {
    CAPTURE(vector.name);
    CHECK(vector.content.size() % 4 == 0);
    CHECK(found_in(vector) == vector.expected);
  }
}

TEST_CASE("the rules of SPEC.md are those that the reader names") {
  std::map<std::string, std::string> in_spec;
  for (const auto& row : spec_rows("[FBRDCLS][0-9]+")) in_spec[row.at(0)] = row.at(1);
  CHECK(in_spec.size() == reader::kRules.size());
  for (const reader::RuleText& rule : reader::kRules) {
    CHECK(in_spec[std::string(rule.id)] == rule.text);
  }
}

// The rows of the table of record types: number, name, body, meaning.
std::vector<std::vector<std::string>> type_rows() {
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : spec_rows("[0-9]+")) {
    if (row.at(1).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos) {
      rows.push_back(row);
    }
  }
  return rows;
}

struct FieldType {
  std::string_view name;  // in SPEC.md
  size_t size;
};

FieldType type_of(const reader::BodyField& field) {
  using Type = reader::BodyField::Type;
  static const std::map<Type, FieldType> kTypes = {
      {Type::kU8, {"u8", 1}},    {Type::kU16, {"u16", 2}}, {Type::kU32, {"u32", 4}},
      {Type::kU64, {"u64", 8}},  {Type::kS32, {"s32", 4}}, {Type::kS64, {"s64", 8}},
      {Type::kChar, {"char", 1}}};
  return kTypes.at(field.type);
}

// "u32 cause, flags, u64 count": fields, which cover `size` bytes, in the words of
// SPEC.md.
std::string spec_text_of(std::span<const reader::BodyField> fields, size_t size) {
  std::string text;
  std::string_view last_type;
  size_t end = 0;
  for (const reader::BodyField& field : fields) {
    const FieldType type = type_of(field);
    CHECK(field.offset == end);
    end += type.size * std::max<size_t>(field.count, 1);
    text += text.empty() ? "" : ", ";
    if (type.name != last_type) text += std::string(type.name) + " ";
    text += field.name;
    if (field.count != 0) text += "[" + std::to_string(field.count) + "]";
    last_type = type.name;
  }
  CHECK(end == size);
  return text;
}

std::string spec_text_of(const reader::BodyLayout& layout) {
  std::string text = spec_text_of(layout.fields(), layout.size());
  for (const reader::BodyText& part : layout.texts()) {
    const auto size =
        std::find_if(layout.fields().begin(), layout.fields().end(),
                     [&](const auto& field) { return field.offset == part.size_offset; });
    REQUIRE(size != layout.fields().end());
    text += ", bytes(" + std::string(size->name) + ") " + std::string(part.name);
  }
  if (layout.count().empty()) return text;
  const reader::BodyField& last = layout.element().back();
  const size_t element_size = last.offset + type_of(last).size;
  text += ", " + std::string(layout.count()) + " * (" +
          spec_text_of(layout.element(), element_size);
  if (last.name.ends_with("size")) text += ", bytes(" + std::string(last.name) + ")";
  return text + ")";
}

TEST_CASE("the record types and bodies of SPEC.md are those of the format's structs") {
  int types = 0;
  for (const auto& row : type_rows()) {
    const auto type = static_cast<uint16_t>(std::stoul(row[0]));
    CAPTURE(row[1]);
    CHECK(reader::type_name(type) == row[1]);
    const reader::BodyLayout* layout = reader::body_layout(type);
    REQUIRE(layout != nullptr);
    std::string expected = spec_text_of(*layout);
    if (expected.empty()) expected = type == ARCTRACE_TYPE_PAD ? "anything" : "none";
    if (type == ARCTRACE_TYPE_EVENT) expected += ", payload";
    CHECK(row.at(2) == expected);
    ++types;
  }
  CHECK(types == 50);
}

TEST_CASE("the constants of SPEC.md are those of format.h") {
  std::string text;
  for (const std::string& line : spec_lines()) text += line + "\n";
  char words[64];
  for (const uint64_t magic :
       {uint64_t{ARCTRACE_SESSION_MAGIC}, uint64_t{ARCTRACE_FILE_MAGIC},
        uint64_t{ARCTRACE_BLOCK_MAGIC}, uint64_t{ARCTRACE_CHUNK_MAGIC}}) {
    std::snprintf(words, sizeof words, "0x%llX", static_cast<unsigned long long>(magic));
    CHECK_MESSAGE(text.find(words) != std::string::npos, words);
  }
  CHECK(text.find("version " + std::to_string(ARCTRACE_VERSION_MAJOR) + "." +
                  std::to_string(ARCTRACE_VERSION_MINOR)) != std::string::npos);
}

}  // namespace
}  // namespace arctrace::testing
