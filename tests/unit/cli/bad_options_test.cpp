// Options and the file of options are refused with one line that names the option, the
// value and what it may be, and exit status 2.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_directory.hpp"
#include "tests/unit/cli/run_command.hpp"

namespace arctrace::testing {
namespace {

struct Refusal {
  const char* arguments;
  const char* message;  // all of the line after "arctrace: "
};

constexpr Refusal kRefusals[] = {
    {"record -p --duration=1s",
     "record: --pid: \"--duration=1s\" is not the id of a process"},
    {"record -p 0", "record: --pid: \"0\" is not the id of a process"},
    {"attach -p 7,x", "attach: --pid: \"x\" is not the id of a process"},
    {"record -b abc true",
     "record: --buffer-size: \"abc\" is not a size such as 64k or 1.5G"},
    {"record -b -1 true",
     "record: --buffer-size: \"-1\" is not a size such as 64k or 1.5G"},
    {"record -b 99999999999G true",
     "record: --buffer-size: \"99999999999G\" is too large"},
    {"record --block-size 5G true", "record: --block-size: \"5G\" is too large"},
    {"record -Z -1 true",
     "record: --size-filter: \"-1\" is not a size such as 64k or 1.5G"},
    {"record --size-limit x true",
     "record: --size-limit: \"x\" is not a size such as 64k or 1.5G"},
    {"record --mode foo true", "record: --mode: \"foo\" is not drop, overwrite or stop"},
    {"record --mode 1 true", "record: --mode: \"1\" is not drop, overwrite or stop"},
    {"create --mode '' name", "create: --mode: \"\" is not drop, overwrite or stop"},
    {"record --scope 7 true", "record: --scope: \"7\" is not adaptive, thread or shared"},
    {"record --pin maybe true",
     "record: --pin: \"maybe\" is not no, auto, try or require"},
    {"record --kernel=foo true",
     "record: --kernel: \"foo\" is not auto, bpf, perf, require, no or irq"},
    {"record --slots 0 true", "record: --slots: \"0\" is not a number from 1 to 65535"},
    {"record --slots x true", "record: --slots: \"x\" is not a number from 1 to 65535"},
    {"record --high-water 101 true",
     "record: --high-water: \"101\" is not a number from 0 to 93"},
    {"record --high-water nan true",
     "record: --high-water: \"nan\" is not a number from 0 to 93"},
    {"record --high-water 1.5 true",
     "record: --high-water: \"1.5\" is not a valid number"},
    {"ctl --high-water x name", "ctl: --high-water: \"x\" is not a number from 0 to 93"},
    {"record -N '' true", "record: -N \"\": an empty pattern"},
    {"record -D 1025 true", "record: --depth: \"1025\" is not a number from 1 to 1024"},
    {"record --snapshots -1 true", "record: --snapshots: \"-1\" is negative"},
    {"record --duration 0 true", "record: --duration: \"0\" is not a time such as 10s"},
    {"record -o '' true", "record: --output: the value is empty"},
    {"snapshot name -o ''", "snapshot: --output: the value is empty"},
    {"attach name -o ''", "attach: --output: the value is empty"},
    {"record --session '' true", "record: --session: the value is empty"},
    {"record -o x -o y true", "record: --output is given twice"},
    {"report --view xyz",
     "report: --view: \"xyz\" is not summary, tree, flat, arcs, kinds, flow, "
     "invocations, "
     "histogram, slowest, graph, errors, locks, critical-path, processes, log-rt, "
     "threads or "
     "wakers"},
    {"report --view invocation",
     "report: --view: \"invocation\" is not summary, tree, flat, arcs, kinds, flow, "
     "invocations, "
     "histogram, slowest, graph, errors, locks, critical-path, processes, log-rt, "
     "threads or "
     "wakers; did you mean "
     "\"invocations\"?"},
    {"report --view histogram", "report: --view=histogram needs -F FUNCTION"},
    {"report --view flat --columns calls,p98",
     "report: --columns: \"p98\" is not calls, self%, total%, self, total, on-cpu, "
     "off-cpu, blocked, no-cpu, "
     "avg, min, p50, p90, p99, p99.9 or max; did you mean \"p90\" or \"p99\"?"},
    {"report --view flow --columns calls",
     "report: --columns does not apply to --view=flow"},
    {"report --view tree --columns max",
     "report: --view=tree has no column max, which --view=flat has"},
    {"graph --sort entries f",
     "graph: --sort: \"entries\" is not total, self, calls, name or entry"},
    {"graph", "graph: PATTERN is required: the function, or a PATTERN for several"},
    {"snapshot",
     "snapshot: SESSION is required: a session's name, or its buffer's file; arctrace "
     "list shows the sessions"},
    {"recover",
     "recover: SESSION is required: a session's name, its buffer's file, or a core of a "
     "traced process; arctrace list shows the sessions"},
    {"stop",
     "stop: NAME is required: the session's name, or its buffer's file; arctrace list "
     "shows the sessions"},
    {"create", "create: NAME is required: a name of letters, digits and . _ -"},
    {"functions",
     "functions: BINARY is required: the program or shared library, for "
     "x86-64"},
    {"export -o -",
     "export: --to is required: one of perfetto, chrome, html, speedscope, folded, "
     "pprof, callgrind, csv, ndjson or sqlite"},
    {"export --to=json",
     "export: --to: there is no format \"json\"; chrome and speedscope write .json "
     "files; "
     "did you mean \"ndjson\"?"},
    {"export --to=db",
     "export: --to: there is no format \"db\"; sqlite writes .db files"},
    {"record --overwrite true",
     "record: The following argument was not expected: --overwrite; did you mean "
     "\"--mode=overwrite\"?"},
    {"report --flat",
     "report: The following argument was not expected: --flat; did you mean "
     "\"--view=flat\"?"},
    {"top", "no command \"top\"; did you mean \"live\"?"},
    {"trace ls", "no command \"trace\"; did you mean \"record\" or \"dump\"?"},
    {"replay", "no command \"replay\"; did you mean \"report --view=flow\"?"},
    {"recrod", "no command \"recrod\"; did you mean \"record\"?"},
    {"diff one",
     "diff: needs two files, or several runs of each side as in A1 A2 -- B1 B2"},
    {"diff a b c",
     "diff: needs two files, or several runs of each side as in A1 A2 -- B1 B2"},
    {"report --view flow --per thread", "report: --per does not apply to --view=flow"},
    {"report --view wakers --merge", "report: --merge does not apply to --view=wakers"},
    {"report --view threads --min-percent 1",
     "report: --min-percent does not apply to --view=threads"},
    {"report --view flow --sort total",
     "report: --sort does not apply to --view=flow, which is in order of time"},
    {"report --view invocations --sort calls",
     "report: --view=invocations cannot be sorted by calls, only by entry, total, self "
     "or "
     "name"},
    {"report --view locks --clock cpu",
     "report: --clock does not apply to --view=locks, which shows all time"},
    {"report --view wakers --clock cpu",
     "report: --clock does not apply to --view=wakers, which shows all time"},
    {"report --sort 1", "report: --sort: \"1\" is not total, self, calls, name or entry"},
    {"report --clock x", "report: --clock: \"x\" is not wall, cpu or off-cpu"},
    {"report --per x", "report: --per: \"x\" is not thread or process"},
    {"report --color x", "report: --color: \"x\" is not auto, always or never"},
    {"report --pid x", "report: --pid: \"x\" is not a valid number"},
    {"report --pid ''", "report: --pid: the value is empty"},
    {"report --tid 99999999999", "report: --tid: \"99999999999\" is not a valid number"},
    {"report --min-percent x",
     "report: --min-percent: \"x\" is not a number from 0 to 100"},
    {"report --limit", "report: --limit needs a value"},
    {"report -F 'operator[]'",
     "report: --function: \"operator[]\": no ] to this [; a backslash before it makes it "
     "plain"},
    {"report -N ''", "report: --exclude: \"\": an empty pattern"},
    {"report --process 'x\\'",
     "report: --process: \"x\\\\\": nothing after the backslash"},
    {"dump -F '[[:alpha:]]'",
     "dump: --function: \"[[:alpha:]]\": no classes as in [[:alpha:]]; [a-z] is a range"},
    {"dump --where 'id 5'",
     "dump: --where: \"id 5\": not a condition such as \"id = 5\": = != < <= > >= ~"},
    {"report --where 'id =' --view=flow",
     "report: --where: \"id =\": no value after the operator; \"\" is an empty text"},
    {"report --where 'id = 5'",
     "report: --where does not apply to --view=summary, only to flow, which shows "
     "events"},
    {"export --where 'id = 5' --to=folded -o -",
     "export: --where does not apply to --to=folded, which has no events"},
    {"dump --format xml", "dump: --format: \"xml\" is not text or json"},
    {"dump --pid ''", "dump: --pid: the value is empty"},
    {"list --format x", "list: --format: \"x\" is not text or json"},
    {"--config", "--config needs a value"},
    {"ctl no.such-session", "no session no.such-session"},
    {"attach no.such-session", "no session no.such-session"},
    {"env no.such-session", "no session no.such-session"},
    {"destroy no.such-session", "no session no.such-session"},
};

TEST_CASE("bad values are refused in one clear line") {
  for (const Refusal& refusal : kRefusals) {
    CAPTURE(refusal.arguments);
    const CommandResult result = run_arctrace(refusal.arguments);
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK(result.err == "arctrace: " + std::string(refusal.message) + "\n");
  }
}

TEST_CASE("the file of options is refused with the line") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("config");
  const auto refused_with = [&](const std::string& text, const std::string& message,
                                const char* arguments = "record true") {
    CAPTURE(text);
    std::ofstream(path) << text;
    const CommandResult result =
        run_arctrace("--config " + path + " " + std::string(arguments));
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK(result.err == "arctrace: " + path + message + "\n");
  };
  refused_with("[record]\n\n# \nblock-size=x\n",
               ":4: --block-size: \"x\" is not a size such as 64k or 1.5G");
  refused_with("record.slots = 0\n",
               ":1: --slots: \"0\" is not a number from 1 to 65535");
  refused_with("[record]\nwait=true\n no-such = 1\n",
               ":3: record has no option \"no-such\"");
  refused_with("[record]\nwiat=true\n",
               ":2: record has no option \"wiat\"; did you mean \"wait\"?");
  refused_with("[recrod]\nwait=true\n",
               ":1: no command \"recrod\"; did you mean \"record\"?");
  refused_with("[record]\nsome words\n", ":2: record has no option \"some words\"");
  refused_with("[record\nwait=true\n", ":1: arctrace has no option \"[record\"");
  refused_with("[record]\nwait=maybe\n",
               ":2: --wait: \"maybe\" is neither true nor false");
  refused_with("slots=2\n", ":1: arctrace has no option \"slots\"");
  refused_with("[record]\nmode=x\nslots=9\n",
               ":2: --mode: \"x\" is not drop, overwrite or stop");
  refused_with("[record]\nno-such=1\n", ":2: record has no option \"no-such\"", "list");
  // The command line's value is not attributed to the file.
  std::ofstream(path) << "[record]\nslots=9\n";
  CHECK(run_arctrace("--config " + path + " record --slots 0 true").err ==
        "arctrace: record: --slots: \"0\" is not a number from 1 to 65535\n");
}

}  // namespace
}  // namespace arctrace::testing
