#include "reader/ui/tables/row_text.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace arctrace::reader {
namespace {

// The mark of the chosen row, which a terminal without attributes has nothing else for.
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
  // Without room for both, the order is what one does not see otherwise.
  const bool has_room = columns_of(text) + columns_of(head) <= style_.width;
  return text + (has_room ? head : by);
}

PageLine RowText::row(size_t row, bool is_chosen) const {
  PageLine line;
  line.is_chosen = is_chosen;
  line.text = is_chosen ? kChosen : kNotChosen;
  for (const size_t column : columns_) {
    const size_t width = table_.columns()[column].width;
    const std::string value = table_.cell(row, column);
    // Of other characters there are none; a value that is too wide has a blank before it.
    line.text.append(std::max(width, value.size() + 1) - value.size(), ' ');
    line.text += value;
  }
  const RowName name = table_.name(row);
  line.look = name.look;
  if (!columns_.empty()) line.text += "  ";
  if (name.level != 0 || name.fold != RowFold::kNothingBelow) {
    line.text.append(indent_columns(name.level, columns_of(line.text), style_), ' ');
    line.text += fold_mark(name.fold, style_);
  }
  // Notes are words of ours, and few.
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

}  // namespace arctrace::reader
