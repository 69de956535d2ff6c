// What a user may ask of every view.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/analysis/tree_walk.hpp"
#include "reader/render/text_style.hpp"
#include "reader/replay/replay.hpp"

namespace arctrace::reader {

struct ViewOptions {
  SortKey sort = SortKey::kCum;
  uint64_t limit = UINT64_MAX;  // rows of a table
  double min_percent = 0;  // of cum: rows below, and what is below them, are left out
  bool lines = false;      // file:line of functions
  TextStyle style;
};

// Function names as the views show them, each made once.
class FunctionNames {
 public:
  // `replay` must outlive this object.
  FunctionNames(Replay& replay, const ViewOptions& options)
      : replay_(replay), lines_(options.lines) {}

  // Escaped, with its source line if that is asked for.
  const std::string& text(FunctionId function);
  // Escaped last part of the module's path; empty if it has none.
  std::string module_text(FunctionId function) const;

  const Function& operator[](FunctionId function) const {
    return replay_.functions()[function];
  }
  // "file:line" if it is asked for and known, else empty. Raw bytes.
  const std::string& line(FunctionId function);

 private:
  struct Known {
    bool made = false, line_made = false;
    std::string text, line;
  };
  Known& known(FunctionId function);

  Replay& replay_;
  const bool lines_;
  std::vector<Known> known_;  // by FunctionId
};

}  // namespace arctrace::reader
