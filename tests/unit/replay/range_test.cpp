// What is found in a range of time is the same whether the trace is read for the range
// only, or whole.
#include <absl/strings/str_split.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "reader/replay/replay.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/trace.hpp"
#include "tests/support/random_script.hpp"
#include "tests/support/trace_builder.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

constexpr uint64_t kNameBit = uint64_t{1} << 63;
constexpr uint32_t kBlockSize = 65536, kBlocks = 1u << 20;
constexpr uint32_t kFunctions = 7;  // the last one is called fork

// Writes what threads do as they would: a block begins with the stack, the thread may go
// over to the shared chain and back, lose records, fork.
class RandomFile {
 public:
  struct Shape {
    bool needed = false;  // EXIT_NAMED, vforks and coroutines too
    bool shared = true;   // threads write into the shared chain too
    bool kernel = true;   // ... and the kernel about them
    bool losses = true;
    size_t steps = 3000;
  };

  RandomFile(uint64_t seed, const Shape& shape)
      : shape_(shape), rng_(seed), file_(kBlockSize) {
    file_.header.block_count = kBlocks;
    file_.header.total_size = file_.header.blocks_offset + uint64_t{kBlocks} * kBlockSize;
    begin_process(1, 100, ARCTRACE_ORIGIN_EXEC, 0);
    begin_process(2, 200, ARCTRACE_ORIGIN_EXEC, 0);
    for (size_t i = 0; i < shape.steps; ++i) {
      now_ += below(8);
      const size_t thread = below(threads_.size());
      step(threads_[thread]);
      if (shape_.kernel && below(4) == 0) kernel_step(threads_[thread]);
      if (below(400) == 0) begin_thread(threads_[thread].process, threads_[thread].pid);
    }
    for (Writer& thread : threads_) close(thread);
    close_shared();
    close_kernel();
    file_.block(definitions_, 0, index_of(0));
    now_ += 10;
    file_.finish(now_);
  }
  // With an index.
  RandomFile& index() {
    file_.index();
    return *this;
  }

  std::vector<std::byte> bytes() const { return file_.file(); }
  int64_t last_ns() const { return static_cast<int64_t>(now_); }

 private:
  struct Writer {
    uint32_t writer, process, pid, tid;
    std::vector<uint64_t> stack = {};
    std::vector<std::vector<uint64_t>> coroutines = {};  // the stacks of others
    uint32_t coroutine = 0;
    bool in_vfork = false;
    std::vector<uint64_t> before_vfork = {};
    uint64_t serial = 0;
    size_t in_block = 0;  // records in the open block; 0: none is open
    bool is_shared = false;
    bool needs_stack = true;
    BlockBuilder block = BlockBuilder::exclusive(1, 0, 1, 0);
  };

  uint64_t below(uint64_t bound) { return rng_() % bound; }
  uint32_t index_of(uint64_t handout) const {
    return static_cast<uint32_t>(handout % file_.header.block_count);
  }
  static uint64_t key(uint32_t function) { return kNameBit | (function + 1); }

  // `forker`: the writer that forked it `ago` ticks ago; 0: not known.
  void begin_process(uint32_t process, uint32_t pid, uint32_t origin, uint32_t parent,
                     uint32_t forker = 0, uint64_t ago = 0) {
    const uint32_t writer = next_writer_;
    Bytes body = process_of(process, parent, pid, origin);
    if (forker != 0) body.u32(forker).u64(now_ - ago);
    definitions_.add_full(ARCTRACE_TYPE_PROCESS, writer, now_, body);
    for (uint32_t i = 0; i < kFunctions; ++i) {
      const std::string name =
          i + 1 == kFunctions ? std::string("fork") : "f" + std::to_string(i);
      definitions_.add_full(ARCTRACE_TYPE_STRING, writer, now_,
                            string_body(process, i + 1, name));
    }
    begin_thread(process, pid, pid);
    if (origin == ARCTRACE_ORIGIN_EXEC && below(2) == 0) {
      definitions_.add_full(ARCTRACE_TYPE_PHASE, writer, now_ + 200,
                            pair_body(process, ARCTRACE_LIFE_MAIN));
    }
  }

  Bytes process_of(uint32_t process, uint32_t parent, uint32_t pid,
                   uint32_t origin) const {
    ProcessFacts facts;
    facts.process = process;
    facts.parent = parent;
    facts.pid = pid;
    facts.origin = origin;
    facts.start_ticks = now_;
    return process_body(facts);
  }

