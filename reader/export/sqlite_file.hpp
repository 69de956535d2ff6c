// A database under construction, in a file without a name: rows go in while a trace is
// read, and the finished file's bytes come out.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "reader/streams/json_writer.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace arctrace::reader {

// A value of a column.
class SqlValue {
 public:
  SqlValue() = default;  // NULL
  template <class Number>
  requires std::is_integral_v<Number> SqlValue(
      Number number)  // NOLINT(google-explicit-constructor): a list of values
      : kind_(Kind::kNumber), number_(static_cast<int64_t>(number)) {}
  template <class Number>
  requires std::is_integral_v<Number> SqlValue(
      std::optional<Number> number)  // NOLINT(google-explicit-constructor): the same
      : kind_(number.has_value() ? Kind::kNumber : Kind::kNull),
        number_(static_cast<int64_t>(number.value_or(0))) {}
  // The text must outlive the value.
  SqlValue(std::string_view text)  // NOLINT(google-explicit-constructor): the same
      : kind_(Kind::kText), text_(text) {}
  SqlValue(const std::string& text)  // NOLINT(google-explicit-constructor): the same
      : SqlValue(std::string_view(text)) {}
  SqlValue(const char* text)  // NOLINT(google-explicit-constructor): the same
      : SqlValue(std::string_view(text)) {}

  // NULL instead of an empty text.
  static SqlValue text_or_null(std::string_view text) {
    return text.empty() ? SqlValue() : SqlValue(text);
  }

 private:
  friend class SqlInsert;
  enum class Kind : uint8_t { kNull, kNumber, kText };
  Kind kind_ = Kind::kNull;
  int64_t number_ = 0;
  std::string_view text_;
};

class SqliteFile;

// Adds rows to a table.
class SqlInsert {
 public:
  SqlInsert() = default;
  SqlInsert(const SqlInsert&) = delete;
  SqlInsert& operator=(const SqlInsert&) = delete;
  ~SqlInsert();

  // `columns`: how many the table has. The file must outlive this object.
  void prepare(SqliteFile& file, const char* table, int columns);
  void add(std::initializer_list<SqlValue> row);

 private:
  SqliteFile* file_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

// After an error nothing more is done; status() says what it was.
class SqliteFile {
 public:
  SqliteFile() = default;
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;
  ~SqliteFile();

  // In $TMPDIR or /tmp.
  void create();
  void execute(const char* statements);
  // Completes the database, and writes the file's bytes, until the receiver wants no
  // more.
  void finish(const WriteText& write);

  const absl::Status& status() const { return status_; }

 private:
  friend class SqlInsert;
  void fail(const char* what);

  sqlite3* database_ = nullptr;
  int file_ = -1;  // the database's, which has no name any more
  absl::Status status_;
};

}  // namespace arctrace::reader
