#include "reader/ui/tables/browser.hpp"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "reader/trace/text_escape.hpp"
#include "reader/ui/tables/cell_table.hpp"
#include "reader/ui/tables/trace_tables.hpp"

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
    "On CPU, Blocked, No CPU: with what the function called, if the kernel was recorded "
    "(record --kernel); a thread without a CPU could have run, but another one did. "
    "Off CPU: either of both. Screens with more columns show more of the table; the "
    "column "
    "that "
    "it is sorted by is always there.",
};

// The help: the keys of `arctrace tui`.
TableList help_tables() {
  std::vector<TextLine> lines;
  for (const char* line : kHelpLines) lines.push_back({line, RowEmphasis::kPlain});
  TableList tables;
  tables.push_back(std::make_unique<TextTable>(std::move(lines)));
  return tables;
}

constexpr size_t kTypedMax = 100;
// The lines of a picture that are not of its page: views, status, keys.
constexpr size_t kFrameLines = 3;

}  // namespace

const char* browser_view_name(BrowserView view) {
  constexpr std::array<const char*, kBrowserViews> kNames = {
      "Summary", "Functions", "Tree", "Threads", "Locks", "Critical path"};
  return kNames[static_cast<size_t>(view)];
}

Browser::Browser(TraceTables& tables, std::string title, ReadSlowest read_slowest,
                 bool reads_at_once)
    : tables_(tables),
      title_(std::move(title)),
      read_slowest_(std::move(read_slowest)),
      reads_at_once_(reads_at_once) {}

std::unique_ptr<Page> Browser::make_view(BrowserView view) {
  const auto tables = [&] {
    switch (view) {
      case BrowserView::kFunctions:
        return tables_.functions();
      case BrowserView::kTree:
        return tables_.tree(grouping_);
      case BrowserView::kThreads:
        return tables_.threads();
      case BrowserView::kLocks:
        return tables_.locks();
      case BrowserView::kCriticalPath:
        return tables_.critical_path();
      case BrowserView::kSummary:
        break;
    }
    return tables_.summary();
  };
  return std::make_unique<Page>(browser_view_name(view), tables());
}

Page& Browser::page() {
  if (!above_.empty()) return *above_.back();
  std::unique_ptr<Page>& page = views_[static_cast<size_t>(view_)];
  if (page == nullptr) page = make_view(view_);
  return *page;
}

void Browser::show(BrowserView view) {
  above_.clear();
  view_ = view;
}

void Browser::push(std::unique_ptr<Page> page) { above_.push_back(std::move(page)); }

bool Browser::pop() {
  if (above_.empty()) return false;
  above_.pop_back();
  return true;
}

void Browser::run(BrowserCommand command) {
  note_.clear();
  const auto page_rows = static_cast<int64_t>(page_rows_);
  const auto go_on = [&](size_t views) {
    show(static_cast<BrowserView>((static_cast<size_t>(view_) + views) % kBrowserViews));
  };
  switch (command) {
    case BrowserCommand::kUp:
      return page().move(-1);
    case BrowserCommand::kDown:
      return page().move(1);
    case BrowserCommand::kPageUp:
      return page().move(-page_rows);
    case BrowserCommand::kPageDown:
      return page().move(page_rows);
    case BrowserCommand::kFirst:
      return page().choose(0);
    case BrowserCommand::kLast:
      return page().choose(SIZE_MAX);
    case BrowserCommand::kEnter:
      return enter();
    case BrowserCommand::kEscape:
      if (std::exchange(is_typing_, false)) return;
      [[fallthrough]];
    case BrowserCommand::kBack:
      pop();
      return;
    case BrowserCommand::kRight:
      page().unfold();
      return;
    case BrowserCommand::kLeft:
      if (!page().fold()) pop();
      return;
    case BrowserCommand::kToggle:
      return toggle();
    case BrowserCommand::kUnfoldAll:
      return page().fold_all(false);
    case BrowserCommand::kFoldAll:
      return page().fold_all(true);
    case BrowserCommand::kNextView:
      return go_on(1);
    case BrowserCommand::kPreviousView:
      return go_on(kBrowserViews - 1);
    case BrowserCommand::kSortNext:
      return page().sort_next(false);
    case BrowserCommand::kSortPrevious:
      return page().sort_next(true);
    case BrowserCommand::kReverse:
      return page().reverse_sort();
    case BrowserCommand::kGroup:
      return change_grouping();
    case BrowserCommand::kSearch:
      is_typing_ = true;
      typed_.clear();
      return;
    case BrowserCommand::kNextMatch:
      return search(false);
    case BrowserCommand::kPreviousMatch:
      return search(true);
    case BrowserCommand::kHelp:
      return push(std::make_unique<Page>("Help", help_tables()));
  }
}

void Browser::enter() {
  const RowAction action = page().action();
  switch (action.kind) {
    case RowAction::Kind::kFunction:
      return open_function(action.function);
    case RowAction::Kind::kRead:
      return read_slowest();
    case RowAction::Kind::kNone:
      return toggle();
  }
}

void Browser::toggle() {
  if (!page().unfold()) page().fold();
}

void Browser::open_function(FunctionId function) {
  if (page().about() == function) return;
  push(std::make_unique<Page>(tables_.labels().text(function),
                              tables_.function(function, nullptr), function));
  page().choose_function();
  if (reads_at_once_) read_slowest();
}

