// What a record says, in words.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "reader/render/field_sink.hpp"
#include "reader/replay/replay.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {

// What a record did to its thread's stack, as the replay understood it.
struct StackChange {
  std::vector<reader::FunctionId> left;  // innermost first
  bool orphan = false;                   // an exit that fits no frame
  bool resync = false;                   // a STACK that says another stack than was known
  std::optional<reader::FunctionId> args_of;  // the function whose args or retval it has
};

struct DescribeOptions {
  bool addresses = false;  // frame keys as they stand in the record too
  bool modules = false;    // the path of a function's module too
};

class RecordDescriber {
 public:
  RecordDescriber(const reader::Trace& trace, reader::FunctionResolver& resolver,
                  DescribeOptions options)
      : trace_(trace), resolver_(resolver), options_(options) {}

  void describe(const reader::Record& record, const StackChange& change, FieldSink& out);

 private:
  void call(const reader::Record& record, const StackChange& change, FieldSink& out);
  void function(const reader::Record& record, uint64_t key, FieldSink& out);
  void title(reader::FunctionId id, FieldSink& out);
  void left(const StackChange& change, FieldSink& out);
  void stack(const reader::Record& record, const StackChange& change, FieldSink& out);
  void lost(const reader::Record& record, FieldSink& out);
  void event(const reader::Record& record, FieldSink& out);
  std::string name(const reader::Record& record, uint32_t id) const;
  std::string_view arg_names(const reader::Record& record) const;
  reader::ProcessIndex process_of(const reader::Record& record) const;

  const reader::Trace& trace_;
  reader::FunctionResolver& resolver_;
  DescribeOptions options_;
};

}  // namespace arctrace::cli
