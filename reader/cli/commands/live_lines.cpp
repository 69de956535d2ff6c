#include "reader/cli/commands/live_lines.hpp"

#include <absl/strings/str_cat.h>

#include "reader/render/left_out_events.hpp"
#include "reader/render/session_text.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::cli {

void print_missed(uint64_t missed_blocks) {
  if (missed_blocks == 0) return;
  reader::print_warning(
      absl::StrCat("records of ", reader::count_text(missed_blocks, "block"),
                   " were gone before they could be read, and are not shown"));
}

void LiveLines::begin(const reader::Trace& trace, reader::Replay& replay) {
  const bool is_json = format_ == OutputFormat::kJson;
  definitions_ = &trace.definitions();
  events_.set_definitions(trace.definitions());
  replay_ = &replay;
  describer_ = std::make_unique<reader::RecordDescriber>(
      trace, replay.resolver(), reader::DescribeOptions{false, is_json});
  printer_ = std::make_unique<reader::DumpPrinter>(trace, *describer_, output_,
                                                   reader::default_dump_fields(false));
}

void LiveLines::before(const reader::Record& /*record*/) { listener_.clear(); }

void LiveLines::after(const reader::Record& record) {
  last_ns_ = record.time_ns;
  if (!output_.good() || !filter_.wants_thread(*definitions_, record.thread)) return;
  const reader::Thread* thread = definitions_->thread(record.thread);
  const reader::ProcessIndex process =
      thread == nullptr ? reader::kNoIndex : thread->process;
  if (!filter_.wants_function(record, listener_.effect(), process, replay_->resolver()) ||
      !events_.admits(record)) {
    return;
  }
  if (format_ == OutputFormat::kJson) {
    printer_->print_json(record, listener_.effect(), false);
  } else {
    printer_->print_text(record, listener_.effect());
  }
}

void LiveLines::end(const reader::Trace& trace, reader::Replay& /*replay*/,
                    int64_t /*from_ns*/, int64_t /*until_ns*/,
                    const std::vector<reader::LiveThread>& /*threads*/) {
  printer_->finish();
  if (events_.is_set() && (!problem_.has_value() || !problem_->empty())) {
    problem_ = reader::unmet_condition(events_.texts(),
                                       reader::field_types(trace.definitions()));
  }
  // A failure is kept: good() tells.
  static_cast<void>(output_.finish());
}

void LiveLines::finish() {
  if (!events_.is_set() || !output_.good()) return;
  if (format_ == OutputFormat::kJson) {
    reader::JsonWriter json(output_.writer());
    reader::write_left_out_line(events_, last_ns_, json);
    json.finish();
    static_cast<void>(output_.finish());
  } else {
    reader::print_message(reader::left_out_events_text(events_));
  }
  if (!problem_.value_or("").empty()) reader::print_warning(reader::escaped(*problem_));
}

}  // namespace arctrace::cli
