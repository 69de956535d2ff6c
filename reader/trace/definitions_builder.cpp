// Applies the records of definitions. Records that the collector adds as a session goes
// on are applied in definitions_loader.cpp.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/trace/definitions_loader.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {
namespace {

// Splits "a\0b\0" into {"a", "b"}, and also "a\0b", whose end was cut off.
std::vector<std::string> split_arguments(std::string_view joined) {
  if (!joined.empty() && joined.back() == '\0') joined.remove_suffix(1);
  if (joined.empty()) return {};
  return absl::StrSplit(absl::string_view(joined.data(), joined.size()), '\0');
}

}  // namespace

int build_order(uint16_t type) {
  if (type == ARCTRACE_TYPE_PROCESS) return 0;
  if (type == ARCTRACE_TYPE_THREAD) return 1;
  if (type == ARCTRACE_TYPE_TOTALS) return 2;
  return type == ARCTRACE_TYPE_HOOKED ? 4 : 3;
}

void DefinitionsBuilder::apply(uint16_t type, uint32_t writer, uint64_t ticks,
                               BodyReader body, uint64_t chunk, uint32_t offset) {
  writer_ = writer;
  time_ns_ = clock_.to_ns(ticks);
  chunk_ = chunk;
  offset_ = offset;
  switch (type) {
    case ARCTRACE_TYPE_PROCESS:
      return process(body);
    case ARCTRACE_TYPE_THREAD:
      return thread(body);
    case ARCTRACE_TYPE_MODULE:
      return module(body);
    case ARCTRACE_TYPE_MODULE_GONE:
      return module_gone(body);
    case ARCTRACE_TYPE_STRING:
      return string(body);
    case ARCTRACE_TYPE_EVENT_LAYOUT:
      return layout(body);
    case ARCTRACE_TYPE_PROCESS_END:
      return process_end(body);
    case ARCTRACE_TYPE_PHASE:
      return phase(body);
    case ARCTRACE_TYPE_AGE:
      return age(body);
    case ARCTRACE_TYPE_WAITING:
      return waiting(body);
    case ARCTRACE_TYPE_PATCHES:
      return patches(body);
    case ARCTRACE_TYPE_INHERITED:
      return inherited(body);
    case ARCTRACE_TYPE_HOOKED:
      return hooked(body);
    case ARCTRACE_TYPE_EXEC:
      return exec(body, ticks);
    case ARCTRACE_TYPE_PID_NAMESPACE:
      return pid_namespace(body);
    case ARCTRACE_TYPE_CODE:
      return code(body);
    case ARCTRACE_TYPE_CODE_FILE:
      return code_file(body);
    case ARCTRACE_TYPE_SYSTEM:
      return system(body);
    case ARCTRACE_TYPE_WRITER_END:
      return writer_end(body);
    case ARCTRACE_TYPE_ALIVE:
      return alive(body);
    case ARCTRACE_TYPE_HOOK_COSTS:
      return hook_costs(body);
    case ARCTRACE_TYPE_CLOCK_WORD:
      return clock_word(body);
    case ARCTRACE_TYPE_SESSION:
      return session_event(body);
    case ARCTRACE_TYPE_TOTALS:
      return totals(body);
    case ARCTRACE_TYPE_COUNTS:
      return counts(body);
    case ARCTRACE_TYPE_CHILD_STATUS:
      return child_status(body);
    case ARCTRACE_TYPE_ENABLED:
      return enabled(body);
    case ARCTRACE_TYPE_LOST:
      return lost(body);
    default:
      return;
  }
}

// Returns the process to which a definition belongs; if it has no PROCESS record, it is
// added, with a finding.
ProcessIndex DefinitionsBuilder::owner(uint32_t id) {
  const ProcessIndex found = definitions_.find_process(id);
  if (found != kNoIndex) return found;
  if (!session_.may_lack_definitions) {
    report(Rule::kDefinitionProcess, absl::StrCat("process ", id));
  }
  Process unknown;
  unknown.id = id;
  return definitions_.add_process(std::move(unknown));
}

