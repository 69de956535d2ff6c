// SPEC.md as data: its test vectors, its tables, and its worked example.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace arctrace::testing {

struct Vector {
  std::string name;
  uint16_t form;                      // of the block: enum arctrace_block_form
  std::vector<std::byte> content;     // after the block's header
  std::vector<std::string> expected;  // the lines after "->"
};

// A part of the worked example: the text of its `@` line, and its bytes.
struct ExamplePart {
  std::string label;  // "OFFSET header", "OFFSET chunk KIND SEQUENCE", "OFFSET block",
                      // "OFFSET record TYPE TICKS WRITER" or "OFFSET end"
  std::vector<std::byte> bytes;
};

// All lines of SPEC.md.
std::vector<std::string> spec_lines();

// The fenced blocks ```vector NAME.
std::vector<Vector> spec_vectors();

// The fenced block ```file, in order.
std::vector<ExamplePart> spec_example();

// The cells of the rows of tables whose first cell matches `pattern` (a regex).
std::vector<std::vector<std::string>> spec_rows(const std::string& pattern);

}  // namespace arctrace::testing
