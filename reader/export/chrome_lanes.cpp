#include "reader/export/chrome_lanes.hpp"

#include <absl/strings/str_cat.h>

namespace arctrace::reader {
namespace {

// Above the kernel's largest number of a thread.
constexpr uint32_t kFirstLane = 1u << 22;

}  // namespace

ChromeLanes::ChromeLanes(const Definitions& definitions, const ExportNames& names,
                         ChromeEvents& events)
    : definitions_(definitions), names_(names), events_(events), next_lane_(kFirstLane) {
  add_programs();
}

// A process that executes a program is another one to us and the same one to a viewer.
void ChromeLanes::add_programs() {
  const auto processes = definitions_.processes();
  for (ProcessIndex i = 0; i < processes.size(); ++i) {
    std::string& programs = programs_[processes[i].pid];
    const std::string program = names_.process(i);
    const bool is_same = programs == program || programs.ends_with(" > " + program);
    if (is_same || programs.size() > kSafeNameMax) continue;
    if (!programs.empty()) programs += " > ";
    programs += program;
  }
}

const std::string& ChromeLanes::ids_of(const LaneKey& lane) {
  const bool is_plain = lane.kind == LaneKind::kOfCalls;
  if (is_plain && recent_.second != nullptr && recent_.first == lane.thread) {
    return *recent_.second;
  }
  const auto found = ids_.find(lane);
  if (found != ids_.end()) {
    // Adding a lane would move what it points to, which ends this memory.
    if (is_plain) recent_ = {lane.thread, &found->second};
    return found->second;
  }
  const Thread* thread = definitions_.thread(lane.thread);
  const uint32_t pid = definitions_.pid_of(lane.thread);
  const uint32_t tid = is_plain ? (thread == nullptr ? 0 : thread->tid) : next_lane_++;
  recent_ = {kNoIndex, nullptr};
  name_lane(lane, pid, tid);
  return ids_[lane] = absl::StrCat(",\"pid\":", pid, ",\"tid\":", tid);
}

// "worker: coroutine 3"
std::string ChromeLanes::full_name(const LaneKey& lane) const {
  std::string name = lane_name(lane, definitions_, names_);
  if (lane.kind == LaneKind::kOfCalls) return name;
  const LaneKey calls{lane.thread, LaneKind::kOfCalls, 0};
  return absl::StrCat(lane_name(calls, definitions_, names_), ": ", name);
}

void ChromeLanes::name_lane(const LaneKey& lane, uint32_t pid, uint32_t tid) {
  const std::string ids = absl::StrCat(",\"pid\":", pid, ",\"tid\":", tid);
  const auto add = [&](const char* name, const std::string& key,
                       const std::string& value) {
    events_.begin("M", ids);
    events_.add_name(absl::StrCat("\"", name, "\""));
    events_.add_args(absl::StrCat("\"", key, "\":", value));
    events_.add();
  };
  if (const auto program = programs_.find(pid); program != programs_.end()) {
    add("process_name", "name", json_quoted(program->second));
    programs_.erase(program);
  }
  add("thread_name", "name", json_quoted(full_name(lane)));
  // A thread's lanes stand together.
  const uint64_t order =
      (uint64_t{lane.thread} + 1) << 3 | static_cast<uint32_t>(lane.kind);
  add("thread_sort_index", "sort_index", absl::StrCat(order & INT32_MAX));
}

}  // namespace arctrace::reader
