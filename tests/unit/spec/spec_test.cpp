// Compares SPEC.md with the code: the reader decodes its test vectors and its worked
// example, and its tables are those of format.h, of the record bodies' structs, and of
// the reader's rules.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "reader/trace/call_args.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/record_types.hpp"
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

// The reader's findings in a vector, in the words of SPEC.md.
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
  const bool is_full = vector.form == ARCTRACE_FORM_FULL;
  BlockBuilder block =
      is_full ? BlockBuilder::shared(2, 0) : BlockBuilder::exclusive(7, 0, 2, 1000);
  if (vector.form == ARCTRACE_FORM_BARE) {
    block.header.form = vector.form;
    file.header.features_required |= ARCTRACE_FEATURE_CLOCK_WORD;
    file.header.stamps = ARCTRACE_STAMPS_ORDER;
    file.header.resolution_ns = 1'000'000;
  }
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

// ---- The worked example ------------------------------------------------------------

std::string record_label(uint16_t type, uint64_t ticks, uint32_t writer) {
  return "record " + std::string(reader::type_name(type)) + " " + std::to_string(ticks) +
         " " + std::to_string(writer);
}

// The parts of a trace file by the layouts of sections 3, 2 and 8 alone, labelled as in
// SPEC.md: every byte belongs to one of them.
class FileWalk {
 public:
  explicit FileWalk(const std::vector<std::byte>& file) : file_(file) {
    add("header");
    at_ = ARCTRACE_HEADER_SIZE;
    while (at_ < file_.size()) chunk();
    add("end");
  }

  const std::vector<std::string>& labels() const { return labels_; }

 private:
  void add(const std::string& label) {
    labels_.push_back(std::to_string(at_) + " " + label);
  }

  template <class T>
  T load(size_t offset) const {
    REQUIRE(offset + sizeof(T) <= file_.size());
    T value{};
    std::memcpy(&value, file_.data() + offset, sizeof value);
    return value;
  }

  void chunk() {
    const auto head = load<arctrace_chunk_header>(at_);
    REQUIRE(head.magic == ARCTRACE_CHUNK_MAGIC);
    const bool is_block = head.kind == ARCTRACE_CHUNK_BLOCK;
    add((is_block ? "chunk BLOCK " : "chunk RECORDS ") + std::to_string(head.sequence));
    at_ += sizeof head;
    const size_t end = at_ + head.size;
    bool is_compact = false;
    uint32_t writer = 0;
    uint64_t base = 0;
    if (is_block) {
      const auto block = load<arctrace_block_header>(at_);
      add("block");
      at_ += sizeof block;
      is_compact = block.form == ARCTRACE_FORM_COMPACT;
      writer = block.writer;
      base = block.base_ticks;
    }
    while (at_ < end) {
      const auto word0 = load<uint32_t>(at_);
      const auto type = static_cast<uint16_t>(word0 >> ARCTRACE_TYPE_SHIFT);
      add(is_compact
              ? record_label(type, base + load<uint32_t>(at_ + 4), writer)
              : record_label(type, load<uint64_t>(at_ + 8), load<uint32_t>(at_ + 4)));
      REQUIRE((word0 & ARCTRACE_LENGTH_MASK) != 0);
      at_ += word0 & ARCTRACE_LENGTH_MASK;
    }
    CHECK(at_ == end);
  }

  const std::vector<std::byte>& file_;
  size_t at_ = 0;
  std::vector<std::string> labels_;
};

// "record TYPE TICKS WRITER BODY" of all records of the example, sorted.
std::vector<std::string> written_in(const std::vector<ExamplePart>& parts) {
  std::vector<std::string> records;
  bool is_compact = false;
  for (const ExamplePart& part : parts) {
    const std::string label = part.label.substr(part.label.find(' ') + 1);
    if (label.rfind("chunk RECORDS", 0) == 0) is_compact = false;
    if (label == "block") {
      arctrace_block_header header{};
      REQUIRE(part.bytes.size() == sizeof header);
      std::memcpy(&header, part.bytes.data(), sizeof header);
      is_compact = header.form == ARCTRACE_FORM_COMPACT;
    }
    if (label.rfind("record ", 0) != 0) continue;
    const size_t head = is_compact ? ARCTRACE_COMPACT_HEAD_SIZE : ARCTRACE_FULL_HEAD_SIZE;
    REQUIRE(part.bytes.size() >= head);
    records.push_back(label + hex({part.bytes.begin() + static_cast<ptrdiff_t>(head),
                                   part.bytes.end()}));
  }
  std::sort(records.begin(), records.end());
  return records;
}

// The same, out of the reader.
std::vector<std::string> read_from(reader::Trace& trace) {
  std::vector<std::string> records;
  for (const CollectedRecord& r : collect(trace)) {
    records.push_back(record_label(r.record.type, r.record.ticks, r.writer) +
                      hex(r.body));
  }
  std::sort(records.begin(), records.end());
  return records;
}

TEST_CASE("the worked example of SPEC.md is a whole file without findings") {
  const std::vector<ExamplePart> parts = spec_example();
  std::vector<std::byte> file;
  std::vector<std::string> labels;
  for (const ExamplePart& part : parts) {
    CHECK(part.label.rfind(std::to_string(file.size()) + " ", 0) == 0);
    labels.push_back(part.label);
    file.insert(file.end(), part.bytes.begin(), part.bytes.end());
  }
  REQUIRE(file.size() > ARCTRACE_HEADER_SIZE);
  CHECK(FileWalk(file).labels() == labels);
  arctrace_session_header header{};
  std::memcpy(&header, file.data(), sizeof header);
  CHECK(header.version_major == ARCTRACE_VERSION_MAJOR);
  CHECK(header.version_minor == ARCTRACE_VERSION_MINOR);

  reader::Trace trace = open_bytes(file, {.verifies_checksums = true});
  CHECK(read_from(trace) == written_in(parts));
  CHECK(rules_of(trace) == std::vector<std::string>{});
  CHECK(trace.summary().torn == 0);
}

// ---- Vectors and tables --------------------------------------------------------------

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
  CHECK(types == 66);
}

TEST_CASE("the kinds of values of SPEC.md are those that the reader knows") {
  uint32_t kind = 0;
  for (const auto& row : spec_rows("[0-9]+")) {
    // Kind, name, bytes ("any" or numbers), meaning.
    if (row.size() != 4 || (row[2] != "any" && std::isdigit(row[2].front()) == 0))
      continue;
    CAPTURE(row[1]);
    CHECK(std::stoul(row[0]) == ++kind);
    CHECK((row[2] != "any") == reader::is_number_kind(kind));
  }
  CHECK(kind == ARCTRACE_VALUE_NAMES);
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
