// The content of a record as named fields, with what it does to its thread's stack.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/field_sink.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// The effect of a record on its thread's stack, as the replay understood it.
struct StackEffect {
  std::vector<FunctionId> left;       // the frames that it ended, innermost first
  bool orphan = false;                // it is an exit that matches no frame
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

// Collects what one record does to its thread's stack, for its description.
class EffectListener : public ReplayListener {
 public:
  uint64_t frame_opened(const FrameInfo& /*frame*/) override { return 0; }
  void frame_closed(const FrameInfo& frame, uint64_t /*token*/, bool /*shown*/) override {
    effect_.left.push_back(frame.function);
  }
  void frame_adopted(const FrameInfo& frame) override {
    effect_.left.push_back(frame.function);
  }
  void point(const PointInfo& point) override {
    effect_.orphan |= point.kind == PointInfo::Kind::kOrphan;
    effect_.resync |= point.kind == PointInfo::Kind::kResync;
  }
  void args(const ArgsInfo& args) override { effect_.args_of = args.function; }

  // To be called before each record.
  void clear() {
    effect_.left.clear();
    effect_.args_of.reset();
    effect_.orphan = effect_.resync = false;
  }
  const StackEffect& effect() const { return effect_; }

 private:
  StackEffect effect_;
};

// Puts each field of the body of a definition, or of a record of the collector or the
// kernel, under its name, in the order of the format, in a form that fits it. Returns
// false, and puts nothing, if the record is of another class or of an unknown type.
// REQUIRES: the body is valid.
bool describe_fields(const Record& record, FieldSink& out);

}  // namespace arctrace::reader