void DefinitionsBuilder::process(BodyReader reader) {
  const auto body = reader.read<arctrace_process_body>();
  Process process;
  process.id = body.process;
  process.parent_id = body.parent;
  process.pid = body.pid;
  process.ppid = body.ppid;
  process.uid = body.uid;
  process.origin = body.origin;
  process.start_ns = clock_.to_ns(body.start_ticks);
  process.executable = reader.text(body.executable_size);
  process.arguments = split_arguments(reader.text(body.arguments_size));
  const arctrace_process_fork fork = read_process_fork(reader);
  process.forker = fork.forker;
  if (process.origin == ARCTRACE_ORIGIN_FORK && fork.forked_ticks != 0) {
    process.forked_ns = std::min(clock_.to_ns(fork.forked_ticks), process.start_ns);
  }
  const Process* known = definitions_.process(definitions_.find_process(process.id));
  if (known != nullptr && known->pid != process.pid) {
    report(Rule::kDefinitionId, absl::StrCat("process ", process.id, " is pid ",
                                             known->pid, " and ", process.pid));
  }
  definitions_.add_process(std::move(process));
}

void DefinitionsBuilder::thread(BodyReader reader) {
  const auto body = reader.read<arctrace_thread_body>();
  Thread thread;
  thread.writer = body.writer;
  thread.process = owner(body.process);
  thread.tid = body.tid;
  thread.start_ns = clock_.to_ns(body.start_ticks);
  std::string name(reader.text(body.name_size));
  const ThreadIndex known = definitions_.find_thread(thread.writer);
  if (known == kNoIndex) {
    thread.names.push_back({time_ns_, std::move(name)});
    definitions_.add_thread(std::move(thread));
    return;
  }
  Thread& there = *definitions_.mutable_thread(known);
  if (there.tid != thread.tid || there.process != thread.process) {
    report(Rule::kDefinitionId,
           absl::StrCat("writer ", thread.writer, " is two threads"));
    return;
  }
  if (there.names.back().name != name) {
    there.names.push_back({time_ns_, std::move(name)});
  }
}

// Returns the path by which the file was first named. A library may have several, such as
// through the link /lib, and be one module in reports.
std::string DefinitionsBuilder::first_path(const arctrace_module_body& body,
                                           const std::vector<std::byte>& build_id,
                                           std::string_view path) {
  if (body.inode == 0 || build_id.empty()) return std::string(path);
  std::string& first = module_paths_[{body.device, body.inode, build_id}];
  const auto name = [](std::string_view of) { return of.substr(of.rfind('/') + 1); };
  if (first.empty()) first = path;
  return name(first) == name(path) ? first : std::string(path);
}

void DefinitionsBuilder::module(BodyReader reader) {
  const auto body = reader.read<arctrace_module_body>();
  const ProcessIndex process = owner(body.process);
  Module module;
  module.flags = body.flags;
  module.start = body.start;
  module.end = body.end;
  module.bias = body.bias;
  const auto build_id = reader.bytes(body.build_id_size);
  module.build_id.assign(build_id.begin(), build_id.end());
  module.path = first_path(body, module.build_id, reader.text(body.path_size));
  module.loaded_ns = time_ns_;
  if (module.start >= module.end) {
    report(Rule::kDefinitionModule, "a module's range is empty");
    return;
  }
  definitions_.add_module(process, std::move(module));
}

void DefinitionsBuilder::module_gone(BodyReader reader) {
  const auto body = reader.read<arctrace_module_gone_body>();
  if (definitions_.end_module(owner(body.process), body.start, time_ns_)) return;
  report(Rule::kDefinitionModule,
         absl::StrCat("no module is loaded at 0x", absl::Hex(uint64_t{body.start})));
}

void DefinitionsBuilder::string(BodyReader reader) {
  const auto body = reader.read<arctrace_string_body>();
  const ProcessIndex process = owner(body.process);
  if (definitions_.add_name(process, body.id, std::string(reader.text(body.text_size)))) {
    return;
  }
  report(Rule::kDefinitionId, absl::StrCat("name ", body.id));
}

