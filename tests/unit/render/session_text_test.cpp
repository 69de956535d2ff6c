// The texts that describe a session: sizes, arguments, and the line of sums.
#include "reader/render/session_text.hpp"

#include <doctest/doctest.h>

#include "reader/render/text_style.hpp"

namespace arctrace::reader {
namespace {

TEST_CASE("bytes") {
  CHECK(bytes_text(0) == "0 bytes");
  CHECK(bytes_text(1023) == "1023 bytes");
  CHECK(bytes_text(1024) == "1 KiB");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(64u << 20) == "64 MiB");
  CHECK(bytes_text(UINT64_MAX) == "16777215.9 TiB");
}

TEST_CASE("groups of three digits") {
  CHECK(grouped_text(0) == "0");
  CHECK(grouped_text(999) == "999");
  CHECK(grouped_text(1000) == "1,000");
  CHECK(grouped_text(UINT64_MAX) == "18,446,744,073,709,551,615");
}

TEST_CASE("arguments") {
  CHECK(command_line_text({"a", "b c", "", "\x1b"}) == "a 'b c' '' \\x1b");
}

TEST_CASE("what a flight recorder holds") {
  KeptSpan span = {700'000'000, 1'000'000'000, std::nullopt};
  const std::string of_threads =
      "the records of all threads are there for the last 300 ms, from 0.700000000 s on";
  CHECK(kept_span_text(span) == of_threads);
  span.kernel_from_ns = 600'000'000;
  CHECK(kept_span_text(span) == of_threads);
  span.kernel_from_ns = 900'000'000;
  CHECK(kept_span_text(span) ==
        of_threads + "; the kernel's for the last 100 ms, from 0.900000000 s on");
  span.kernel_from_ns = 1'000'000'000;
  CHECK(kept_span_text(span) ==
        of_threads + "; there is no time of which all the kernel's are there");
}

TEST_CASE("one line of sums") {
  reader::Summary summary;
  summary.records = 1;
  CHECK(summary_line(summary) == "1 record, 0 lost");
  summary.lost = 3;
  summary.lost_by_cause[ARCTRACE_LOST_FULL] = 2;
  summary.lost_by_cause[ARCTRACE_LOST_NO_SLOT] = 1;
  summary.torn = 4;
  summary.findings = 1;
  CHECK(summary_line(summary) ==
        "1 record, 3 lost (full 2, no_slot 1), 4 torn, 1 finding (see arctrace check)");
  reader::Summary of_kernel;
  of_kernel.records_by_type = {{ARCTRACE_TYPE_PROCESS, 1},
                               {ARCTRACE_TYPE_SESSION, 2},
                               {ARCTRACE_TYPE_SWITCH, 1000},
                               {ARCTRACE_TYPE_WAKING, 234}};
  CHECK(summary_line(of_kernel) == "0 records, 0 lost, 1,234 kernel records");
}

}  // namespace
}  // namespace arctrace::reader
