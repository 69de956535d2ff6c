// What rows of events are called, in all exports that have them.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

namespace arctrace::reader {

inline const char* point_type_text(uint16_t record_type) {
  switch (record_type) {
    case ARCTRACE_TYPE_EVENT:
      return "event";
    case ARCTRACE_TYPE_INSTANT:
      return "instant";
    case ARCTRACE_TYPE_COUNTER:
      return "counter";
    case ARCTRACE_TYPE_TEXT:
      return "text";
    case ARCTRACE_TYPE_MARK:
      return "mark";
    case ARCTRACE_TYPE_LOST:
      return "lost";
    default:
      return "record";
  }
}

}  // namespace arctrace::reader
