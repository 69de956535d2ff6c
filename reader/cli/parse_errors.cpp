#include "reader/cli/parse_errors.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "reader/cli/options/options.hpp"
#include "src/base/near_names.hpp"

namespace arctrace::cli {
namespace {

// The words that stand for an option's values; empty: other values than words.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.find('|') == std::string::npos) return {};
  return absl::StrSplit(type, '|');
}

// Returns the long names of options that may be meant by `name`: first those with a value
// of this name, as in "--mode=overwrite", then those whose names are near.
std::vector<std::string> near_options(const CLI::App& app, const std::string& name) {
  std::vector<std::string> found, names;
  const std::string value =
      name.substr(std::min(name.find_first_not_of('-'), name.size()));
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
    const std::vector<std::string> words = choices_of(*option);
    if (!option->get_lnames().empty() && !value.empty() &&
        std::find(words.begin(), words.end(), value) != words.end()) {
      found.push_back(absl::StrCat("--", option->get_lnames().front(), "=", value));
    }
  }
  for (std::string& near : nearest_names(name, names)) found.push_back(std::move(near));
  return found;
}

// Returns a text such as "SESSION is required: a session's name".
std::string required_text(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) return name + " is required";
  const std::vector<std::string> words = choices_of(*option);
  const std::string what =
      words.empty() ? option->get_description() : "one of " + either_of(words);
  const std::string type = option->get_type_name();
  const bool is_named_by_type = option->get_positional() && words.empty();
  const bool is_session =
      type == "SESSION" || (type == "NAME" && app.get_name() != "create");
  return absl::StrCat(is_named_by_type ? type : name, " is required: ", what,
                      is_session ? "; arctrace list shows the sessions" : "");
}

}  // namespace

std::string option_in(const std::string& message) {
  return message.substr(0, message.find_first_of(": "));
}

std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  constexpr std::string_view kConversion = "Could not convert: ";
  constexpr std::string_view kValue = " = ";
  if (const size_t equals = what.find(kValue);
      what.starts_with(kConversion) && equals != std::string::npos) {
    const std::string name = what.substr(kConversion.size(), equals - kConversion.size());
    const CLI::Option* option = app.get_option_no_throw(name);
    const bool is_flag = option != nullptr && option->get_items_expected_max() == 0;
    return absl::StrCat(name, ": \"", what.substr(equals + kValue.size()), "\" is ",
                        is_flag ? "neither true nor false" : "not a valid number");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    if (what.find("At Most 1 ") != std::string::npos) {
      return option_in(what) + " is given twice";
    }
    if (what.find("missing") != std::string::npos)
      return option_in(what) + " needs a value";
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    return required_text(app, option_in(what));
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    if (const size_t option = what.find(" -"); option != std::string::npos) {
      const size_t begin = option + 1;
      const size_t end = std::min(what.find_first_of(" =", begin), what.size());
      const std::vector<std::string> near =
          near_options(app, what.substr(begin, end - begin));
      if (!near.empty()) return what + did_you_mean(near);
    }
    const bool is_root = app.get_parent() == nullptr;
    return absl::StrCat(what, "; try arctrace ", is_root ? "" : app.get_name() + " ",
                        "--help");
  }
  return what;
}

std::string unknown_command_text(const std::string& name,
                                 const std::vector<std::string>& names) {
  struct Word {
    std::string_view name;
    std::vector<std::string> ours;
  };
  // Of perf, uftrace, strace and their kin.
  static const std::vector<Word> kWords = {{"top", {"live"}},
                                           {"stat", {"report"}},
                                           {"trace", {"record", "dump"}},
                                           {"run", {"record"}},
                                           {"script", {"dump"}},
                                           {"replay", {"report --view=flow"}},
                                           {"lock", {"report --view=locks"}},
                                           {"sched", {"report --view=threads"}},
                                           {"ls", {"list"}}};
  const auto word = std::find_if(kWords.begin(), kWords.end(),
                                 [&](const Word& known) { return known.name == name; });
  return absl::StrCat(
      "no command \"", name, "\"",
      word == kWords.end() ? near_names(name, names) : did_you_mean(word->ours));
}

}  // namespace arctrace::cli
