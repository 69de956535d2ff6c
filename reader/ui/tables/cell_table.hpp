// A table whose rows are made when it is made: those of locks, threads, single calls, and
// lines of text.
#pragma once

#include <string>
#include <vector>

#include "reader/ui/tables/table.hpp"

namespace arctrace::reader {

// A value, which is sorted by its number, and shown as its kind says.
struct Cell {
  enum class Kind : uint8_t { kNone, kCount, kTime, kShare, kMoment, kText };

  static Cell none() { return {}; }
  static Cell count(uint64_t count) { return {Kind::kCount, count, 0, {}}; }
  // 0 is a dash.
  static Cell count_or_none(uint64_t number) {
    return number == 0 ? none() : count(number);
  }
  static Cell time(uint64_t time_ns) { return {Kind::kTime, time_ns, 0, {}}; }
  static Cell time_or_none(uint64_t time_ns) {
    return time_ns == 0 ? none() : time(time_ns);
  }
  static Cell share(uint64_t part, uint64_t whole) {
    return {Kind::kShare, part, whole, {}};
  }
  // A time in the trace.
  static Cell moment(int64_t time_ns);
  // `text`: escaped.
  static Cell word(std::string text) { return {Kind::kText, 0, 0, std::move(text)}; }

  Kind kind = Kind::kNone;
  uint64_t number = 0, whole = 0;
  std::string text;
};

std::string cell_text(const Cell& cell);

struct CellRow {
  // One cell for each column; or none, if the other rows below the same row have none
  // either.
  std::vector<Cell> cells;
  std::string name, notes;  // escaped
  RowEmphasis emphasis = RowEmphasis::kPlain;
  RowAction action;
  bool is_folded = false;
  std::vector<CellRow> below;
};

class CellTable : public Table {
 public:
  // Without `sort`, rows stay in the order that they have.
  CellTable(std::string head, std::vector<TableColumn> columns, std::vector<CellRow> rows,
            std::optional<TableSort> sort);

  std::string head() const override { return head_; }
  std::span<const TableColumn> columns() const override { return columns_; }
  size_t rows() const override { return shown_.size(); }
  std::string cell(size_t row, size_t column) const override;
  RowName name(size_t row) override;
  RowAction action(size_t row) const override { return shown_[row].row->action; }
  std::optional<TableSort> sort() const override { return sort_; }
  void set_sort(TableSort sort) override;
  bool set_folded(size_t row, bool is_folded) override;
  bool set_all_folded(size_t row, bool is_folded) override {
    return set_folded(row, is_folded);
  }
  std::optional<size_t> parent(size_t row) const override;

 private:
  struct Shown {
    CellRow* row;
    size_t level;
  };

  void sort_rows(std::vector<CellRow>& rows) const;
  void list_rows();
  void list(std::vector<CellRow>& rows, size_t level);

  const std::string head_;
  const std::vector<TableColumn> columns_;
  std::vector<CellRow> rows_;
  std::optional<TableSort> sort_;
  std::vector<Shown> shown_;
};

struct TextLine {
  std::string text;  // escaped
  RowEmphasis emphasis = RowEmphasis::kPlain;
};

// Lines of text that are wrapped to the width of the screen, and have no head.
class TextTable : public Table {
 public:
  explicit TextTable(std::vector<TextLine> lines) : lines_(std::move(lines)) { fit(0); }

  std::string head() const override { return {}; }
  std::span<const TableColumn> columns() const override { return {}; }
  size_t rows() const override { return wrapped_.size(); }
  std::string cell(size_t /*row*/, size_t /*column*/) const override { return {}; }
  RowName name(size_t row) override;
  // 0: lines are as long as they are.
  void fit(size_t width) override;

 private:
  const std::vector<TextLine> lines_;
  std::vector<TextLine> wrapped_;
};

}  // namespace arctrace::reader
