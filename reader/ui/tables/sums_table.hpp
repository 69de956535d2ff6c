// Tables of functions with the sums of their calls: all functions, or the callers or
// callees of one. Their columns are those of a report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reader/analysis/function_times.hpp"
#include "reader/analysis/function_totals.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/ui/tables/table.hpp"

namespace arctrace::reader {

// The columns that a table of sums has.
struct SumColumns {
  // `has_times`: the columns of the times of single calls are included.
  SumColumns(KnownTimes known, bool has_times);
  // Returns the number of a column; the number of all columns if there is no such column.
  size_t find(Column column) const;

  std::vector<Column> types;
  std::vector<TableColumn> columns;
};

// Rows of functions, which are sorted by any of their columns; rows that are equal in it
// are in the order in which functions were first seen, as in reports.
class SumsTable : public Table {
 public:
  std::string head() const override { return head_; }
  std::span<const TableColumn> columns() const override { return columns_.columns; }
  size_t rows() const override { return order_.size(); }
  std::string cell(size_t row, size_t column) const override {
    return column_text(columns_.types[column], sums(order_[row]));
  }
  RowAction action(size_t row) const override;
  std::optional<TableSort> sort() const override { return sort_; }
  void set_sort(TableSort sort) override;

 protected:
  // `labels` must outlive this object.
  SumsTable(std::string head, SumColumns columns, FunctionLabels& labels)
      : head_(std::move(head)), columns_(std::move(columns)), labels_(labels) {}
  // To be called once the rows are known. Only the first `limit` rows are shown.
  void start(size_t rows, Column sorted_by, size_t limit = SIZE_MAX);

  // The sums of a row; rows are numbered in the order in which they came.
  virtual RowSums sums(size_t number) const = 0;
  virtual FunctionId function(size_t number) const = 0;

  size_t number(size_t row) const { return order_[row]; }
  FunctionLabels& labels() const { return labels_; }

 private:
  const std::string head_;
  const SumColumns columns_;
  FunctionLabels& labels_;
  TableSort sort_;
  std::vector<size_t> order_;
};

// The sums of which all rows of a table are a part.
struct SumsOfAll {
  const TreeGroup& group;
  const FunctionTimes& times;
  KnownTimes known = KnownTimes::kNone;
};

// The functions of a group, as the view "flat" of a report has them.
class FunctionsTable : public SumsTable {
 public:
  // `all` and what it refers to must outlive this object. Shows the first `limit`
  // functions.
  FunctionsTable(std::string head, std::vector<FunctionTotal> totals,
                 const SumsOfAll& all, FunctionLabels& labels, Column sorted_by,
                 size_t limit = SIZE_MAX);

  RowName name(size_t row) override;

 private:
  RowSums sums(size_t number) const override;
  FunctionId function(size_t number) const override { return totals_[number].function; }

  const std::vector<FunctionTotal> totals_;
  const SumsOfAll all_;
};

// Callers or callees, as the view "arcs" has them.
class ArcsTable : public SumsTable {
 public:
  ArcsTable(std::string head, std::vector<Arc> arcs, const SumsOfAll& all,
            FunctionLabels& labels);

  RowName name(size_t row) override;

 private:
  RowSums sums(size_t number) const override;
  FunctionId function(size_t number) const override { return arcs_[number].function; }

  const std::vector<Arc> arcs_;
  const SumsOfAll all_;
};

}  // namespace arctrace::reader