  void begin_thread(uint32_t process, uint32_t pid, uint32_t tid = 0) {
    const uint32_t writer = next_writer_++;
    if (tid == 0) tid = 1000 + writer;
    definitions_.add_full(ARCTRACE_TYPE_THREAD, writer, now_,
                          thread_body(writer, process, tid, "t", now_));
    threads_.push_back({writer, process, pid, tid});
  }

  // ---- Blocks ----

  Bytes stack_of(const Writer& thread) const {
    Bytes body = stack_body(thread.stack);
    if (thread.coroutine != 0) body.u32(thread.coroutine);
    return body;
  }

  void close(Writer& thread) {
    if (thread.in_block == 0) return;
    file_.block(thread.block, 0, index_of(thread.block.header.handout));
    thread.in_block = 0;
  }
  void close_shared() {
    if (in_shared_ != 0) file_.block(shared_, 0, index_of(shared_.header.handout));
    in_shared_ = 0;
    for (Writer& thread : threads_) thread.needs_stack |= thread.is_shared;
  }
  void close_kernel() {
    if (in_kernel_ != 0) file_.block(kernel_, 0, index_of(kernel_.header.handout));
    in_kernel_ = 0;
  }

  void write(Writer& thread, uint32_t type, const Bytes& body = {}) {
    if (thread.is_shared) return write_shared(thread, type, body);
    if (thread.in_block == 0) {
      thread.block =
          BlockBuilder::exclusive(thread.writer, thread.serial++, next_handout_++, now_,
                                  thread.process, thread.pid, thread.tid);
      if (std::exchange(lost_, 0) != 0) {
        thread.block.add(
            ARCTRACE_TYPE_LOST, now_,
            lost_body(ARCTRACE_LOST_FULL, 3, now_ - std::min<uint64_t>(now_, 40)));
      }
      thread.block.add(ARCTRACE_TYPE_STACK, now_, stack_of(thread));
    }
    thread.block.add(type, now_, body);
    if (++thread.in_block >= 12) close(thread);
  }

  void write_shared(Writer& thread, uint32_t type, const Bytes& body) {
    if (in_shared_ == 0) shared_ = BlockBuilder::shared(next_handout_++, now_);
    if (std::exchange(thread.needs_stack, false)) {
      shared_.add_full(ARCTRACE_TYPE_STACK, thread.writer, now_, stack_of(thread));
    }
    shared_.add_full(type, thread.writer, now_, body);
    if (++in_shared_ >= 20) close_shared();
  }

  // ---- What threads do ----

  void enter(Writer& thread, uint32_t function) {
    thread.stack.push_back(key(function));
    write(thread, ARCTRACE_TYPE_ENTER, key_body(key(function)));
  }
  void leave(Writer& thread) {
    if (thread.stack.empty()) return;
    thread.stack.pop_back();
    write(thread, ARCTRACE_TYPE_EXIT);
  }

  void step(Writer& thread) {
    const uint64_t dice = below(100);
    if (dice < 45) {
      if (thread.stack.size() < 12) enter(thread, static_cast<uint32_t>(below(6)));
    } else if (dice < 85) {
      leave(thread);
    } else if (dice < 88) {
      write(thread, ARCTRACE_TYPE_INSTANT, Bytes().u32(1));
    } else if (dice < 90) {
      const auto count =
          static_cast<uint32_t>(std::min<uint64_t>(thread.stack.size(), 2));
      if (count == 0) return;
      thread.stack.resize(thread.stack.size() - count);
      write(thread, ARCTRACE_TYPE_UNWIND, Bytes().u32(count));
    } else if (dice < 92) {
      if (shape_.shared) go_over(thread);
    } else if (dice < 94) {
      if (shape_.losses) lose(thread);
    } else if (dice < 95) {
      fork(thread);
    } else if (shape_.needed) {
      unusual(thread);
    }
  }

  void go_over(Writer& thread) {
    close(thread);
    thread.is_shared = !thread.is_shared;
    thread.needs_stack = true;
  }

  // Some calls of which nothing is recorded.
  void lose(Writer& thread) {
    if (thread.is_shared || thread.in_vfork) return;
    close(thread);
    thread.stack.resize(below(thread.stack.size() + 1));
    if (below(2) == 0) thread.stack.push_back(key(static_cast<uint32_t>(below(6))));
    lost_ = 3;
    if (below(3) == 0) {
      lost_ = 0;
      ++thread.serial;
    }
    now_ += 30;
    write(thread, ARCTRACE_TYPE_INSTANT, Bytes().u32(1));
  }

