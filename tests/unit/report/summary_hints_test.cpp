// The end of the view `summary`: what to do next.
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "reader/report/record_again.hpp"
#include "reader/trace/session.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A recording of `arctrace record [OPTIONS] -- COMMAND` that ended.
Session session_of(std::vector<std::string> words) {
  Session session;
  session.finished = true;
  session.child_wait_status = 0;
  session.recorder_command = {"/usr/bin/arctrace", "record"};
  for (std::string& word : words) session.recorder_command.push_back(std::move(word));
  return session;
}

}  // namespace

TEST_CASE("hints: commands name the file that is read") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  viewed.settings.files = {"'an other.data'", "second.data"};
  const std::string text = viewed.text("summary");
  CHECK(has(text,
            "\nmore:  arctrace report --view=tree 'an other.data' second.data\n"
            "       arctrace graph 'mainBB' 'an other.data' second.data\n"
            "       arctrace report --view=slowest -F 'mainBB' 'an other.data' "
            "second.data\n"));
  viewed.settings.options.style.width = 40;
  CHECK(has(viewed.text("summary"),
            "       arctrace graph 'mainBB' \\\n"
            "         'an other.data' second.data\n"));
}

TEST_CASE("hints: a pattern matches the function, whatever its name") {
  const auto graph_of = [](const char* name) {
    RecordScript script;
    const ThreadIndex thread = script.program(7, "prog");
    script.enter(thread, 0, name);
    script.exit(thread, 100);
    const std::string text = Viewed(script).text("summary");
    const size_t begin = text.find("arctrace graph ") + 15;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(graph_of("work") == "'work'");
  CHECK(graph_of("it's") == "'it?s'");
  CHECK(graph_of("-[Shape draw]") ==
        "'?"
        "?Shape draw?'");
  CHECK(graph_of("a*b?c\\d") == "'a?b?c?d'");
  CHECK(graph_of("caf\xc3\xa9") == "'caf\xc3\xa9'");
  CHECK(graph_of("\x1b[31m\xc3\xa9") ==
        "'?"
        "?31m?"
        "?'");
}

TEST_CASE("hints: the function that is worth a look is none that only waits") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100, "prog");
  s.task(100);
  s.script.enter(thread, 1000, "main");
  s.script.enter(thread, 1100, "work");
  s.script.exit(thread, 2100);
  s.script.enter(thread, 2200, "load");
  s.leaves(100, 2200, false);
  s.comes(100, 9000);
  s.script.exit(thread, 9000);
  s.script.exit(thread, 9100);
  CHECK(has(Viewed(s.script).text("summary"), "arctrace graph 'work'\n"));

  RecordScript script;  // the same without the kernel's records
  const ThreadIndex t = script.program(7, "prog");
  script.enter(t, 1000, "main");
  script.enter(t, 1100, "work");
  script.exit(t, 2100);
  script.enter(t, 2200, "pause");
  script.exit(t, 9000);
  script.exit(t, 9100);
  CHECK(has(Viewed(script).text("summary"), "arctrace graph 'work'\n"));
}

TEST_CASE("hints: after a crash the kernel's record of the signal is asked for") {
  if (geteuid() != 0) return;  // others get no command
  const RecordScript script = treetest();
  Session session = session_of({"--", "prog"});
  Viewed viewed(script);
  viewed.settings.session = &session;
  CHECK_FALSE(has(viewed.text("summary"), "arctrace record --kernel"));
  session.child_wait_status = SIGSEGV;
  CHECK(
      has(viewed.text("summary"), "       arctrace record --kernel --signals -- prog\n"));
}

