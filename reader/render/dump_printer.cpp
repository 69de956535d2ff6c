#include "reader/render/dump_printer.hpp"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <algorithm>
#include <optional>

#include "reader/render/gap_list.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/record_types.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

// Widths of the columns. Longer names shift the rest of their line to the right.
size_t width_of(DumpField field) {
  switch (field) {
    case DumpField::kTime:
    case DumpField::kDelta:
      return 15;
    case DumpField::kWall:
      return 29;
    case DumpField::kCpu:
      return 4;
    case DumpField::kTicks:
      return 18;
    case DumpField::kPid:
    case DumpField::kTid:
      return 7;
    case DumpField::kName:
      return 15;
    case DumpField::kWriter:
      return 6;
    case DumpField::kPlace:
    case DumpField::kType:
      return 12;
    case DumpField::kContent:
      return 0;
  }
  return 0;
}

bool is_right_aligned(DumpField field) {
  return field != DumpField::kName && field != DumpField::kType &&
         field != DumpField::kContent;
}

// A thread's number, or "-" if the record has none.
std::string number_or_dash(bool known, uint32_t number) {
  return known ? absl::StrCat(number) : "-";
}

// Returns the CPU of a record of the kernel's, whose fields begin with it.
std::string cpu_text(const Record& record) {
  if (record.type == ARCTRACE_TYPE_LOST) {
    const auto lost = load_part_untrusted<arctrace_lost_body>(record.body);
    return number_or_dash((lost.flags & ARCTRACE_LOST_CPU) != 0,
                          lost.flags >> ARCTRACE_LOST_CPU_SHIFT);
  }
  const bool is_kernels = class_of(record.type) == RecordClass::kKernel;
  return number_or_dash(is_kernels,
                        is_kernels ? load_part_untrusted<uint32_t>(record.body) : 0);
}

std::string block_text(const BlockRef& block) {
  const char* form = block.form == ARCTRACE_FORM_FULL   ? "full"
                     : block.form == ARCTRACE_FORM_BARE ? "bare"
                                                        : "compact";
  const char* what = block.kind == BlockRef::Kind::kDefinitions ? "definitions" : "data";
  return absl::StrCat("# block ", block.chunk, ": ", form, " ", what, ", writer ",
                      block.writer, ", process ", block.process, ", pid ", block.pid,
                      ", tid ", block.tid, ", serial ", block.serial, ", handout ",
                      block.handout, ", base ", block.base_ticks, ", ", block.size,
                      " bytes", block.live ? ", copied while it was open" : "", "\n");
}

}  // namespace

const std::vector<std::pair<std::string, DumpField>>& dump_field_names() {
  static const std::vector<std::pair<std::string, DumpField>> kNames = {
      {"time", DumpField::kTime},     {"delta", DumpField::kDelta},
      {"wall", DumpField::kWall},     {"cpu", DumpField::kCpu},
      {"ticks", DumpField::kTicks},   {"pid", DumpField::kPid},
      {"tid", DumpField::kTid},       {"name", DumpField::kName},
      {"writer", DumpField::kWriter}, {"place", DumpField::kPlace},
      {"type", DumpField::kType},     {"content", DumpField::kContent}};
  return kNames;
}

std::vector<DumpField> default_dump_fields(bool raw) {
  if (raw) {
    return {DumpField::kTime,  DumpField::kTicks, DumpField::kPid,
            DumpField::kTid,   DumpField::kName,  DumpField::kWriter,
            DumpField::kPlace, DumpField::kType,  DumpField::kContent};
  }
  return {DumpField::kTime, DumpField::kPid,  DumpField::kTid,
          DumpField::kName, DumpField::kType, DumpField::kContent};
}

std::string DumpPrinter::delta_text(int64_t time_ns) {
  const int64_t last = last_ns_.value_or(time_ns);
  last_ns_ = time_ns;
  return seconds_text(time_ns - last);
}

std::string DumpPrinter::wall_text(int64_t time_ns) const {
  const absl::Time time = absl::FromUnixNanos(trace_.clock().to_realtime_ns(time_ns));
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E9S", time, absl::UTCTimeZone());
}

void DumpPrinter::append_column(std::string_view text, size_t width, bool right) {
  const size_t padding = width > text.size() ? width - text.size() : 0;
  if (right) line_.append(padding, ' ');
  line_ += text;
  if (!right) line_.append(padding, ' ');
}

void DumpPrinter::append_field(DumpField field, const Record& record,
                               const StackEffect& effect) {
  const Definitions& definitions = trace_.definitions();
  const Thread* thread = definitions.thread(record.thread);
  const bool has_pid = definitions.has_pid(record.thread);
  std::string text;
  switch (field) {
    case DumpField::kTime:
      text = seconds_text(record.time_ns);
      break;
    case DumpField::kDelta:
      text = delta_text(record.time_ns);
      break;
    case DumpField::kWall:
      text = wall_text(record.time_ns);
      break;
    case DumpField::kCpu:
      text = cpu_text(record);
      break;
    case DumpField::kTicks:
      text = absl::StrCat(record.ticks);
      break;
    case DumpField::kPid:
      text = number_or_dash(has_pid, definitions.pid_of(record.thread));
      break;
    case DumpField::kTid:
      text = number_or_dash(thread != nullptr, thread == nullptr ? 0 : thread->tid);
      break;
    case DumpField::kName:
      text = thread == nullptr
                 ? "-"
                 : escaped(definitions.thread_name(record.thread, record.time_ns));
      break;
    case DumpField::kWriter:
      text = number_or_dash(thread != nullptr, thread == nullptr ? 0 : thread->writer);
      break;
    case DumpField::kPlace:
      text = absl::StrCat(record.chunk, ":", record.offset);
      break;
    case DumpField::kType:
      text = record_type_text(record.type);
      break;
    case DumpField::kContent: {
      TextFields content(text);
      describer_.describe(record, effect, content);
      break;
    }
  }
  append_column(std::move(text), width_of(field), is_right_aligned(field));
}