// Replaces a page without the slowest calls by one with them.
void Browser::read_slowest() {
  const FunctionId function = page().about();
  const absl::StatusOr<SlowestOfFunction> slowest = read_slowest_(function);
  if (!slowest.ok()) {
    note_ = absl::IsCancelled(slowest.status())
                ? "the reading was stopped"
                : escaped(std::string(slowest.status().message()));
    return;
  }
  auto made = std::make_unique<Page>(tables_.labels().text(function),
                                     tables_.function(function, &*slowest), function);
  made->choose_as(page());
  above_.back() = std::move(made);
}

void Browser::change_grouping() {
  if (view_ != BrowserView::kTree || !above_.empty()) {
    note_ = "p is of the tree";
    return;
  }
  grouping_ = grouping_ == Grouping::kThread    ? Grouping::kProcess
              : grouping_ == Grouping::kProcess ? Grouping::kAll
                                                : Grouping::kThread;
  views_[static_cast<size_t>(view_)] = nullptr;
}

void Browser::type(char character) {
  if (typed_.size() < kTypedMax) typed_ += character;
}

void Browser::erase() {
  if (typed_.empty()) {
    is_typing_ = false;
  } else {
    typed_.pop_back();
  }
}

// An empty text stands for the one before, as in less.
void Browser::accept() {
  is_typing_ = false;
  if (!typed_.empty()) wanted_ = typed_;
  note_.clear();
  search(false);
}

void Browser::search(bool is_backward) {
  if (wanted_.empty()) {
    note_ = "/ says what to look for";
    return;
  }
  bool has_wrapped = false;
  if (!page().search(wanted_, is_backward, has_wrapped)) {
    note_ = absl::StrCat("nothing has ", wanted_);
  } else if (has_wrapped) {
    note_ = is_backward ? "went on from the last row" : "went on from the first row";
  }
}

// Returns "1 Summary [2 Functions] 3 Tree > main > malloc". Without space for all, only
// the chosen view has its name, and of the pages above it the last ones are shown.
std::string Browser::views_text(size_t width) const {
  const auto views = [&](bool has_names) {
    std::string text;
    for (size_t i = 0; i < kBrowserViews; ++i) {
      const auto view = static_cast<BrowserView>(i);
      const bool is_chosen = view == view_;
      absl::StrAppend(&text, is_chosen ? "[" : " ", i + 1);
      if (has_names || is_chosen) absl::StrAppend(&text, " ", browser_view_name(view));
      text += is_chosen ? "]" : " ";
    }
    return text;
  };
  const auto path_from = [&](size_t first) {
    std::string path = first == 0 ? "" : " > ..";
    for (size_t i = first; i < above_.size(); ++i) {
      absl::StrAppend(&path, " > ", above_[i]->title());
    }
    return path;
  };
  std::string text = views(true);
  if (columns_of(text) + columns_of(path_from(0)) > width) text = views(false);
  size_t first = 0;
  while (first + 1 < above_.size() &&
         columns_of(text) + columns_of(path_from(first)) > width) {
    ++first;
  }
  return text + path_from(first);
}

// Returns the keys for which there is space, the first ones first.
std::string Browser::keys_text(size_t width) const {
  if (is_typing_) return absl::StrCat("/", typed_, "_");
  if (!note_.empty()) return note_;
  std::string text;
  const auto add = [&](std::string_view key) {
    const std::string_view gap = text.empty() ? "" : "  ";
    if (text.size() + gap.size() + key.size() <= width) text.append(gap).append(key);
  };
  const bool is_tree = above_.empty() && view_ == BrowserView::kTree;
  for (const char* key : {"q leave", "? keys", "Enter into"}) add(key);
  if (!above_.empty()) add("Backspace back");
  if (is_tree) add("Space fold");
  if (is_tree) add("p process");
  for (const char* key : {"/ search", "s sort", "r reverse", "1-6 views"}) add(key);
  return text;
}

// The file comes after what is missing in it, so that a narrow screen shows the latter.
std::string Browser::status_text(bool& has_trouble) const {
  const std::string status = tables_.status(has_trouble);
  return has_trouble ? absl::StrCat("! ", status, "; ", title_)
                     : absl::StrCat(title_, ": ", status);
}

std::vector<PageLine> Browser::picture(size_t height, const TextStyle& style) {
  if (height < kHeightMin || style.width < kWidthMin) {
    return {{absl::StrCat(kWidthMin, "x", kHeightMin, " at least, q leaves")}};
  }
  page_rows_ = height - kFrameLines - 1;
  bool has_trouble = false;
  std::string status = status_text(has_trouble);
  std::vector<PageLine> picture;
  picture.push_back({views_text(style.width), RowEmphasis::kBold});
  picture.push_back(
      {std::move(status), has_trouble ? RowEmphasis::kTrouble : RowEmphasis::kDim});
  for (PageLine& line : page().lines(height - kFrameLines, style)) {
    picture.push_back(std::move(line));
  }
  picture.resize(height - 1);
  picture.push_back({keys_text(style.width), is_typing_ || !note_.empty()
                                                 ? RowEmphasis::kBold
                                                 : RowEmphasis::kDim});
  return picture;
}

}  // namespace arctrace::reader
