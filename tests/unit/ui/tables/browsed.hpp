// A script replayed for a browser, and its picture as text.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reader/ui/tables/browser.hpp"
#include "tests/support/record_script.hpp"

namespace arctrace::testing {

class Browsed {
 public:
  // `script` must outlive this object.
  explicit Browsed(const RecordScript& script)
      : calls_(script.definitions, &session),
        replay_(script.definitions, nullptr, [this] {
          reader::ReplayOptions options;
          options.listener = &calls_;
          options.schedule = calls_.log() == nullptr ? nullptr : &calls_;
          return options;
        }()) {
    calls_.begin(replay_);
    script.replay(replay_);
    tables = std::make_unique<reader::TraceTables>(
        reader::FinishedPass{replay_, calls_, &session, &summary, nullptr});
    browser = std::make_unique<reader::Browser>(
        *tables, "trace", [this](reader::FunctionId function) { return read(function); },
        reads_at_once);
  }

  // The lines of the picture, without the blanks at their ends.
  std::vector<std::string> lines(size_t columns = 80, size_t height = 24) {
    reader::TextStyle style;
    style.width = columns;
    style.utf8 = false;
    std::vector<std::string> lines;
    for (const reader::PageLine& line : browser->picture(height, style)) {
      lines.push_back(line.text.substr(0, line.text.find_last_not_of(' ') + 1));
    }
    return lines;
  }
  std::string text(size_t columns = 80, size_t height = 24) {
    std::string text;
    for (const std::string& line : lines(columns, height)) text += line + "\n";
    return text;
  }
  // The last words of the rows of the page, in their order.
  std::vector<std::string> names(size_t columns = 80, size_t height = 24) {
    std::vector<std::string> names;
    const std::vector<std::string> shown = lines(columns, height);
    for (size_t i = 3; i + 1 < shown.size(); ++i) {
      if (!shown[i].empty()) names.push_back(shown[i].substr(shown[i].rfind(' ') + 1));
    }
    return names;
  }
  // The name in the row with the mark.
  std::string chosen(size_t columns = 80, size_t height = 24) {
    for (const std::string& line : lines(columns, height)) {
      if (line.starts_with('>')) return line.substr(line.rfind(' ') + 1);
    }
    return {};
  }
  void run(std::initializer_list<reader::BrowserCommand> commands) {
    for (const reader::BrowserCommand command : commands) browser->run(command);
  }
  void search(std::string_view text) {
    browser->run(reader::BrowserCommand::kSearch);
    for (const char character : text) browser->type(character);
    browser->accept();
  }

  reader::Session session;
  reader::Summary summary;
  bool reads_at_once = false;
  reader::SlowestOfFunction slowest;  // the result of read()
  int reads = 0;
  std::unique_ptr<reader::TraceTables> tables;
  std::unique_ptr<reader::Browser> browser;

 private:
  absl::StatusOr<reader::SlowestOfFunction> read(reader::FunctionId /*function*/) {
    ++reads;
    return slowest;
  }

  reader::TraceCalls calls_;
  reader::Replay replay_;
};

}  // namespace arctrace::testing
