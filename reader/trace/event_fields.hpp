// The fields of events: a payload decoded by its layout, and the conditions on fields
// that say which events are shown (--where; src/protocol/field_condition.hpp).
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reader/trace/definitions.hpp"
#include "reader/trace/record.hpp"
#include "src/protocol/field_condition.hpp"

namespace arctrace::reader {

// A field's value in the payload of an event.
struct FieldValue {
  const EventField* field = nullptr;
  // By the field's type: signed, unsigned or X64, floating, BOOL, STRING (raw bytes).
  std::variant<int64_t, uint64_t, double, bool, std::string_view> value;
};

struct EventValues {
  std::vector<FieldValue> fields;  // as far as the payload has them
  // Whether the payload is as long as the layout, but for up to 3 bytes that fill its
  // last word.
  bool fits = false;
};

// Decodes `payload`, the bytes after the event id. The result has views into `payload`
// and pointers into `layout`.
EventValues decode_event_untrusted(const EventLayout& layout,
                                   std::span<const std::byte> payload);

// Returns the shortest decimal form that reads back as the field's floating value, or
// inf, nan. REQUIRES: the value is a double.
std::string real_text(const FieldValue& value);

// Appends "name=value name=value", strings quoted and escaped for a terminal.
void append_event_text(std::string& out, const EventValues& values);

// Returns the nearest bits of a condition's operand, if it is a number that is not
// written as an integer of 64 bits: "0.1", "1e3", "nan".
RealBits real_bits_of(const FieldCondition& condition);

// The types of the fields that events have, by the fields' names.
using FieldTypes = std::map<std::string, std::set<uint32_t>>;
FieldTypes field_types(const Definitions& definitions);

// Returns why no event with such fields can meet one of the conditions, "FIELD OP VALUE":
// none has its field, or none has one that can be compared with its operand. Empty: each
// may be true of some event.
std::string unmet_condition(const std::vector<std::string>& conditions,
                            const FieldTypes& known);

// Selects the events that are shown.
class EventFilter {
 public:
  // Without conditions, all events are admitted. Each is "FIELD OP VALUE". REQUIRES: it
  // has a field and one of the operators.
  explicit EventFilter(const std::vector<std::string>& conditions);
  // Makes such a filter for a trace whose definitions are complete, and outlive the
  // result. Error: unmet_condition().
  static absl::StatusOr<EventFilter> make(const Definitions& definitions,
                                          const std::vector<std::string>& conditions);

  // Sets the definitions of the events. They must outlive the calls of admits(), up to
  // the next call of this. REQUIRES: called before them.
  void set_definitions(const Definitions& definitions) { definitions_ = &definitions; }

  bool is_set() const { return !conditions_.empty(); }
  // The conditions as they were given.
  std::vector<std::string> texts() const;

  // Returns whether the record is no EVENT, or one that meets all conditions; if not,
  // counts it. An event without such a field, with one that cannot be compared with the
  // operand, or without a layout meets no condition.
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