void DefinitionsBuilder::layout(BodyReader reader) {
  const auto body = reader.read<arctrace_event_layout_body>();
  const ProcessIndex process = owner(body.process);
  EventLayout layout;
  layout.id = body.id;
  layout.level = body.level;
  layout.name = reader.text(body.name_size);
  for (uint32_t i = 0; i < body.field_count && reader.ok(); ++i) {
    const auto field = reader.read<arctrace_layout_field>();
    layout.fields.push_back({field.type, std::string(reader.text(field.name_size))});
  }
  if (definitions_.add_layout(process, std::move(layout))) return;
  report(Rule::kDefinitionId, absl::StrCat("event ", body.id));
}

void DefinitionsBuilder::process_end(BodyReader reader) {
  const auto body = reader.read<arctrace_process_end_body>();
  Process& process = *definitions_.mutable_process(owner(body.process));
  process.end_how = body.how;
  process.end_ns = body.how == ARCTRACE_END_NONE ? INT64_MAX : time_ns_;
  process.end_status = body.status;
  process.end_writer = writer_;
}

// There are several if a child was forked in between or called main: the first one
// counts.
void DefinitionsBuilder::phase(BodyReader reader) {
  const auto body = reader.read<arctrace_phase_body>();
  Process& process = *definitions_.mutable_process(owner(body.process));
  if (body.phase == ARCTRACE_LIFE_HELPER) {
    constexpr size_t kHelpersMax = 4096;  // more than a process has libraries
    const auto pid = reader.read<uint32_t>();
    if (process.helpers.size() < kHelpersMax) process.helpers.insert(pid);
    return;
  }
  if (body.phase == ARCTRACE_LIFE_THREAD_END) {
    const auto writer = reader.read<uint32_t>();
    Thread* thread = definitions_.mutable_thread(definitions_.find_thread(writer));
    if (thread != nullptr)
      thread->announced_ns = std::max(thread->announced_ns, time_ns_);
    return;
  }
  if (body.phase == ARCTRACE_LIFE_TRACED) {
    constexpr size_t kStartsMax = 8;  // more than there are
    const int64_t from_ns = clock_.to_ns(reader.read<uint64_t>());
    if (!reader.ok() || from_ns > time_ns_) return;
    Thread* thread = definitions_.mutable_thread(definitions_.find_thread(writer_));
    if (thread != nullptr && thread->tid != process.pid) {
      thread->tracer_start = {from_ns, time_ns_};
      return;
    }
    std::vector<TracerStart>& starts = process.tracer_starts;
    if (starts.size() == kStartsMax) return;
    const auto place =
        std::find_if(starts.begin(), starts.end(),
                     [&](const TracerStart& start) { return start.from_ns > from_ns; });
    starts.insert(place, {from_ns, time_ns_});
    return;
  }
  int64_t& began = body.phase == ARCTRACE_LIFE_MAIN ? process.main_ns : process.exit_ns;
  began = std::min(began, time_ns_);
}

void DefinitionsBuilder::age(BodyReader reader) {
  const auto age = reader.read<arctrace_age_body>();
  lives_.set_age(owner(age.process), static_cast<int64_t>(std::min<uint64_t>(
                                         age.age_ns, static_cast<uint64_t>(INT64_MAX))));
}

// If a thread has several WAITING records, the last one counts.
void DefinitionsBuilder::waiting(BodyReader reader) {
  const auto body = reader.read<arctrace_waiting_body>();
  owner(body.process);
  Thread* thread = definitions_.mutable_thread(definitions_.find_thread(body.writer));
  if (thread == nullptr) return;
  thread->waiting.clear();
  thread->waiting_since_written = body.written;
  thread->waiting_min_ns =
      std::max(clock_.to_ns(session_.start_ticks + body.ticks_min), int64_t{0});
  for (uint32_t i = 0; i < body.count && reader.ok(); ++i) {
    const auto call = reader.read<arctrace_waiting_call>();
    thread->waiting.push_back({call.key, call.ticks, clock_.to_ns(call.ticks)});
  }
}

