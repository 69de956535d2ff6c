// Records for the replay, written down by name and time, without a trace file.
#pragma once

#include <arctrace/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "reader/replay/replay.hpp"
#include "reader/trace/definitions.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {

// Functions are name keys that mean the same in every process. Times are ns.
class RecordScript {
 public:
  reader::ProcessIndex process(uint32_t pid, const std::string& executable,
                               uint32_t origin = ARCTRACE_ORIGIN_EXEC) {
    reader::Process facts;
    facts.id = ++identities_;
    facts.pid = pid;
    facts.origin = origin;
    facts.executable = executable;
    const reader::ProcessIndex index = definitions.add_process(facts);
    for (const auto& [name, id] : names_) definitions.add_name(index, id, name);
    return index;
  }

  reader::ThreadIndex thread(reader::ProcessIndex process, uint32_t tid,
                             const std::string& name = {}) {
    reader::Thread facts;
    facts.writer = ++identities_;
    facts.process = process;
    facts.tid = tid;
    if (!name.empty()) facts.names.push_back({INT64_MIN, name});
    return definitions.add_thread(facts);
  }

  // Adds a process with one thread.
  reader::ThreadIndex program(uint32_t pid, const std::string& name,
                              uint32_t origin = ARCTRACE_ORIGIN_EXEC) {
    return thread(process(pid, "/bin/" + name, origin), pid, name);
  }

  uint64_t key(const std::string& name) {
    return ARCTRACE_FRAME_NAME_BIT | name_id(name);
  }
  uint32_t name_id(const std::string& name) {
    const auto [found, added] =
        names_.emplace(name, static_cast<uint32_t>(names_.size() + 1));
    if (added) {
      for (uint32_t i = 0; i < definitions.processes().size(); ++i) {
        definitions.add_name(i, found->second, name);
      }
    }
    return found->second;
  }

  // All of these return the record, so that a test can change it.
  reader::Record& add(reader::ThreadIndex thread, int64_t time_ns, uint16_t type,
                      const Bytes& body = {}) {
    bodies_.push_back(body);
    reader::Record record{};
    record.ticks = static_cast<uint64_t>(time_ns);
    record.time_ns = time_ns;
    record.thread = thread;
    record.type = type;
    record.body = bodies_.back().data();
    record.offset = static_cast<uint32_t>(records.size());
    return records.emplace_back(record);
  }
  reader::Record& enter(reader::ThreadIndex thread, int64_t time_ns,
                        const std::string& name) {
    return add(thread, time_ns, ARCTRACE_TYPE_ENTER, key_body(key(name)));
  }
  // Adds the entry of a lock call.
  reader::Record& enter(reader::ThreadIndex thread, int64_t time_ns,
                        const std::string& name, const std::vector<uint64_t>& locks) {
    Bytes body = key_body(key(name));
    for (const uint64_t address : locks) body.u64(address);
    return add(thread, time_ns, ARCTRACE_TYPE_ENTER, body);
  }
  reader::Record& exit(reader::ThreadIndex thread, int64_t time_ns) {
    return add(thread, time_ns, ARCTRACE_TYPE_EXIT);
  }
  reader::Record& exit_named(reader::ThreadIndex thread, int64_t time_ns,
                             const std::string& name) {
    return add(thread, time_ns, ARCTRACE_TYPE_EXIT_NAMED, key_body(key(name)));
  }
  reader::Record& unwind(reader::ThreadIndex thread, int64_t time_ns, uint32_t count) {
    return add(thread, time_ns, ARCTRACE_TYPE_UNWIND, Bytes().u32(count));
  }
  // `names`: the innermost frames of a stack of `depth`, outermost first.
  reader::Record& stack(reader::ThreadIndex thread, int64_t time_ns,
                        const std::vector<std::string>& names, uint32_t depth) {
    std::vector<uint64_t> keys;
    for (const std::string& name : names) keys.push_back(key(name));
    return add(thread, time_ns, ARCTRACE_TYPE_STACK, stack_body(keys, depth));
  }
  reader::Record& stack(reader::ThreadIndex thread, int64_t time_ns,
                        const std::vector<std::string>& names) {
    return stack(thread, time_ns, names, static_cast<uint32_t>(names.size()));
  }
  // Adds the frames in which a thread begins whose program was joined while it ran.
  reader::Record& opening_stack(reader::ThreadIndex thread, int64_t time_ns,
                                const std::vector<std::string>& names) {
    std::vector<uint64_t> keys;
    for (const std::string& name : names) keys.push_back(key(name));
    Bytes body = stack_body(keys, static_cast<uint32_t>(names.size()));
    return add(thread, time_ns, ARCTRACE_TYPE_STACK, body.u32(0));
  }
  // Adds the frames in which such a thread waits all the time, as the recorder finds
  // them.
  reader::Record& waiting_stack(reader::ThreadIndex thread, int64_t time_ns,
                                const std::vector<std::string>& names) {
    std::vector<uint64_t> keys;
    for (const std::string& name : names) keys.push_back(key(name));
    Bytes body = stack_body(keys, static_cast<uint32_t>(names.size()));
    return add(thread, time_ns, ARCTRACE_TYPE_STACK,
               body.u32(0).u32(ARCTRACE_STACK_WAITS));
  }
  // The thread continues on the stack of a coroutine, which has the frames `names`.
  reader::Record& coroutine(reader::ThreadIndex thread, int64_t time_ns, uint32_t number,
                            const std::vector<std::string>& names, uint32_t depth) {
    Bytes body;
    body.u32(number).u32(depth).u32(names.size());
    for (const std::string& name : names) body.u64(key(name));
    return add(thread, time_ns, ARCTRACE_TYPE_COROUTINE, body);
  }
  reader::Record& lost(reader::ThreadIndex thread, int64_t time_ns, uint64_t count,
                       uint32_t flags = 0, uint32_t cause = ARCTRACE_LOST_FULL) {
    return add(thread, time_ns, ARCTRACE_TYPE_LOST, lost_body(cause, count, 0, flags));
  }
  reader::Record& vfork_begin(reader::ThreadIndex thread, int64_t time_ns) {
    return add(thread, time_ns, ARCTRACE_TYPE_VFORK_BEGIN);
  }
  reader::Record& vfork_end(reader::ThreadIndex thread, int64_t time_ns,
                            uint32_t child_pid) {
    return add(thread, time_ns, ARCTRACE_TYPE_VFORK_END, Bytes().u32(child_pid));
  }
  reader::Record& text(reader::ThreadIndex thread, int64_t time_ns,
                       std::string_view text) {
    return add(thread, time_ns, ARCTRACE_TYPE_TEXT, text_body(text));
  }

