#include "reader/cli/commands/info_json.hpp"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>

#include "reader/trace/bytes.hpp"
#include "reader/trace/format_names.hpp"

namespace arctrace::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string hex(std::span<const std::byte> bytes) {
  const std::string_view text = reader::as_text(bytes);
  return absl::BytesToHexString({text.data(), text.size()});
}

Json address(uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); }

// Null for what never came, or was always so.
Json time_or_null(int64_t time_ns) {
  if (time_ns == INT64_MAX || time_ns == INT64_MIN) return nullptr;
  return time_ns;
}

Json losses(std::span<const uint64_t> by_cause) {
  Json object = Json::object();
  for (uint32_t cause = 0; cause < by_cause.size(); ++cause) {
    // The reserved causes only if somebody used them.
    if (cause > ARCTRACE_LOST_NO_SLOT && by_cause[cause] == 0) continue;
    object[reader::loss_cause_text(cause)] = by_cause[cause];
  }
  return object;
}

Json session_json(const reader::Session& s) {
  Json json = {{"file", s.path},
               {"kind", s.raw ? "buffer" : "file"},
               {"size_bytes", s.size_bytes},
               {"version", absl::StrCat(s.version_major, ".", s.version_minor)},
               {"id", hex(std::as_bytes(std::span(s.id)))},
               {"finished", s.finished},
               {"mode", reader::mode_text(s.mode)},
               {"scope", reader::scope_text(s.scope)},
               {"clock", reader::clock_text(s.clock)},
               {"ticks_per_second", s.ticks_per_second},
               {"start_ticks", s.start_ticks},
               {"start_monotonic_ns", s.start_monotonic_ns},
               {"start_realtime_ns", s.start_realtime_ns},
               {"buffer_size", s.buffer_size},
               {"block_size", s.block_size},
               {"block_count", s.block_count},
               {"slot_count", s.slot_count},
               {"cpu_count", s.cpu_count},
               {"pinned", s.pinned},
               {"creator_pid", s.creator_pid},
               {"creator_uid", s.creator_uid},
               {"host", s.host},
               {"kernel", s.kernel},
               {"cpus_online", s.cpus_online},
               {"page_size", s.page_size},
               {"recorder_command", s.recorder_command}};
  json["kernel_records"] = nullptr;
  if (s.cpu_count != 0) json["kernel_records"] = s.has_perf_records ? "perf" : "bpf";
  json["child_wait_status"] = nullptr;
  if (s.child_wait_status.has_value()) json["child_wait_status"] = *s.child_wait_status;
  json["disk_full_errno"] = s.disk_full_errno;
  return json;
}

Json summary_json(const reader::Summary& s) {
  Json json = {{"records", s.records},
               {"lost", s.lost},
               {"lost_by_cause", losses(s.lost_by_cause)},
               {"overwritten", s.overwritten},
               {"torn", s.torn},
               {"unfinished", s.unfinished},
               {"invalid", s.invalid},
               {"findings", s.findings},
               {"processes", s.processes},
               {"threads", s.threads},
               {"first_ns", s.first_ns},
               {"last_ns", s.last_ns},
               {"duration_ns", s.duration_ns},
               {"blocks", s.blocks},
               {"bytes", s.bytes}};
  Json& by_type = json["records_by_type"] = Json::object();
  for (const auto& [type, count] : s.records_by_type) {
    by_type[reader::record_type_text(type)] = count;
  }
  return json;
}

Json module_json(const reader::Module& m) {
  return {{"path", m.path},
          {"build_id", hex(m.build_id)},
          {"start", address(m.start)},
          {"end", address(m.end)},
          {"bias", address(m.bias)},
          {"loaded_ns", time_or_null(m.loaded_ns)},
          {"unloaded_ns", time_or_null(m.unloaded_ns)},
          {"main", (m.flags & ARCTRACE_MODULE_MAIN) != 0},
          {"vdso", (m.flags & ARCTRACE_MODULE_VDSO) != 0}};
}

