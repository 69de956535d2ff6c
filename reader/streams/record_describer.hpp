// The content of a record as named fields.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/replay/replay.hpp"
#include "reader/streams/field_sink.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// What a record did to its thread's stack, as the replay understood it.
struct StackEffect {
  std::vector<FunctionId> left;       // the frames that it ended, innermost first
  bool orphan = false;                // it is an exit that fits no frame
  bool resync = false;                // it is a STACK that contradicts the stack so far
  std::optional<FunctionId> args_of;  // the function whose args or retval it has
};

struct DescribeOptions {
  bool addresses = false;  // also frame keys, as in the record
  bool modules = false;    // also the path of a function's module
};

class RecordDescriber {
 public:
  // `trace` and `resolver` must outlive this object.
  RecordDescriber(const Trace& trace, FunctionResolver& resolver, DescribeOptions options)
      : trace_(trace), resolver_(resolver), options_(options) {}

  // Gives the fields of `record` to `out`. Records come in order of time.
  void describe(const Record& record, const StackEffect& effect, FieldSink& out);

 private:
  void describe_call(const Record& record, const StackEffect& effect, FieldSink& out);
  void describe_stack(const Record& record, const StackEffect& effect, FieldSink& out);
  void describe_lost(const Record& record, FieldSink& out);
  void describe_event(const Record& record, FieldSink& out);
  void put_function(const Record& record, uint64_t key, FieldSink& out);
  void put_title(FunctionId id, FieldSink& out);
  static void put_locks(const Record& record, FieldSink& out);
  void put_frames(const Record& record, BodyReader reader, FieldSink& out);
  void put_left(const StackEffect& effect, FieldSink& out);
  std::string name(const Record& record, uint32_t id) const;
  std::string_view arg_names(const Record& record) const;
  ProcessIndex process_of(const Record& record) const;

  const Trace& trace_;
  FunctionResolver& resolver_;
  DescribeOptions options_;
};

}  // namespace arctrace::reader

namespace arctrace::cli {

using reader::FieldSink;

// Describes a definition or a record of the collector; false: `record` is of another
// type.
bool describe_definition(const reader::Record& record, FieldSink& out);

}  // namespace arctrace::cli
