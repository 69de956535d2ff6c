// SPEC.md as data: its test vectors, its tables.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace arctrace::testing {

struct Vector {
  std::string name;
  bool compact = false;
  std::vector<std::byte> content;     // behind the block's header
  std::vector<std::string> expected;  // the lines behind "->"
};

// All lines of SPEC.md.
std::vector<std::string> spec_lines();

// The fenced blocks ```vector NAME.
std::vector<Vector> spec_vectors();

// The cells of the rows of tables whose first cell looks like `pattern` (a regex).
std::vector<std::vector<std::string>> spec_rows(const std::string& pattern);

}  // namespace arctrace::testing
