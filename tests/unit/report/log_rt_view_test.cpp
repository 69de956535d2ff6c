// The view `log-rt`, whose columns are those of JPROF.
#include "reader/report/views.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

TEST_CASE("log-rt: JPROF's columns") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  CHECK(viewed.text("log-rt") == R"(LV CALLS CEE BASE DS IN NAME
0 1 1 0 0 0 treetest 7/7
1 1 2 0 0 0 main
2 1 2 0 0 0 mainB
3 1 0 40000 0 0 mainBB
3 1 0 30000 0 0 mainBA
2 1 2 0 0 0 mainA
3 1 0 20000 0 0 mainAB
3 1 0 10000 0 0 mainAA
)");
  const Json json = viewed.json("log-rt");
  CHECK(json.at("log_rt").size() == 8);
  CHECK(json.at("log_rt").at(3).at("base_ns") == 40'000);
  CHECK(json.at("log_rt").at(1).at("cee") == 2);
}

TEST_CASE("log-rt: how many interrupts came upon a function, and what they did") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "worker");
  s.interrupt_thread(0);
  s.script.enter(thread, 1000, "f");
  s.interrupt(100, 1100, 200, ARCTRACE_INTERRUPT_SOFT, ARCTRACE_SOFTIRQ_NET_RECEIVE);
  s.interrupt(100, 1150, 50, ARCTRACE_INTERRUPT_DEVICE, 36, "disk\x1b");
  s.script.exit(thread, 2000);
  Viewed viewed(s.script);
  CHECK(viewed.text("log-rt") == R"(LV CALLS CEE BASE DS IN NAME
0 1 1 0 0 0 worker 100/100
1 1 1 800 0 2 f
2 1 0 200 0 0 [interrupts]
0 1 1 0 0 0 Interrupt CPU 0 0/0
1 1 1 150 0 0 K:softirq net-rx
2 1 0 50 0 0 K:irq 36 disk\x1b
)");
  CHECK(viewed.json("log-rt").at("log_rt").at(1).at("in") == 2);
  // Together the rows are as long as the thread and the CPU.
  const Json all = viewed.json("flat", Grouping::kAll);
  uint64_t self_ns = 0;
  for (const Json& row : all.at("functions"))
    self_ns += row.at("base_ns").get<uint64_t>();
  CHECK(self_ns == 1000 + 200);
}