Json process_json(const reader::Process& p) {
  Json json = {{"process", p.id},
               {"parent", p.parent_id},
               {"pid", p.pid},
               {"ppid", p.ppid},
               {"uid", p.uid},
               {"origin", reader::origin_text(p.origin)},
               {"executable", p.executable},
               {"arguments", p.arguments},
               {"start_ns", p.start_ns},
               {"end_ns", time_or_null(p.end_ns)}};
  json["end_how"] = nullptr;
  if (p.end_how != 0) json["end_how"] = reader::process_end_text(p.end_how);
  json["end_status"] = p.end_status;
  Json& modules = json["modules"] = Json::array();
  for (const reader::Module& module : p.modules) modules.push_back(module_json(module));
  Json& code_files = json["code_files"] = Json::array();
  for (const reader::CodeFile& file : p.code_files) {
    code_files.push_back({{"path", file.path},
                          {"kind", reader::code_file_kind_text(file.kind)},
                          {"names", file.names},
                          {"left_out", file.left_out},
                          {"cut", file.is_cut}});
  }
  return json;
}

Json thread_json(const reader::Trace& trace, reader::ThreadIndex index) {
  const reader::Definitions& definitions = trace.definitions();
  const reader::Thread& thread = *definitions.thread(index);
  const reader::Process* process = definitions.process(thread.process);
  Json json = {{"writer", thread.writer}, {"tid", thread.tid}};
  json["process"] = process == nullptr ? Json() : Json(process->id);
  json["pid"] = process == nullptr ? Json() : Json(process->pid);
  json["name"] = std::string(definitions.thread_name(index, INT64_MAX));
  json["start_ns"] = thread.start_ns;
  json["end_ns"] = time_or_null(thread.end_ns);
  json["records"] = trace.summary().records_by_thread[index];
  json["lost"] = trace.summary().lost_by_thread[index];
  json["overwritten"] = trace.summary().overwritten_by_thread[index];
  return json;
}

Json buffer_json(const reader::BufferState& b) {
  Json json;
  Json& blocks = json["blocks_by_phase"] = Json::object();
  for (uint32_t phase = ARCTRACE_PHASE_FREE; phase < b.blocks_by_phase.size(); ++phase) {
    blocks[reader::phase_text(phase)] = b.blocks_by_phase[phase];
  }
  blocks["invalid"] = b.blocks_by_phase[0];
  Json& slots = json["slots"] = Json::array();
  for (const reader::BufferState::Slot& slot : b.slots) {
    slots.push_back({{"slot", slot.index},
                     {"writer", slot.writer},
                     {"process", slot.process},
                     {"pid", slot.pid},
                     {"tid", slot.tid},
                     {"alive", slot.alive},
                     {"written", slot.written},
                     {"lost", losses(slot.lost)},
                     {"reported", losses(slot.reported)}});
  }
  json["lost_without_slot"] = losses(b.session_lost);
  json["gate"] = b.gate;
  json["collector_pid"] = b.collector_pid;
  json["collector_alive"] = b.collector_alive;
  return json;
}

}  // namespace

std::string info_json(const reader::Trace& trace,
                      std::optional<double> records_per_second) {
  const reader::Definitions& definitions = trace.definitions();
  Json json;
  json["session"] = session_json(trace.session());
  json["summary"] = summary_json(trace.summary());
  Json& processes = json["processes"] = Json::array();
  for (const reader::Process& process : definitions.processes()) {
    processes.push_back(process_json(process));
  }
  Json& threads = json["threads"] = Json::array();
  for (reader::ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    if (definitions.thread(i)->of_kernel()) continue;
    threads.push_back(thread_json(trace, i));
  }
  if (trace.buffer() != nullptr) {
    json["buffer"] = buffer_json(*trace.buffer());
    json["buffer"]["records_per_second"] = nullptr;
    if (records_per_second) json["buffer"]["records_per_second"] = *records_per_second;
  }
  Json& findings = json["findings"] = Json::array();
  for (const reader::Finding& finding : trace.findings()) {
    findings.push_back({{"rule", finding.rule},
                        {"message", finding.message},
                        {trace.session().raw ? "block" : "chunk", finding.chunk},
                        {"offset", finding.offset}});
  }
  // What a program wrote need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace arctrace::cli
