#include "reader/ui/tables/page.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/ui/tables/row_text.hpp"

namespace arctrace::reader {

size_t Page::rows() const {
  size_t rows = 0;
  for (const auto& table : tables_) rows += table->rows();
  return rows;
}

Page::Place Page::place_of(size_t row) const {
  size_t table = 0;
  while (row >= tables_[table]->rows()) row -= tables_[table++]->rows();
  return {table, row};
}

size_t Page::row_of(const Place& place) const {
  size_t row = place.row;
  for (size_t i = 0; i < place.table; ++i) row += tables_[i]->rows();
  return row;
}

// Between tables there is an empty line.
size_t Page::lines_before(size_t table) const {
  size_t lines = 0;
  for (size_t i = 0; i <= table; ++i) {
    if (i != 0) lines += tables_[i - 1]->rows() + 1;
    if (has_head(*tables_[i])) ++lines;
  }
  return lines;
}

size_t Page::line_of_chosen() const {
  const Place place = place_of(chosen_);
  return lines_before(place.table) + place.row;
}

void Page::move(int64_t rows) {
  const size_t count = this->rows();
  if (count == 0) return;
  if (rows < 0) {
    chosen_ -= std::min(chosen_, static_cast<size_t>(-rows));
  } else {
    chosen_ += std::min(count - 1 - chosen_, static_cast<size_t>(rows));
  }
}

RowAction Page::action() const {
  if (rows() == 0) return {};
  const Place place = place_of(chosen_);
  return table_of(place).action(place.row);
}

void Page::sort_next(bool is_backward) {
  if (rows() == 0) return;
  const Place place = place_of(chosen_);
  Table& table = table_of(place);
  const std::optional<TableSort> sort = table.sort();
  if (!sort.has_value()) return;
  table.set_sort(next_sort(table.columns(), *sort, is_backward));
  chosen_ = row_of({place.table, 0});
}

void Page::reverse_sort() {
  if (rows() == 0) return;
  const Place place = place_of(chosen_);
  Table& table = table_of(place);
  const std::optional<TableSort> sort = table.sort();
  if (!sort.has_value()) return;
  table.set_sort({sort->column, !sort->is_reversed});
  chosen_ = row_of({place.table, 0});
}

bool Page::unfold() {
  if (rows() == 0) return false;
  const Place place = place_of(chosen_);
  return table_of(place).set_folded(place.row, false);
}

bool Page::fold() {
  if (rows() == 0) return false;
  const Place place = place_of(chosen_);
  Table& table = table_of(place);
  if (table.set_folded(place.row, true)) return true;
  const std::optional<size_t> parent = table.parent(place.row);
  if (!parent.has_value()) return false;
  chosen_ = row_of({place.table, *parent});
  return true;
}

void Page::fold_all(bool is_folded) {
  if (rows() == 0) return;
  const Place place = place_of(chosen_);
  Table& table = table_of(place);
  // The row keeps its number: what changes is below it.
  table.set_all_folded(place.row, is_folded);
}

bool Page::search(std::string_view text, bool is_backward, bool& has_wrapped) {
  has_wrapped = false;
  if (rows() == 0) return false;
  const Place from = place_of(chosen_);
  const size_t count = tables_.size();
  // The rest of the chosen row's table, the other tables, and all of its table again.
  for (size_t step = 0; step <= count; ++step) {
    const size_t table =
        (is_backward ? from.table + 2 * count - step : from.table + step) % count;
    const bool is_rest = step == 0;
    has_wrapped |= !is_rest && (is_backward ? table >= from.table : table <= from.table);
    const std::optional<size_t> found = tables_[table]->find(
        text, is_rest ? std::optional(from.row) : std::nullopt, is_backward);
    if (!found.has_value()) continue;
    chosen_ = row_of({table, *found});
    return true;
  }
  return false;
}

// Shows the chosen row, and above the first row of all what stands above that.
void Page::scroll(size_t height) {
  if (rows() == 0 || height == 0) {
    top_ = 0;
    return;
  }
  chosen_ = std::min(chosen_, rows() - 1);
  const Place place = place_of(chosen_);
  const size_t line = line_of_chosen();
  // The head of a table stays in the first line while its rows pass.
  const size_t above = has_head(table_of(place)) && height > 1 ? 1 : 0;
  const size_t lines = lines_before(tables_.size() - 1) + tables_.back()->rows();
  top_ = std::min(top_, lines - std::min(lines, height));
  if (line < top_ + above) top_ = line - std::min(line, above);
  if (line >= top_ + height) top_ = line + 1 - height;
  if (chosen_ == 0) top_ = 0;
}

std::vector<PageLine> Page::lines(size_t height, const TextStyle& style) {
  for (const auto& table : tables_) table->fit(style.width - std::min<size_t>(style.width, 2));
  scroll(height);
  std::vector<PageLine> shown;
  size_t line = 0, row = 0;
  for (size_t i = 0; i < tables_.size() && shown.size() < height; ++i) {
    Table& table = *tables_[i];
    if (i != 0 && line++ >= top_) shown.emplace_back();
    if (shown.size() == height) break;
    const RowText text(table, style);
    if (has_head(table)) {
      // It replaces the first row that is shown, if it stands above.
      const bool is_above = line < top_ && line + table.rows() >= top_;
      if (line++ >= top_ || is_above) {
        shown.push_back({text.head(), RowLook::kPlain, true, false});
      }
    }
    const size_t hidden = std::min(top_ + shown.size() - std::min(line, top_ + shown.size()),
                                   table.rows());
    for (size_t j = hidden; j < table.rows() && shown.size() < height; ++j) {
      shown.push_back(text.row(j, row + j == chosen_));
    }
    line += table.rows();
    row += table.rows();
  }
  return shown;
}

}  // namespace arctrace::reader
