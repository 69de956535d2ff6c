#include "reader/export/sqlite_file.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "reader/export/exporter.hpp"
#include "reader/streams/spools.hpp"

namespace arctrace::reader {

SqlInsert::~SqlInsert() { sqlite3_finalize(statement_); }

void SqlInsert::prepare(SqliteFile& file, const char* table, int columns) {
  file_ = &file;
  if (!file.status_.ok()) return;
  std::string text = absl::StrCat("INSERT INTO ", table, " VALUES (?");
  for (int i = 1; i < columns; ++i) text += ",?";
  text += ")";
  if (sqlite3_prepare_v3(file.database_, text.c_str(), -1, SQLITE_PREPARE_PERSISTENT,
                         &statement_, nullptr) != SQLITE_OK) {
    file.fail("preparing rows");
  }
}

void SqlInsert::add(std::initializer_list<SqlValue> row) {
  if (file_ == nullptr || !file_->status_.ok()) return;
  int column = 0;
  for (const SqlValue& value : row) {
    ++column;
    switch (value.kind_) {
      case SqlValue::Kind::kNull:
        sqlite3_bind_null(statement_, column);
        break;
      case SqlValue::Kind::kNumber:
        sqlite3_bind_int64(statement_, column, value.number_);
        break;
      case SqlValue::Kind::kText:
        // The statement has run before the text is freed.
        sqlite3_bind_text64(statement_, column, value.text_.data(), value.text_.size(),
                            SQLITE_STATIC, SQLITE_UTF8);
        break;
    }
  }
  if (sqlite3_step(statement_) != SQLITE_DONE) file_->fail("adding rows");
  sqlite3_reset(statement_);
}

SqliteFile::~SqliteFile() {
  // Statements that were not finalized yet keep the database open until they are.
  sqlite3_close_v2(database_);
  if (file_ >= 0) ::close(file_);
}

void SqliteFile::create() {
  const std::string directory = temporary_directory();
  std::string path = directory + "/arctrace-rows-XXXXXX";
  file_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (file_ < 0) {
    status_ = absl::UnavailableError(
        absl::StrCat("cannot keep rows in ", directory, ": ", std::strerror(errno)));
    return;
  }
  // The file begins empty, and nobody else has it. So no journal is needed, and locks are
  // taken only once.
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE;
  if (sqlite3_open_v2(path.c_str(), &database_, flags, "unix-none") != SQLITE_OK) {
    fail("beginning");
  }
  execute(
      "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-32768; BEGIN");
  ::unlink(path.c_str());
}

void SqliteFile::execute(const char* statements) {
  if (!status_.ok()) return;
  if (sqlite3_exec(database_, statements, nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail("making tables");
  }
}

void SqliteFile::finish(const WriteText& write) {
  execute("COMMIT");
  if (!status_.ok()) return;
  sqlite3_db_cacheflush(database_);
  std::vector<char> piece(kExportPiece);
  off_t offset = 0;
  for (;;) {
    const ssize_t got = ::pread(file_, piece.data(), piece.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (got < 0) status_ = absl::ErrnoToStatus(errno, "reading the database back");
      return;
    }
    offset += got;
    if (!write({piece.data(), static_cast<size_t>(got)})) return;
  }
}

void SqliteFile::fail(const char* what) {
  if (!status_.ok()) return;
  status_ = absl::UnavailableError(absl::StrCat("cannot make a database in ",
                                                temporary_directory(), ": ", what, ": ",
                                                sqlite3_errmsg(database_)));
}

}  // namespace arctrace::reader
