// The output of `arctrace info` as text, and findings in text and JSON.
#include <absl/container/btree_map.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "reader/render/info.hpp"
#include "reader/render/patch_list.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {

std::string finding_text(const Finding& finding, const Session& session) {
  std::string text =
      absl::StrCat(finding.rule, session.raw ? " block " : " chunk ", finding.chunk);
  if (finding.offset != 0) absl::StrAppend(&text, ", byte ", finding.offset);
  absl::StrAppend(&text, ": ", escaped(finding.message));
  for (const RuleText& rule : kRules) {
    if (rule.id == finding.rule)
      absl::StrAppend(&text, " (", std::string(rule.text), ")");
  }
  return text;
}

void write_findings_json(const Trace& trace, JsonWriter& json) {
  json.key("findings").begin_array();
  for (const Finding& finding : trace.findings()) {
    json.begin_object();
    json.member("rule", finding.rule);
    json.member("message", finding.message);
    json.member(trace.session().raw ? "block" : "chunk", finding.chunk);
    json.member("offset", finding.offset);
    json.end();
  }
  json.end();
}

namespace {

constexpr size_t kFindingsShown = 5;

// Returns seconds, or "-" for an end that never came.
std::string time_or_dash(int64_t time_ns) {
  return time_ns == INT64_MAX || time_ns == INT64_MIN ? "-" : seconds_text(time_ns);
}

// A table of rows of cells. Each column is as wide as its widest cell; the last one is
// not padded.
class Table {
 public:
  // `right`: how many of the first columns are aligned to the right.
  explicit Table(std::vector<std::string> head, size_t right) : right_(right) {
    rows_.push_back(std::move(head));
  }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  void append_to(std::string& out) const {
    std::vector<size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i)
        widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows_) {
      out += "  ";
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string padding(widths[i] - row[i].size(), ' ');
        if (i != 0) out += "  ";
        if (i < right_) out += padding;
        out += row[i];
        if (i >= right_ && i + 1 < row.size()) out += padding;
      }
      out += '\n';
    }
  }

 private:
  size_t right_;
  std::vector<std::vector<std::string>> rows_;
};

void append_counts(std::string& out, const Summary& summary) {
  absl::StrAppend(&out, summary_line(summary), "\n");
  absl::StrAppend(&out, "from ", seconds_text(summary.first_ns), " s to ",
                  seconds_text(summary.last_ns), " s, in ", summary.blocks,
                  " blocks and chunks of ", bytes_text(summary.bytes), " in all\n");
  const auto form = [](const FormCounts& counts) {
    return absl::StrCat(count_text(counts.records, "record"), " of ",
                        count_text(counts.threads, "thread"));
  };
  absl::StrAppend(&out, "in blocks of single threads: ", form(summary.own_blocks),
                  "; in the shared chain: ", form(summary.shared_chain), "\n");
  std::string types;
  for (const auto& [type, count] : summary.records_by_type) {
    absl::StrAppend(&types, types.empty() ? "" : ", ", record_type_text(type), " ",
                    count);
  }
  absl::StrAppend(&out, "by type: ", types.empty() ? "none" : types, "\n");
}

std::string end_text(const Process& process) {
  const bool is_exit =
      process.end_how == ARCTRACE_END_EXIT || process.end_how == ARCTRACE_END_EXIT_DIRECT;
  if (process.wait_status.has_value() && !is_exit) {
    return wait_status_text(*process.wait_status);
  }
  if (process.end_how == 0) {
    return process.died_ns == INT64_MAX ? "no end recorded"
                                        : "not known: its threads ended";
  }
  std::string text = process_end_text(process.end_how);
  if (process.end_how == ARCTRACE_END_EXIT_DIRECT) {
    absl::StrAppend(&text, "(", process.end_status, ")");
  }
  return text;
}

// Appends the head of a list of definitions: the number of all, and how many have none.
void append_number(std::string& out, const std::string& number, uint64_t all,
                   uint64_t defined) {
  absl::StrAppend(&out, "\n", number);
  if (all > defined) {
    absl::StrAppend(&out, ", ", all - defined, " of them without definitions");
  }
  out += "\n";
}

