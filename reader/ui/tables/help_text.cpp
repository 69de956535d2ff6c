#include "reader/ui/tables/help_text.hpp"

#include <string>

#include "reader/ui/tables/cell_table.hpp"

namespace arctrace::reader {
namespace {

constexpr const char* kHelpLines[] = {
    "1 to 6, Tab, Shift-Tab: the views",
    "Up, Down, k, j, Page up, Page down, Home, End, g, G: move",
    "Enter: into the function: callers, callees, slowest calls",
    "Backspace, Esc: back to the page before",
    "Right, Left, Space: unfold, fold; e, c: all below the row",
    "p: the tree by thread, by process, of all threads",
    "s, >, <: sort by the next column, by the one before; r: the other way round",
    "/, n, N: search in names, the next one, the one before",
    "t: only a range of time, START~STOP, such as 1.5ms~2s; nothing: all of the time",
    "q: leave",
    "",
    "Self is the time in the function itself, Total includes all that it called; both "
    "are "
    "of all threads. Avg to Max are of the single calls whose begin and end were seen. "
    "On CPU, Off CPU: with what the function called, if the kernel was recorded "
    "(record --kernel). Screens with more columns show more of the table; the column "
    "that "
    "it is sorted by is always there.",
};

}  // namespace

TableList help_tables() {
  std::vector<TextLine> lines;
  for (const char* line : kHelpLines) lines.push_back({line, RowLook::kPlain});
  TableList tables;
  tables.push_back(std::make_unique<TextTable>(std::move(lines)));
  return tables;
}

}  // namespace arctrace::reader
