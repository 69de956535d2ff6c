// Runs arctrace: dump, info, check and the command line in general.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/trace_builder.hpp"
#include "tests/unit/cli/run_command.hpp"

namespace arctrace::testing {
namespace {

// Two processes; what the second one wrote is hostile.
FileBuilder two_processes() {
  FileBuilder file;
  file.records(
      full_record(ARCTRACE_TYPE_SYSTEM, 0, 1,
                  system_body("host", "6.1", std::string("arctrace\0record\0", 16))));
  BlockBuilder defined = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  ProcessFacts second{2, 1, 200, 100, 0, ARCTRACE_ORIGIN_FORK, 50, "/bin/two", "two"};
  defined.add_full(ARCTRACE_TYPE_PROCESS, 1, 10, process_body({}));
  defined.add_full(ARCTRACE_TYPE_THREAD, 1, 10, thread_body(1, 1, 100, "one", 10));
  defined.add_full(ARCTRACE_TYPE_PROCESS, 2, 50, process_body(second));
  defined.add_full(ARCTRACE_TYPE_THREAD, 2, 50,
                   thread_body(2, 2, 200, "t\x1b[31mwo\xff"));
  defined.add_full(ARCTRACE_TYPE_STRING, 1, 10, string_body(1, 1, "work"));
  defined.add_full(ARCTRACE_TYPE_STRING, 2, 50, string_body(2, 1, "ev\"il\n\xff\x1b[2J"));
  defined.add_full(
      ARCTRACE_TYPE_EVENT_LAYOUT, 1, 10,
      layout_body(1, 7, "tick", {{ARCTRACE_FIELD_U32, "n"}, {ARCTRACE_FIELD_X64, "at"}}));
  defined.add_full(
      ARCTRACE_TYPE_MODULE, 1, 10,
      module_body(1, 0x400000, 0x500000, 0x400000, "/nonexistent/one", "\x01"));
  file.block(defined);
  const uint64_t work = ARCTRACE_FRAME_NAME_BIT | 1;
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .stack(100, {})
                 .enter(1000, 0x401136)
                 .enter(2000, work)
                 .add(ARCTRACE_TYPE_EVENT, 2500, event_body(7, Bytes().u32(5).u64(0xAB)))
                 .exit(3000)
                 .exit(4000),
             0, 1);
  file.block(BlockBuilder::exclusive(2, 0, 2, 500, 2, 200, 200)
                 .stack(500, {})
                 .enter(1500, work)
                 .add(ARCTRACE_TYPE_TEXT, 2600, text_body("\x1b]0;title\x07"))
                 .exit(3500),
             0, 2);
  file.finish(5000);
  return file;
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

bool is_harmless(const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7F) return false;
  }
  return true;
}

// A command that is refused has exit status 2, and prints one line with the reason.
void check_refused(const CommandResult& result, const std::string& reason) {
  CAPTURE(result.err);
  CHECK(result.status == 2);
  CHECK(result.out.empty());
  CHECK(result.err.find(reason) != std::string::npos);
  CHECK(result.err.starts_with("arctrace: "));
  CHECK(result.err.find('\n') == result.err.size() - 1);
}

TEST_CASE("dump: every record of both processes in order of time") {
  const CommandResult result =
      run_arctrace("dump --no-header {}", two_processes().file());
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  const std::vector<std::string> expected = {
      "0.000001000     100     100 one             ENTER        one+0x1136",
      "0.000001500     200     200 t\\x1b[31mwo\\xff ENTER        ev\"il\\n\\xff\\x1b[2J",
      "0.000002000     100     100 one             ENTER        work",
      "0.000002500     100     100 one             EVENT        tick n=5 at=0xab",
      std::string("0.000002600     200     200 t\\x1b[31mwo\\xff TEXT         ") +
          "text=\"\\x1b]0;title\\x07\"",
      "0.000003000     100     100 one             EXIT         work",
      "0.000003500     200     200 t\\x1b[31mwo\\xff EXIT         ev\"il\\n\\xff\\x1b[2J",
      "0.000004000     100     100 one             EXIT         one+0x1136"};
  size_t at = 0;
  for (const std::string& line : expected) {
    CAPTURE(line);
    const size_t found = result.out.find(line, at);
    CHECK(found != std::string::npos);
    if (found != std::string::npos) at = found;
  }
  CHECK(is_harmless(result.out));
}