void append_processes(std::string& out, const Trace& trace) {
  const Definitions& definitions = trace.definitions();
  const uint64_t all = trace.summary().processes;
  const auto defined = static_cast<uint64_t>(
      std::count_if(definitions.processes().begin(), definitions.processes().end(),
                    [](const Process& process) { return process.origin != 0; }));
  append_number(out, count_text(all, "process", "processes"), all, defined);
  Table table({"pid", "ppid", "start s", "end s", "began by", "ended by", "command"}, 4);
  for (const Process& process : definitions.processes()) {
    if (process.origin == 0) {
      table.add({process.pid == 0 ? "-" : absl::StrCat(process.pid), "-",
                 process.pid == 0 ? "-" : seconds_text(process.begin_ns()),
                 time_or_dash(process.end_ns), origin_text(0), end_text(process),
                 absl::StrCat("process ", process.id,
                              " of the session, which the trace does not define")});
      continue;
    }
    table.add({absl::StrCat(process.pid), absl::StrCat(process.ppid),
               seconds_text(process.begin_ns()), time_or_dash(process.ended_ns()),
               origin_text(process.origin), end_text(process),
               process.arguments.empty() ? escaped(process.executable)
                                         : command_line_text(process.arguments)});
  }
  table.append_to(out);
}

void append_threads(std::string& out, const Trace& trace) {
  const Definitions& definitions = trace.definitions();
  const uint64_t all = trace.summary().threads;
  const auto defined = static_cast<uint64_t>(std::count_if(
      definitions.threads().begin(), definitions.threads().end(),
      [](const Thread& thread) { return !thread.of_kernel() && !thread.names.empty(); }));
  append_number(out, count_text(all, "thread"), all, defined);
  Table table({"pid", "tid", "records", "lost", "overwritten", "whole from s", "start s",
               "end s", "name"},
              8);
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    const Thread& thread = *definitions.thread(i);
    if (thread.of_kernel()) continue;
    const Process* process = definitions.process(thread.process);
    table.add(
        {process == nullptr || process->pid == 0 ? "-" : absl::StrCat(process->pid),
         absl::StrCat(thread.tid), absl::StrCat(trace.summary().records_by_thread[i]),
         absl::StrCat(trace.summary().lost_by_thread[i]),
         absl::StrCat(trace.summary().overwritten_by_thread[i]),
         thread.overwritten_until_ns == INT64_MIN
             ? "-"
             : seconds_text(thread.overwritten_until_ns),
         seconds_text(definitions.begin_ns(i)), time_or_dash(definitions.life_end_ns(i)),
         escaped(definitions.thread_name(i, INT64_MAX))});
  }
  table.append_to(out);
}

// Appends each module's file once, however many processes map it.
void append_modules(std::string& out, const Definitions& definitions) {
  absl::btree_map<std::pair<std::string, std::string>, size_t> processes_of;
  for (const Process& process : definitions.processes()) {
    absl::btree_map<std::pair<std::string, std::string>, bool> own;
    for (const Module& module : process.modules) {
      const std::string_view id = as_text(module.build_id);
      own[{module.path, absl::BytesToHexString({id.data(), id.size()})}] = true;
    }
    for (const auto& [module, unused] : own) ++processes_of[module];
  }
  absl::StrAppend(&out, "\n", count_text(processes_of.size(), "module"), "\n");
  Table table({"processes", "build-id", "path"}, 1);
  for (const auto& [module, count] : processes_of) {
    table.add({absl::StrCat(count), module.second.empty() ? "-" : module.second,
               escaped(module.first)});
  }
  table.append_to(out);
}

// Appends the files with names of generated code; nothing if there were none.
void append_code_files(std::string& out, const Definitions& definitions) {
  Table table({"pid", "names", "omitted", "file"}, 3);
  size_t files = 0;
  for (const Process& process : definitions.processes()) {
    for (const CodeFile& file : process.code_files) {
      ++files;
      table.add({absl::StrCat(process.pid), absl::StrCat(file.names),
                 absl::StrCat(file.left_out),
                 absl::StrCat(escaped(file.path), file.is_cut ? " (cut)" : "")});
    }
  }
  if (files == 0) return;
  absl::StrAppend(&out, "\n", count_text(files, "file"),
                  " with names of generated code\n");
  table.append_to(out);
}

