// A script of records, replayed for the page.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "reader/ui/model/page_json.hpp"
#include "reader/ui/model/page_lists.hpp"
#include "reader/ui/model/page_parts.hpp"
#include "tests/support/kernel_script.hpp"

namespace arctrace::testing {

struct Paged {
  explicit Paged(const RecordScript& script, const reader::Session* session = nullptr,
                 std::span<const arctrace_hook_cost> costs = {})
      : parts(script.definitions, 1 << 20),
        replay(script.definitions, nullptr, options_of(script, costs)) {
    parts.begin(replay, session);
    script.replay(replay);
    parts.finish();
  }

  const reader::Lane& lane(uint32_t tid) const {
    for (const reader::Lane& lane : parts.timeline().lanes()) {
      if (replay.definitions().threads()[lane.thread].tid == tid) return lane;
    }
    throw std::runtime_error("no such lane");
  }
  std::string name(reader::FunctionId function) const {
    return replay.functions()[function].name;
  }
  reader::FunctionId function(const std::string& name) const {
    for (reader::FunctionId id = 0; id < replay.functions().size(); ++id) {
      if (replay.functions()[id].name == name) return id;
    }
    throw std::runtime_error("no such function");
  }
  // The object with what `write` adds, which gets the numbers of lanes.
  template <class Write>
  static nlohmann::json json_of(const reader::Timeline& timeline, const Write& write) {
    std::string text;
    reader::JsonWriter json([&text](std::string_view piece) {
      text += piece;
      return true;
    });
    json.begin_object();
    write([&](const reader::Lane& like) { return timeline.number_of(like); }, json);
    json.end();
    json.finish();
    return nlohmann::json::parse(text);
  }
  nlohmann::json critical() {
    return json_of(parts.timeline(),
                   [this](reader::LaneNumber number, reader::JsonWriter& json) {
                     CHECK(parts.critical().write_json(replay, number, json).ok());
                   });
  }
  uint64_t cpu_ns(const reader::Lane& lane) {
    const nlohmann::json json =
        json_of(parts.timeline(), [this](reader::LaneNumber, reader::JsonWriter& to) {
          reader::write_lanes_json({replay, parts}, to);
        });
    const std::optional<uint32_t> number = parts.timeline().number_of(lane);
    return json["lanes"][number.value()]["cpu_ns"];
  }
  nlohmann::json processes() {
    return json_of(parts.timeline(),
                   [this](reader::LaneNumber number, reader::JsonWriter& json) {
                     reader::write_processes_json(replay, number, json);
                   });
  }

  reader::PageParts parts;
  reader::Replay replay;

 private:
  reader::ReplayOptions options_of(const RecordScript& script,
                                   std::span<const arctrace_hook_cost> costs) {
    reader::ReplayOptions options;
    options.hook_costs = costs;
    options.listener = &parts;
    if (script.definitions.has_dispatches()) options.schedule = &parts;
    return options;
  }
};

}  // namespace arctrace::testing