TEST_CASE("dump: a header of facts, and sums at the end") {
  const CommandResult result = run_arctrace("dump {}", two_processes().file());
  CHECK(result.out.find("# recorded by: arctrace record\n") != std::string::npos);
  CHECK(result.out.find(" on host, Linux 6.1, 2 CPUs\n") != std::string::npos);
  CHECK(result.out.find("time     pid     tid name            type         content\n") !=
        std::string::npos);
  CHECK(result.out.ends_with("# 8 records, 0 lost\n"));
}

TEST_CASE("dump: JSON has one object a line") {
  const auto lines =
      json_lines(run_arctrace("dump --format=json {}", two_processes().file()).out);
  REQUIRE(lines.size() == 20);
  int64_t last = 0;
  for (const auto& line : lines) {
    CHECK(line["time_ns"] >= last);
    last = line["time_ns"];
    CHECK(line["type"].is_string());
  }
  const auto find = [&](const char* type) {
    for (const auto& line : lines) {
      if (line["type"] == type) return line;
    }
    return nlohmann::json();
  };
  CHECK(find("SYSTEM")["pid"].is_null());
  CHECK(find("ENTER") == nlohmann::json{{"time_ns", 1000},
                                        {"pid", 100},
                                        {"tid", 100},
                                        {"type", "ENTER"},
                                        {"function", "one+0x1136"},
                                        {"module", "/nonexistent/one"}});
  CHECK(find("EVENT")["event"] == "tick");
  CHECK(find("EVENT")["fields"] == nlohmann::json{{"n", 5}, {"at", "0xab"}});
  CHECK(find("TEXT")["text"] == "\x1b]0;title\x07");
  const auto raw =
      json_lines(run_arctrace("dump --format=json --raw {}", two_processes().file()).out);
  CHECK(raw.back()["raw"]["chunk"] == 4);
  CHECK(raw[9]["type"] == "STACK");
}

TEST_CASE("dump: filters") {
  const std::vector<std::byte> file = two_processes().file();
  const auto count = [&](const std::string& options) {
    const std::string out = run_arctrace("dump --no-header " + options + " {}", file).out;
    return std::count(out.begin(), out.end(), '\n');
  };
  CHECK(count("") == 20);
  CHECK(count("--pid 200") == 7);
  CHECK(count("--pid 100,200") == 18);
  CHECK(count("--tid 100 --type ENTER,exit") == 4);
  CHECK(count("--pid 1") == 0);
  CHECK(count("-F work") == 2);
  CHECK(count("-F 'one+*' -F work") == 4);
  CHECK(count("-r 1us~2us") == 2);
  CHECK(count("-r 4us~") == 2);
  CHECK(count("-n 3") == 3);
  CHECK(count("-n 0") == 0);
  CHECK(count("--type 5") == 3);

  // A list ends with its argument: the next word may be the file.
  for (const char* list : {"--pid 100", "--tid 100", "--type ENTER", "--fields type"}) {
    CAPTURE(list);
    CHECK(run_arctrace("dump --no-header {} " + std::string(list), file).out ==
          run_arctrace("dump --no-header " + std::string(list) + " {}", file).out);
  }
  for (const char* list : {"--pid 100", "--tid 100"}) {
    CAPTURE(list);
    const CommandResult report =
        run_arctrace("report " + std::string(list) + " {}", file);
    CHECK(report.status == 0);
    CHECK(report.out.find("work") != std::string::npos);
  }
}

TEST_CASE("dump: filters that nothing passes are told apart from an empty trace") {
  const std::vector<std::byte> file = two_processes().file();
  for (const char* options :
       {"--pid=77", "--tid=77", "--type=MARK", "-F nothing", "-r 100s~"}) {
    const CommandResult result = run_arctrace("dump {} " + std::string(options), file);
    CAPTURE(options);
    CHECK(result.status == 0);
    CHECK(result.err == "arctrace: warning: no record passes the filters\n");
  }
  CHECK(run_arctrace("dump --type=ENTER {}", file).err.empty());
  CHECK(run_arctrace("dump --type=MARK -n 0 {}", file).err.empty());
}

