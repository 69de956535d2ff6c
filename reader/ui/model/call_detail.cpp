#include "reader/ui/model/call_detail.hpp"

#include <arctrace/format.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "reader/analysis/path_state.hpp"
#include "reader/render/labels.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr uint64_t kToken = 1;
constexpr size_t kWaitsMax = 200;
constexpr size_t kCalleesMax = 30;

std::string content_of(const Record& record, RecordDescriber& describer) {
  std::string text;
  TextFields fields(text);
  describer.describe(record, {}, fields);
  return safe_text(text);
}

void write_path(const std::vector<FunctionId>& path, std::span<const FunctionId> ids,
                JsonWriter& json) {
  json.begin_array();
  const size_t cut = path.size() - std::min(path.size(), kPathFunctionsMax);
  for (size_t i = cut; i < path.size(); ++i) json.value(ids[path[i]]);
  json.end();
}

}  // namespace

uint64_t CallDetail::frame_opened(const FrameInfo& frame) {
  if (frame.thread != key_.thread || frame.coroutine != key_.coroutine) return 0;
  stack_.resize(frame.depth - 1);
  stack_.push_back(frame.function);
  const bool is_it = !is_open_ && !is_found() && frame.depth == key_.depth &&
                     frame.start_ns == key_.start_ns;
  if (!is_it) return 0;
  is_open_ = true;
  path_ = stack_;
  return kToken;
}

void CallDetail::frame_closed(const FrameInfo& frame, uint64_t token, bool /*shown*/) {
  if (frame.thread != key_.thread || frame.coroutine != key_.coroutine) return;
  if (token == kToken) {
    is_open_ = false;
    frame_ = frame;
  } else if (is_open_ && frame.depth == key_.depth + 1) {
    auto& [calls, time_ns] = callees_[frame.function];
    if (is_call(frame.flags)) ++calls;
    time_ns += frame.duration_ns;
  }
}

void CallDetail::args(const ArgsInfo& args) {
  if (args.token != kToken) return;
  std::string& text = args.record->type == ARCTRACE_TYPE_RESULT ? retval_ : args_;
  if (text.empty()) text = content_of(*args.record, *describer_);
}

void CallDetail::state_ended(const StateInfo& state) {
  const bool is_in_call =
      is_open_ || (frame_.has_value() && state.start_ns < frame_->stop_ns);
  if (state.thread != key_.thread || state.state != RunState::kBlocked || !is_in_call ||
      state.stop_ns <= key_.start_ns) {
    return;
  }
  if (waits_.size() == kWaitsMax) {
    ++waits_left_out_;
    return;
  }
  Wait wait{state, {}, {}};
  if (state.waker.interrupt) {
    wait.waker =
        may_be_fault(*replay_, state.waker) ? "an interrupt or a fault" : "an interrupt";
  } else if (state.waker.thread != kNoIndex) {
    wait.waker = safe_text(thread_title(definitions_, state.waker.thread));
  }
  const CallTree& tree = replay_->tree();
  for (NodeIndex node = state.waker.interrupt ? kNoNode : state.waker.node;
       node != kNoNode && tree[node].parent != kNoNode &&
       wait.path.size() < kPathFunctionsMax;
       node = tree[node].parent) {
    wait.path.push_back(tree[node].function);
  }
  std::reverse(wait.path.begin(), wait.path.end());
  waits_.push_back(std::move(wait));
}