std::string slot_losses(const BufferState::Slot& slot) {
  std::string text;
  for (uint32_t cause = 0; cause < slot.lost.size(); ++cause) {
    if (slot.lost[cause] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", loss_cause_text(cause), " ",
                    slot.lost[cause], " (reported ", slot.reported[cause], ")");
  }
  return text.empty() ? "-" : text;
}

std::string entries_text(const std::vector<std::string>& filter) {
  if (filter.empty()) return " none";
  std::string text;
  for (const std::string& entry : filter) absl::StrAppend(&text, " ", escaped(entry));
  return text;
}

void append_buffer(std::string& out, const BufferState& buffer) {
  out += "\nblocks:";
  for (uint32_t phase = ARCTRACE_PHASE_FREE; phase < buffer.blocks_by_phase.size();
       ++phase) {
    absl::StrAppend(&out, phase == ARCTRACE_PHASE_FREE ? " " : ", ",
                    buffer.blocks_by_phase[phase], " ", phase_text(phase));
  }
  if (buffer.blocks_by_phase[0] != 0) {
    absl::StrAppend(&out, ", ", buffer.blocks_by_phase[0], " in an unknown phase");
  }
  absl::StrAppend(&out, "\ncollector: ",
                  buffer.collector_alive ? absl::StrCat("pid ", buffer.collector_pid)
                                         : std::string("none"),
                  "; recording is ", buffer.gate == 0 ? "off" : "on", "\n");
  absl::StrAppend(&out, "recorded: ", gate_text(buffer.gate), "; high-water mark: ",
                  buffer.high_water_blocks == 0
                      ? std::string("none")
                      : count_text(buffer.high_water_blocks, "block"),
                  "; live filter:", entries_text(buffer.filter),
                  "; record filter:", entries_text(buffer.record_filter), "\n");
  absl::StrAppend(&out, "\n", count_text(buffer.slots.size(), "writer slot"), "\n");
  Table table({"slot", "writer", "pid", "tid", "written", "state", "lost"}, 5);
  for (const BufferState::Slot& slot : buffer.slots) {
    table.add({absl::StrCat(slot.index), absl::StrCat(slot.writer),
               absl::StrCat(slot.pid), absl::StrCat(slot.tid), absl::StrCat(slot.written),
               slot.alive ? "alive" : "dead", slot_losses(slot)});
  }
  table.append_to(out);
}

void append_findings(std::string& out, const Trace& trace) {
  if (trace.finding_count() == 0) return;
  absl::StrAppend(&out, "\n", count_text(trace.finding_count(), "finding"), "\n");
  const auto findings = trace.findings();
  const size_t shown = std::min(findings.size(), kFindingsShown);
  for (const Finding& finding : findings.first(shown)) {
    absl::StrAppend(&out, "  ", finding_text(finding, trace.session()), "\n");
  }
  if (shown < trace.finding_count()) out += "  ... arctrace check prints all\n";
}

}  // namespace

std::string info_text(const Trace& trace, std::optional<double> records_per_second,
                      const PatchList& patches, Symbolizer* names,
                      const EnabledList& enabled) {
  std::string out;
  for (const std::string& fact : session_facts(trace.session())) {
    absl::StrAppend(&out, fact, "\n");
  }
  out += enabled.text();
  append_counts(out, trace.summary());
  if (const auto kept = kept_span(trace.session(), trace.definitions())) {
    absl::StrAppend(&out, kept_span_text(*kept), "\n");
  }
  append_processes(out, trace);
  append_threads(out, trace);
  append_modules(out, trace.definitions());
  append_code_files(out, trace.definitions());
  out += patches.text(trace.definitions(), names);
  if (trace.buffer() != nullptr) append_buffer(out, *trace.buffer());
  if (records_per_second) {
    absl::StrAppendFormat(&out, "  %.0f records per second at present\n",
                          *records_per_second);
  }
  append_findings(out, trace);
  return out;
}

}  // namespace arctrace::reader