TEST_CASE("dump: the columns of --fields") {
  const std::vector<std::byte> file = two_processes().file();
  CHECK(run_arctrace("dump --no-header --fields type,content -F work {}", file).out ==
        "ENTER        work\nEXIT         work\n");
  CHECK(
      run_arctrace("dump --no-header --fields ticks,place,writer -F work {}", file).out ==
      "              2000        2:160      1\n              3000        2:200      1\n");
  check_refused(run_arctrace("dump --fields typ {}", file),
                "no field \"typ\"; did you mean \"type\"");
  check_refused(run_arctrace("dump --fields type --format=json {}", file), "--fields");
}

TEST_CASE("dump: an exit that fits no frame, an unknown type, an unknown event") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .stack(100, {})
                 .exit(101)
                 .add(25, 102, Bytes().u32(0xdeadbeef))
                 .add(ARCTRACE_TYPE_EVENT, 103, event_body(9, Bytes().u32(1)))
                 .add(ARCTRACE_TYPE_INSTANT, 104, Bytes().u32(8)),
             0, 1);
  const std::string out = run_arctrace("dump --no-header {}", file.file()).out;
  CHECK(out.find("EXIT         orphan=true\n") != std::string::npos);
  CHECK(out.find("TYPE_25      body=\"efbeadde\"\n") != std::string::npos);
  CHECK(out.find("EVENT        event#9 payload=\"01000000\"\n") != std::string::npos);
  CHECK(out.find("INSTANT      name#8\n") != std::string::npos);
}

TEST_CASE("info: of a file") {
  const std::vector<std::byte> file = two_processes().file();
  const CommandResult text = run_arctrace("info {}", file);
  CHECK(text.status == 0);
  CHECK(is_harmless(text.out));
  CHECK(text.out.find("trace.data: complete, ") != std::string::npos);
  CHECK(
      text.out.find("in blocks of single threads: 8 records of 2 threads; in the shared "
                    "chain: 0 records of 0 threads\n") != std::string::npos);
  CHECK(text.out.find("2 processes\n") != std::string::npos);
  CHECK(text.out.find(" 1  01        /nonexistent/one\n") != std::string::npos);
  const auto json =
      nlohmann::json::parse(run_arctrace("info --format=json {}", file).out);
  CHECK(json["session"]["finished"] == true);
  CHECK(json["session"]["recorder_command"] == nlohmann::json({"arctrace", "record"}));
  CHECK(json["summary"]["records"] == 8);
  CHECK(json["summary"]["lost_by_cause"]["full"] == 0);
  CHECK(json["summary"]["records_by_type"]["ENTER"] == 3);
  CHECK(json["summary"]["own_blocks"] ==
        nlohmann::json({{"records", 8}, {"threads", 2}}));
  CHECK(json["summary"]["shared_chain"] ==
        nlohmann::json({{"records", 0}, {"threads", 0}}));
  CHECK(json["processes"].size() == 2);
  CHECK(json["processes"][0]["modules"][0]["build_id"] == "01");
  CHECK(json["processes"][1]["origin"] == "fork");
  CHECK(json["processes"][1]["end_ns"].is_null());
  CHECK(json["threads"][0]["records"] == 5);
  CHECK_FALSE(json.contains("buffer"));
  CHECK(json["findings"].empty());
}

