#include "reader/streams/describe_record.hpp"

namespace arctrace::reader {

std::string content_text(const DescribeRecord& describe, const Record& record) {
  std::string text;
  TextFields fields(text);
  describe(record, fields);
  return text;
}

std::string content_members(const DescribeRecord& describe, const Record& record) {
  return json_members([&](JsonWriter& json) {
    JsonFields fields(json);
    describe(record, fields);
  });
}

}  // namespace arctrace::reader
