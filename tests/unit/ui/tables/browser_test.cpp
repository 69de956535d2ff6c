// The pictures and commands of `arctrace tui`, tested without a terminal.
#include "reader/ui/tables/browser.hpp"

#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"
#include "tests/unit/ui/tables/browsed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

using Command = BrowserCommand;
using Names = std::vector<std::string>;

// Two processes; b calls itself.
RecordScript two_programs() {
  RecordScript script;
  const ThreadIndex first = script.program(7, "first");
  const ThreadIndex second = script.program(8, "second");
  script.enter(first, 0, "main");
  script.enter(first, 10, "a");
  script.enter(first, 20, "b");
  script.enter(first, 30, "b");
  script.exit(first, 60);
  script.exit(first, 90);
  script.exit(first, 100);
  script.exit(first, 110);
  script.enter(second, 200, "main");
  script.enter(second, 210, "c");
  script.exit(second, 1210);
  script.exit(second, 1220);
  return script;
}

}  // namespace

TEST_CASE("browser: functions, sorted by any column") {
  const RecordScript script = treetest();
  Browsed browsed(script);
  browsed.browser->show(BrowserView::kFunctions);
  const std::vector<std::string> lines = browsed.lines();
  CHECK(lines[0] ==
        " 1 Summary [2 Functions] 3 Tree  4 Threads  5 Locks  6 Critical path");
  CHECK(lines[2] ==
        "       Calls   %Self  %Total       Self      Total  Function, by Total");
  CHECK(lines[3] == ">          1       -     100          -     100 us  main");
  CHECK(lines[5] == "           1    40.0    40.0    40.0 us    40.0 us  mainBB");
  CHECK(browsed.names() ==
        Names{"main", "mainB", "mainBB", "mainA", "mainBA", "mainAB", "mainAA"});
  browsed.run({Command::kReverse});
  CHECK(browsed.names() ==
        Names{"mainAA", "mainAB", "mainA", "mainBA", "mainBB", "mainB", "main"});
  CHECK(browsed.lines()[2].ends_with("Function, by Total ascending"));
  // Shares have the same order as their times.
  browsed.run({Command::kSortPrevious});
  CHECK(browsed.lines()[2].ends_with("Function, by Self"));
  CHECK(browsed.names()[0] == "mainBB");
  browsed.run({Command::kSortPrevious});
  CHECK(browsed.lines()[2].ends_with("Function, by Calls"));
  browsed.run({Command::kSortPrevious});
  CHECK(browsed.lines()[2].ends_with("Function, by name"));
  CHECK(browsed.names() ==
        Names{"main", "mainA", "mainAA", "mainAB", "mainB", "mainBA", "mainBB"});
  browsed.run({Command::kSortNext});
  CHECK(browsed.lines()[2].ends_with("Function, by Calls"));
}

TEST_CASE("browser: columns without room are left out, but that of the order stays") {
  const RecordScript script = treetest();
  Browsed browsed(script);
  browsed.browser->show(BrowserView::kFunctions);
  const std::vector<std::string> narrow = browsed.lines(40, 10);
  CHECK(narrow[2] == "        Self      Total  by Total");
  browsed.run({Command::kSortNext, Command::kSortNext});
  CHECK(browsed.lines(40, 10)[2] == "       Total        Min  by Min");
  const std::vector<std::string> lines = browsed.lines(40, 10);
  for (size_t i = 3; i + 1 < lines.size(); ++i) CHECK(lines[i].size() <= 40);
  const std::string wide = browsed.text(200, 50);
  for (const char* head : {"Calls", "%Self", "Total", "Avg", "Min", "p99", "Max"}) {
    CHECK(wide.find(head) != std::string::npos);
  }
  CHECK(browsed.lines(39, 24) == Names{"40x10 at least, q leaves"});
  CHECK(browsed.lines(80, 9) == Names{"40x10 at least, q leaves"});
  CHECK(browsed.lines(40, 10).size() == 10);
}

