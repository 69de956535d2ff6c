#include "reader/trace/definitions_loader.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "reader/trace/bytes.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {
namespace {

// "a\0b\0" is {"a", "b"}; what is cut off at its end counts.
std::vector<std::string> split_arguments(std::string_view joined) {
  if (!joined.empty() && joined.back() == '\0') joined.remove_suffix(1);
  if (joined.empty()) return {};
  return absl::StrSplit(absl::string_view(joined.data(), joined.size()), '\0');
}

// Processes before their threads before what belongs to them.
int build_order(uint16_t type) {
  if (type == ARCTRACE_TYPE_PROCESS) return 0;
  if (type == ARCTRACE_TYPE_THREAD) return 1;
  return 2;
}

// Applies definitions one by one. REQUIRES: bodies were checked for their type.
class Builder {
 public:
  Builder(Session& session, const ClockMap& clock, Definitions& definitions,
          WriterFates& fates, FindingLog& findings)
      : session_(session),
        clock_(clock),
        definitions_(definitions),
        fates_(fates),
        findings_(findings) {}

  void apply(uint16_t type, uint64_t ticks, BodyReader body, uint64_t place,
             uint32_t offset) {
    time_ns_ = clock_.to_ns(ticks);
    place_ = place;
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
      case ARCTRACE_TYPE_SESSION:
        return session_event(body);
      case ARCTRACE_TYPE_CHILD_STATUS:
        body.u32();
        session_.child_wait_status = static_cast<int32_t>(body.u32());
        return;
      default:
        return;
    }
  }

 private:
  void find(Rule rule, std::string message) {
    findings_.add(rule, std::move(message), place_, offset_);
  }

  // The process that a definition belongs to, made up if nothing else is known of it.
  ProcessIndex owner(uint32_t id) {
    const ProcessIndex found = definitions_.find_process(id);
    if (found != kNoIndex) return found;
    find(Rule::kDefinitionProcess, absl::StrCat("process ", id));
    Process unknown;
    unknown.id = id;
    return definitions_.add_process(std::move(unknown));
  }

  void process(BodyReader body) {
    Process process;
    process.id = body.u32();
    process.parent_id = body.u32();
    process.pid = body.u32();
    process.ppid = body.u32();
    process.uid = body.u32();
    process.origin = body.u32();
    process.start_ns = clock_.to_ns(body.u64());
    const uint32_t executable_size = body.u32();
    const uint32_t arguments_size = body.u32();
    process.executable = body.padded_text(executable_size);
    process.arguments = split_arguments(body.padded_text(arguments_size));
    const Process* known = definitions_.process(definitions_.find_process(process.id));
    if (known != nullptr && known->pid != process.pid) {
      find(Rule::kDefinitionId, absl::StrCat("process ", process.id, " is pid ",
                                             known->pid, " and ", process.pid));
    }
    definitions_.add_process(std::move(process));
  }

  void thread(BodyReader body) {
    Thread thread;
    thread.writer = body.u32();
    thread.process = owner(body.u32());
    thread.tid = body.u32();
    const uint32_t name_size = body.u32();
    thread.start_ns = clock_.to_ns(body.u64());
    std::string name(body.padded_text(name_size));
    const ThreadIndex known = definitions_.find_thread(thread.writer);
    if (known == kNoIndex) {
      thread.names.push_back({time_ns_, std::move(name)});
      definitions_.add_thread(std::move(thread));
      return;
    }
    Thread& there = *definitions_.mutable_thread(known);
    if (there.tid != thread.tid || there.process != thread.process) {
      find(Rule::kDefinitionId,
           absl::StrCat("writer ", thread.writer, " is two threads"));
      return;
    }
    if (there.names.back().name != name) {
      there.names.push_back({time_ns_, std::move(name)});
    }
  }

  void module(BodyReader body) {
    const ProcessIndex process = owner(body.u32());
    Module module;
    module.flags = body.u32();
    module.start = body.u64();
    module.end = body.u64();
    module.bias = body.u64();
    body.u64();  // device
    body.u64();  // inode
    const uint32_t build_id_size = body.u32();
    const uint32_t path_size = body.u32();
    const auto build_id = body.padded(build_id_size);
    module.build_id.assign(build_id.begin(), build_id.end());
    module.path = body.padded_text(path_size);
    module.loaded_ns = time_ns_;
    if (module.start >= module.end) {
      find(Rule::kDefinitionModule, "a module's range is empty");
      return;
    }
    definitions_.add_module(process, std::move(module));
  }

  void module_gone(BodyReader body) {
    const ProcessIndex process = owner(body.u32());
    body.u32();
    const uint64_t start = body.u64();
    if (definitions_.end_module(process, start, time_ns_)) return;
    find(Rule::kDefinitionModule,
         absl::StrCat("no module is loaded at 0x", absl::Hex(start)));
  }

  void string(BodyReader body) {
    const ProcessIndex process = owner(body.u32());
    const uint32_t id = body.u32();
    const uint32_t size = body.u32();
    if (definitions_.add_name(process, id, std::string(body.padded_text(size)))) return;
    find(Rule::kDefinitionId, absl::StrCat("name ", id));
  }

