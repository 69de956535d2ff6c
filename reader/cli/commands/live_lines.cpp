#include "reader/cli/commands/live_lines.hpp"

#include <absl/strings/str_cat.h>

#include "reader/render/session_text.hpp"

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
  replay_ = &replay;
  describer_ = std::make_unique<reader::RecordDescriber>(
      trace, replay.resolver(), reader::DescribeOptions{false, is_json});
  printer_ = std::make_unique<reader::DumpPrinter>(trace, *describer_, output_,
                                                   reader::default_dump_fields(false));
}

void LiveLines::before(const reader::Record& /*record*/) { listener_.clear(); }

void LiveLines::after(const reader::Record& record) {
  if (!output_.good() || !filter_.wants_thread(*definitions_, record.thread)) return;
  const reader::Thread* thread = definitions_->thread(record.thread);
  const reader::ProcessIndex process =
      thread == nullptr ? reader::kNoIndex : thread->process;
  if (!filter_.wants_function(record, listener_.effect(), process, replay_->resolver())) {
    return;
  }
  if (format_ == OutputFormat::kJson) {
    printer_->print_json(record, listener_.effect(), false);
  } else {
    printer_->print_text(record, listener_.effect());
  }
}

void LiveLines::end(const reader::Trace& /*trace*/, reader::Replay& /*replay*/,
                    int64_t /*from_ns*/, int64_t /*until_ns*/,
                    const std::vector<reader::LiveThread>& /*threads*/) {
  printer_->finish();
  // A failure is kept: good() tells.
  static_cast<void>(output_.finish());
}

}  // namespace arctrace::cli