TEST_CASE("browser: the chosen row stays within the picture, below the heads") {
  const RecordScript script = treetest();
  Browsed browsed(script);
  browsed.browser->show(BrowserView::kFunctions);
  CHECK(browsed.chosen(80, 10) == "main");
  for (const char* name : {"mainB", "mainBB", "mainA", "mainBA", "mainAB", "mainAA"}) {
    browsed.run({Command::kDown});
    CHECK(browsed.chosen(80, 10) == name);
    CHECK(browsed.lines(80, 10)[2].find("Function, by Total") != std::string::npos);
  }
  browsed.run({Command::kDown});
  CHECK(browsed.chosen(80, 10) == "mainAA");
  CHECK(browsed.names(80, 10).front() == "mainB");
  for (const char* name : {"mainAB", "mainBA", "mainA", "mainBB", "mainB", "main"}) {
    browsed.run({Command::kUp});
    CHECK(browsed.chosen(80, 10) == name);
  }
  browsed.run({Command::kLast, Command::kFirst});
  CHECK(browsed.chosen(80, 10) == "main");
  browsed.run({Command::kLast});
  CHECK(browsed.chosen(80, 10) == "mainAA");
  browsed.run({Command::kPageUp});
  CHECK(browsed.chosen(80, 10) == "main");
  browsed.run({Command::kPageDown, Command::kUp});
  CHECK(browsed.chosen(80, 10) == "mainAB");
}

TEST_CASE("browser: the way up through more rows than the screen has") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "p");
  for (int64_t i = 0; i < 20; ++i) {
    script.enter(t, i * 100, "f" + std::to_string(i));
    script.exit(t, i * 100 + 50 - i);
  }
  Browsed browsed(script);
  browsed.browser->show(BrowserView::kFunctions);
  browsed.run({Command::kLast});
  CHECK(browsed.chosen(80, 10) == "f19");
  for (int i = 18; i >= 0; --i) {
    browsed.run({Command::kUp});
    CHECK(browsed.chosen(80, 10) == "f" + std::to_string(i));
    CHECK(browsed.lines(80, 10)[2].find("Function, by Total") != std::string::npos);
  }
}

TEST_CASE("browser: search, on and back and around") {
  const RecordScript script = treetest();
  Browsed browsed(script);
  browsed.browser->show(BrowserView::kFunctions);
  browsed.search("MAINa");
  CHECK(browsed.chosen() == "mainA");
  browsed.run({Command::kNextMatch});
  CHECK(browsed.chosen() == "mainAB");
  browsed.run({Command::kNextMatch, Command::kNextMatch});
  CHECK(browsed.chosen() == "mainA");
  CHECK(browsed.lines().back() == "went on from the first row");
  browsed.run({Command::kPreviousMatch});
  CHECK(browsed.chosen() == "mainAA");
  CHECK(browsed.lines().back() == "went on from the last row");
  browsed.run({Command::kPreviousMatch});
  CHECK(browsed.chosen() == "mainAB");
  CHECK(browsed.lines().back().starts_with("q leave"));
  browsed.search("nowhere");
  CHECK(browsed.chosen() == "mainAB");
  CHECK(browsed.lines().back() == "nothing has nowhere");
  // Typed text is shown, and Escape drops it; Backspace deletes a character.
  browsed.run({Command::kSearch});
  browsed.browser->type('x');
  CHECK(browsed.lines().back() == "/x_");
  browsed.browser->erase();
  CHECK(browsed.lines().back() == "/_");
  browsed.run({Command::kEscape});
  CHECK(!browsed.browser->is_typing());
  CHECK(browsed.browser->view() == BrowserView::kFunctions);
}

