// Events of Chrome's trace format as text: one event a line, in an array that is written
// piece by piece.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reader/export/exporter.hpp"
#include "reader/export/left_out_lines.hpp"

namespace arctrace::reader {

// `text` as a string of JSON.
std::string json_quoted(std::string_view text);

class ChromeEvents {
 public:
  // Writes the beginning of the file. `write` must outlive this object. `session`: null
  // if nothing is known.
  void begin_file(const WriteText& write, const Session* session);
  // `left_out`: remarks on calls and events that were left out.
  void finish_file(std::span<const LeftOutLine> left_out);

  // ---- One event: begin(), what it has, then add() or take() ----

  // `ids`: members, each with a comma before it.
  void begin(std::string_view phase, std::string_view ids);
  void add_time(int64_t time_ns);
  void add_duration(int64_t start_ns, int64_t stop_ns);
  void add_name(std::string_view quoted_name);
  // Members as begin() takes them.
  void add_members(std::string_view members) { event_ += members; }
  // `args`: members without a comma before the first one; empty: there are none.
  void add_args(std::string_view args);
  // Ends the event and adds it to the file.
  void add();
  // Ends the event and gives it back, for add_taken().
  std::string take();

  void add_taken(std::string_view event);

 private:
  void add_number(int64_t time_ns);

  const WriteText* write_ = nullptr;
  bool has_events_ = false;
  std::string event_;  // that is being made
  std::string text_;   // that is not yet written
};

}  // namespace arctrace::reader
