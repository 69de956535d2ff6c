// The text of info about patched functions: repeated records, forks, hostile records.
#include "reader/render/patch_list.hpp"

#include <arctrace/format.h>
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/trace_builder.hpp"

namespace arctrace::reader {
namespace {

using testing::Bytes;

class PatchedSession {
 public:
  ProcessIndex add(uint32_t id, uint32_t parent = 0) {
    Process process;
    process.id = id;
    process.parent_id = parent;
    process.origin = parent == 0 ? ARCTRACE_ORIGIN_EXEC : ARCTRACE_ORIGIN_FORK;
    process.executable = "/bin/server";
    const ProcessIndex index = definitions_.add_process(std::move(process));
    Module module;
    module.start = module.bias = uint64_t{0x1000} * id;
    module.end = module.start + 0x1000;
    module.loaded_ns = 0;
    module.path = "/bin/server";
    definitions_.add_module(index, std::move(module));
    return index;
  }

  void add_library(ProcessIndex process, const std::string& path, uint64_t start,
                   int64_t loaded_ns, int64_t unloaded_ns) {
    Module module;
    module.start = module.bias = start;
    module.end = start + 0x1000;
    module.loaded_ns = loaded_ns;
    module.unloaded_ns = unloaded_ns;
    module.path = path;
    definitions_.add_module(process, std::move(module));
  }

  void note(uint32_t process, uint32_t verdict, uint32_t count,
            const std::vector<uint64_t>& listed, uint32_t claimed = 0,
            int64_t time_ns = 0) {
    Bytes body;
    body.u32(process).u32(verdict).u32(count);
    body.u32(claimed != 0 ? claimed : static_cast<uint32_t>(listed.size())).u32(0);
    for (const uint64_t function : listed) body.u64(function);
    Record record{};
    record.type = ARCTRACE_TYPE_PATCHES;
    record.time_ns = time_ns;
    record.body = body.data();
    patches_.note(record);
  }

  std::string text() const { return patches_.text(definitions_, nullptr); }

  nlohmann::json json(ProcessIndex process) const {
    std::string text;
    JsonWriter json([&text](std::string_view part) {
      text += part;
      return true;
    });
    patches_.write_json(definitions_, process, nullptr, json);
    json.finish();
    return nlohmann::json::parse(text);
  }

 private:
  Definitions definitions_;
  PatchList patches_;
};

TEST_CASE("equal records count once, others add up") {
  PatchedSession session;
  const ProcessIndex process = session.add(1);
  for (int i = 0; i < 2; ++i) {
    session.note(1, ARCTRACE_PATCH_DONE, 7, {});
    session.note(1, ARCTRACE_PATCH_CALL, 64, {0x1001, 0x1002});
    session.note(1, ARCTRACE_PATCH_CALL, 3, {0x1003});
  }
  const auto json = session.json(process);
  CHECK(json["patched"] == 7);
  CHECK(json["left"] == nlohmann::json{{"call", 67}});
  CHECK(json["refused"] == nullptr);
}

TEST_CASE("a fork child has its parent's, and switches functions off itself") {
  PatchedSession session;
  const ProcessIndex parent = session.add(1);
  const ProcessIndex child = session.add(2, 1);
  const ProcessIndex other = session.add(3);
  session.note(1, ARCTRACE_PATCH_DONE, 7, {});
  session.note(2, ARCTRACE_PATCH_THROTTLED, 2, {0x2010, 0x2020});
  CHECK(session.json(parent)["switched_off"] == 0);
  CHECK(session.json(child)["switched_off"] == 2);
  CHECK(session.json(child)["patched"] == 7);
  CHECK(session.json(other) == nullptr);
  // The parent has the same function at another address.
  session.note(1, ARCTRACE_PATCH_THROTTLED, 1, {0x1010});
  CHECK(session.text() ==
        "\n7 patched functions of /bin/server\n"
        "        2  of them switched off, because their calls filled the buffer\n");
}

TEST_CASE("why nothing was patched") {
  PatchedSession session;
  const ProcessIndex process = session.add(1);
  session.note(1, ARCTRACE_PATCH_NO_ROOM, 0, {});
  CHECK(session.json(process)["refused"] == "no addresses are free near the program");
  CHECK(session.text() ==
        "\n0 patched functions of /bin/server\n"
        "  none was patched: no addresses are free near the program\n");
}

TEST_CASE("libraries: one after the other at an address, and again elsewhere") {
  PatchedSession session;
  const ProcessIndex process = session.add(1);
  session.add_library(process, "/lib/a.so", 0x70000, 10, 20);
  session.add_library(process, "/lib/b.so", 0x70000, 30, 40);
  session.add_library(process, "/lib/a.so", 0x90000, 50, 60);
  session.add_library(process, "/lib/c.so", 0x80000, 10, 60);
  session.note(1, ARCTRACE_PATCH_DONE, 7, {});
  for (int i = 0; i < 2; ++i) {  // each is repeated
    session.note(1, ARCTRACE_PATCH_DONE, 5, {0x70010}, 0, 11);
    session.note(1, ARCTRACE_PATCH_SMALL, 2, {0x70020}, 0, 11);
    session.note(1, ARCTRACE_PATCH_DONE, 5, {0x70010}, 0, 31);
    session.note(1, ARCTRACE_PATCH_DONE, 5, {0x90010}, 0, 51);
    session.note(1, ARCTRACE_PATCH_RUNTIME, 1, {0x80000}, 0, 11);
  }
  session.note(1, ARCTRACE_PATCH_THROTTLED, 1, {0x90010}, 0, 55);
  const auto json = session.json(process);
  CHECK(json["patched"] == 7);
  CHECK(json["switched_off"] == 0);
  REQUIRE(json["libraries"].size() == 3);
  const auto& a = json["libraries"][0];
  CHECK(a["path"] == "/lib/a.so");
  CHECK(a["patched"] == 5);
  CHECK(a["switched_off"] == 1);
  CHECK(a["left"] == nlohmann::json{{"small", 2}});
  CHECK(json["libraries"][1]["patched"] == 5);
  CHECK(json["libraries"][1]["left"].empty());
  CHECK(json["libraries"][2]["patched"] == 0);
  CHECK(json["libraries"][2]["refused"].is_string());
  CHECK(session.text() ==
        "\n7 patched functions of /bin/server\n"
        "\n5 patched functions of /lib/a.so\n"
        "        1  of them switched off, because their calls filled the buffer\n"
        "        2  left: small, without calls and loops, or smaller than -Z says\n"
        "\n5 patched functions of /lib/b.so\n"
        "\n0 patched functions of /lib/c.so\n"
        "  none was patched: its runtime looks up return addresses or moves stacks\n");
}

TEST_CASE("records that are wrong") {
  PatchedSession session;
  const ProcessIndex a = session.add(1, 2);
  session.add(2, 1);  // a ring of forks
  CHECK(session.json(a) == nullptr);
  session.note(9, ARCTRACE_PATCH_DONE, 1, {});  // belongs to no process
  session.note(1, ARCTRACE_PATCH_SMALL, 2, {0x1001}, UINT32_MAX);
  session.note(1, 31, UINT32_MAX, {});
  session.note(1, UINT32_MAX, 0, {});
  const auto json = session.json(a);
  CHECK(json["left"] == nlohmann::json{{"small", 2}, {"verdict_31", UINT32_MAX}});
  CHECK(json["refused"].is_string());
  CHECK_FALSE(session.text().empty());
}

}  // namespace
}  // namespace arctrace::reader