  void layout(BodyReader body) {
    const ProcessIndex process = owner(body.u32());
    EventLayout layout;
    layout.id = body.u32();
    layout.level = body.u32();
    const uint32_t fields = body.u32();
    const uint32_t name_size = body.u32();
    layout.name = body.padded_text(name_size);
    for (uint32_t i = 0; i < fields && body.ok(); ++i) {
      const uint32_t type = body.u32();
      const uint32_t size = body.u32();
      layout.fields.push_back({type, std::string(body.padded_text(size))});
    }
    const uint32_t id = layout.id;
    if (definitions_.add_layout(process, std::move(layout))) return;
    find(Rule::kDefinitionId, absl::StrCat("event ", id));
  }

  void process_end(BodyReader body) {
    Process& process = *definitions_.mutable_process(owner(body.u32()));
    process.end_how = body.u32();
    process.end_ns = process.end_how == ARCTRACE_END_NONE ? INT64_MAX : time_ns_;
    process.end_status = static_cast<int32_t>(body.u32());
  }

  void pid_namespace(BodyReader body) {
    Process& process = *definitions_.mutable_process(owner(body.u32()));
    process.pid_namespace = body.u32();
  }

  void code(BodyReader body) {
    Process& process = *definitions_.mutable_process(owner(body.u32()));
    const uint32_t name_size = body.u32();
    Code code;
    code.start = body.u64();
    const uint64_t size = body.u64();
    const uint64_t since = body.u64();
    if (size == 0 || code.start > UINT64_MAX - size) {
      find(Rule::kCodeRange,
           absl::StrCat("0x", absl::Hex(size), " bytes at 0x", absl::Hex(code.start)));
      return;
    }
    code.end = code.start + size;
    code.since_ns = since == 0 ? process.start_ns : clock_.to_ns(clock_.to_ticks(since));
    code.name = body.padded_text(name_size);
    process.code.push_back(std::move(code));
  }

  void code_file(BodyReader body) {
    Process& process = *definitions_.mutable_process(owner(body.u32()));
    CodeFile file;
    file.kind = body.u32();
    file.names = body.u64();
    file.left_out = body.u64();
    file.is_cut = (body.u32() & ARCTRACE_CODE_FILE_CUT) != 0;
    const uint32_t path_size = body.u32();
    file.path = body.padded_text(path_size);
    process.code_files.push_back(std::move(file));
  }

  void system(BodyReader body) {
    body.u32();  // byte order: the header has it too
    session_.page_size = body.u32();
    session_.cpus_online = body.u32();
    const uint32_t host_size = body.u32();
    const uint32_t kernel_size = body.u32();
    const uint32_t command_size = body.u32();
    session_.host = body.padded_text(host_size);
    session_.kernel = body.padded_text(kernel_size);
    session_.recorder_command = split_arguments(body.padded_text(command_size));
  }

  void writer_end(BodyReader body) {
    const uint32_t writer = body.u32();
    fates_[writer] = WriterFate::kDead;
    Thread* thread = definitions_.mutable_thread(definitions_.find_thread(writer));
    if (thread != nullptr) thread->end_ns = time_ns_;
  }

  void session_event(BodyReader body) {
    const uint32_t what = body.u32();
    if (what == ARCTRACE_SESSION_FINISHED) session_.finished = true;
    if (what == ARCTRACE_SESSION_STARTED) {
      session_.resumed = (body.u32() & ARCTRACE_SESSION_RESUMED) != 0;
    }
    if (what == ARCTRACE_SESSION_DISK_FULL) {
      session_.disk_full_errno = static_cast<int32_t>(body.u32());
    }
  }

  Session& session_;
  const ClockMap& clock_;
  Definitions& definitions_;
  WriterFates& fates_;
  FindingLog& findings_;
  int64_t time_ns_ = 0;  // of the record that is being applied
  uint64_t place_ = 0;
  uint32_t offset_ = 0;
};

}  // namespace

void DefinitionsLoader::add_untrusted(const RawRecord& record, uint64_t place) {
  held_.push_back({record.ticks,
                   place,
                   record.offset,
                   record.type,
                   {record.body.begin(), record.body.end()}});
}

void DefinitionsLoader::build_clock(ClockMap& clock, FindingLog& findings) const {
  std::vector<ClockSync> syncs;
  for (const Held& held : held_) {
    if (held.type != ARCTRACE_TYPE_CLOCK_SYNC) continue;
    BodyReader body(held.body);
    const uint64_t ticks = body.u64();
    const uint64_t monotonic_ns = body.u64();
    syncs.push_back({ticks, monotonic_ns, body.u64()});
  }
  std::sort(syncs.begin(), syncs.end(), [](const ClockSync& a, const ClockSync& b) {
    return std::tie(a.ticks, a.monotonic_ns) < std::tie(b.ticks, b.monotonic_ns);
  });
  const uint64_t left_out = clock.set_syncs(syncs);
  if (left_out != 0) {
    findings.add(Rule::kClockSync, absl::StrCat(left_out, " of ", syncs.size(),
                                                " clock syncs do not rise"));
  }
}

void DefinitionsLoader::build(Session& session, ClockMap& clock, Definitions& definitions,
                              WriterFates& fates, FindingLog& findings) {
  build_clock(clock, findings);
  std::sort(held_.begin(), held_.end(), [](const Held& a, const Held& b) {
    return std::tuple(build_order(a.type), a.ticks, a.place, a.offset) <
           std::tuple(build_order(b.type), b.ticks, b.place, b.offset);
  });
  Builder builder(session, clock, definitions, fates, findings);
  for (const Held& held : held_) {
    builder.apply(held.type, held.ticks, BodyReader(held.body), held.place, held.offset);
  }
  held_.clear();
  held_.shrink_to_fit();
}

}  // namespace arctrace::reader
