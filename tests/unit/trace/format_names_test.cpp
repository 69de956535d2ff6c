// The words for the numbers of the format.
#include "reader/trace/format_names.hpp"

#include <arctrace/format.h>
#include <doctest/doctest.h>

using namespace arctrace::reader;

TEST_CASE("a number without a word is shown as a number") {
  CHECK(writer_end_text(ARCTRACE_WRITER_DIED) == "died");
  CHECK(writer_end_text(0) == "end_0");
  CHECK(writer_end_text(2) == "end_2");  // older writers' "detached", never written
  CHECK(loss_cause_text(UINT32_MAX) == "cause_4294967295");
  CHECK(record_type_text(ARCTRACE_TYPE_WRITER_END) == "WRITER_END");
  CHECK(record_type_text(UINT16_MAX) == "TYPE_65535");
  CHECK(softirq_text(12) == "softirq_12");
  CHECK(interrupt_kind_text(0) == "kind_0");
  CHECK(interrupt_text(9, 4) == "kind_9 interrupt 4");
  CHECK(interrupt_text(ARCTRACE_INTERRUPT_CPU, 7) == "cpu_7 interrupt");
}

TEST_CASE("interrupts have the kernel's names") {
  CHECK(interrupt_text(ARCTRACE_INTERRUPT_DEVICE, 36) == "irq 36");
  CHECK(interrupt_text(ARCTRACE_INTERRUPT_SOFT, ARCTRACE_SOFTIRQ_NET_RECEIVE) ==
        "softirq net-rx");
  CHECK(interrupt_text(ARCTRACE_INTERRUPT_SOFT, 9) == "softirq rcu");
  CHECK(interrupt_text(ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_TIMER) == "timer interrupt");
  CHECK(interrupt_text(ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_WORK) == "work interrupt");
}
