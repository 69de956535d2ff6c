#include <arctrace/reader.hpp>
#include <cstdio>

// Prints the library's version, if a file that is not there is an error.
int main() {
  try {
    arctrace::reader::Trace trace("/nonexistent");
  } catch (const arctrace::reader::Error& error) {
    if (error.code() != ARCTRACE_READER_NOT_FOUND) return 1;
    std::puts(arctrace_reader_version());
    return 0;
  }
  return 1;
}
