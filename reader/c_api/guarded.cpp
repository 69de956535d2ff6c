#include "reader/c_api/guarded.hpp"

#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

thread_local std::string last_error;

int code_of(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kNotFound:
      return ARCTRACE_READER_NOT_FOUND;
    case absl::StatusCode::kPermissionDenied:
      return ARCTRACE_READER_DENIED;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDataLoss:
      return ARCTRACE_READER_NO_TRACE;
    case absl::StatusCode::kResourceExhausted:
      return ARCTRACE_READER_NO_MEMORY;
    default:
      return ARCTRACE_READER_INPUT;
  }
}

}  // namespace

int failed(int code, const std::string& message) {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return code;
}

int failed(const absl::Status& status) {
  return failed(code_of(status.code()), printable(std::string(status.message())));
}

}  // namespace arctrace::reader

const char* arctrace_reader_error(void) { return arctrace::reader::last_error.c_str(); }

const char* arctrace_reader_version(void) { return ARCTRACE_VERSION; }