  void fork(Writer& thread) {
    if (thread.coroutine != 0 || thread.in_vfork || threads_.size() > 9) return;
    const bool is_recorded = below(3) != 0;
    if (is_recorded) enter(thread, kFunctions - 1);
    now_ += 3;
    const auto process = static_cast<uint32_t>(10 + next_writer_);
    const uint32_t parent = thread.process;
    const uint32_t forker = below(2) == 0 ? thread.writer : 0;
    begin_process(process, 5000 + process, ARCTRACE_ORIGIN_FORK, parent, forker, 2);
    if (is_recorded) leave(threads_[index_by_process(parent)]);
  }
  // The first thread of the process, which is not always the one that forked.
  size_t index_by_process(uint32_t process) const {
    size_t i = 0;
    while (threads_[i].process != process) ++i;
    return i;
  }

  void unusual(Writer& thread) {
    const uint64_t dice = below(6);
    if (dice == 0 && thread.coroutine == 0) {
      if (thread.in_vfork) {
        thread.stack = thread.before_vfork;
        write(thread, ARCTRACE_TYPE_VFORK_END, Bytes().u32(9));
      } else {
        thread.before_vfork = thread.stack;
        write(thread, ARCTRACE_TYPE_VFORK_BEGIN);
      }
      thread.in_vfork = !thread.in_vfork;
    } else if (dice < 3) {
      const uint64_t left = thread.stack.empty() ? key(static_cast<uint32_t>(below(6)))
                                                 : thread.stack.back();
      if (!thread.stack.empty()) thread.stack.pop_back();
      write(thread, ARCTRACE_TYPE_EXIT_NAMED, key_body(left));
    } else if (dice == 3 && !thread.in_vfork) {
      if (thread.coroutines.empty()) thread.coroutines.resize(3);
      thread.coroutines[thread.coroutine] = thread.stack;
      thread.coroutine = static_cast<uint32_t>((thread.coroutine + 1 + below(2)) % 3);
      thread.stack = thread.coroutines[thread.coroutine];
      Bytes body;
      body.u32(thread.coroutine).append(stack_body(thread.stack));
      write(thread, ARCTRACE_TYPE_COROUTINE, body);
    }
  }

  void kernel_step(const Writer& thread) {
    if (in_kernel_ == 0) {
      kernel_ = BlockBuilder::shared(next_handout_++, 0);
      kernel_.header.writer = ARCTRACE_WRITER_KERNEL;
      kernel_.header.process = kernel_.header.pid = kernel_.header.tid = 0;
    }
    const uint32_t head = ARCTRACE_WRITER_KERNEL | thread.tid;
    Bytes body;
    body.u32(0).u32(thread.pid);
    switch (below(5)) {
      case 0:
        body.u32(static_cast<uint32_t>(below(2))).u32(0).u32(0);
        kernel_.add_full(ARCTRACE_TYPE_SWITCH, head, now_, body);
        break;
      case 1:
        kernel_.add_full(ARCTRACE_TYPE_SWITCH_IN, head, now_, body);
        break;
      case 2:
        body.u32(static_cast<uint32_t>(below(3))).u32(0);
        kernel_.add_full(ARCTRACE_TYPE_SYSCALL, head, now_, body);
        break;
      case 3:
        body.u64(0);
        kernel_.add_full(ARCTRACE_TYPE_SYSCALL_END, head, now_, body);
        break;
      default:
        body.u32(thread.tid).u32(thread.pid).u32(0);
        kernel_.add_full(ARCTRACE_TYPE_WAKING, ARCTRACE_WRITER_KERNEL | 77, now_, body);
        break;
    }
    if (++in_kernel_ >= 30) close_kernel();
  }

  const Shape shape_;
  std::mt19937_64 rng_;
  FileBuilder file_;
  uint64_t now_ = 1000;
  uint32_t next_writer_ = 1;
  uint64_t next_handout_ = 1;
  uint32_t lost_ = 0;
  std::vector<Writer> threads_;
  size_t in_shared_ = 0, in_kernel_ = 0;
  BlockBuilder shared_ = BlockBuilder::shared(1, 0), kernel_ = shared_;
  BlockBuilder definitions_ = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
};

