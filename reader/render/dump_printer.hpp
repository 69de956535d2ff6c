// The output of `arctrace dump`: one line for each record, columns of text or a JSON
// object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/render/output.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/trace/event_fields.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// The columns of a line of text, in the order in which --help lists them.
enum class DumpField : uint8_t {
  kTime,     // seconds since the session's start
  kDelta,    // seconds since the line before
  kWall,     // time of day, UTC
  kTicks,    // of the trace's clock
  kPid,      // as the process itself sees it
  kTid,      //
  kName,     // of the thread
  kCpu,      // of the kernel's records
  kWriter,   // identity in the session
  kPlace,    // chunk (or block), and byte offset in it
  kType,     //
  kContent,  // the fields of the record
};

// The names of all columns.
const std::vector<std::pair<std::string, DumpField>>& dump_field_names();
// The columns that are shown unless others are asked for.
std::vector<DumpField> default_dump_fields(bool raw);

class DumpPrinter {
 public:
  // `trace`, `describer` and `output` must outlive this object.
  DumpPrinter(const Trace& trace, RecordDescriber& describer, Output& output,
              std::vector<DumpField> fields)
      : trace_(trace),
        describer_(describer),
        output_(output),
        json_(output.writer()),
        fields_(std::move(fields)) {}

  // Facts of the system and the session, with `blocks` the headers of all blocks, and the
  // names of the columns: lines with '#'.
  void print_header(bool blocks);
  void print_text(const Record& record, const StackEffect& effect);
  // `raw`: with an object `raw` of ticks, writer, chunk (or block) and offset.
  void print_json(const Record& record, const StackEffect& effect, bool raw);
  // A line for a stretch of time of which records are missing, found at `time_ns`.
  void print_gap_text(const Gap& gap, int64_t time_ns);
  void print_gap_json(const Gap& gap, int64_t time_ns);
  // Prints what --where left out: a line with '#', or an object of type LEFT_OUT with the
  // time of the last record. REQUIRES: the filter has conditions.
  void print_left_out_text(const EventFilter& events);
  void print_left_out_json(const EventFilter& events, int64_t time_ns);
  // Sums of the whole trace: a line with '#'.
  void print_footer();
  // Hands everything to the output. To be called last.
  void finish() { json_.finish(); }

 private:
  void append_field(DumpField field, const Record& record, const StackEffect& effect);
  std::string delta_text(int64_t time_ns);
  std::string wall_text(int64_t time_ns) const;
  void append_column(std::string_view text, size_t width, bool right);

  const Trace& trace_;
  RecordDescriber& describer_;
  Output& output_;
  JsonWriter json_;
  std::vector<DumpField> fields_;
  std::string line_;
  std::optional<int64_t> last_ns_;  // of the line before
};

}  // namespace arctrace::reader
