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
}
