// Prints what libarctrace-reader reads in a trace, for test_reader.py to compare with
// what the command prints: lines of tab-separated fields, the first of which is the kind
// of the line.
//   read_all facts|calls|records|sums FILE...   sums of each process
#include <arctrace/reader.hpp>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace {

using arctrace::reader::Trace;

void print_facts(Trace& trace) {
  trace.scan();
  const arctrace_reader_facts& facts = trace.facts();
  std::printf("facts\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRId64 "\t%s\t%d\n",
              facts.records, facts.lost, facts.findings, facts.duration_ns, facts.host,
              int{facts.finished});
  for (std::size_t cause = 0; cause < facts.lost_causes; ++cause) {
    if (facts.lost_by_cause[cause] == 0) continue;
    std::printf("lost\t%s\t%" PRIu64 "\n", arctrace_reader_lost_cause(cause),
                facts.lost_by_cause[cause]);
  }
  std::printf("files\t%u\t%u\t%" PRIu64 "\t%d\t%" PRIu64 "\n", facts.first_file,
              facts.last_file, facts.removed_files, int{facts.goes_on}, facts.elsewhere);
  for (const arctrace_reader_process& process : trace.processes()) {
    std::printf("process\t%u\t%s\t%zu\t%" PRId64 "\n", process.pid, process.program,
                process.argument_count, process.start_ns);
  }
  for (const arctrace_reader_thread& thread : trace.threads()) {
    if (thread.of_kernel == 0) {
      std::printf("thread\t%u\t%u\t%s\n", thread.pid, thread.tid, thread.name);
    }
  }
  for (const arctrace_reader_finding& finding : trace.findings()) {
    std::printf("finding\t%s\t%s\n", finding.rule, finding.message);
  }
}

void print_calls(Trace& trace) {
  auto calls = trace.calls({}, ARCTRACE_READER_VALUES);
  const auto threads = trace.threads();
  for (const arctrace_reader_call& call : calls) {
    const std::vector<std::uint32_t> path = calls.functions_of(call.path);
    const std::uint32_t caller = calls.caller(call);
    std::printf(
        "call\t%u\t%" PRId64 "\t%" PRId64 "\t%" PRIu64
        "\t%u\t%s\t%s\t%s\t%s\t%zu\t%s\t%u\n",
        threads[call.thread].tid, call.start_ns, call.end_ns, call.self_ns, call.depth,
        std::string(calls.name(call.function)).c_str(),
        std::string(calls.module(call.function)).c_str(), call.args, call.retval,
        path.size(),
        caller == ARCTRACE_READER_NONE ? "" : std::string(calls.name(caller)).c_str(),
        call.flags);
  }
}

void print_records(Trace& trace) {
  const auto threads = trace.threads();
  for (const arctrace_reader_record& record : trace.records(ARCTRACE_READER_FIELDS)) {
    std::printf("record\t%" PRId64 "\t%s\t%s\t%s\n", record.time_ns, record.type_name,
                record.thread == ARCTRACE_READER_NONE
                    ? ""
                    : std::to_string(threads[record.thread].tid).c_str(),
                record.json);
  }
}

void print_sums(Trace& trace) {
  const arctrace::reader::Profile profile = trace.profile({}, ARCTRACE_READER_BY_PROCESS);
  std::size_t number = 0;
  for (const arctrace_reader_group& group : profile.groups()) {
    std::printf("group\t%u\t%s\t%" PRIu64 "\t%" PRIu64 "\n", group.pid, group.name,
                group.total_ns, group.threads);
    for (const arctrace_reader_function_sums& f : profile.functions(number)) {
      std::printf("function\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, f.name,
                  f.module, f.calls, f.self_ns, f.total_ns);
      for (const std::uint64_t time :
           {f.avg_ns, f.min_ns, f.max_ns, f.p50_ns, f.p90_ns, f.p99_ns, f.p999_ns}) {
        std::printf(time == ARCTRACE_READER_UNKNOWN ? "\tNone" : "\t%" PRIu64, time);
      }
      std::printf("\n");
    }
    for (const arctrace_reader_node& node : profile.nodes(number)) {
      std::printf("node\t%u\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", node.level,
                  node.name, node.calls, node.self_ns, node.total_ns);
    }
    ++number;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  try {
    Trace trace(std::vector<std::string>(argv + 2, argv + argc));
    if (std::strcmp(argv[1], "facts") == 0) print_facts(trace);
    if (std::strcmp(argv[1], "calls") == 0) print_calls(trace);
    if (std::strcmp(argv[1], "records") == 0) print_records(trace);
    if (std::strcmp(argv[1], "sums") == 0) print_sums(trace);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "read_all: %s\n", error.what());
    return 2;
  }
  return 0;
}