TEST_CASE("browser: the tree is unfolded, folded, sorted, and found in what is folded") {
  const RecordScript script = treetest();
  Browsed browsed(script);
  browsed.browser->show(BrowserView::kTree);
  CHECK(browsed.names() == Names{"7/7", "main"});
  CHECK(browsed.lines()[4].ends_with("    + main"));
  browsed.run({Command::kDown, Command::kRight});
  CHECK(browsed.names() == Names{"7/7", "main", "mainB", "mainA"});
  CHECK(browsed.lines()[4].ends_with("    - main"));
  browsed.run({Command::kReverse});
  CHECK(browsed.names() == Names{"7/7", "main", "mainA", "mainB"});
  browsed.run({Command::kReverse});
  browsed.search("mainBA");
  CHECK(browsed.names() == Names{"7/7", "main", "mainB", "mainBB", "mainBA", "mainA"});
  CHECK(browsed.chosen() == "mainBA");
  browsed.search("mainAB");
  CHECK(browsed.chosen() == "mainAB");
  browsed.run({Command::kPreviousMatch});
  CHECK(browsed.lines().back() == "went on from the last row");
  // Left goes up, then folds.
  browsed.run({Command::kLeft});
  CHECK(browsed.chosen() == "mainA");
  browsed.run({Command::kLeft, Command::kLeft, Command::kLeft});
  CHECK(browsed.names() == Names{"7/7", "main"});
  CHECK(browsed.chosen() == "main");
  browsed.run({Command::kFirst, Command::kFoldAll});
  CHECK(browsed.names() == Names{"7/7"});
  browsed.run({Command::kUnfoldAll});
  CHECK(browsed.names() ==
        Names{"7/7", "main", "mainB", "mainBB", "mainBA", "mainA", "mainAB", "mainAA"});
  // A search backwards finds folded rows before the row, not those below it.
  browsed.run({Command::kFoldAll, Command::kRight});
  browsed.search("mainAB");
  browsed.run({Command::kSearch});
  for (const char c : {'B', 'B'}) browsed.browser->type(c);
  browsed.browser->accept();
  browsed.run({Command::kPreviousMatch});
  CHECK(browsed.chosen() == "mainBB");
}

TEST_CASE("browser: trees by thread, by process, of all") {
  const RecordScript script = two_programs();
  Browsed browsed(script);
  browsed.browser->show(BrowserView::kTree);
  CHECK(browsed.names() == Names{"7/7", "main", "8/8"});
  browsed.run({Command::kGroup});
  CHECK(browsed.text().find("second 8, 1 thread") != std::string::npos);
  browsed.run({Command::kGroup});
  CHECK(browsed.text().find("2 threads") != std::string::npos);
  browsed.run({Command::kUnfoldAll});
  CHECK(browsed.names() == Names{"threads", "main", "c", "a", "b", "b"});
  browsed.run({Command::kGroup});
  CHECK(browsed.names() == Names{"7/7", "main", "8/8"});
  browsed.browser->show(BrowserView::kFunctions);
  browsed.run({Command::kGroup});
  CHECK(browsed.lines().back() == "p is of the tree");
}

TEST_CASE("browser: into a function, on to its callee, and back") {
  const RecordScript script = two_programs();
  Browsed browsed(script);
  browsed.browser->show(BrowserView::kFunctions);
  browsed.search("a");
  browsed.run({Command::kFirst});
  browsed.search("b");
  REQUIRE(browsed.chosen() == "2]");  // [recursion to level 2]
  browsed.run({Command::kEnter});
  const std::string text = browsed.text(160, 50);
  CHECK(text.find(" b\n [recursion to level 2]\n") != std::string::npos);
  CHECK(text.find("Calls 2, %Self 3.1, %Total 3.1, Self 70 ns, Total 70 ns") !=
        std::string::npos);
  CHECK(text.find("Callers, by Total") != std::string::npos);
  CHECK(text.find("Enter reads the trace again for them.") != std::string::npos);
  CHECK(browsed.reads == 0);
  // Its first caller is chosen. Its own page is not opened again, because b calls itself.
  CHECK(browsed.chosen() == "a");
  browsed.run({Command::kDown, Command::kEnter});
  CHECK(browsed.chosen() == "b");
  CHECK(browsed.lines()[0].ends_with(" > b"));
  browsed.run({Command::kUp});
  browsed.run({Command::kEnter});
  CHECK(browsed.lines()[0].ends_with(" > b > a"));
  browsed.run({Command::kBack});
  CHECK(browsed.lines()[0].ends_with(" > b"));
  CHECK(browsed.chosen() == "a");
  browsed.run({Command::kLeft});
  CHECK(browsed.lines()[0].ends_with("Critical path"));
  CHECK(browsed.chosen() == "2]");
  browsed.run({Command::kBack});
  CHECK(browsed.browser->view() == BrowserView::kFunctions);
}

