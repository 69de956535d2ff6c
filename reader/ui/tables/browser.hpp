// The browser of a trace, without a terminal: commands in, a picture out. It has the
// views, the pages of functions above them, and the searches.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/ui/tables/page.hpp"
#include "reader/ui/tables/trace_tables.hpp"

namespace arctrace::reader {

// The views, in the order of their digits.
enum class BrowserView : uint8_t {
  kSummary,
  kFunctions,
  kTree,
  kThreads,
  kLocks,
  kCriticalPath,
};
inline constexpr size_t kBrowserViews = 6;
const char* browser_view_name(BrowserView view);

enum class BrowserCommand : uint8_t {
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kFirst,
  kLast,
  kEnter,   // into the function of the row, or the row's own target
  kBack,    // to the page before
  kRight,   // unfolds
  kLeft,    // folds; where there is nothing to fold, as kBack
  kToggle,  // folds or unfolds
  kUnfoldAll,
  kFoldAll,
  kNextView,
  kPreviousView,
  kSortNext,
  kSortPrevious,
  kReverse,
  kGroup,   // the tree by thread, by process, of all
  kSearch,  // begins a text that is searched for
  kNextMatch,
  kPreviousMatch,
  kHelp,
  kEscape,  // drops the typed text; without one, as kBack
};

class Browser {
 public:
  // Reads the slowest calls of a function; takes as long as reading the trace does.
  // kCancelled: the user does not want to wait.
  using ReadSlowest = std::function<absl::StatusOr<SlowestOfFunction>(FunctionId)>;

  // `tables` must outlive this object. `reads_at_once`: the trace is so short that its
  // slowest calls are read without being asked for.
  Browser(TraceTables& tables, std::string title, ReadSlowest read_slowest,
          bool reads_at_once);

  void run(BrowserCommand command);
  void show(BrowserView view);

  // Whether a search text is typed: then characters go here, other keys to run().
  bool is_typing() const { return is_typing_; }
  void type(char character);
  void erase();
  void accept();

  // Returns the picture: `height` lines. `style.width` is that of the screen.
  std::vector<PageLine> picture(size_t height, const TextStyle& style);

  BrowserView view() const { return view_; }
  Page& page();

  static constexpr size_t kWidthMin = 40, kHeightMin = 10;

 private:
  std::unique_ptr<Page> make_view(BrowserView view);
  void push(std::unique_ptr<Page> page);
  bool pop();
  void enter();
  void toggle();
  void open_function(FunctionId function);
  void read_slowest();
  void search(bool is_backward);
  void change_grouping();
  std::string views_text(size_t width) const;
  std::string keys_text(size_t width) const;
  std::string status_text(bool& has_trouble) const;

  TraceTables& tables_;
  const std::string title_;
  const ReadSlowest read_slowest_;
  const bool reads_at_once_;
  BrowserView view_ = BrowserView::kSummary;
  Grouping grouping_ = Grouping::kThread;
  std::array<std::unique_ptr<Page>, kBrowserViews> views_;  // null: not shown yet
  std::vector<std::unique_ptr<Page>> above_;                // the last one is shown
  bool is_typing_ = false;
  std::string typed_, wanted_;
  std::string note_;
  size_t page_rows_ = 1;  // of the last picture
};

}  // namespace arctrace::reader
