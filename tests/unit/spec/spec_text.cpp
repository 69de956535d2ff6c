#include "tests/unit/spec/spec_text.hpp"

#include <arctrace/format.h>

#include <fstream>
#include <regex>
#include <sstream>

namespace arctrace::testing {
namespace {

constexpr const char* kFence = "```vector ";

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// The form of the blocks of a vector, whose name begins with it.
uint16_t form_of(const std::string& name) {
  const std::string form = name.substr(0, name.find('-'));
  if (form == "compact") return ARCTRACE_FORM_COMPACT;
  return form == "bare" ? ARCTRACE_FORM_BARE : ARCTRACE_FORM_FULL;
}

}  // namespace

std::vector<std::string> spec_lines() {
  std::ifstream file(ARCTRACE_SPEC);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<Vector> spec_vectors() {
  std::vector<Vector> vectors;
  bool inside = false;
  for (const std::string& line : spec_lines()) {
    if (line.rfind(kFence, 0) == 0) {
      inside = true;
      const std::string name = line.substr(std::string(kFence).size());
      vectors.push_back({name, form_of(name), {}, {}});
    } else if (line == "```") {
      inside = false;
    } else if (inside && line.rfind("-> ", 0) == 0) {
      vectors.back().expected.push_back(line.substr(3));
    } else if (inside) {
      std::istringstream bytes(line);
      for (std::string byte; bytes >> byte;) {
        vectors.back().content.push_back(std::byte(std::stoul(byte, nullptr, 16)));
      }
    }
  }
  return vectors;
}

std::vector<ExamplePart> spec_example() {
  std::vector<ExamplePart> parts;
  bool inside = false;
  for (const std::string& line : spec_lines()) {
    if (line == "```file") {
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside && line.front() == '@') {
      parts.push_back({line.substr(1), {}});
    } else if (inside) {
      std::istringstream words(line.substr(0, line.find(';')));
      for (std::string word; words >> word;) {
        size_t count = 1;
        if (word == "zero") {
          words >> count;
          word = "0";
        }
        parts.back().bytes.insert(parts.back().bytes.end(), count,
                                  std::byte(std::stoul(word, nullptr, 16)));
      }
    }
  }
  return parts;
}

std::vector<std::vector<std::string>> spec_rows(const std::string& pattern) {
  const std::regex first_cell(pattern);
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : spec_lines()) {
    if (line.rfind("| ", 0) != 0) continue;
    std::vector<std::string> cells;
    std::istringstream text(line.substr(1));
    for (std::string cell; std::getline(text, cell, '|');) cells.push_back(trimmed(cell));
    if (!cells.empty() && std::regex_match(cells[0], first_cell)) rows.push_back(cells);
  }
  return rows;
}

}  // namespace arctrace::testing