TEST_CASE("browser: the first and the last line on narrow screens") {
  const RecordScript script = two_programs();
  Browsed browsed(script);
  browsed.browser->show(BrowserView::kFunctions);
  CHECK(browsed.lines(40)[0] == " 1 [2 Functions] 3  4  5  6");
  CHECK(browsed.lines(40).back() == "q leave  ? keys  Enter into  / search");
  CHECK(browsed.lines(160).back().ends_with("  1-6 views"));
  // Enter goes to the first caller, and from main, which has none, to the first callee.
  browsed.search("b");
  for (int i = 0; i < 5; ++i) browsed.run({Command::kEnter});
  CHECK(browsed.lines(120)[0].ends_with(" > b > a > main > c > main"));
  CHECK(browsed.lines(40)[0].starts_with(" 1 [2 Functions] 3  4  5  6  > .. > "));
  CHECK(browsed.lines(40)[0].size() <= 40);
}

TEST_CASE("browser: the slowest calls are read when they are asked for") {
  const RecordScript script = two_programs();
  Browsed browsed(script);
  browsed.slowest.count = 5;
  SlowCall call;
  call.frame = {};
  call.frame.function = 2;
  call.frame.duration_ns = 300;
  call.frame.start_ns = 1'000'000'210;
  call.args = "(\"x\")";
  call.path = {2, 3};
  browsed.slowest.calls = {call};
  browsed.browser->show(BrowserView::kFunctions);
  browsed.run({Command::kEnter, Command::kLast});
  CHECK(browsed.chosen(40) == "them.");  // the facts above are wrapped
  browsed.run({Command::kEnter});
  CHECK(browsed.reads == 1);
  CHECK(browsed.chosen(40) == "main(\"x\")");
  const std::string text = browsed.text(160, 50);
  CHECK(text.find("Slowest calls, 1 of 5, by Duration") != std::string::npos);
  CHECK(text.find("   300 ns") != std::string::npos);
  CHECK(text.find("1.000000210") != std::string::npos);
  CHECK(text.find("(\"x\")") != std::string::npos);
  CHECK(text.find("reads the trace again") == std::string::npos);
}

TEST_CASE("browser: views by digit and Tab, each keeps its place") {
  const RecordScript script = treetest();
  Browsed browsed(script);
  CHECK(browsed.text().find("Hottest functions, by Self") != std::string::npos);
  CHECK(browsed.text().find("Spent on, by Time") != std::string::npos);
  browsed.run({Command::kNextView, Command::kDown});
  CHECK(browsed.chosen() == "mainB");
  browsed.run({Command::kNextView});
  CHECK(browsed.browser->view() == BrowserView::kTree);
  browsed.run({Command::kPreviousView});
  CHECK(browsed.chosen() == "mainB");
  browsed.run({Command::kPreviousView, Command::kPreviousView});
  CHECK(browsed.browser->view() == BrowserView::kCriticalPath);
  CHECK(browsed.text().find("record with --kernel=bpf") != std::string::npos);
  browsed.run({Command::kHelp});
  CHECK(browsed.text().find("Backspace, Esc: back") != std::string::npos);
  browsed.run({Command::kEscape});
  CHECK(browsed.text().find("Backspace, Esc: back") == std::string::npos);
}

