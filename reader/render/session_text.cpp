#include "reader/render/session_text.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/time/time.h>
#include <arctrace/format.h>

#include <algorithm>
#include <cstring>

#include "reader/render/text_style.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

std::string state_text(const Session& session) {
  if (session.raw) return "a buffer, live or left behind";
  if (session.disk_full_errno != 0) {
    return absl::StrCat("cut off: ", ::strerror(session.disk_full_errno));
  }
  return session.finished ? "complete" : "cut off";
}

std::string pinned_text(const Session& session) {
  if (session.pinned_bytes == 0) return "";
  if (session.pinned_bytes == session.buffer_size) return ", pinned";
  return absl::StrCat(", ", bytes_text(session.pinned_bytes), " of it pinned");
}

}  // namespace

std::vector<std::string> session_facts(const Session& session) {
  std::vector<std::string> facts;
  const size_t others = session.files.given - 1;
  facts.push_back(absl::StrCat(
      escaped(session.path),
      others == 0 ? "" : absl::StrCat(" and ", count_text(others, "file"), " after it"),
      ": ", state_text(session), ", ", bytes_text(session.size_bytes), ", format ",
      session.version_major, ".", session.version_minor));
  if (!session.recorder_command.empty()) {
    facts.push_back(
        absl::StrCat("recorded by: ", command_line_text(session.recorder_command)));
  }
  std::string start = absl::StrCat("started: ", realtime_text(session.start_realtime_ns));
  if (!session.host.empty()) {
    absl::StrAppend(&start, " on ", escaped(session.host), ", Linux ",
                    escaped(session.kernel), ", ", session.cpus_online, " CPUs");
  }
  facts.push_back(std::move(start));
  facts.push_back(absl::StrFormat(
      "buffer: %s in %d blocks of %s, mode %s, scope %s%s; clock %s, %.6f MHz",
      bytes_text(session.buffer_size), session.block_count,
      bytes_text(session.block_size), mode_text(session.mode), scope_text(session.scope),
      pinned_text(session), clock_text(session.clock),
      static_cast<double>(session.ticks_per_second) / 1e6));
  if (std::string text = stamps_text(session); !text.empty()) {
    facts.push_back(std::move(text));
  }
  if (session.has_perf_records) {
    facts.push_back(
        "kernel: recorded by perf events: dispatches, fork, exec and exit, without "
        "wake-ups and next threads");
  } else if (session.cpu_count != 0) {
    facts.push_back("kernel: recorded by BPF");
  }
  if (std::string text = files_text(session.files); !text.empty()) {
    facts.push_back(std::move(text));
  }
  if (std::string text = identities_text(session.processes, session.threads);
      !text.empty()) {
    facts.push_back(std::move(text));
  }
  if (session.child_wait_status.has_value()) {
    facts.push_back(absl::StrCat("the command ended with ",
                                 wait_status_text(*session.child_wait_status)));
  }
  return facts;
}

std::string stamps_text(const Session& session) {
  if (session.stamps == ARCTRACE_STAMPS_EXACT) return "";
  std::string text =
      absl::StrCat(session.stamps == ARCTRACE_STAMPS_COARSE
                       ? "coarse times: their clock was to move every "
                       : "order, and no times: their clock was to move every ",
                   duration_text(session.resolution_ns));
  if (session.clock_word.has_value()) {
    absl::StrAppend(&text, "; they are ", duration_text(session.clock_word->mean_age_ns),
                    " late on average, ", duration_text(session.clock_word->longest_ns),
                    " at most");
  }
  return text + "; sums of shorter calls are estimates, as of samples";
}

void write_stamps_json(const Session& session, JsonWriter& json) {
  if (session.stamps == ARCTRACE_STAMPS_EXACT) return;
  json.member("stamps", stamps_name(session.stamps));
  json.member("resolution_ns", session.resolution_ns);
  const std::optional<ClockWord>& word = session.clock_word;
  json.member("mean_age_ns", word ? std::optional(word->mean_age_ns) : std::nullopt);
  json.member("longest_step_ns", word ? std::optional(word->longest_ns) : std::nullopt);
}

std::string files_text(const RecordingFiles& files) {
  if (files.last == 0) return "";
  std::string text = absl::StrCat("files: ", files.first);
  if (files.last != files.first) absl::StrAppend(&text, " to ", files.last);
  text += " of the recording";
  const uint64_t numbers = uint64_t{files.last} - std::min(files.first, files.last) + 1;
  if (numbers > files.given) {
    absl::StrAppend(&text, ", without ", numbers - files.given, " between them");
  }
  const uint64_t before = files.first > 1 ? files.first - 1 : 0;
  if (files.removed != 0) {
    absl::StrAppend(&text, "; ", count_text(files.removed, "file"),
                    files.removed == 1 ? " was" : " were", " removed");
  }
  if (before > files.removed) {
    absl::StrAppend(&text, "; ", before - files.removed, " before not read here");
  }
  if (files.goes_on) text += "; it goes on in another file";
  return text;
}

