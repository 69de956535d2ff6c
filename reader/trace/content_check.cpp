#include "reader/trace/content_check.hpp"

#include <absl/strings/str_cat.h>

#include "reader/trace/call_args.hpp"
#include "reader/trace/event_fields.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

void ContentChecker::check_untrusted(const Record& record) {
  switch (record.type) {
    case ARCTRACE_TYPE_ENTER:
    case ARCTRACE_TYPE_EXIT_NAMED:
      check_key(record, load_part_untrusted<arctrace_frame_body>(record.body).key);
      break;
    case ARCTRACE_TYPE_STACK:
    case ARCTRACE_TYPE_COROUTINE: {
      BodyReader reader(record.body);
      if (record.type == ARCTRACE_TYPE_COROUTINE) reader.read<uint32_t>();
      const auto stack = reader.read<arctrace_stack_body>();
      for (uint32_t i = 0; i < stack.count && reader.ok(); ++i) {
        check_key(record, reader.read<uint64_t>());
      }
      break;
    }
    case ARCTRACE_TYPE_INSTANT:
      check_name(record, load_part_untrusted<arctrace_instant_body>(record.body).name);
      break;
    case ARCTRACE_TYPE_COUNTER:
      check_name(record, load_part_untrusted<arctrace_counter_body>(record.body).name);
      break;
    case ARCTRACE_TYPE_ARGUMENTS:
    case ARCTRACE_TYPE_RESULT:
      if (const auto id = find_arg_names(record.body)) check_name(record, *id);
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
  BodyReader reader(record.body);
  const uint32_t id = reader.read<arctrace_event_body>().event;
  const EventLayout* layout = trace_.definitions().layout(process, id);
  if (layout == nullptr) {
    if (events_done_.insert({process, id}).second) report_undefined(record, "event", id);
    return;
  }
  const std::span<const std::byte> payload = reader.rest();
  if (decode_event_untrusted(*layout, payload).fits) return;
  trace_.add_finding(
      {std::string(text_of(Rule::kEventPayload).id),
       absl::StrCat("event ", id, " has ", payload.size(), " bytes of payload"),
       record.chunk, record.offset});
}

void ContentChecker::report_undefined(const Record& record, const char* what,
                                      uint32_t id) {
  if (trace_.session().may_lack_definitions) return;
  trace_.add_finding({std::string(text_of(Rule::kNameDefined).id),
                      absl::StrCat(what, " ", id), record.chunk, record.offset});
}

ProcessIndex ContentChecker::process_of(const Record& record) const {
  const Thread* thread = trace_.definitions().thread(record.thread);
  return thread == nullptr ? kNoIndex : thread->process;
}

}  // namespace arctrace::reader
