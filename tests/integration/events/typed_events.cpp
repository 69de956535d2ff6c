// Events of the C++ API with levels and without, and with fields of each kind, for tests
// that tell events apart by levels and fields (test_record_filter.py, test_where.py).
//
// Each of three names has ten events. Field `id` is an unsigned number of db.query, a
// signed one of db.row, and a text of ui.frame; the tenth events have the numbers at the
// ends of their ranges, and a NaN.
#include <arctrace/arctrace.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace {

using Query =
    arctrace::Event<"db.query", arctrace::Level<1>, arctrace::Field<"id", uint64_t>,
                    arctrace::Field<"seconds", double>,
                    arctrace::Field<"text", std::string_view>,
                    arctrace::Field<"cached", bool>>;
using Row = arctrace::Event<"db.row", arctrace::Level<5>, arctrace::Field<"id", int64_t>,
                            arctrace::Field<"at", const void*>>;
using Frame = arctrace::Event<"ui.frame", arctrace::Field<"share", float>,
                              arctrace::Field<"id", std::string_view>>;

constexpr int kEach = 10;

}  // namespace

int main() {
  static const char places[kEach] = {};
  for (int i = 0; i < kEach; ++i) {
    const bool is_last = i == kEach - 1;
    const uint64_t id = is_last ? UINT64_MAX : static_cast<uint64_t>(i);
    const double seconds = is_last ? std::numeric_limits<double>::quiet_NaN() : 0.25 * i;
    const std::string text = "select " + std::to_string(i);
    ARCTRACE_WRITE(Query, id, seconds, text, i % 2 == 0);
    const int64_t row = is_last ? INT64_MIN : -int64_t{i};
    ARCTRACE_WRITE(Row, row, places + i);
    ARCTRACE_WRITE(Frame, 0.1F * static_cast<float>(i), i == 0 ? "5" : "frame");
  }
}
