#include "reader/ui/model/page_lists.hpp"

#include <absl/container/flat_hash_map.h>

#include <string>
#include <vector>

#include "reader/analysis/process_tree.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/session_text.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kProcessesMax = 300;
constexpr size_t kCommandBytesMax = 1000;

// Returns the thread of each process whose number is the process', else its first one.
absl::flat_hash_map<ProcessIndex, ThreadIndex> main_threads(const Replay& replay) {
  absl::flat_hash_map<ProcessIndex, ThreadIndex> threads;
  const Definitions& definitions = replay.definitions();
  for (const ThreadTree& tree : replay.threads()) {
    const Thread& thread = definitions.threads()[tree.thread];
    const auto [entry, is_first] = threads.try_emplace(thread.process, tree.thread);
    if (!is_first && thread.tid == definitions.pid_of(tree.thread)) {
      entry->second = tree.thread;
    }
  }
  return threads;
}

}  // namespace

void write_processes_json(const Replay& replay, LaneNumber number, JsonWriter& json) {
  const Definitions& definitions = replay.definitions();
  const absl::flat_hash_map<ProcessIndex, ThreadIndex> threads = main_threads(replay);
  json.key("processes").begin_array();
  for (const ProcessRun& run : process_runs(replay, kProcessesMax)) {
    const Process& process = definitions.processes()[run.process];
    std::string command = command_line_text(process.arguments);
    if (command.size() > kCommandBytesMax) {
      command.resize(kCommandBytesMax);
      command += " ...";
    }
    json.begin_object();
    json.member("depth", run.depth);
    json.member("pid", run.pid);
    json.member("name", safe_name(process_label(definitions, run.process)));
    json.member("command", safe_text(command));
    json.member("threads", run.threads);
    json.member("wall_ns", run.wall_ns);
    json.member("cpu_ns", run.cpu.cpu_ns);
    json.member("exit", run.exit);
    json.key("lane");
    const auto thread = threads.find(run.process);
    write_lane_of(thread == threads.end() ? kNoIndex : thread->second, number, json);
    json.end();
  }
  json.end();
  json.member("process_count", definitions.processes().size());
}

void write_slowest_json(std::span<const PlacedCall> calls, LaneNumber number,
                        JsonWriter& json) {
  for (const PlacedCall& call : calls) {
    Lane like;
    like.thread = call.thread;
    like.coroutine = call.coroutine;
    const std::optional<uint32_t> lane = number(like);
    if (!lane.has_value()) continue;
    json.begin_array();
    json.value(*lane);
    json.value(kStateLevels + call.depth - 1);
    json.value(call.start_ns);
    json.value(call.stop_ns);
    json.value(call.off_ns);
    json.value(call.unknown_ns);
    json.value(call.flags);
    json.end();
  }
}

}  // namespace arctrace::reader