void DumpPrinter::print_text(const Record& record, const StackEffect& effect) {
  line_.clear();
  for (const DumpField field : fields_) {
    if (field != fields_.front()) line_ += ' ';
    append_field(field, record, effect);
  }
  line_.erase(line_.find_last_not_of(' ') + 1);
  line_ += '\n';
  output_.write(line_);
}

void DumpPrinter::print_json(const Record& record, const StackEffect& effect, bool raw) {
  const Definitions& definitions = trace_.definitions();
  const Thread* thread = definitions.thread(record.thread);
  json_.begin_object();
  json_.member("time_ns", record.time_ns);
  json_.member("pid", definitions.has_pid(record.thread)
                          ? std::optional(definitions.pid_of(record.thread))
                          : std::nullopt);
  json_.member("tid", thread == nullptr ? std::nullopt : std::optional(thread->tid));
  json_.member("type", record_type_text(record.type));
  if (raw) {
    json_.key("raw").begin_object();
    json_.member("ticks", record.ticks);
    json_.member("writer", thread == nullptr ? 0 : thread->writer);
    json_.member(trace_.session().raw ? "block" : "chunk", record.chunk);
    json_.member("offset", record.offset);
    json_.end();
  }
  JsonFields fields(json_);
  describer_.describe(record, effect, fields);
  json_.end();
}

void DumpPrinter::print_gap_text(const Gap& gap, int64_t time_ns) {
  const Definitions& definitions = trace_.definitions();
  const Thread* thread = definitions.thread(gap.thread);
  line_.clear();
  for (const DumpField field : fields_) {
    if (field != fields_.front()) line_ += ' ';
    std::string text = "-";
    switch (field) {
      case DumpField::kTime:
        text = seconds_text(time_ns);
        break;
      case DumpField::kDelta:
        text = delta_text(time_ns);
        break;
      case DumpField::kWall:
        text = wall_text(time_ns);
        break;
      case DumpField::kPid:
        text = number_or_dash(definitions.has_pid(gap.thread),
                              definitions.pid_of(gap.thread));
        break;
      case DumpField::kTid:
        text = number_or_dash(thread != nullptr, thread == nullptr ? 0 : thread->tid);
        break;
      case DumpField::kWriter:
        text = number_or_dash(thread != nullptr, thread == nullptr ? 0 : thread->writer);
        break;
      case DumpField::kName:
        if (thread != nullptr) {
          text = escaped(definitions.thread_name(gap.thread, gap.to_ns));
        }
        break;
      case DumpField::kType:
        text = "GAP";
        break;
      case DumpField::kContent:
        text = absl::StrCat(
            gap_reason_text(gap), " of=", gap_subject_text(gap, definitions),
            " from=", gap.from_known ? seconds_text(gap.from_ns) : "not known",
            " to=", seconds_text(gap.to_ns), " records=",
            gap.records.has_value() ? absl::StrCat(*gap.records) : "not known");
        break;
      default:
        break;
    }
    append_column(text, width_of(field), is_right_aligned(field));
  }
  line_.erase(line_.find_last_not_of(' ') + 1);
  line_ += '\n';
  output_.write(line_);
}

void DumpPrinter::print_gap_json(const Gap& gap, int64_t time_ns) {
  json_.begin_object();
  json_.member("time_ns", time_ns);
  json_.member("type", "GAP");
  write_gap_json(gap, trace_.definitions(), json_);
  json_.end();
}

void DumpPrinter::print_header(bool blocks) {
  for (const std::string& fact : session_facts(trace_.session())) {
    output_.write(absl::StrCat("# ", fact, "\n"));
  }
  for (const BlockRef& block :
       trace_.blocks().first(blocks ? trace_.blocks().size() : 0)) {
    if (block.kind != BlockRef::Kind::kCollector) output_.write(block_text(block));
  }
  line_.assign(1, '#');
  for (const DumpField field : fields_) {
    const auto& names = dump_field_names();
    const auto name = std::find_if(names.begin(), names.end(),
                                   [&](const auto& n) { return n.second == field; });
    // The '#' replaces a blank.
    const size_t width =
        width_of(field) - (field == fields_.front() && width_of(field) > 0);
    if (field != fields_.front()) line_ += ' ';
    append_column(name->first, width, is_right_aligned(field));
  }
  line_.erase(line_.find_last_not_of(' ') + 1);
  output_.write(line_ + "\n");
}

void DumpPrinter::print_left_out_text(const EventFilter& events) {
  output_.write(absl::StrCat("# ", left_out_events_text(events), "\n"));
}

void DumpPrinter::print_left_out_json(const EventFilter& events, int64_t time_ns) {
  write_left_out_line(events, time_ns, json_);
}

void DumpPrinter::print_footer() {
  output_.write(absl::StrCat("# ", summary_line(trace_.summary()), "\n"));
}

}  // namespace arctrace::reader
