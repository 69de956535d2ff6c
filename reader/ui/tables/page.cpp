#include "reader/ui/tables/page.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace arctrace::reader {
namespace {

// The mark of the chosen row, for terminals without attributes.
constexpr const char* kChosen = ">";
constexpr const char* kNotChosen = " ";

std::string_view fold_mark(RowFold fold, const TextStyle& style) {
  switch (fold) {
    case RowFold::kFolded:
      return style.utf8 ? "▸ " : "+ ";
    case RowFold::kUnfolded:
      return style.utf8 ? "▾ " : "- ";
    case RowFold::kNothingBelow:
      break;
  }
  return "  ";
}

}  // namespace

RowText::RowText(Table& table, const TextStyle& style) : table_(table), style_(style) {
  std::optional<size_t> kept;
  if (const std::optional<TableSort> sort = table.sort()) kept = sort->column;
  columns_ = fitting_columns(table.columns(),
                             style.width - std::min<size_t>(style.width, 3), kept);
}

std::string RowText::head() const {
  std::string text = kNotChosen;
  for (const size_t column : columns_) {
    std::string head;
    append_right(head, table_.columns()[column].head, table_.columns()[column].width);
    text += head;
  }
  if (!columns_.empty()) text += "  ";
  const std::optional<TableSort> sort = table_.sort();
  if (!sort.has_value()) return text + table_.head();
  const bool is_by_name = sort->column == table_.columns().size();
  const std::string by =
      absl::StrCat("by ", is_by_name ? "name" : table_.columns()[sort->column].head,
                   sort->is_reversed ? (is_by_name ? " descending" : " ascending") : "");
  const std::string head = absl::StrCat(table_.head(), ", ", by);
  // Without space for both, the order is shown, because it is not visible otherwise.
  const bool fits = columns_of(text) + columns_of(head) <= style_.width;
  return text + (fits ? head : by);
}

PageLine RowText::row(size_t row, bool is_chosen) const {
  PageLine line;
  line.is_chosen = is_chosen;
  line.text = is_chosen ? kChosen : kNotChosen;
  for (const size_t column : columns_) {
    const size_t width = table_.columns()[column].width;
    const std::string value = table_.cell(row, column);
    // Values are ASCII, so their bytes are columns; a value that is too wide has a blank
    // before it.
    line.text.append(std::max(width, value.size() + 1) - value.size(), ' ');
    line.text += value;
  }
  const RowName name = table_.name(row);
  line.emphasis = name.emphasis;
  if (!columns_.empty()) line.text += "  ";
  if (name.level != 0 || name.fold != RowFold::kNothingBelow) {
    line.text.append(indent_columns(name.level, columns_of(line.text), style_), ' ');
    line.text += fold_mark(name.fold, style_);
  }
  // Notes are our own words, and short.
  const size_t used = columns_of(line.text) + columns_of(name.notes);
  const size_t left = style_.width > used ? style_.width - used : 1;
  line.text += style_.width == 0 || table_.columns().empty()
                   ? name.text
                   : cut_name(name.text, left, style_);
  const size_t room = style_.width - std::min(style_.width, columns_of(line.text));
  if (columns_of(name.where) + columns_of(name.notes) <= room) line.text += name.where;
  line.text += name.notes;
  return line;
}

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

void Page::choose(size_t row) {
  if (const size_t count = rows(); count != 0)
    chosen_ = place_of(std::min(row, count - 1));
}

void Page::move(int64_t rows) {
  const size_t from = chosen();
  if (rows < 0) {
    choose(from - std::min(from, static_cast<size_t>(-rows)));
  } else {
    choose(from + static_cast<size_t>(rows));
  }
}

void Page::choose_function() {
  for (size_t row = 0; row < rows(); ++row) {
    const Place place = place_of(row);
    if (table_of(place).action(place.row).kind != RowAction::Kind::kFunction) continue;
    chosen_ = place;
    return;
  }
}

RowAction Page::action() const {
  return rows() == 0 ? RowAction() : chosen_table().action(chosen_.row);
}

