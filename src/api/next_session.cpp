// How a process that runs leaves a session that is over, and joins another one: the
// shim's interface for the recorder's second `record --pid`.
#include <errno.h>

#include "src/api/shim_interface.h"
#include "src/calls/call_filter.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/stack/call_edges.hpp"
#include "src/writer/definition_list.hpp"
#include "src/writer/modules.hpp"
#include "src/writer/record_filter.hpp"
#include "src/writer/renewed_states.hpp"
#include "src/writer/slow_path.hpp"

namespace arctrace {
namespace {

bool (*before_first_record)();

// One thread makes the identity of the process. Threads that record at once would lose
// what they do meanwhile.
bool prepare_records() {
  scan_modules(session_ticks(), true);
  const bool is_filtered = before_first_record();
  attach_this_thread();
  return is_filtered;
}

}  // namespace
}  // namespace arctrace

using namespace arctrace;  // the C functions below are the namespace's face

int arctrace_shim_join(const char* path, bool (*before_records)(void)) {
  before_first_record = before_records;
  return join_session(path, prepare_records);
}

int arctrace_shim_end_session(void) {
  if (!session.joined) return 0;
  if (!session_is_over()) return -EBUSY;
  end_session();
  return 0;
}

int arctrace_shim_forget_session(void) {
  if (session.joined) return -EBUSY;
  if (is_any_thread_writing()) return -EAGAIN;
  if (!release_session()) return -ENOMEM;
  forget_process_identity();
  renew_thread_states();
  forget_verdicts();
  reset_call_filter();
  retire_filter_text();
  forget_call_edges();
  return 0;
}
