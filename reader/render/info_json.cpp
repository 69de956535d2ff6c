#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <string>

#include "reader/render/info.hpp"
#include "reader/render/patch_list.hpp"
#include "reader/render/session_text.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  const std::string_view text = as_text(bytes);
  return absl::BytesToHexString({text.data(), text.size()});
}

std::string address(uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); }

// Returns nothing for an end that never came, or a start before the trace.
std::optional<int64_t> known_time(int64_t time_ns) {
  if (time_ns == INT64_MAX || time_ns == INT64_MIN) return std::nullopt;
  return time_ns;
}

void write_texts(const char* name, std::span<const std::string> texts, JsonWriter& json) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(std::string_view(text));
  json.end();
}

void write_session(const Session& s, JsonWriter& json) {
  json.key("session").begin_object();
  json.member("file", s.path);
  json.member("kind", s.raw ? "buffer" : "file");
  json.member("size_bytes", s.size_bytes);
  json.member("version", absl::StrCat(s.version_major, ".", s.version_minor));
  json.member("id", hex(std::as_bytes(std::span(s.id))));
  json.member("finished", s.finished);
  json.member("mode", mode_text(s.mode));
  json.member("scope", scope_text(s.scope));
  json.member("clock", clock_text(s.clock));
  write_stamps_json(s, json);
  json.member("ticks_per_second", s.ticks_per_second);
  json.member("start_ticks", s.start_ticks);
  json.member("start_monotonic_ns", s.start_monotonic_ns);
  json.member("start_realtime_ns", s.start_realtime_ns);
  json.member("buffer_size", s.buffer_size);
  json.member("block_size", s.block_size);
  json.member("block_count", s.block_count);
  json.member("slot_count", s.slot_count);
  json.member("cpu_count", s.cpu_count);
  json.member("pinned", s.pinned_bytes == s.buffer_size);
  json.member("pinned_bytes", s.pinned_bytes);
  json.member("creator_pid", s.creator_pid);
  json.member("creator_uid", s.creator_uid);
  json.member("host", s.host);
  json.member("kernel", s.kernel);
  json.member("cpus_online", s.cpus_online);
  json.member("page_size", s.page_size);
  write_texts("recorder_command", s.recorder_command, json);
  json.key("kernel_records");
  if (s.cpu_count == 0) {
    json.value(nullptr);
  } else {
    json.value(s.has_perf_records ? "perf" : "bpf");
  }
  json.member("child_wait_status", s.child_wait_status);
  json.member("disk_full_errno", s.disk_full_errno);
  json.key("files").begin_object();
  json.member("given", s.files.given);
  json.member("first", s.files.first == 0 ? std::nullopt : std::optional(s.files.first));
  json.member("last", s.files.last == 0 ? std::nullopt : std::optional(s.files.last));
  json.member("removed", s.files.removed);
  json.member("goes_on", s.files.goes_on);
  json.end();
  json.key("identities").begin_object();
  json.member("processes", s.processes);
  json.member("threads", s.threads);
  json.member("most", ARCTRACE_IDENTITIES_END - 1);
  json.end();
  json.end();
}

void write_form(std::string_view key, const FormCounts& counts, JsonWriter& json) {
  json.key(key).begin_object();
  json.member("records", counts.records);
  json.member("threads", counts.threads);
  json.end();
}

void write_summary(const Summary& s, JsonWriter& json) {
  json.key("summary").begin_object();
  json.member("records", s.records);
  json.member("lost", s.lost);
  write_losses_json("lost_by_cause", s.lost_by_cause, json);
  json.member("overwritten", s.overwritten);
  json.member("elsewhere", s.elsewhere);
  json.member("filtered_out", s.filtered_out);
  json.member("torn", s.torn);
  json.member("unfinished", s.unfinished);
  json.member("invalid", s.invalid);
  json.member("findings", s.findings);
  json.member("processes", s.processes);
  json.member("threads", s.threads);
  json.member("first_ns", s.first_ns);
  json.member("last_ns", s.last_ns);
  json.member("duration_ns", s.duration_ns);
  json.member("blocks", s.blocks);
  json.member("bytes", s.bytes);
  write_form("own_blocks", s.own_blocks, json);
  write_form("shared_chain", s.shared_chain, json);
  json.key("records_by_type").begin_object();
  for (const auto& [type, count] : s.records_by_type) {
    json.member(record_type_text(type), count);
  }
  json.end();
  json.end();
}

void write_module(const Module& m, JsonWriter& json) {
  json.begin_object();
  json.member("path", m.path);
  json.member("build_id", hex(m.build_id));
  json.member("start", address(m.start));
  json.member("end", address(m.end));
  json.member("bias", address(m.bias));
  json.member("loaded_ns", known_time(m.loaded_ns));
  json.member("unloaded_ns", known_time(m.unloaded_ns));
  json.member("main", (m.flags & ARCTRACE_MODULE_MAIN) != 0);
  json.member("vdso", (m.flags & ARCTRACE_MODULE_VDSO) != 0);
  json.end();
}

void write_code_file(const CodeFile& file, JsonWriter& json) {
  json.begin_object();
  json.member("path", file.path);
  json.member("kind", code_file_kind_text(file.kind));
  json.member("names", file.names);
  json.member("left_out", file.left_out);
  json.member("cut", file.is_cut);
  json.end();
}

