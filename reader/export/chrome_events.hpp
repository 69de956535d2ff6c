// Events of Chrome's trace format as text: one event a line, in an array that is written
// piece by piece.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "reader/export/export_names.hpp"
#include "reader/export/exporter.hpp"

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

// The lanes of an export in Chrome's trace format, which knows processes and threads
// only: a lane beside a thread's calls is a thread with a number of its own.
class ChromeLanes {
 public:
  // All must outlive this object.
  ChromeLanes(const Definitions& definitions, const ExportNames& names,
              ChromeEvents& events);

  // Returns the pid and tid of a lane, as ChromeEvents::begin() takes them. The text is
  // good until the next call. A new lane gets its name in the file first, so no event may
  // be under way.
  const std::string& ids_of(const LaneKey& lane);

 private:
  void add_programs();
  std::string full_name(const LaneKey& lane) const;
  void name_lane(const LaneKey& lane, uint32_t pid, uint32_t tid);

  const Definitions& definitions_;
  const ExportNames& names_;
  ChromeEvents& events_;
  absl::flat_hash_map<LaneKey, std::string> ids_;
  absl::flat_hash_map<uint32_t, std::string> programs_;  // by pid; not yet written
  std::pair<ThreadIndex, const std::string*> recent_ = {kNoIndex, nullptr};
  uint32_t next_lane_;
};

}  // namespace arctrace::reader