std::string identities_text(uint32_t processes, uint32_t threads) {
  constexpr uint32_t kEarly = ARCTRACE_IDENTITIES_END / 4;
  const uint32_t given = std::max(processes, threads);
  if (given < kEarly) return "";
  return absl::StrCat("identities: ", processes, " of processes and ", threads,
                      " of threads are given, of ", ARCTRACE_IDENTITIES_END - 1,
                      " each; when they end, new threads are not recorded: begin a new "
                      "session before that");
}

std::string count_text(uint64_t count, const std::string& what,
                       const std::string& plural) {
  if (count == 1) return "1 " + what;
  return absl::StrCat(grouped_text(count), " ", plural.empty() ? what + "s" : plural);
}

std::string kernel_records_text(uint64_t records) {
  return records == 0 ? "" : ", " + count_text(records, "kernel record");
}

namespace {

uint64_t kernel_records(const Summary& summary) {
  uint64_t records = 0;
  for (const auto& [type, count] : summary.records_by_type) {
    if (class_of(type) == RecordClass::kKernel) records += count;
  }
  return records;
}

}  // namespace

std::string summary_line(const Summary& summary) {
  std::string line = absl::StrCat(count_text(summary.records, "record"), ", ",
                                  grouped_text(summary.lost), " lost");
  if (summary.lost != 0)
    absl::StrAppend(&line, " (", losses_text(summary.lost_by_cause), ")");
  line += other_missing_text(summary);
  line += kernel_records_text(kernel_records(summary));
  if (summary.invalid != 0) {
    absl::StrAppend(&line, ", ", grouped_text(summary.invalid), " invalid");
  }
  if (summary.findings != 0) {
    absl::StrAppend(&line, ", ", count_text(summary.findings, "finding"),
                    " (see arctrace check)");
  }
  return line;
}

std::string bytes_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " bytes");
  size_t unit = 0;
  uint64_t scale = 1024;
  while (bytes / scale >= 1024 && unit + 1 < std::size(kUnits)) {
    scale *= 1024;
    ++unit;
  }
  const uint64_t tenths = bytes % scale * 10 / scale;
  return tenths == 0 ? absl::StrCat(bytes / scale, " ", kUnits[unit])
                     : absl::StrCat(bytes / scale, ".", tenths, " ", kUnits[unit]);
}

std::string realtime_text(uint64_t realtime_ns) {
  const absl::Time time = absl::FromUnixNanos(
      static_cast<int64_t>(std::min<uint64_t>(realtime_ns, INT64_MAX)));
  return absl::StrCat(absl::FormatTime("%Y-%m-%d %H:%M:%E3S", time, absl::UTCTimeZone()),
                      " UTC");
}

std::string command_line_text(const std::vector<std::string>& arguments) {
  std::string text;
  for (const std::string& argument : arguments) {
    if (!text.empty()) text += ' ';
    const bool quoted =
        argument.empty() || argument.find_first_of(" \t\n\"'") != std::string::npos;
    if (quoted) text += '\'';
    append_escaped(text, argument);
    if (quoted) text += '\'';
  }
  return text;
}

std::string losses_text(std::span<const uint64_t> by_cause) {
  std::string text;
  for (uint32_t cause = 0; cause < by_cause.size(); ++cause) {
    if (by_cause[cause] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", loss_cause_text(cause), " ",
                    grouped_text(by_cause[cause]));
  }
  return text;
}

std::string other_missing_text(const Summary& summary) {
  std::string text;
  const auto append = [&](uint64_t count, const char* what) {
    if (count != 0) absl::StrAppend(&text, ", ", grouped_text(count), " ", what);
  };
  append(summary.overwritten, "overwritten");
  append(summary.elsewhere, "in another file");
  append(summary.filtered_out, "filtered out");
  append(summary.torn, "torn");
  append(summary.unfinished, "unfinished");
  return text;
}

std::string kept_span_text(const KeptSpan& span) {
  if (span.ns() == 0)
    return "there is no time of which the records of all threads are there";
  const auto last_text = [](uint64_t time_ns, int64_t from_ns) {
    return absl::StrCat("for the last ", duration_text(time_ns), ", from ",
                        seconds_text(from_ns), " s on");
  };
  std::string text =
      "the records of all threads are there " + last_text(span.ns(), span.from_ns);
  if (!span.has_less_of_kernel()) return text;
  return span.kernel_ns() == 0
             ? text + "; there is no time of which all the kernel's are there"
             : absl::StrCat(text, "; the kernel's ",
                            last_text(span.kernel_ns(), *span.kernel_from_ns));
}

void write_losses_json(std::string_view name, std::span<const uint64_t> by_cause,
                       JsonWriter& json) {
  json.key(name).begin_object();
  for (uint32_t cause = 0; cause < by_cause.size(); ++cause) {
    json.member(loss_cause_text(cause), by_cause[cause]);
  }
  json.end();
}

}  // namespace arctrace::reader