// Everything that a replay reports, as text.
class Diary : public ReplayListener, public ScheduleListener {
 public:
  uint64_t frame_opened(const FrameInfo& frame) override {
    lines_.push_back("open " + text(frame));
    return 0;
  }
  void frame_closed(const FrameInfo& frame, uint64_t /*token*/, bool shown) override {
    lines_.push_back("close " + text(frame) + (shown ? "" : " hidden"));
  }
  void frame_adopted(const FrameInfo& frame) override {
    lines_.push_back("adopt " + text(frame));
  }
  void point(const PointInfo& point) override {
    lines_.push_back("point " + std::to_string(point.thread) + ' ' +
                     std::to_string(point.time_ns) + ' ' + std::to_string(point.depth) +
                     ' ' + std::to_string(point.record->type));
  }
  void state_ended(const StateInfo& state) override {
    std::string line = "state " + std::to_string(state.thread);
    for (const int64_t number :
         {int64_t{static_cast<uint8_t>(state.state)}, int64_t{state.preempted},
          int64_t{state.task_state}, state.start_ns, state.stop_ns,
          int64_t{state.waker.thread}, int64_t{state.waker.interrupt},
          int64_t{state.waker.context}}) {
      line += ' ' + std::to_string(number);
    }
    if (state.state != RunState::kRunning) line += " in " + path(state.node);
    lines_.push_back(line + " by " + path(state.waker.node));
  }
  // A stretch may be reported in parts.
  void time_passed(const PathTime& time) override {
    if (time.start_ns == time.stop_ns) return;
    passed_[std::to_string(time.thread) + ' ' +
            std::to_string(static_cast<uint8_t>(time.state)) + ' ' +
            std::to_string(time.coroutine) + ' ' + path(time.node)] +=
        time.stop_ns - time.start_ns;
  }
  void thread_made(ThreadIndex parent, ThreadIndex child, int64_t time_ns) override {
    if (time_ns < from_ns || time_ns >= until_ns) return;
    lines_.push_back("made " + std::to_string(parent) + ' ' + std::to_string(child) +
                     ' ' + std::to_string(time_ns));
  }

  const Functions* functions = nullptr;
  const CallTree* tree = nullptr;
  int64_t from_ns = 0, until_ns = 0;

  // In an order that does not depend on the records around the range.
  std::string sorted() {
    for (const auto& [what, time_ns] : passed_) {
      lines_.push_back("passed " + what + ' ' + std::to_string(time_ns));
    }
    std::sort(lines_.begin(), lines_.end());
    std::string all;
    for (const std::string& line : lines_) all += line + '\n';
    return all;
  }

 private:
  std::string path(NodeIndex node) const {
    std::string names;
    for (; node != kNoNode; node = (*tree)[node].parent) {
      names += '/' + (*functions)[(*tree)[node].function].name;
    }
    return names;
  }
  std::string text(const FrameInfo& frame) const {
    std::string line =
        std::to_string(frame.thread) + ' ' + (*functions)[frame.function].name;
    for (const uint64_t number :
         {uint64_t{frame.depth}, uint64_t{frame.count}, uint64_t{frame.flags},
          static_cast<uint64_t>(frame.start_ns), static_cast<uint64_t>(frame.stop_ns),
          static_cast<uint64_t>(frame.time_ns), frame.base_ns, frame.cum_ns,
          uint64_t{frame.coroutine}, frame.cpu.off_ns, frame.cpu.ready_ns}) {
      line += ' ' + std::to_string(number);
    }
    return line;
  }
  std::vector<std::string> lines_;
  std::map<std::string, int64_t> passed_;
};

std::string tree_text(const Replay& replay) {
  const CallTree& tree = replay.tree();
  std::vector<std::string> lines;
  for (const ThreadTree& thread : replay.threads()) {
    for (NodeIndex at = thread.root; at != kNoNode;
         at = tree.next_in_preorder(at, thread.root)) {
      if (tree[at].calls == 0 && tree[at].base_ns == 0) continue;
      std::string line = std::to_string(thread.thread) + ' ' +
                         std::to_string(thread.start_ns) + ' ' +
                         std::to_string(thread.stop_ns);
      for (NodeIndex up = at; up != thread.root; up = tree[up].parent) {
        line += '/' + replay.functions()[tree[up].function].name;
      }
      lines.push_back(line + ' ' + std::to_string(tree[at].calls) + ' ' +
                      std::to_string(tree[at].base_ns));
    }
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) all += line + '\n';
  return all;
}