TEST_CASE("info: of a buffer") {
  BufferBuilder buffer;
  buffer.slots[1].lock = 77;
  buffer.slots[1].writer = 1;
  buffer.slots[1].pid = buffer.slots[1].tid = 77;
  buffer.slots[1].lost[ARCTRACE_LOST_FULL] = 5;
  buffer.block(3, BlockBuilder::exclusive(1, 0, 3, 0).stack(0, {}).enter(1, 1),
               ARCTRACE_PHASE_OWNED);
  const CommandResult text = run_arctrace("info {}", buffer.image());
  CHECK(text.status == 0);
  CHECK(text.out.find("a buffer, live or left behind") != std::string::npos);
  CHECK(text.out.find("blocks: 7 free, 1 owned, 0 shared") != std::string::npos);
  CHECK(text.out.find("alive  full 5 (reported 0)") != std::string::npos);
  const auto json =
      nlohmann::json::parse(run_arctrace("info --format=json {}", buffer.image()).out);
  CHECK(json["session"]["kind"] == "buffer");
  CHECK(json["buffer"]["blocks_by_phase"]["owned"] == 1);
  CHECK(json["buffer"]["slots"][0]["alive"] == true);
  CHECK(json["buffer"]["slots"][0]["lost"]["full"] == 5);
  CHECK(json["summary"]["lost"] == 5);
}

TEST_CASE("check: nothing wrong, something wrong") {
  const CommandResult good = run_arctrace("check {}", two_processes().file());
  CHECK(good.status == 0);
  CHECK(good.out.find("no findings in 8 records") != std::string::npos);

  FileBuilder file = two_processes();
  BlockBuilder wrong = BlockBuilder::exclusive(1, 1, 3, 6000).stack(6000, {0x1234});
  wrong.add(ARCTRACE_TYPE_INSTANT, 6001, Bytes().u32(99));
  wrong.add(ARCTRACE_TYPE_EVENT, 6002, event_body(7, Bytes().u32(5)));
  wrong.add(ARCTRACE_TYPE_EVENT, 6003, event_body(8));
  wrong.add(ARCTRACE_TYPE_TEXT, 6004, Bytes().u32(5));
  wrong.add(ARCTRACE_TYPE_VFORK_END, 6005, Bytes().u32(5));
  file.block(wrong, 0, 3).finish(7000);
  const CommandResult bad = run_arctrace("check {}", file.file());
  CHECK(bad.status == 1);
  for (const char* rule : {"D4 chunk 5, byte 152: name 99 (",
                           "D5 chunk 5, byte 164: ", "D4 chunk 5, byte 180: event 8 (",
                           "R3 chunk 5, byte 192: ", "S1 chunk 5", "S3 chunk 5"}) {
    CAPTURE(rule);
    CHECK(bad.out.find(rule) != std::string::npos);
  }
  CHECK(bad.out.find("6 findings in ") != std::string::npos);
  const CommandResult few = run_arctrace("check --max-findings 2 {}", file.file());
  CHECK(few.status == 1);
  CHECK(few.out.find("... 4 more (--max-findings)\n") != std::string::npos);
  const auto json =
      nlohmann::json::parse(run_arctrace("check --format=json {}", file.file()).out);
  CHECK(json["finding_count"] == 6);
  CHECK(json["findings"].size() == 6);
}

TEST_CASE("check: torn and lost are no findings unless strict") {
  FileBuilder file;
  file.program({}, 1, "main", 0);
  file.block(BlockBuilder::exclusive(1, 0, 1, 100)
                 .add(ARCTRACE_TYPE_LOST, 100, lost_body(ARCTRACE_LOST_FULL, 7, 90))
                 .stack(100, {})
                 .add(ARCTRACE_TYPE_EXIT, 101, {}, true),
             ARCTRACE_CHUNK_OWNER_DIED, 1);
  file.finish(200);
  CHECK(run_arctrace("check {}", file.file()).status == 0);
  const CommandResult strict = run_arctrace("check --strict {}", file.file());
  CHECK(strict.status == 1);
  CHECK(strict.out.find("strict: 1 torn record\n") != std::string::npos);
  CHECK(strict.out.find("strict: 7 lost records\n") != std::string::npos);
}