TEST_CASE("browser: processes with their threads") {
  const RecordScript script = two_programs();
  Browsed browsed(script);
  browsed.browser->show(BrowserView::kThreads);
  const std::vector<std::string> lines = browsed.lines();
  CHECK(lines[2].ends_with("Process/thread, by Wall"));
  CHECK(lines[3].find("    1.22 us") != std::string::npos);
  CHECK(lines[3].find("- first 7") != std::string::npos);
  CHECK(browsed.names() == Names{"7", "7/7", "8", "8/8"});
  browsed.run({Command::kToggle});
  CHECK(browsed.names() == Names{"7", "8", "8/8"});
}

TEST_CASE("browser: what is missing is in the second line") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "p");
  script.enter(t, 0, "main");
  script.lost(t, 10, 5);
  Browsed browsed(script);
  browsed.summary.records = 2;
  CHECK(browsed.lines(160)[1] ==
        "! the recording was cut off; 2 records, 0 lost; frames: 1 open at the end; "
        "trace");
  browsed.session.finished = true;
  CHECK(browsed.lines(160)[1].starts_with("trace: 2 records, 0 lost; frames: 1 open"));
  browsed.summary.lost = 5;
  CHECK(browsed.lines(160)[1].starts_with("! 2 records, 5 lost"));
  browsed.session.finished = false;
  browsed.session.raw = true;
  CHECK(browsed.lines(160)[1].starts_with("! a session's buffer, as it was"));
}

TEST_CASE("browser: nothing to show, and names that are hostile") {
  const RecordScript empty;
  Browsed nothing(empty);
  for (size_t i = 0; i < kBrowserViews; ++i) {
    nothing.run({Command::kNextView, Command::kDown, Command::kEnter, Command::kLeft,
                 Command::kSortNext, Command::kReverse, Command::kUnfoldAll});
    nothing.search("x");
    CHECK(nothing.text().find("Nothing to show") != std::string::npos);
  }
  RecordScript script;
  const ThreadIndex t = script.program(7, "p\x1b[2J");
  script.enter(t, 0, "\x1b[31m\xff" + std::string(100'000, 'x'));
  script.exit(t, 10);
  Browsed browsed(script);
  for (size_t i = 0; i < kBrowserViews; ++i) {
    const std::string text = browsed.text(60, 30);
    CHECK(std::none_of(text.begin(), text.end(), [](char c) {
      return c != '\n' && (static_cast<unsigned char>(c) < ' ' || c == '\x7f');
    }));
    CHECK(text.find('\xff') == std::string::npos);
    browsed.run({Command::kNextView});
  }
  browsed.browser->show(BrowserView::kFunctions);
  CHECK(browsed.lines(60)[3].find("\\x1b[31m") != std::string::npos);
}

TEST_CASE("browser: the summary leaves time without work apart, as the report does") {
  const KernelScript server = one_server();
  Browsed browsed(server.script);
  const std::string text = browsed.text(100, 60);
  const auto table = [&](const std::string& head) {
    const size_t at = text.find(head);
    REQUIRE(at != std::string::npos);
    return text.substr(at, text.find("\n\n", at) - at);
  };
  CHECK(table("No work, in loops").find(" 30  take of server: from outside") !=
        std::string::npos);
  CHECK(table("No work, in loops").find("1 thread slept throughout: sleeper\n") !=
        std::string::npos);
  for (const char* head : {"Spent on", "Hottest functions", "Hottest paths"}) {
    CHECK(table(head).find("sleep") == std::string::npos);
  }
  CHECK(table("Spent on").find("sleep") == std::string::npos);
  CHECK(table("Hottest functions").find("    3.00 us ") != std::string::npos);
  CHECK(table("Hottest functions").find("27.0 us") == std::string::npos);
  CHECK(table("Hottest paths").find("main > take") == std::string::npos);
  // All time is among functions, as in the report's view "flat".
  browsed.browser->show(BrowserView::kFunctions);
  CHECK(browsed.text(100, 60).find("27.0 us") != std::string::npos);
}
