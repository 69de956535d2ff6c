// What each function of the C interface does with errors: no exception leaves the
// library, and each failure has a code and a line of text.
#pragma once

#include <absl/status/status.h>
#include <arctrace/reader.h>

#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace arctrace::reader {

// Keeps `message` for arctrace_reader_error() of this thread; returns `code`.
int failed(int code, const std::string& message);
// The same for a status of the library's, which is not OK.
int failed(const absl::Status& status);

// Returns what `body` returns, or the code of the exception that it throws.
template <class Body>
int guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return failed(ARCTRACE_READER_NO_MEMORY, "no memory");
  } catch (const std::system_error& error) {
    return failed(ARCTRACE_READER_NO_MEMORY, error.what());
  } catch (const std::exception& error) {
    return failed(ARCTRACE_READER_INTERNAL, error.what());
  } catch (...) {
    return failed(ARCTRACE_READER_INTERNAL, "an unknown exception");
  }
}

}  // namespace arctrace::reader