TEST_CASE("what cannot be read: one line, exit 2") {
  const std::vector<std::byte> whole = two_processes().file();
  for (const char* command : {"dump", "info", "check", "report"}) {
    CAPTURE(command);
    const std::string run = std::string(command) + " {}";
    check_refused(run_arctrace(run, {}), "an empty file");
    check_refused(run_arctrace(run, std::vector<std::byte>(5000, std::byte{'x'})),
                  "not an arctrace trace");
    check_refused(run_arctrace(run, {whole.begin(), whole.begin() + 1000}),
                  "cut off inside its header");
    FileBuilder version;
    version.header.version_major = 0;
    check_refused(run_arctrace(run, version.file()), "is of format version 0.");
    check_refused(run_arctrace(std::string(command) + " nofile"),
                  "cannot open nofile: No such file or directory");
    check_refused(
        run_arctrace(std::string(command)),
        "cannot open arctrace.data: No such file or directory; record a program "
        "first (arctrace record -- PROGRAM), or give the FILE to read");
    check_refused(run_arctrace(std::string(command) + " ."), "not a regular file");
    check_refused(run_arctrace(run + " >/dev/full", whole), "No space left on device");
    check_refused(run_arctrace(run + " >&-", whole), "Bad file descriptor");
    check_refused(run_arctrace(run + " --format=xml", whole), "xml");
    check_refused(run_arctrace(run + " --no-such-option", whole), "--no-such-option");
    check_refused(run_arctrace(run + " another", whole), "another");
  }
}

TEST_CASE("the command line") {
  check_refused(run_arctrace(""), "no command given");
  check_refused(run_arctrace("reports"),
                "no command \"reports\"; did you mean \"report\"?");
  check_refused(run_arctrace("dump --type ENTR {}", two_processes().file()),
                "no record type \"ENTR\"; did you mean \"ENTER\"?");
  check_refused(run_arctrace("dump -n -1"), "--limit: \"-1\" is negative");
  check_refused(run_arctrace("report -n ' -1'"), "--limit");
  check_refused(run_arctrace("report -D -1"), "--depth");
  check_refused(run_arctrace("check --max-findings -1"), "--max-findings");
  check_refused(run_arctrace("dump -r 1ms"), "is not a range");
  check_refused(run_arctrace("check --max-findings many"), "--max-findings");
  check_refused(run_arctrace("--help >/dev/full"), "No space left on device");
  const CommandResult version = run_arctrace("--version");
  CHECK(version.status == 0);
  CHECK(version.out.starts_with("arctrace "));
  for (const char* command :
       {"", "record", "report", "graph", "diff", "dump", "info", "check"}) {
    CAPTURE(command);
    const CommandResult help = run_arctrace(std::string(command) + " --help");
    CHECK(help.status == 0);
    CHECK(help.err.empty());
    CHECK(help.out.find("Usage: arctrace") != std::string::npos);
    CHECK(help.out.find("Excludes") == std::string::npos);
    CHECK(help.out.find("... ...") == std::string::npos);
  }
}

TEST_CASE("each command knows -V, -q and -v") {
  for (const char* command : {"", "record", "report", "dump", "list"}) {
    CAPTURE(command);
    const CommandResult version = run_arctrace(std::string(command) + " -V");
    CHECK(version.status == 0);
    CHECK(version.out.starts_with("arctrace "));
  }
  const auto file = two_processes().file();
  const CommandResult usual = run_arctrace("dump --type COUNTER {}", file);
  CHECK(usual.err.find("no record passes the filters") != std::string::npos);
  CHECK(run_arctrace("dump -q --type COUNTER {}", file).err.empty());
  check_refused(run_arctrace("dump -q --type ENTR {}", file), "no record type");
  const CommandResult verbose = run_arctrace("dump -v --no-header {}", file);
  CHECK(verbose.err.find("arctrace: read ") == 0);
  CHECK(verbose.err.find(" records in ") != std::string::npos);
  CHECK(verbose.out == run_arctrace("dump --no-header {}", file).out);
}

TEST_CASE("a reader that has seen enough is no error to speak of") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 0).stack(0, {});
  for (uint64_t i = 0; i < 200; ++i) block.enter(i, i);
  file.block(block);
  for (uint32_t serial = 1; serial < 200; ++serial) {
    BlockBuilder next = BlockBuilder::exclusive(1, serial, serial, 1000).stack(1000, {});
    for (uint64_t i = 0; i < 200; ++i) next.enter(1000 + i, i);
    file.block(next, 0, serial % 8);
  }
  const CommandResult result =
      run_arctrace("dump --no-header {} | head -n 1", file.file());
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 1);
}

}  // namespace
}  // namespace arctrace::testing
