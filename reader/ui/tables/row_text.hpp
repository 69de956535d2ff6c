// The rows of a table as text for a screen of some width.
#pragma once

#include <string>
#include <vector>

#include "reader/render/text_style.hpp"
#include "reader/ui/tables/table.hpp"

namespace arctrace::reader {

// A line of a picture.
struct PageLine {
  std::string text;  // escaped
  RowLook look = RowLook::kPlain;
  bool is_head = false;    // of a table's columns
  bool is_chosen = false;  // the row
};

class RowText {
 public:
  // Both must outlive this object.
  RowText(Table& table, const TextStyle& style);

  // The heads of the columns, and by which of them the table is sorted.
  std::string head() const;
  PageLine row(size_t row, bool is_chosen) const;

 private:
  Table& table_;
  const TextStyle& style_;
  std::vector<size_t> columns_;  // that are shown
};

}  // namespace arctrace::reader
