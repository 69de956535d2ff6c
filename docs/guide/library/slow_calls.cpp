// Prints the calls of functions that match a glob and lasted a millisecond or longer.
//   c++ -std=c++20 slow_calls.cpp $(pkg-config --cflags --libs arctrace-reader)
#include <arctrace/reader.hpp>
#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: slow_calls FILE GLOB\n";
    return 2;
  }
  try {
    arctrace::reader::Trace trace(argv[1]);
    const auto threads = trace.threads();
    arctrace::reader::Filter filter;
    filter.only = {argv[2]};
    filter.max_depth = 1;
    auto calls = trace.calls(filter, ARCTRACE_READER_VALUES);
    for (const arctrace_reader_call& call : calls) {
      if (call.duration_ns < 1'000'000) continue;
      std::cout << call.start_ns << " ns, thread " << threads[call.thread].tid << ": "
                << calls.name(call.function) << call.args << " took " << call.duration_ns
                << " ns";
      if ((call.flags & ARCTRACE_READER_NOT_ENDED) != 0) std::cout << ", not ended";
      std::cout << '\n';
    }
    if (trace.facts().lost != 0) std::cout << trace.facts().lost << " records lost\n";
  } catch (const std::exception& error) {
    std::cerr << "slow_calls: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
