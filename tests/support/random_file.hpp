// A trace of random threads, from a seed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {

// Writes what threads do as they would: a block begins with the stack; the thread may
// switch to the shared chain and back, lose records, fork.
class RandomFile {
 public:
  struct Shape {
    bool needed = false;  // EXIT_NAMED, vforks and coroutines too
    bool shared = true;   // threads write into the shared chain too
    bool kernel = true;   // ... and the kernel about them
    bool losses = true;
    bool ends = true;  // threads end
    bool own = true;   // threads have blocks of their own
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
      if (threads_[thread].has_ended) continue;
      step(threads_[thread]);
      if (shape_.ends && below(300) == 0) end_thread(threads_[thread]);
      if (shape_.kernel && below(4) == 0) kernel_step(threads_[thread]);
      if (below(400) == 0) begin_thread(threads_[thread].process, threads_[thread].pid);
    }
    for (Writer& thread : threads_) close(thread);
    close_shared();
    close_kernel();
    file_.block(definitions_, 0, index_of(0));
    if (!ends_.data().empty()) file_.records(ends_);
    now_ += 10;
    file_.finish(now_);
  }
  // Adds an index.
  RandomFile& index() {
    file_.index();
    return *this;
  }

  std::vector<std::byte> bytes() const { return file_.file(); }
  int64_t last_ns() const { return static_cast<int64_t>(now_); }

 private:
  static constexpr uint64_t kNameBit = uint64_t{1} << 63;
  static constexpr uint32_t kBlockSize = 65536, kBlocks = 1u << 20;
  static constexpr uint32_t kFunctions = 7;  // the last one is called fork

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
    bool has_whole_stack = false;  // its whole stack is in the chain
    bool has_ended = false;
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
    threads_.back().is_shared = !shape_.own;
  }

  // Ends the thread in whatever frames it is.
  void end_thread(Writer& thread) {
    now_ += below(3);
    ends_.append(full_record(ARCTRACE_TYPE_WRITER_END, thread.writer, now_,
                             pair_body(thread.writer, 1)));
    thread.has_ended = true;
  }

  // ---- Blocks ----

  Bytes stack_of(const Writer& thread) const {
    Bytes body = stack_body(thread.stack);
    if (thread.coroutine != 0) body.u32(thread.coroutine);
    return body;
  }

  // A STACK with the two innermost frames.
  Bytes short_stack_of(const Writer& thread) const {
    if (thread.coroutine != 0) return stack_of(thread);
    const auto depth = static_cast<uint32_t>(thread.stack.size());
    const uint32_t count = std::min<uint32_t>(depth, 2);
    Bytes body;
    body.u32(depth).u32(count);
    for (uint32_t i = depth - count; i < depth; ++i) body.u64(thread.stack[i]);
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
    // There may be none, if the chain has just moved to another block.
    if (thread.needs_stack && (!thread.has_whole_stack || below(8) != 0)) {
      const bool is_whole = !thread.has_whole_stack || below(3) == 0;
      shared_.add_full(ARCTRACE_TYPE_STACK, thread.writer, now_,
                       is_whole ? stack_of(thread) : short_stack_of(thread));
      thread.needs_stack = false;
      thread.has_whole_stack = true;
      if (below(6) == 0) {  // the record after the STACK is in the next block
        ++in_shared_;
        close_shared();
        shared_ = BlockBuilder::shared(next_handout_++, now_);
      }
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
      if (shape_.shared && shape_.own) go_over(thread);
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
    thread.has_whole_stack = false;
  }

  // Makes some calls of which nothing is recorded.
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
    if (threads_[index_by_process(thread.process)].has_ended) return;
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
  Bytes ends_;  // WRITER_END of threads
  size_t in_shared_ = 0, in_kernel_ = 0;
  BlockBuilder shared_ = BlockBuilder::shared(1, 0), kernel_ = shared_;
  BlockBuilder definitions_ = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
};

}  // namespace arctrace::testing
