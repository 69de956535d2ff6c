// A page: tables one below the other, of which one row is chosen.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/render/text_style.hpp"
#include "reader/ui/tables/row_text.hpp"
#include "reader/ui/tables/table.hpp"

namespace arctrace::reader {

class Page {
 public:
  // `title`: what it is of, escaped. `about`: the function that it is of, if it is of
  // one.
  Page(std::string title, std::vector<std::unique_ptr<Table>> tables,
       FunctionId about = kRootFunction)
      : title_(std::move(title)), about_(about), tables_(std::move(tables)) {}

  const std::string& title() const { return title_; }
  FunctionId about() const { return about_; }
  size_t rows() const;
  // The number of the chosen row, counted over all tables.
  size_t chosen() const { return row_of(chosen_); }

  // Chooses the row that is so many further down, or the nearest that there is.
  void move(int64_t rows);
  // The row of this number, or the last one.
  void choose(size_t row);
  // Chooses the row that is chosen on another page of the same tables.
  void choose_as(const Page& other) { chosen_ = other.chosen_; }
  // Chooses the first row that leads to a function.
  void choose_function();
  // What Enter does on the chosen row.
  RowAction action() const;
  // Sorts the table of the chosen row by its next column, or the one before it.
  void sort_next(bool is_backward);
  void reverse_sort();
  // Unfolds the chosen row. False: there is nothing to unfold.
  bool unfold();
  // Folds the chosen row, or if it is folded, goes to the row that it is below of. False:
  // there is none.
  bool fold();
  // Folds or unfolds all that is below the chosen row.
  void fold_all(bool is_folded);
  // Chooses the next row whose name contains `text`, or the one before; after the last
  // one the first one. `has_wrapped`: that was so. False: no row's does.
  bool search(std::string_view text, bool is_backward, bool& has_wrapped);

  // The picture of the page: `height` lines, of at most `style.width` columns if names
  // could be cut so far. Columns for which there is no room are left out.
  std::vector<PageLine> lines(size_t height, const TextStyle& style);

 private:
  struct Place {
    size_t table, row;
  };

  static bool has_head(const Table& table) { return !table.head().empty(); }
  Table& table_of(const Place& place) const { return *tables_[place.table]; }
  // Of a row, counted over all tables. REQUIRES: there is such a row.
  Place place_of(size_t row) const;
  size_t row_of(const Place& place) const;
  // Lines that come before the first row of a table: of the tables above, and its head.
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