TEST_CASE("hints: own functions are those of the program that worked most") {
  RecordScript script;
  const ThreadIndex shell = script.program(7, "sh");
  const ThreadIndex work = script.program(8, "work");
  script.text(shell, 0, "a text");
  script.text(shell, 100, "a text");
  script.text(work, 100, "a text");
  script.text(work, 900, "a text");
  script.definitions.mutable_thread(shell)->end_ns = 100;
  Session session = session_of({"-o", "a b", "--", "sh", "-c", "work; x=$1"});
  Viewed viewed(script);
  viewed.settings.session = &session;
  const std::string hint =
      "functions of work itself are not recorded: record it with -P ., or compile it "
      "with "
      "-finstrument-functions\n";
  CHECK(has(viewed.text("summary"),
            hint + "       arctrace record -P . -o 'a b' -- sh -c 'work; x=$1'\n"));
  // A report of some other record, and one that was cut off.
  session.recorder_command[1] = "attach";
  CHECK(has(viewed.text("summary"), hint + "time on the CPU"));
  session.recorder_command[1] = "record";
  session.child_wait_status.reset();
  CHECK(has(viewed.text("summary"), hint + "time on the CPU"));
}

TEST_CASE("hints: the library that has an interpreter's functions") {
  const auto engine = [](std::string_view program,
                         std::vector<std::string_view> libraries) {
    return engine_of(program, libraries);
  };
  CHECK(engine("/usr/bin/python3.11", {"/lib/libc.so.6", "/opt/libpython3.11.so.1.0"}) ==
        "libpython3.11.so.1.0");
  CHECK(engine("perl", {"/usr/lib/libperl.so.5.36"}) == "libperl.so.5.36");
  CHECK(engine("/usr/bin/ruby3.1", {"/usr/lib/libruby-3.1.so.3.1"}) ==
        "libruby-3.1.so.3.1");
  CHECK(engine("gcc", {"/lib/libgcc_s.so.1"}).empty());
  CHECK(engine("c", {"/lib/libc.so.6"}).empty());
  CHECK(engine("/bin/dash", {"/lib/libc.so.6"}).empty());
  CHECK(engine_pattern("libpython3.11.so.1.0") == "'lib:libpython*:PATTERN'");
}

TEST_CASE("hints: own functions of an interpreter are in a library of the process") {
  RecordScript script;
  script.text(script.program(7, "ruby3.1"), 10, "a text");
  Process& process = *script.definitions.mutable_process(0);
  Module library;
  library.path = "/usr/lib/libruby-3.1.so.3.1";
  process.modules.push_back(library);
  Session session = session_of({"--", "ruby3.1"});
  Viewed viewed(script);
  viewed.settings.session = &session;
  CHECK(has(viewed.text("summary"),
            "functions of ruby3.1 itself are not recorded: most are in "
            "libruby-3.1.so.3.1: record it with -P 'lib:libruby*:PATTERN'\n"));
  CHECK_FALSE(has(viewed.text("summary"), "arctrace record -P"));
  viewed.settings.options.style.width = 100;
  CHECK(has(viewed.text("summary"),
            "not recorded: record it with -P 'lib:libruby*:PATTERN'\n"));
}

TEST_CASE("hints: a Python program's functions are recorded by a module") {
  for (const char* name : {"python", "python3", "python3.11"}) CHECK(is_python(name));
  for (const char* name : {"pythonista", "ipython3", "python3-config", ""}) {
    CHECK_FALSE(is_python(name));
  }
  RecordScript script;
  script.text(script.program(7, "python3.11"), 10, "a text");
  Session session = session_of({"--", "python3.11"});
  Viewed viewed(script);
  viewed.settings.session = &session;
  CHECK(has(viewed.text("summary"),
            "a Python program's functions are not recorded: record python3 -m "
            "arctrace_python PROGRAM.py\n"));
}

TEST_CASE("hints: functions that -P left out for their size") {
  RecordScript script;
  script.text(script.program(7, "prog"), 10, "a text");
  const Session session = session_of({"-P", ".", "./prog"});
  Viewed viewed(script);
  viewed.settings.session = &session;
  CHECK(has(viewed.text("summary"), "       arctrace record -Z 1 -P . ./prog\n"));
}
