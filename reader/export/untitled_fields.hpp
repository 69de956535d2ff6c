// The fields of a record but for its title, which an exporter shows elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace arctrace::reader {

// `Fields` is a FieldSink, which gets the other fields. Of a record that is about a call
// the title is the function, which stays a field: the name of the record is another one.
template <class Fields>
class Untitled : public Fields {
 public:
  using Fields::Fields;

  // What names the record; empty if nothing does. Raw bytes.
  const std::string& title_text() const { return title_; }

  void title(std::string_view name, std::string_view value) override {
    if (name == "function") {
      Fields::title(name, value);
    } else {
      title_ = value;
    }
  }

 private:
  std::string title_;
};

}  // namespace arctrace::reader
