#include "reader/trace/content_check.hpp"

#include <absl/strings/str_cat.h>

#include "reader/trace/bytes.hpp"
#include "reader/trace/call_args.hpp"
#include "reader/trace/event_payload.hpp"
#include "reader/trace/rules.hpp"

namespace arctrace::reader {

void ContentChecker::check_untrusted(const Record& record) {
  switch (record.type) {
    case ARCTRACE_TYPE_ENTER:
    case ARCTRACE_TYPE_EXIT_NAMED:
      check_key(record, load_u64(record.body.data()));
      break;
    case ARCTRACE_TYPE_STACK: {
      const uint32_t count = load_u32(record.body.data() + 4);
      for (uint32_t i = 0; i < count; ++i) {
        check_key(record, load_u64(record.body.data() + 8 + size_t{i} * 8));
      }
      break;
    }
    case ARCTRACE_TYPE_INSTANT:
    case ARCTRACE_TYPE_COUNTER:
      check_name(record, load_u32(record.body.data()));
      break;
    case ARCTRACE_TYPE_ARGUMENTS:
    case ARCTRACE_TYPE_RESULT:
      if (const auto id = names_of_values(record.body)) check_name(record, *id);
      break;
    case ARCTRACE_TYPE_EVENT:
      check_event(record);
      break;
    default:
      break;
  }
}

void ContentChecker::check_key(const Record& record, uint64_t key) {
  if ((key & ARCTRACE_FRAME_NAME_BIT) != 0) {
    check_name(record, static_cast<uint32_t>(key));
  }
}

void ContentChecker::check_name(const Record& record, uint32_t id) {
  const ProcessIndex process = process_of(record);
  if (!names_done_.insert({process, id}).second) return;
  if (!trace_.definitions().name(process, id)) report_undefined(record, "name", id);
}

void ContentChecker::check_event(const Record& record) {
  const ProcessIndex process = process_of(record);
  const uint32_t id = load_u32(record.body.data());
  const EventLayout* layout = trace_.definitions().layout(process, id);
  if (layout == nullptr) {
    if (events_done_.insert({process, id}).second) report_undefined(record, "event", id);
    return;
  }
  if (decode_event_untrusted(*layout, record.body.subspan(4)).fits) return;
  trace_.add_finding(
      {std::string(text_of(Rule::kEventPayload).id),
       absl::StrCat("event ", id, " has ", record.body.size() - 4, " bytes of payload"),
       record.chunk, record.offset});
}

void ContentChecker::report_undefined(const Record& record, const char* what,
                                      uint32_t id) {
  trace_.add_finding({std::string(text_of(Rule::kNameDefined).id),
                      absl::StrCat(what, " ", id), record.chunk, record.offset});
}

ProcessIndex ContentChecker::process_of(const Record& record) const {
  const Thread* thread = trace_.definitions().thread(record.thread);
  return thread == nullptr ? kNoIndex : thread->process;
}

}  // namespace arctrace::reader
