#include "reader/ui/model/page_critical.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "reader/report/critical_path_view.hpp"

namespace arctrace::reader {
namespace {

void write_states(const std::array<uint64_t, kPathStates>& states, JsonWriter& json) {
  json.key("states").begin_array();
  for (size_t i = 0; i < kPathStates; ++i) {
    if (states[i] == 0) continue;
    json.begin_array();
    json.value(path_state_name(static_cast<PathState>(i)));
    json.value(states[i]);
    json.end();
  }
  json.end();
}

void write_by_name(const CriticalPath& path, const Replay& replay, FunctionLabels& labels,
                   JsonWriter& json) {
  std::vector<CriticalPathName> names =
      critical_path_by_name(critical_path_rows(path, replay, labels));
  names.resize(std::min(names.size(), PageCritical::kNamesMax));
  json.key("by_name").begin_array();
  for (const CriticalPathName& name : names) {
    json.begin_object();
    json.member("name", name.name);
    json.member("path", name.path);
    json.member("ns", name.time_ns);
    write_states(name.states, json);
    json.end();
  }
  json.end();
}

void write_rows(const CriticalPath& path, const Replay& replay, FunctionLabels& labels,
                LaneNumber number, JsonWriter& json) {
  json.key("critical_path").begin_array();
  for (const PathEntry& entry : longest_entries(path, PageCritical::kRowsMax)) {
    json.begin_object();
    write_path_entry_json(entry, replay, labels, json);
    json.key("lane");
    write_lane_of(std::get<0>(entry.first), number, json);
    json.member("at_ns", entry.second.start_ns);
    json.member("until_ns", entry.second.stop_ns);
    json.end();
  }
  json.end();
}

uint64_t between_ns(int64_t from_ns, int64_t until_ns) {
  return static_cast<uint64_t>(until_ns) - static_cast<uint64_t>(from_ns);
}

void write_pieces(const CriticalPath& path, LaneNumber number, JsonWriter& json) {
  uint64_t grain_ns = 0;
  const PathPieces pieces =
      joined_pieces(path.pieces, PageCritical::kPiecesMax, grain_ns);
  json.member("grain_ns", grain_ns);
  json.key("pieces").begin_array();
  for (auto piece = pieces.begin(); piece != pieces.end();) {
    const ThreadIndex thread = piece->thread;
    json.begin_array();
    write_lane_of(thread, number, json);
    int64_t last_ns = path.end.start_ns;
    for (; piece != pieces.end() && piece->thread == thread; ++piece) {
      json.value(between_ns(last_ns, piece->start_ns));
      json.value(between_ns(piece->start_ns, piece->stop_ns));
      last_ns = piece->start_ns;
    }
    json.end();
  }
  json.end();
}

// Joins neighbours of one thread with at most this time between them.
PathPieces joined(const PathPieces& pieces, uint64_t grain_ns) {
  PathPieces fewer;
  for (const PathPiece& piece : pieces) {
    const bool goes_on = !fewer.empty() && fewer.back().thread == piece.thread &&
                         between_ns(fewer.back().stop_ns, piece.start_ns) <= grain_ns;
    if (goes_on) {
      fewer.back().stop_ns = piece.stop_ns;
    } else {
      fewer.push_back(piece);
    }
  }
  return fewer;
}

}  // namespace

void write_lane_of(ThreadIndex thread, LaneNumber number, JsonWriter& json) {
  Lane like;
  like.thread = thread;
  json.value(number(like));
}

PathPieces joined_pieces(PathPieces pieces, size_t limit, uint64_t& grain_ns) {
  constexpr uint64_t kFirstGrain = 1024, kLastGrain = uint64_t{1} << 62;
  std::sort(pieces.begin(), pieces.end(), [](const PathPiece& a, const PathPiece& b) {
    return std::tie(a.thread, a.start_ns) < std::tie(b.thread, b.start_ns);
  });
  grain_ns = 0;
  while (pieces.size() > limit && grain_ns < kLastGrain) {
    grain_ns = grain_ns == 0 ? kFirstGrain : 2 * grain_ns;
    pieces = joined(pieces, grain_ns);
  }
  return pieces;
}

void PageCritical::begin(const Replay& replay, const Session* session) {
  session_ = session;
  is_known_ = replay.has_dispatches();
  if (is_known_) loops_.begin(replay, session);
}

absl::Status PageCritical::write_json(Replay& replay, LaneNumber number,
                                      JsonWriter& json) {
  CriticalPath path;
  const std::optional<PathEnd> end = whole_stretch(log_, replay);
  if (end.has_value()) path = critical_path(log_, replay, *end);
  FunctionLabels labels(replay, false);
  json.member("start_ns", path.end.start_ns);
  json.member("stop_ns", path.end.stop_ns);
  json.member("wall_ns", path.wall_ns());
  write_states(path.state_sums(), json);
  json.member("is_explanation", explains_duration(replay, session_, loops_.find()));
  write_by_name(path, replay, labels, json);
  write_rows(path, replay, labels, number, json);
  write_pieces(path, number, json);
  return log_.status();
}

}  // namespace arctrace::reader
