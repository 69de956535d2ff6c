// A script replayed, and the views of it as text and as parsed JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "reader/report/flow_view.hpp"
#include "reader/report/function_views.hpp"
#include "reader/report/invocations_view.hpp"
#include "reader/report/tree_view.hpp"
#include "reader/trace/call_args.hpp"
#include "reader/trace/text_escape.hpp"
#include "tests/support/record_script.hpp"

namespace arctrace::testing {

using Json = nlohmann::json;

// The object that `members` writes the members of.
template <class Members>
Json json_of(Members members) {
  std::string text;
  reader::JsonWriter json([&](std::string_view piece) {
    text += piece;
    return true;
  });
  json.begin_object();
  members(json);
  json.end();
  json.finish();
  return Json::parse(text);
}

// What `view` writes.
template <class View>
std::string text_of(View view) {
  std::string text;
  const reader::WriteText write = [&](std::string_view piece) {
    text += piece;
    return true;
  };
  view(write);
  return text;
}

struct Viewed {
  // `script` must outlive it.
  explicit Viewed(const RecordScript& script, const reader::ReplayFilter& filter = {},
                  reader::ReplayListener* listener = nullptr)
      : replay(script.definitions, nullptr, options_of(filter, listener)) {
    script.replay(replay);
  }

  Viewed(RecordScript&&, const reader::ReplayFilter& = {},
         reader::ReplayListener* = nullptr) = delete;

  std::string tree_text(reader::Grouping grouping = reader::Grouping::kThread) {
    const reader::TreeGroups groups(replay, grouping);
    return text_of([&](const reader::WriteText& write) {
      reader::write_tree_text(groups, replay, options, write);
    });
  }
  Json tree_json(reader::Grouping grouping = reader::Grouping::kThread) {
    const reader::TreeGroups groups(replay, grouping);
    return json_of([&](reader::JsonWriter& json) {
      reader::write_tree_json(groups, replay, options, json);
    });
  }
  std::string flat_text() {
    const reader::TreeGroups groups(replay, reader::Grouping::kAll);
    return text_of([&](const reader::WriteText& write) {
      reader::write_flat_text(groups, replay, options, write);
    });
  }
  Json flat_json(reader::Grouping grouping = reader::Grouping::kAll) {
    const reader::TreeGroups groups(replay, grouping);
    return json_of([&](reader::JsonWriter& json) {
      reader::write_flat_json(groups, replay, options, json);
    });
  }

  reader::Replay replay;
  reader::ViewOptions options;

 private:
  static reader::ReplayOptions options_of(const reader::ReplayFilter& filter,
                                          reader::ReplayListener* listener) {
    reader::ReplayOptions made;
    made.filter = filter;
    made.listener = listener;
    return made;
  }
};

// Arguments and results as a view's text and JSON have them.
inline void describe_args(const reader::Record& record, bool json, std::string& out) {
  const bool is_result = record.type == ARCTRACE_TYPE_RESULT;
  const std::string text = is_result ? reader::retval_text(record.body, "")
                                     : reader::args_text(record.body, "");
  if (!json) {
    out += text;
    return;
  }
  out += is_result ? ",\"retval\":" : ",\"args\":";
  reader::append_json_string(out, text);
}

// IBM's acceptance program, once through: main 100, mainA 30, mainB 70, ... in us.
inline RecordScript treetest() {
  RecordScript script;
  const reader::ThreadIndex thread = script.program(7, "treetest");
  int64_t now = 0;
  script.enter(thread, now, "main");
  const auto call = [&](const char* outer,
                        std::initializer_list<std::pair<int, int>> in) {
    script.enter(thread, now, outer);
    for (const auto& [letter, share] : in) {
      script.enter(thread, now, std::string(outer) + static_cast<char>(letter));
      now += int64_t{share} * 1000;
      script.exit(thread, now);
    }
    script.exit(thread, now);
  };
  call("mainA", {{'A', 10}, {'B', 20}});
  call("mainB", {{'A', 30}, {'B', 40}});
  script.exit(thread, now);
  return script;
}

}  // namespace arctrace::testing
