// Prints each call of a trace in the order of their ends.
//   c++ -std=c++20 calls.cpp -o calls $(pkg-config --cflags --libs arctrace-reader)
#include <arctrace/reader.hpp>
#include <iostream>

int main(int argc, char** argv) {
  arctrace::reader::Trace trace(argc == 2 ? argv[1] : "arctrace.data");
  auto calls = trace.calls();
  for (const arctrace_reader_call& call : calls)
    std::cout << calls.name(call.function) << ": " << call.duration_ns << " ns\n";
}
