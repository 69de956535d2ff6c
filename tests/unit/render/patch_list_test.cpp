// What info says of patched functions: records that come again, forks, hostile ones.
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

  void note(uint32_t process, uint32_t verdict, uint32_t count,
            const std::vector<uint64_t>& listed, uint32_t claimed = 0) {
    Bytes body;
    body.u32(process).u32(verdict).u32(count);
    body.u32(claimed != 0 ? claimed : static_cast<uint32_t>(listed.size())).u32(0);
    for (const uint64_t function : listed) body.u64(function);
    Record record{};
    record.type = ARCTRACE_TYPE_PATCHES;
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
  session.note(2, ARCTRACE_PATCH_FLOODED, 2, {0x2010, 0x2020});
  CHECK(session.json(parent)["switched_off"] == 0);
  CHECK(session.json(child)["switched_off"] == 2);
  CHECK(session.json(child)["patched"] == 7);
  CHECK(session.json(other) == nullptr);
  // The same function at another address.
  session.note(1, ARCTRACE_PATCH_FLOODED, 1, {0x1010});
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

TEST_CASE("records that are wrong") {
  PatchedSession session;
  const ProcessIndex a = session.add(1, 2);
  session.add(2, 1);  // a ring of forks
  CHECK(session.json(a) == nullptr);
  session.note(9, ARCTRACE_PATCH_DONE, 1, {});  // of no process
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