void write_process(const Definitions& definitions, ProcessIndex index,
                   const PatchList& patches, Symbolizer* names, JsonWriter& json) {
  const Process& p = *definitions.process(index);
  json.begin_object();
  json.member("process", p.id);
  json.member("parent", p.parent_id);
  json.member("pid", p.pid);
  json.member("ppid", p.ppid);
  json.member("uid", p.uid);
  json.member("origin", origin_text(p.origin));
  json.member("executable", p.executable);
  write_texts("arguments", p.arguments, json);
  json.member("start_ns", p.begin_ns());
  json.member("end_ns", known_time(p.ended_ns()));
  json.member("end_how",
              p.end_how == 0 ? std::nullopt : std::optional(process_end_text(p.end_how)));
  json.member("end_status", p.end_status);
  json.key("modules").begin_array();
  for (const Module& module : p.modules) write_module(module, json);
  json.end();
  json.key("code_files").begin_array();
  for (const CodeFile& file : p.code_files) write_code_file(file, json);
  json.end();
  json.key("patches");
  patches.write_json(definitions, index, names, json);
  json.end();
}

void write_thread(const Trace& trace, ThreadIndex index, JsonWriter& json) {
  const Definitions& definitions = trace.definitions();
  const Thread& thread = *definitions.thread(index);
  const Process* process = definitions.process(thread.process);
  const auto of_process = [process](uint32_t Process::*number) {
    return process == nullptr ? std::nullopt : std::optional(process->*number);
  };
  json.begin_object();
  json.member("writer", thread.writer);
  json.member("tid", thread.tid);
  json.member("process", of_process(&Process::id));
  json.member("pid", of_process(&Process::pid));
  json.member("name", definitions.thread_name(index, INT64_MAX));
  const int64_t end_ns = definitions.life_end_ns(index);
  json.member("start_ns", definitions.begin_ns(index));
  json.member("end_ns", known_time(end_ns));
  // The thread that ended its process lived until the process' end.
  if (end_ns != INT64_MAX && thread.alive_ns != INT64_MIN && thread.alive_ns <= end_ns &&
      (end_ns == thread.end_ns || process->end_writer != thread.writer)) {
    json.member("end_within_ns",
                static_cast<uint64_t>(end_ns) - static_cast<uint64_t>(thread.alive_ns));
  }
  json.member("records", trace.summary().records_by_thread[index]);
  json.member("lost", trace.summary().lost_by_thread[index]);
  json.member("overwritten", trace.summary().overwritten_by_thread[index]);
  json.member("whole_from_ns", thread.overwritten_until_ns == INT64_MIN
                                   ? std::nullopt
                                   : std::optional(thread.overwritten_until_ns));
  json.end();
}

void write_slot(const BufferState::Slot& slot, JsonWriter& json) {
  json.begin_object();
  json.member("slot", slot.index);
  json.member("writer", slot.writer);
  json.member("process", slot.process);
  json.member("pid", slot.pid);
  json.member("tid", slot.tid);
  json.member("alive", slot.alive);
  json.member("written", slot.written);
  write_losses_json("lost", slot.lost, json);
  write_losses_json("reported", slot.reported, json);
  json.end();
}

void write_buffer(const BufferState& b, std::optional<double> records_per_second,
                  JsonWriter& json) {
  json.key("buffer").begin_object();
  json.key("blocks_by_phase").begin_object();
  for (uint32_t phase = ARCTRACE_PHASE_FREE; phase < b.blocks_by_phase.size(); ++phase) {
    json.member(phase_text(phase), b.blocks_by_phase[phase]);
  }
  json.member("invalid", b.blocks_by_phase[0]);
  json.end();
  json.key("slots").begin_array();
  for (const BufferState::Slot& slot : b.slots) write_slot(slot, json);
  json.end();
  write_losses_json("lost_without_slot", b.session_lost, json);
  json.member("gate", b.gate);
  json.member("recorded", gate_text(b.gate));
  json.member("high_water_blocks", b.high_water_blocks);
  write_texts("live_filter", b.filter, json);
  write_texts("record_filter", b.record_filter, json);
  json.member("collector_pid", b.collector_pid);
  json.member("collector_alive", b.collector_alive);
  json.member("records_per_second", records_per_second);
  json.end();
}

}  // namespace

void write_info_json(const Trace& trace, std::optional<double> records_per_second,
                     JsonWriter& json, const PatchList& patches, Symbolizer* names,
                     const EnabledList& enabled) {
  const Definitions& definitions = trace.definitions();
  json.begin_object();
  write_session(trace.session(), json);
  enabled.write_json(json);
  write_summary(trace.summary(), json);
  json.key("kept");
  if (const auto kept = kept_span(trace.session(), trace.definitions())) {
    json.begin_object();
    json.member("from_ns", kept->from_ns);
    json.member("until_ns", kept->until_ns);
    if (kept->kernel_from_ns.has_value()) {
      json.member("kernel_from_ns", *kept->kernel_from_ns);
    }
    json.end();
  } else {
    json.value(nullptr);
  }
  json.key("processes").begin_array();
  for (ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    write_process(definitions, i, patches, names, json);
  }
  json.end();
  json.key("threads").begin_array();
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    if (!definitions.thread(i)->of_kernel()) write_thread(trace, i, json);
  }
  json.end();
  if (trace.buffer() != nullptr) {
    write_buffer(*trace.buffer(), records_per_second, json);
  }
  write_findings_json(trace, json);
  json.end();
}

}  // namespace arctrace::reader
