// One line for each record: columns of text, or an object of JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/render/output.hpp"
#include "reader/render/record_describer.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {

// What can stand in a line of text, in the order in which --fields names them.
enum class DumpField : uint8_t {
  kTime,     // seconds since the session's start
  kTicks,    // of the trace's clock
  kPid,      // as the process sees itself
  kTid,      //
  kName,     // the thread's
  kWriter,   // identity in the session
  kPlace,    // chunk (or block) and byte in it
  kType,     //
  kContent,  // what the record says
};

// The names of all fields, and of those that are shown unless others are asked for.
const std::vector<std::pair<std::string, DumpField>>& dump_field_names();
std::vector<DumpField> default_dump_fields(bool raw);

class DumpPrinter {
 public:
  DumpPrinter(const reader::Trace& trace, RecordDescriber& describer, Output& output,
              std::vector<DumpField> fields)
      : trace_(trace),
        describer_(describer),
        output_(output),
        fields_(std::move(fields)) {}

  // Facts of the system and the session, and the names of the columns: lines with '#'.
  void print_header();
  void print_text(const reader::Record& record, const StackChange& change);
  // `raw`: with an object `raw` of ticks, writer and place.
  void print_json(const reader::Record& record, const StackChange& change, bool raw);
  // Sums of the whole trace: a line with '#'.
  void print_footer();

 private:
  void append_field(DumpField field, const reader::Record& record,
                    const StackChange& change);
  void append_column(std::string_view text, size_t width, bool right);

  const reader::Trace& trace_;
  RecordDescriber& describer_;
  Output& output_;
  std::vector<DumpField> fields_;
  std::string line_;
};

}  // namespace arctrace::cli
