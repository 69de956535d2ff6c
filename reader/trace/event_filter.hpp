// Which events are shown: conditions on the fields of their payloads (--where).
//
// Numbers are compared as they are, without rounding: integers of 64 bits with decimal
// fractions, too. Only a fraction that is compared with an f32 is first rounded to one,
// so that 0.1 equals what is shown as 0.1. NaN equals NaN, and is neither less nor
// greater than anything. Texts are compared byte by byte.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/trace/definitions.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

enum class FieldOperator : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kMatches,  // a glob (src/base/glob.hpp), of texts only
};

// "FIELD OP VALUE", taken apart. What the field is, the events of a trace say.
struct FieldCondition {
  std::string text;  // as given
  std::string field;
  FieldOperator op = FieldOperator::kEqual;
  std::string operand;     // without the quotes around it
  bool is_quoted = false;  // it had some: it is a text, and no number or truth value
};

class EventFilter {
 public:
  // Without conditions, all events are admitted.
  explicit EventFilter(std::vector<FieldCondition> conditions);
  // The same, of a trace whose definitions are complete, and outlive the result. Error:
  // problem().
  static absl::StatusOr<EventFilter> make(const Definitions& definitions,
                                          std::vector<FieldCondition> conditions);

  // Which events there are. `definitions` must outlive the calls of the two functions
  // below, up to the next one of this. REQUIRES: called before them.
  void set_definitions(const Definitions& definitions) { definitions_ = &definitions; }
  // Why no event can meet one of the conditions: none has its field, or none has one
  // that can be compared with its operand. Empty: each may hold of some event.
  std::string problem() const;

  bool is_set() const { return !conditions_.empty(); }
  // The conditions as they were given.
  std::vector<std::string> texts() const;

  // Whether the record is no EVENT, or one that meets all conditions; if not, counts it.
  // An event without such a field, with one that cannot be compared with the operand, or
  // without a layout meets no condition.
  bool admits(const Record& record);
  uint64_t left_out() const { return left_out_; }

  // What an operand is if it is a number; `as_f32`: for fields of this type.
  struct Number {
    long double exact;
    long double as_f32;
  };
  struct Condition {
    FieldCondition given;
    std::optional<Number> number;
    std::optional<bool> truth;
  };

 private:
  bool meets_all(const Record& record) const;

  const Definitions* definitions_ = nullptr;
  std::vector<Condition> conditions_;
  uint64_t left_out_ = 0;
};

}  // namespace arctrace::reader
