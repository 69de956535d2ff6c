// Collects what one record does to its thread's stack, for its description.
#pragma once

#include "reader/replay/listener.hpp"
#include "reader/streams/record_describer.hpp"

namespace arctrace::reader {

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

}  // namespace arctrace::reader
