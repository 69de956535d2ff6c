// A page: tables one below the other, of which one row is chosen.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/render/text_style.hpp"
#include "reader/ui/tables/table.hpp"

namespace arctrace::reader {

// The rows of a table as text for a screen of some width.

// A line of a picture.
struct PageLine {
  std::string text;  // escaped
  RowEmphasis emphasis = RowEmphasis::kPlain;
  bool is_head = false;    // of a table's columns
  bool is_chosen = false;  // the row
};

class RowText {
 public:
  // Both must outlive this object.
  RowText(Table& table, const TextStyle& style);

  // Returns the heads of the columns, and by which of them the table is sorted.
  std::string head() const;
  PageLine row(size_t row, bool is_chosen) const;

 private:
  Table& table_;
  const TextStyle& style_;
  std::vector<size_t> columns_;  // that are shown
};

class Page {
 public:
  // `title`: of the page, escaped. `about`: the function that the page is about, if any.
  Page(std::string title, std::vector<std::unique_ptr<Table>> tables,
       FunctionId about = kRootFunction)
      : title_(std::move(title)), about_(about), tables_(std::move(tables)) {}

  const std::string& title() const { return title_; }
  FunctionId about() const { return about_; }
  size_t rows() const;
  // The number of the chosen row, counted over all tables.
  size_t chosen() const { return row_of(chosen_); }

  // Chooses the row that is so many further down, or the nearest one that exists.
  void move(int64_t rows);
  // Chooses the row of this number, or the last one.
  void choose(size_t row);
  // Chooses the row that is chosen on another page of the same tables.
  void choose_as(const Page& other) { chosen_ = other.chosen_; }
  // Chooses the first row that leads to a function.
  void choose_function();
  // Returns the action of Enter on the chosen row.
  RowAction action() const;
  // Sorts the table of the chosen row by its next column, or the one before it.
  void sort_next(bool is_backward);
  void reverse_sort();
  // Unfolds the chosen row. Returns false if there is nothing to unfold.
  bool unfold();
  // Folds the chosen row, or if it is folded, goes to its parent row. Returns false if
  // there is none.
  bool fold();
  // Folds or unfolds all rows below the chosen row.
  void fold_all(bool is_folded);
  // Chooses the next row whose name contains `text`, or the one before; the search
  // continues at the first row after the last one, which `has_wrapped` tells. Returns
  // false if no row's name does.
  bool search(std::string_view text, bool is_backward, bool& has_wrapped);

  // Returns the picture of the page: `height` lines, of at most `style.width` columns if
  // names could be cut so far. Columns for which there is no space are dropped.
  std::vector<PageLine> lines(size_t height, const TextStyle& style);

 private:
  struct Place {
    size_t table, row;
  };

  static bool has_head(const Table& table) { return !table.head().empty(); }
  Table& table_of(const Place& place) const { return *tables_[place.table]; }
  // The place of a row, counted over all tables. REQUIRES: there is such a row.
  Place place_of(size_t row) const;
  size_t row_of(const Place& place) const;
  // The number of lines before the first row of a table: those of the tables above, and
  // its head.
  size_t lines_before(size_t table) const;
  Table& chosen_table() const { return table_of(chosen_); }
  void scroll(size_t height);

  const std::string title_;
  const FunctionId about_;
  const std::vector<std::unique_ptr<Table>> tables_;
  Place chosen_ = {0, 0};  // tables may be wrapped anew between two pictures
  size_t top_ = 0;         // the first line that is shown
};

}  // namespace arctrace::reader
