// The line of progress.
#include "reader/render/terminal.hpp"

#include <doctest/doctest.h>

using arctrace::reader::progress_text;

TEST_CASE("progress: the share, what was read, how fast, and how long it will take") {
  CHECK(progress_text(3'100'000, 0.25, 2) ==
        "arctrace: 25 %, 3.1 million records read, 1.6 million a second, 6 s left");
  CHECK(progress_text(500'000, 0, 2) == "arctrace: 0.5 million records read");
  // The share is an estimate.
  CHECK(progress_text(1'000'000, 1.2, 1) ==
        "arctrace: 100 %, 1.0 million records read, 1.0 million a second, 0 s left");
}
