// Stretches that the page's file has exactly.
#include "reader/ui/model/exact_times.hpp"

#include <doctest/doctest.h>

namespace arctrace::reader {
namespace {

TEST_CASE("ranges, in any order and over one another, have what touches them") {
  const ExactTimes exact({{500, 600}, {100, 200}, {150, 300}, {700, 700}});
  const auto is_kept = [&](int64_t start_ns, int64_t stop_ns) {
    return exact.exact_for(7, start_ns, stop_ns) == ExactFor::kRange;
  };
  CHECK(exact.has_ranges());
  CHECK_FALSE(exact.has_path());
  CHECK_FALSE(is_kept(0, 100));
  CHECK(is_kept(0, 101));
  CHECK(is_kept(100, 100));
  CHECK(is_kept(250, 260));
  CHECK(is_kept(299, 450));
  CHECK_FALSE(is_kept(300, 500));
  CHECK_FALSE(is_kept(300, 300));
  CHECK(is_kept(0, 10'000));
  CHECK(is_kept(599, 599));
  CHECK_FALSE(is_kept(600, 650));
  CHECK_FALSE(ExactTimes({}).has_ranges());
}

TEST_CASE(
    "the path keeps what a thread did while the path was in it; a range goes first") {
  ExactTimes exact({{0, 50}});
  CriticalPath path;
  path.pieces = {{1, 300, 400}, {2, 200, 300}, {1, 0, 200}};
  exact.set_path(path);
  CHECK(exact.has_path());
  CHECK(exact.exact_for(1, 10, 20) == ExactFor::kRange);
  CHECK(exact.exact_for(1, 60, 70) == ExactFor::kCriticalPath);
  CHECK(exact.exact_for(1, 250, 260) == ExactFor::kNothing);
  CHECK(exact.exact_for(2, 250, 260) == ExactFor::kCriticalPath);
  CHECK(exact.exact_for(2, 150, 201) == ExactFor::kCriticalPath);
  CHECK(exact.exact_for(2, 60, 70) == ExactFor::kNothing);
  CHECK(exact.exact_for(1, 390, 500) == ExactFor::kCriticalPath);
  CHECK(exact.exact_for(3, 60, 70) == ExactFor::kNothing);
}

}  // namespace
}  // namespace arctrace::reader
