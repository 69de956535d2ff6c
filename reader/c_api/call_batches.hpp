// The calls of a trace in batches, as the replay finds them.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>
#include <arctrace/reader.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/listener.hpp"

namespace arctrace::reader {

struct CallBatch {
  std::vector<arctrace_reader_call> calls;
  std::deque<std::string> texts;  // calls point to them; their addresses stay
  // Functions and paths that calls up to this batch refer to, and earlier ones did not.
  std::vector<std::pair<std::string, std::string>> functions;  // name, module
  std::vector<std::pair<uint32_t, uint32_t>> paths;            // parent, function

  void clear() {
    calls.clear();
    texts.clear();
    functions.clear();
    paths.clear();
  }
};

// The listener that makes the batches. Memory is bounded by open calls, functions and
// distinct stacks.
class CallBatches : public ReplayListener {
 public:
  using Describe = std::function<std::string(const Record&)>;
  // Takes a full batch and empties it. Returns false if no more are wanted.
  using Put = std::function<bool(CallBatch&)>;

  // `describe` makes the text of args and retval; without it there are none.
  CallBatches(Describe describe, Put put);

  // REQUIRED before the first record. `functions` must outlive this object.
  void set_functions(const Functions& functions) { functions_ = &functions; }
  bool wants_more() const { return wants_more_; }
  // Puts the remaining calls. To be called after the replay's finish().
  void finish();

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& frame) override;
  void point(const PointInfo& /*point*/) override {}
  void args(const ArgsInfo& args) override;

 private:
  struct Values {
    std::string args, retval;
  };
  using Stack = std::vector<NodeIndex>;  // the paths of open calls, outermost first

  Stack& stack_of(const FrameInfo& frame);
  arctrace_reader_call made(const FrameInfo& frame, NodeIndex path);
  const char* keep(std::string text);
  void add(const arctrace_reader_call& call);
  void put();

  const Describe describe_;
  const Put put_;
  const Functions* functions_ = nullptr;
  CallTree paths_;
  const NodeIndex root_;
  std::vector<Stack> stacks_;  // by ThreadIndex
  absl::flat_hash_map<std::pair<ThreadIndex, uint32_t>, Stack> coroutines_;
  absl::flat_hash_map<uint64_t, Values> values_;  // of open calls, by token
  uint32_t last_number_ = 0;
  struct NotEnded {
    arctrace_reader_call call;
    Values values;
  };
  std::vector<NotEnded> not_ended_;
  size_t functions_put_ = 0, paths_put_;
  CallBatch batch_;
  bool wants_more_ = true;
};

}  // namespace arctrace::reader
