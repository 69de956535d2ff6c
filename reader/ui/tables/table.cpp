#include "reader/ui/tables/table.hpp"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <numeric>

namespace arctrace::reader {
namespace {

// Names have three eighths of the columns of a screen, within these bounds.
constexpr size_t kTableNameMin = 15, kTableNameMax = 40;

}  // namespace

std::optional<size_t> Table::find(std::string_view text, std::optional<size_t> beside,
                                  bool is_backward) {
  const auto matches = [&](size_t row) { return has_text(name(row).text, text); };
  if (is_backward) {
    for (size_t row = std::min(beside.value_or(rows()), rows()); row-- > 0;) {
      if (matches(row)) return row;
    }
  } else {
    for (size_t row = beside.has_value() ? *beside + 1 : 0; row < rows(); ++row) {
      if (matches(row)) return row;
    }
  }
  return std::nullopt;
}

bool has_text(std::string_view name, std::string_view text) {
  const auto found =
      std::search(name.begin(), name.end(), text.begin(), text.end(), [](char a, char b) {
        return absl::ascii_tolower(static_cast<unsigned char>(a)) ==
               absl::ascii_tolower(static_cast<unsigned char>(b));
      });
  return found != name.end() || text.empty();
}

TableSort next_sort(std::span<const TableColumn> columns, TableSort sort,
                    bool is_backward) {
  const size_t count = columns.size() + 1;
  size_t column = sort.column;
  do {
    column = (column + (is_backward ? count - 1 : 1)) % count;
  } while (column < columns.size() && !columns[column].can_sort);
  return {column, false};
}

std::vector<size_t> fitting_columns(std::span<const TableColumn> columns, size_t width,
                                    std::optional<size_t> kept) {
  const size_t name = std::clamp(width * 3 / 8, kTableNameMin, kTableNameMax);
  size_t left = width - std::min(width, name);
  std::vector<size_t> order(columns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto rank = [&](size_t column) {
    return kept == column ? -1 : int{columns[column].rank};
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rank(a) < rank(b); });
  std::vector<size_t> shown;
  for (const size_t column : order) {
    if (columns[column].width > left) continue;
    left -= columns[column].width;
    shown.push_back(column);
  }
  std::sort(shown.begin(), shown.end());
  return shown;
}

}  // namespace arctrace::reader