  reader::Record& arguments(reader::ThreadIndex thread, int64_t time_ns,
                            const std::vector<ArgBytes>& args) {
    return add(thread, time_ns, ARCTRACE_TYPE_ARGUMENTS, args_body(args));
  }
  reader::Record& result(reader::ThreadIndex thread, int64_t time_ns,
                         const std::vector<ArgBytes>& args) {
    return add(thread, time_ns, ARCTRACE_TYPE_RESULT, args_body(args));
  }

  void replay(reader::Replay& replay) const {
    for (const reader::Record& record : records) replay.add(record);
    replay.finish();
  }

  // The time of the latest record: the recording's end.
  int64_t end_ns() const {
    int64_t end = INT64_MIN;
    for (const reader::Record& record : records) end = std::max(end, record.time_ns);
    return end;
  }

  reader::Definitions definitions;
  std::deque<reader::Record> records;

 private:
  std::map<std::string, uint32_t> names_;
  std::deque<Bytes> bodies_;
  uint32_t identities_ = 0;
};

// The node that "main/f/g" leads to from `root`; throws if there is none.
inline const reader::CallNode& node_at(const reader::Replay& replay,
                                       reader::NodeIndex root, std::string_view path) {
  const reader::CallTree& tree = replay.tree();
  reader::NodeIndex at = root;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    reader::NodeIndex child = tree[at].first_child;
    while (child != reader::kNoNode &&
           replay.functions()[tree[child].function].name != name) {
      child = tree[child].next_sibling;
    }
    if (child == reader::kNoNode) {
      throw std::runtime_error("no node " + std::string(name));
    }
    at = child;
  }
  return tree[at];
}

// The whole tree in one line, children by name: "(1 call, 5 ns) main 1:20[f 2:3 g 1:4]".
inline std::string tree_text(const reader::Replay& replay, reader::NodeIndex root) {
  const reader::CallTree& tree = replay.tree();
  std::map<std::string, reader::NodeIndex> children;
  for (reader::NodeIndex at = tree[root].first_child; at != reader::kNoNode;
       at = tree[at].next_sibling) {
    children[replay.functions()[tree[at].function].name] = at;
  }
  std::string text;
  for (const auto& [name, at] : children) {
    if (!text.empty()) text += ' ';
    text += name + ' ' + std::to_string(tree[at].calls) + ':' +
            std::to_string(tree[at].self_ns);
    const std::string below = tree_text(replay, at);
    if (!below.empty()) text += '[' + below + ']';
  }
  return text;
}

}  // namespace arctrace::testing