void Page::sort_next(bool is_backward) {
  const std::optional<TableSort> sort = chosen_table().sort();
  if (!sort.has_value()) return;
  chosen_table().set_sort(next_sort(chosen_table().columns(), *sort, is_backward));
  chosen_.row = 0;
}

void Page::reverse_sort() {
  const std::optional<TableSort> sort = chosen_table().sort();
  if (!sort.has_value()) return;
  chosen_table().set_sort({sort->column, !sort->is_reversed});
  chosen_.row = 0;
}

bool Page::unfold() {
  return rows() != 0 && chosen_table().set_folded(chosen_.row, false);
}

bool Page::fold() {
  if (rows() == 0) return false;
  if (chosen_table().set_folded(chosen_.row, true)) return true;
  const std::optional<size_t> parent = chosen_table().parent(chosen_.row);
  if (!parent.has_value()) return false;
  chosen_.row = *parent;
  return true;
}

// The chosen row keeps its number, because only rows below it change.
void Page::fold_all(bool is_folded) {
  if (rows() != 0) chosen_table().set_all_folded(chosen_.row, is_folded);
}

bool Page::search(std::string_view text, bool is_backward, bool& has_wrapped) {
  has_wrapped = false;
  const Place from = chosen_;
  const size_t count = tables_.size();
  // The search goes through the rest of the chosen row's table, the other tables, and all
  // of the first table again.
  for (size_t step = 0; step <= count; ++step) {
    const size_t table =
        (is_backward ? from.table + 2 * count - step : from.table + step) % count;
    const bool is_rest = step == 0;
    has_wrapped |= !is_rest && (is_backward ? table >= from.table : table <= from.table);
    const std::optional<size_t> found = tables_[table]->find(
        text, is_rest ? std::optional(from.row) : std::nullopt, is_backward);
    if (!found.has_value()) continue;
    chosen_ = {table, *found};
    return true;
  }
  return false;
}

// Scrolls to the chosen row, and if that is the first row of all, to the lines above it.
void Page::scroll(size_t height) {
  if (rows() == 0 || height == 0) {
    top_ = 0;
    return;
  }
  chosen_.row = std::min(chosen_.row, std::max<size_t>(chosen_table().rows(), 1) - 1);
  const size_t line = lines_before(chosen_.table) + chosen_.row;
  // The head of a table stays in the first line while its rows scroll.
  const size_t above = has_head(chosen_table()) && height > 1 ? 1 : 0;
  const size_t lines = lines_before(tables_.size() - 1) + tables_.back()->rows();
  top_ = std::min(top_, lines - std::min(lines, height));
  if (line < top_ + above) top_ = line - std::min(line, above);
  if (line >= top_ + height) top_ = line + 1 - height;
  if (chosen() == 0) top_ = 0;
}

std::vector<PageLine> Page::lines(size_t height, const TextStyle& style) {
  for (const auto& table : tables_)
    table->fit(style.width - std::min<size_t>(style.width, 2));
  scroll(height);
  std::vector<PageLine> shown;
  size_t line = 0;
  for (size_t i = 0; i < tables_.size() && shown.size() < height; ++i) {
    Table& table = *tables_[i];
    if (i != 0 && line++ >= top_) shown.emplace_back();
    if (shown.size() == height) break;
    const RowText text(table, style);
    if (has_head(table)) {
      // If the head is above the first shown row, it replaces that row.
      const bool is_above = line < top_ && line + table.rows() >= top_;
      if (line++ >= top_ || is_above) {
        shown.push_back({text.head(), RowEmphasis::kPlain, true, false});
      }
    }
    const size_t hidden =
        std::min(top_ + shown.size() - std::min(line, top_ + shown.size()), table.rows());
    for (size_t j = hidden; j < table.rows() && shown.size() < height; ++j) {
      shown.push_back(text.row(j, i == chosen_.table && j == chosen_.row));
    }
    line += table.rows();
  }
  return shown;
}

}  // namespace arctrace::reader