void DefinitionsBuilder::patches(BodyReader reader) {
  const auto patches = reader.read<arctrace_patches_body>();
  // A refusal that lists an address is a library's.
  if (patches.verdict >= ARCTRACE_PATCH_NO_ROOM && patches.listed == 0) {
    definitions_.mutable_process(owner(patches.process))->patch_refusal = patches.verdict;
  }
  if (patches.count == 0) return;
  if (patches.verdict == ARCTRACE_PATCH_DONE) {
    definitions_.mutable_process(owner(patches.process))->is_patched = true;
  }
  if (patches.verdict != ARCTRACE_PATCH_THROTTLED) return;
  auto& off = definitions_.mutable_process(owner(patches.process))->switched_off;
  for (uint32_t i = 0; i < patches.listed && !reader.rest().empty(); ++i) {
    const auto address = reader.read<uint64_t>();
    int64_t& since_ns = off.try_emplace(address, time_ns_).first->second;
    since_ns = std::min(since_ns, time_ns_);
  }
}

void DefinitionsBuilder::hooked(BodyReader reader) {
  const auto body = reader.read<arctrace_hooked_body>();
  const ProcessIndex process = owner(body.process);
  if (body.kind != ARCTRACE_HOOK_XRAY && body.kind != ARCTRACE_HOOK_RETURN) return;
  definitions_.set_hook_kind(process, body.function, time_ns_, body.kind);
}

void DefinitionsBuilder::inherited(BodyReader reader) {
  const auto body = reader.read<arctrace_inherited_body>();
  std::vector<uint64_t> keys;
  if (body.count < body.depth) keys.push_back(0);
  for (uint32_t i = 0; i < body.count && reader.ok(); ++i) {
    keys.push_back(reader.read<uint64_t>());
  }
  if (!reader.ok()) return;
  definitions_.mutable_process(owner(body.process))->inherited = std::move(keys);
}

void DefinitionsBuilder::exec(BodyReader reader, uint64_t ticks) {
  const auto exec = reader.read<arctrace_exec_body>();
  const uint64_t last_ticks = ticks + std::min(exec.within_ticks, UINT64_MAX - ticks);
  const int64_t last_ns = std::max(clock_.to_ns(last_ticks), time_ns_);
  lives_.add_exec(exec.pid, time_ns_,
                  static_cast<uint64_t>(last_ns) - static_cast<uint64_t>(time_ns_));
}

void DefinitionsBuilder::pid_namespace(BodyReader reader) {
  const auto body = reader.read<arctrace_pid_namespace_body>();
  Process& process = *definitions_.mutable_process(owner(body.process));
  process.pid_namespace = body.inode;
}

void DefinitionsBuilder::code(BodyReader reader) {
  const auto body = reader.read<arctrace_code_body>();
  Process& process = *definitions_.mutable_process(owner(body.process));
  const uint64_t size = body.size;
  Code code;
  code.start = body.start;
  if (size == 0 || code.start > UINT64_MAX - size) {
    report(Rule::kCodeRange,
           absl::StrCat("0x", absl::Hex(size), " bytes at 0x", absl::Hex(code.start)));
    return;
  }
  code.end = code.start + size;
  code.since_ns = body.since_monotonic_ns == 0
                      ? process.start_ns
                      : clock_.to_ns(clock_.to_ticks(body.since_monotonic_ns));
  code.name = reader.text(body.name_size);
  process.code.push_back(std::move(code));
}

void DefinitionsBuilder::code_file(BodyReader reader) {
  const auto body = reader.read<arctrace_code_file_body>();
  Process& process = *definitions_.mutable_process(owner(body.process));
  CodeFile file;
  file.kind = body.kind;
  file.names = body.names;
  file.left_out = body.left_out;
  file.is_cut = (body.flags & ARCTRACE_CODE_FILE_CUT) != 0;
  file.path = reader.text(body.path_size);
  process.code_files.push_back(std::move(file));
}

void DefinitionsBuilder::system(BodyReader reader) {
  const auto body = reader.read<arctrace_system_body>();
  session_.page_size = body.page_size;
  session_.cpus_online = body.cpus;
  session_.host = reader.text(body.host_size);
  session_.kernel = reader.text(body.kernel_size);
  session_.recorder_command = split_arguments(reader.text(body.arguments_size));
}

}  // namespace arctrace::reader
