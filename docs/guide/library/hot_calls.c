/* Prints the ten functions of a trace that took most time, and what is missing in it.
 *   cc hot_calls.c -o hot_calls $(pkg-config --cflags --libs arctrace-reader) */
#include <arctrace/reader.h>
#include <inttypes.h>
#include <stdio.h>

static int fail(void) {
  fprintf(stderr, "hot_calls: %s\n", arctrace_reader_error());
  return 2;
}

int main(int argc, char** argv) {
  arctrace_reader_trace* trace = NULL;
  arctrace_reader_profile* profile = NULL;
  const struct arctrace_reader_function_sums* row;
  const struct arctrace_reader_facts* facts;
  size_t i;

  if (argc < 2) return fprintf(stderr, "usage: hot_calls FILE...\n"), 2;
  if (arctrace_reader_open((const char* const*)(argv + 1), (size_t)argc - 1, 0, &trace))
    return fail();
  if (arctrace_reader_profile_make(trace, NULL, ARCTRACE_READER_ALL, &profile))
    return fail();
  printf("%12s %15s %15s  %s\n", "calls", "self ns", "total ns", "function");
  for (i = 0; i < 10; ++i) {
    row = arctrace_reader_profile_function(profile, 0, i);
    if (row == NULL) break;
    printf("%12" PRIu64 " %15" PRIu64 " %15" PRIu64 "  %s\n", row->calls, row->self_ns,
           row->total_ns, row->name);
  }
  facts = arctrace_reader_get_facts(trace);
  printf("%" PRIu64 " records, %" PRIu64 " lost, %" PRIu64 " findings\n", facts->records,
         facts->lost, facts->findings);
  arctrace_reader_profile_free(profile);
  arctrace_reader_close(trace);
  return 0;
}
