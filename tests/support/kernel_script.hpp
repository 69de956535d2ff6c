// The kernel's records of a traced process' threads, written down by name and time.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/record_script.hpp"

namespace arctrace::testing {

// Threads of one traced process, 100, and the kernel's own records of its tasks.
struct KernelScript {
  RecordScript script;
  reader::ProcessIndex process = script.process(100, "/bin/program");
  uint32_t cpu = 0;  // the CPU of the next records

  // The thread of a task, as the kernel's records name it.
  reader::ThreadIndex task(uint32_t tid) {
    reader::Thread facts;
    facts.writer = ARCTRACE_WRITER_KERNEL | tid;
    facts.tid = tid;
    facts.tgid = 100;
    return script.definitions.add_thread(facts);
  }
  void add(uint32_t tid, int64_t time_ns, uint16_t type, const Bytes& rest = {}) {
    Bytes body = Bytes().u32(cpu).u32(100);
    body.append(rest);
    script.add(task(tid), time_ns, type, body);
  }
  // The kernel's records of CPU `of` are missing (kCpuNotKnown: of all CPUs).
  void kernel_gap(int64_t from_ns, int64_t to_ns, uint32_t of = reader::kCpuNotKnown) {
    script.definitions.mutable_kernel_gaps().add(from_ns, to_ns, of);
    script.definitions.mutable_kernel_gaps().finish();
  }
  // The fork of a child whose number is `own` in that PID namespace.
  void numbered(uint32_t child, int64_t time_ns, uint32_t own, uint32_t space) {
    add(7, time_ns, ARCTRACE_TYPE_FORKED, Bytes().u32(child).u32(child));
    add(7, time_ns, ARCTRACE_TYPE_NUMBERED,
        Bytes().u32(child).u32(own).u32(space).u32(0));
  }
  void leaves(uint32_t tid, int64_t time_ns, bool ready, uint32_t next = 0) {
    add(tid, time_ns, ARCTRACE_TYPE_SWITCH,
        Bytes().u32(ready ? 0 : 1).u32(next).u32(100));
  }
  void comes(uint32_t tid, int64_t time_ns) { leaves(0, time_ns, true, tid); }
  // A switch as perf's events tell it: the task before or after it is not known.
  void leaves_by_perf(uint32_t tid, int64_t time_ns, bool ready) {
    add(tid, time_ns, ARCTRACE_TYPE_SWITCH,
        Bytes()
            .u32(ready ? 0 : ARCTRACE_SWITCH_UNKNOWN)
            .u32(ARCTRACE_SWITCH_UNKNOWN)
            .u32(ARCTRACE_SWITCH_UNKNOWN));
  }
  void comes_by_perf(uint32_t tid, int64_t time_ns) {
    add(tid, time_ns, ARCTRACE_TYPE_SWITCH_IN);
  }
  void woken(uint32_t tid, int64_t time_ns, uint32_t waker = 7, uint32_t context = 0) {
    add(waker, time_ns, ARCTRACE_TYPE_WAKING, Bytes().u32(tid).u32(100).u32(context));
  }
  // Wake-ups by a thread that is not recorded: by what it sends through the network on
  // this machine, or by something else.
  static constexpr uint32_t kSent = ARCTRACE_WAKING_SOFTIRQ | ARCTRACE_WAKING_RAISED |
                                    (ARCTRACE_SOFTIRQ_NET_RECEIVE + 1) << 8;
  void woken_from_outside(uint32_t tid, int64_t time_ns, uint32_t context = kSent) {
    reader::Thread facts;
    facts.writer = ARCTRACE_WRITER_KERNEL | 300;
    facts.tid = facts.tgid = 300;
    script.add(script.definitions.add_thread(facts), time_ns, ARCTRACE_TYPE_WAKING,
               Bytes().u32(0).u32(300).u32(tid).u32(100).u32(context));
  }
  // The `Interrupt` thread of a CPU, as a trace with that CPU's INTERRUPT records has it.
  reader::ThreadIndex interrupt_thread(uint32_t of) {
    reader::Thread facts;
    facts.writer = reader::kInterruptsWriter + of;
    facts.tid = of;
    facts.is_foreign = true;
    facts.interrupts_of = of;
    facts.names.push_back({INT64_MIN, "Interrupt CPU " + std::to_string(of)});
    return script.definitions.add_thread(facts);
  }
  // `kind`: enum arctrace_interrupt_kind.
  void interrupt(uint32_t tid, int64_t time_ns, uint64_t duration_ns, uint32_t kind,
                 uint32_t number, const std::string& name = {}) {
    Bytes rest;
    rest.u32(kind).u32(number).u64(duration_ns).u32(name.size()).padded(name);
    add(tid, time_ns, ARCTRACE_TYPE_INTERRUPT, rest);
  }
  void syscall(uint32_t tid, int64_t time_ns, uint32_t number) {
    add(tid, time_ns, ARCTRACE_TYPE_SYSCALL, Bytes().u32(number).u32(0));
  }
  void syscall_end(uint32_t tid, int64_t time_ns, int64_t result = 0) {
    add(tid, time_ns, ARCTRACE_TYPE_SYSCALL_END,
        Bytes().u64(static_cast<uint64_t>(result)));
  }
  void page_fault(uint32_t tid, int64_t time_ns) {
    add(tid, time_ns, ARCTRACE_TYPE_PAGE_FAULT, Bytes().u64(0x1000).u32(6).u32(0));
  }
  void signal(uint32_t tid, int64_t time_ns, uint32_t number,
              arctrace_signal_action action = ARCTRACE_SIGNAL_UNKNOWN) {
    add(tid, time_ns, ARCTRACE_TYPE_SIGNAL, Bytes().u32(number).u32(action));
  }
  void contention(uint32_t tid, int64_t time_ns, uint64_t lock) {
    add(tid, time_ns, ARCTRACE_TYPE_CONTENTION, Bytes().u64(lock).u32(0).u32(0));
  }
  void contention_end(uint32_t tid, int64_t time_ns, uint64_t lock) {
    add(tid, time_ns, ARCTRACE_TYPE_CONTENTION_END, Bytes().u64(lock).u32(0).u32(0));
  }
};

// Threads 100 in f and 101 in g run from 1000 to 2000. Thread 101 wakes 100, which is
// blocked from 1100 to 1300, and ready until 1350.
inline KernelScript one_wake_up() {
  KernelScript s;
  const reader::ThreadIndex first = s.script.thread(s.process, 100, "first");
  const reader::ThreadIndex second = s.script.thread(s.process, 101, "second");
  s.task(0);
  s.task(100);
  s.task(101);
  s.script.enter(first, 1000, "f");
  s.script.enter(second, 1000, "g");
  s.leaves(100, 1100, false);
  s.woken(100, 1300, 101);
  s.comes(100, 1350);
  s.script.exit(first, 2000);
  s.script.exit(second, 2000);
  return s;
}

// Thread 100 gets work from outside in `take` 30 times, for 900 ns each time, and does it
// in `work`, for 100 ns. Thread 101 sleeps throughout.
inline KernelScript one_server() {
  KernelScript s;
  const reader::ThreadIndex server = s.script.thread(s.process, 100, "server");
  const reader::ThreadIndex sleeper = s.script.thread(s.process, 101, "sleeper");
  s.task(0);
  s.task(100);
  s.task(101);
  s.script.enter(server, 1000, "main");
  s.script.enter(sleeper, 1000, "sleep");
  s.leaves(101, 1001, false);
  for (int64_t time_ns = 2000; time_ns < 32'000; time_ns += 1000) {
    s.script.enter(server, time_ns, "take");
    s.leaves(100, time_ns, false);
    s.woken_from_outside(100, time_ns + 900);
    s.comes(100, time_ns + 900);
    s.script.exit(server, time_ns + 900);
    s.script.enter(server, time_ns + 900, "work");
    s.script.exit(server, time_ns + 1000);
  }
  s.script.exit(server, 32'000);
  return s;
}

}  // namespace arctrace::testing
