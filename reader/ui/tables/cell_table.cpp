#include "reader/ui/tables/cell_table.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "reader/render/text_style.hpp"

namespace arctrace::reader {
namespace {

constexpr uint64_t kSignBit = uint64_t{1} << 63;

// Takes as much of `text` as fits `width` columns, up to a blank if there is one in the
// second half; the rest stays in `text`.
std::string take_piece(std::string& text, size_t width) {
  size_t columns = 0, end = 0, blank = 0;
  while (end < text.size()) {
    size_t next = end + 1;
    while (next < text.size() && columns_of(text.substr(next, 1)) == 0) ++next;
    if (columns == width) break;
    if (text[end] == ' ' && columns > width / 2) blank = end;
    ++columns;
    end = next;
  }
  if (end < text.size() && blank != 0) end = blank;
  std::string piece = text.substr(0, end);
  text.erase(0, end);
  text.erase(0, text.find_first_not_of(' '));
  return piece;
}

}  // namespace

Cell Cell::moment(int64_t time_ns) {
  // Earlier times have smaller numbers.
  return {Kind::kMoment, static_cast<uint64_t>(time_ns) ^ kSignBit, 0, {}};
}

std::string cell_text(const Cell& cell) {
  switch (cell.kind) {
    case Cell::Kind::kCount:
      return grouped_text(cell.number);
    case Cell::Kind::kTime:
      return duration_text(cell.number);
    case Cell::Kind::kShare:
      return percent_text(cell.number, cell.whole);
    case Cell::Kind::kMoment:
      return seconds_text(static_cast<int64_t>(cell.number ^ kSignBit));
    case Cell::Kind::kText:
      return cell.text;
    case Cell::Kind::kNone:
      break;
  }
  return "-";
}

CellTable::CellTable(std::string head, std::vector<TableColumn> columns,
                     std::vector<CellRow> rows, std::optional<TableSort> sort)
    : head_(std::move(head)),
      columns_(std::move(columns)),
      rows_(std::move(rows)),
      sort_(sort) {
  if (sort_.has_value()) sort_rows(rows_);
  list_rows();
}

std::string CellTable::cell(size_t row, size_t column) const {
  const std::vector<Cell>& cells = shown_[row].row->cells;
  return cells.empty() ? std::string() : cell_text(cells[column]);
}

RowName CellTable::name(size_t row) {
  const CellRow& facts = *shown_[row].row;
  RowFold fold = RowFold::kNothingBelow;
  if (!facts.below.empty()) {
    fold = facts.is_folded ? RowFold::kFolded : RowFold::kUnfolded;
  }
  RowName name;
  name.text = facts.name;
  name.notes = facts.notes;
  name.level = shown_[row].level;
  name.fold = fold;
  name.emphasis = facts.emphasis;
  return name;
}

void CellTable::set_sort(TableSort sort) {
  if (!sort_.has_value()) return;
  sort_ = sort;
  sort_rows(rows_);
  list_rows();
}

// Rows without cells stay where they are, because they explain the row above them.
void CellTable::sort_rows(std::vector<CellRow>& rows) const {
  if (rows.empty() || rows.front().cells.empty()) return;
  const size_t column = sort_->column;
  const auto comes_before = [&](const CellRow& a, const CellRow& b) {
    if (column == columns_.size()) return a.name < b.name;
    const Cell& x = a.cells[column];
    const Cell& y = b.cells[column];
    if (x.kind == Cell::Kind::kText && y.kind == Cell::Kind::kText)
      return x.text < y.text;
    const bool is_none = x.kind == Cell::Kind::kNone;
    if (is_none != (y.kind == Cell::Kind::kNone)) return !is_none;
    return x.number > y.number;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const CellRow& a, const CellRow& b) {
    return sort_->is_reversed ? comes_before(b, a) : comes_before(a, b);
  });
  for (CellRow& row : rows) sort_rows(row.below);
}

void CellTable::list_rows() {
  shown_.clear();
  list(rows_, 0);
}

void CellTable::list(std::vector<CellRow>& rows, size_t level) {
  for (CellRow& row : rows) {
    shown_.push_back({&row, level});
    if (!row.is_folded) list(row.below, level + 1);
  }
}

bool CellTable::set_folded(size_t row, bool is_folded) {
  CellRow& facts = *shown_[row].row;
  if (facts.below.empty() || facts.is_folded == is_folded) return false;
  facts.is_folded = is_folded;
  list_rows();
  return true;
}

std::optional<size_t> CellTable::parent(size_t row) const {
  const size_t level = shown_[row].level;
  while (row > 0 && shown_[row].level >= level) --row;
  if (level == 0) return std::nullopt;
  return row;
}

RowName TextTable::name(size_t row) {
  const TextLine& line = wrapped_[row];
  RowName name;
  name.text = line.text;
  name.emphasis = line.emphasis;
  return name;
}

void TextTable::fit(size_t width) {
  wrapped_.clear();
  for (const TextLine& line : lines_) {
    std::string left = line.text;
    do {
      wrapped_.push_back({width == 0 ? std::exchange(left, {}) : take_piece(left, width),
                          line.emphasis});
    } while (!left.empty());
  }
}

}  // namespace arctrace::reader
