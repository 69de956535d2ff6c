// The interface of a table that one moves through: rows of cells and a name, which can be
// sorted, folded and searched. It knows nothing of terminals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/replay/functions.hpp"

namespace arctrace::reader {

struct TableColumn {
  std::string head;
  size_t width = 0;      // with the blank before it
  uint8_t rank = 0;      // the column with the smallest one is shown before all others
  bool can_sort = true;  // false: another column has the same order
};

// What is special about a row, for a screen that can show it.
enum class RowEmphasis : uint8_t { kPlain, kBold, kDim, kHot, kTrouble };

// Whether there are rows below a row, and whether they are shown.
enum class RowFold : uint8_t { kNothingBelow, kFolded, kUnfolded };

// The last column of a row.
struct RowName {
  std::string text;   // escaped
  std::string notes;  // the same: what is unusual
  std::string where;  // the same: shown if there is space
  size_t level = 0;   // how far it is indented
  RowFold fold = RowFold::kNothingBelow;
  RowEmphasis emphasis = RowEmphasis::kPlain;
};

// The target to which a row leads.
struct RowAction {
  enum class Kind : uint8_t {
    kNone,
    kFunction,  // the page of a function
    kRead,      // what is missing is to be read from the trace
  };
  Kind kind = Kind::kNone;
  FunctionId function = kRootFunction;
};

// The column by which rows are sorted, the largest first; the number of columns stands
// for the name, with the first name first.
struct TableSort {
  size_t column = 0;
  bool is_reversed = false;
};

// Rows are counted from 0, as they are shown: rows below folded ones have no number.
class Table {
 public:
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  virtual ~Table() = default;

  // The head of the last column; empty: the table has no line of heads.
  virtual std::string head() const = 0;
  virtual std::span<const TableColumn> columns() const = 0;
  virtual size_t rows() const = 0;
  // REQUIRES for all that follow: row < rows(), column < columns().size().
  virtual std::string cell(size_t row, size_t column) const = 0;
  virtual RowName name(size_t row) = 0;
  virtual RowAction action(size_t /*row*/) const { return {}; }

  // Returns nothing if the rows have an order of their own.
  virtual std::optional<TableSort> sort() const { return std::nullopt; }
  virtual void set_sort(TableSort /*sort*/) {}

  // Shows or hides the rows below a row. Returns whether that changed anything; the row
  // keeps its number.
  virtual bool set_folded(size_t /*row*/, bool /*is_folded*/) { return false; }
  // Does the same for all rows below the row, at all levels.
  virtual bool set_all_folded(size_t /*row*/, bool /*is_folded*/) { return false; }
  // Returns the row of which a row is a child.
  virtual std::optional<size_t> parent(size_t /*row*/) const { return std::nullopt; }

  // Finds a row whose name contains `text`, in capitals or not: the first one after the
  // row `beside`, or the last one before it if `is_backward`; without `beside`, of all
  // rows. Unfolds the rows above it, so that rows may have other numbers than before.
  virtual std::optional<size_t> find(std::string_view text, std::optional<size_t> beside,
                                     bool is_backward);

  // Sets the columns that the screen has for the table; called before each picture.
  virtual void fit(size_t /*width*/) {}
};

// Whether `name` contains `text`, in capitals or not.
bool has_text(std::string_view name, std::string_view text);

// Returns the sort by the next column after that of `sort`, or by the one before it. The
// name comes after the last column.
TableSort next_sort(std::span<const TableColumn> columns, TableSort sort,
                    bool is_backward);

// Returns the columns for which there is space in `width` beside a name, in their order:
// those with the smallest ranks; before them `kept`, if it is one.
std::vector<size_t> fitting_columns(std::span<const TableColumn> columns, size_t width,
                                    std::optional<size_t> kept);

}  // namespace arctrace::reader
