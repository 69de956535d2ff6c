// Which events are shown: conditions on the fields of their payloads (--where;
// src/protocol/field_condition.hpp).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reader/trace/definitions.hpp"
#include "reader/trace/record.hpp"
#include "src/protocol/field_condition.hpp"

namespace arctrace::reader {

// The bits of a condition's operand, if it is a number that is not written as an integer
// of 64 bits: "0.1", "1e3", "nan". The nearest ones.
RealBits real_bits_of(const FieldCondition& condition);

// The types of the fields that events have, by the fields' names.
using FieldTypes = std::map<std::string, std::set<uint32_t>>;
FieldTypes field_types(const Definitions& definitions);

// Why no event with such fields can meet one of the conditions, "FIELD OP VALUE": none
// has its field, or none has one that can be compared with its operand. Empty: each may
// hold of some event.
std::string unmet_condition(const std::vector<std::string>& conditions,
                            const FieldTypes& known);

class EventFilter {
 public:
  // Without conditions, all events are admitted. Each is "FIELD OP VALUE". REQUIRES: it
  // has a field and one of the operators.
  explicit EventFilter(const std::vector<std::string>& conditions);
  // The same, of a trace whose definitions are complete, and outlive the result. Error:
  // unmet_condition().
  static absl::StatusOr<EventFilter> make(const Definitions& definitions,
                                          const std::vector<std::string>& conditions);

  // Which events there are. `definitions` must outlive the calls of admits(), up to the
  // next one of this. REQUIRES: called before them.
  void set_definitions(const Definitions& definitions) { definitions_ = &definitions; }

  bool is_set() const { return !conditions_.empty(); }
  // The conditions as they were given.
  std::vector<std::string> texts() const;

  // Whether the record is no EVENT, or one that meets all conditions; if not, counts it.
  // An event without such a field, with one that cannot be compared with the operand, or
  // without a layout meets no condition.
  bool admits(const Record& record);
  uint64_t left_out() const { return left_out_; }

  struct Condition {
    explicit Condition(const std::string& condition);

    std::shared_ptr<const std::string> text;  // `given` has views into it
    FieldCondition given;
    OperandNumber number;
  };

 private:
  bool meets_all(const Record& record) const;

  const Definitions* definitions_ = nullptr;
  std::vector<Condition> conditions_;
  uint64_t left_out_ = 0;
};

}  // namespace arctrace::reader