struct Found {
  std::string text;
  size_t records = 0;     // that were read
  uint64_t findings = 0;  // of the replay
};

// Of the trace, which was opened for the range, or for all.
Found find(Trace& trace, const TimeRange& range) {
  Diary diary;
  ReplayOptions options;
  options.filter.from_ns = range.from_ns;
  options.filter.until_ns = range.until_ns;
  options.listener = &diary;
  options.schedule = &diary;
  options.ticks = &trace.clock();
  options.mode = trace.session().mode;
  Replay replay(trace.definitions(), nullptr, options);
  diary.functions = &replay.functions();
  diary.tree = &replay.tree();
  diary.from_ns = range.from_ns;
  diary.until_ns = range.until_ns;
  Found found;
  const auto sink = [&](const Record& record) {
    ++found.records;
    replay.add(record);
    return true;
  };
  REQUIRE(trace.read(sink).ok());
  replay.finish();
  found.findings = replay.finding_count();
  const ReplayTotals& totals = replay.totals();
  found.text = diary.sorted() + tree_text(replay);
  for (const uint64_t count : {totals.orphans, totals.resyncs, totals.unwound,
                               totals.exit_lost, totals.entry_lost, totals.open}) {
    found.text += std::to_string(count) + ' ';
  }
  return found;
}

// The lines that only one of two texts has.
std::string difference(const std::string& part, const std::string& whole) {
  std::set<std::string> in_part, in_whole;
  for (const auto line : absl::StrSplit(part, '\n')) in_part.emplace(line);
  for (const auto line : absl::StrSplit(whole, '\n')) in_whole.emplace(line);
  std::string text;
  for (const std::string& line : in_part) {
    if (!in_whole.contains(line)) text += "part  " + line + '\n';
  }
  for (const std::string& line : in_whole) {
    if (!in_part.contains(line)) text += "whole " + line + '\n';
  }
  return text.empty() && part != whole ? "lines are doubled" : text;
}

// Returns the share of the records that was read, in all.
double compare(const RandomFile::Shape& shape, size_t files) {
  double read = 0;
  double all = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + files; ++seed) {
    CAPTURE(seed);
    RandomFile file(seed, shape);
    const std::vector<std::byte> plain = file.bytes();
    const std::vector<std::byte> indexed = file.index().bytes();
    absl::StatusOr<Trace> trace = Trace::open(memory_input("range", plain));
    REQUIRE(trace.ok());
    std::mt19937_64 rng(seed);
    const auto time = [&] {
      return static_cast<int64_t>(rng() % static_cast<uint64_t>(file.last_ns()));
    };
    for (int i = 0; i < 8; ++i) {
      TimeRange range;
      range.from_ns = time();
      range.until_ns = range.from_ns + time() / 20;
      if (i == 6) range.until_ns = INT64_MAX;
      if (i == 7) range.from_ns = INT64_MIN;
      CAPTURE(range.from_ns);
      CAPTURE(range.until_ns);
      const Found whole = find(*trace, range);
      Found part;
      for (const std::vector<std::byte>* bytes : {&plain, &indexed}) {
        CAPTURE(bytes == &indexed);
        absl::StatusOr<Trace> opened =
            Trace::open(memory_input("range", *bytes), {.range = range});
        REQUIRE(opened.ok());
        part = find(*opened, range);
        REQUIRE(difference(part.text, whole.text) == "");
        CHECK(std::none_of(opened->findings().begin(), opened->findings().end(),
                           [](const Finding& finding) { return finding.rule == "F11"; }));
      }
      CHECK(part.records <= whole.records);
      CHECK(part.findings <= whole.findings);
      if (i >= 6) continue;
      read += static_cast<double>(part.records);
      all += static_cast<double>(whole.records);
    }
  }
  return read / all;
}

}  // namespace

TEST_CASE("a range of blocks of single threads: the same calls, by reading less") {
  CHECK(compare({.shared = false, .kernel = false}, 30) < 0.6);
}

TEST_CASE("a range with blocks of all threads and of the kernel: the same calls") {
  CHECK(compare({}, 30) < 0.95);
}

TEST_CASE("a range after records that no later one repeats: the same calls") {
  CHECK(compare({.needed = true}, 40) <= 1.0);
}