void CallDetail::write_json(std::span<const FunctionId> ids, JsonWriter& json) const {
  json.member("function", ids[frame_->function]);
  json.member("start_ns", frame_->start_ns);
  json.member("stop_ns", frame_->stop_ns);
  json.member("self_ns", frame_->self_ns);
  json.member("duration_ns", frame_->duration_ns);
  if (replay_->has_dispatches()) {
    json.member("off_ns", frame_->cpu.off_ns);
    json.member("ready_ns", frame_->cpu.ready_ns);
    json.member("not_known_ns", frame_->cpu.unknown_ns);
  }
  json.member("args", args_);
  json.member("retval", retval_);
  write_flags_json(frame_->flags, json);
  json.key("path");
  write_path(path_, ids, json);
  std::vector<std::pair<FunctionId, std::pair<uint64_t, uint64_t>>> callees(
      callees_.begin(), callees_.end());
  std::stable_sort(callees.begin(), callees.end(), [](const auto& a, const auto& b) {
    return a.second.second > b.second.second;
  });
  callees.resize(std::min(callees.size(), kCalleesMax));
  json.key("callees").begin_array();
  for (const auto& [function, sums] : callees) {
    json.begin_array();
    json.value(ids[function]);
    json.value(sums.first);
    json.value(sums.second);
    json.end();
  }
  json.end();
  json.key("waits").begin_array();
  for (const Wait& wait : waits_) {
    json.begin_array();
    json.value(wait.state.start_ns);
    json.value(wait.state.stop_ns);
    json.value(wait.state.task_state);
    json.value(wait.waker);
    write_path(wait.path, ids, json);
    json.end();
  }
  json.end();
  json.member("waits_left_out", waits_left_out_);
}

uint64_t ArgsSearch::frame_opened(const FrameInfo& /*frame*/) { return ++last_token_; }

void ArgsSearch::args(const ArgsInfo& args) {
  if (found_.size() + open_.size() >= kFoundMax) return;
  std::string text = content_of(*args.record, *describer_);
  if (text.find(text_) == std::string::npos) return;
  open_.try_emplace(args.token, std::move(text));
}

void ArgsSearch::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  if (open_.empty()) return;
  const auto found = open_.find(token);
  if (found == open_.end()) return;
  if (shown) found_.push_back({frame, std::move(found->second)});
  open_.erase(found);
}

void ArgsSearch::write_json(std::span<const FunctionId> ids, JsonWriter& json) const {
  json.key("found").begin_array();
  for (const Found& found : found_) {
    Lane like;
    like.thread = found.frame.thread;
    like.coroutine = found.frame.coroutine;
    const std::optional<uint32_t> lane = timeline_.number_of(like);
    if (!lane.has_value()) continue;
    json.begin_array();
    json.value(*lane);
    json.value(kStateLevels + found.frame.depth - 1);
    json.value(found.frame.start_ns);
    json.value(found.frame.stop_ns);
    json.value(ids[found.frame.function]);
    json.value(found.text);
    json.end();
  }
  json.end();
  json.member("is_cut", found_.size() + open_.size() >= kFoundMax);
}

namespace {

constexpr size_t kSourceBytesMax = size_t{8} << 20;
constexpr size_t kSourceWidthMax = 400;

// With O_NONBLOCK, opening a FIFO does not wait for a writer.
std::string content_of_file(const std::string& path) {
  std::string content;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return content;
  struct stat facts {};
  if (::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode)) {
    std::array<char, 1 << 16> piece{};
    while (content.size() < kSourceBytesMax) {
      const ssize_t bytes = ::read(fd, piece.data(), piece.size());
      if (bytes <= 0) break;
      content.append(piece.data(), static_cast<size_t>(bytes));
    }
  }
  ::close(fd);
  return content;
}

}  // namespace

std::vector<std::string> source_text(const std::string& path, uint32_t first,
                                     uint32_t count) {
  std::vector<std::string> lines;
  if (!path.starts_with('/')) return lines;
  const std::string content = content_of_file(path);
  std::string_view rest = content;
  for (uint32_t line = 1; !rest.empty() && lines.size() < count; ++line) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (line >= first) {
      std::string shown;
      for (const char c : text.substr(0, kSourceWidthMax)) {
        if (c == '\t') {
          shown += "    ";
        } else {
          shown += c;
        }
      }
      lines.push_back(printable(shown));
    }
  }
  return lines;
}

}  // namespace arctrace::reader
