// The Python module arctrace._reader, over the C++ interface of libarctrace-reader. Users
// import __init__.py beside it, which has the documentation.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <arctrace/reader.hpp>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace py = pybind11;
namespace reader = arctrace::reader;

namespace {

// Returns a program's bytes as text; those that are not UTF-8 become U+FFFD.
py::str text(const char* bytes) {
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
      bytes, static_cast<Py_ssize_t>(std::string_view(bytes).size()), "replace"));
}

py::object time_or_none(std::int64_t time_ns) {
  if (time_ns == INT64_MIN || time_ns == INT64_MAX) return py::none();
  return py::int_(time_ns);
}

py::object number_or_none(std::uint32_t number) {
  if (number == ARCTRACE_READER_NONE) return py::none();
  return py::int_(number);
}

py::object duration_or_none(std::uint64_t duration_ns) {
  if (duration_ns == ARCTRACE_READER_UNKNOWN) return py::none();
  return py::int_(duration_ns);
}

reader::Filter make_filter(std::optional<std::int64_t> from_ns,
                           std::optional<std::int64_t> until_ns,
                           std::vector<std::string> only, std::vector<std::string> except,
                           std::uint64_t min_duration_ns, std::uint32_t max_depth) {
  reader::Filter filter;
  filter.from_ns = from_ns.value_or(INT64_MIN);
  filter.until_ns = until_ns.value_or(INT64_MAX);
  filter.only = std::move(only);
  filter.except = std::move(except);
  filter.min_duration_ns = min_duration_ns;
  filter.max_depth = max_depth;
  return filter;
}

// Makes an array of numpy's that owns the first `count` elements of `column`.
template <class Value>
py::array_t<Value> array_of(py::array_t<Value> column, std::size_t count) {
  if (count == static_cast<std::size_t>(column.size())) return column;
  return py::object(column[py::slice(0, static_cast<py::ssize_t>(count), 1)]);
}

// An iterator of calls. It never gives up the interpreter's lock, because a trace has one
// user at a time; the cursor's thread does not need the lock. It keeps the trace alive,
// and its names as Python's strings, which calls share.
class PyCalls {
 public:
  PyCalls(std::shared_ptr<reader::Trace> trace, reader::Calls calls)
      : trace_(std::move(trace)), calls_(std::move(calls)) {}

  void close() { calls_.reset(); }

  py::tuple next() {
    const arctrace_reader_call* call = used().next();
    if (call == nullptr) throw py::stop_iteration();
    return py::make_tuple(name(call->function), call->start_ns, call->end_ns,
                          call->self_ns, call->duration_ns, call->thread, call->depth,
                          text(call->args), text(call->retval), call->flags,
                          call->function, call->path);
  }

  py::object batch(py::ssize_t capacity) {
    if (capacity <= 0) throw std::invalid_argument("size must be positive");
    py::array_t<std::int64_t> start(capacity), end(capacity);
    py::array_t<std::uint64_t> self(capacity);
    py::array_t<std::uint32_t> function(capacity), thread(capacity), depth(capacity),
        path(capacity), flags(capacity);
    arctrace_reader_columns columns{};
    columns.size = sizeof columns;
    columns.capacity = static_cast<std::size_t>(capacity);
    columns.start_ns = start.mutable_data();
    columns.end_ns = end.mutable_data();
    columns.self_ns = self.mutable_data();
    columns.function = function.mutable_data();
    columns.thread = thread.mutable_data();
    columns.depth = depth.mutable_data();
    columns.path = path.mutable_data();
    columns.flags = flags.mutable_data();
    const std::size_t count = used().columns(columns);
    if (count == 0) return py::none();
    return py::make_tuple(array_of(start, count), array_of(end, count),
                          array_of(self, count), array_of(function, count),
                          array_of(thread, count), array_of(depth, count),
                          array_of(path, count), array_of(flags, count));
  }

  py::str name(std::uint32_t function) {
    while (names_.size() <= function && names_.size() < used().functions()) {
      const auto number = static_cast<std::uint32_t>(names_.size());
      names_.push_back(text(used().name(number).data()));
    }
    if (function >= names_.size()) throw py::index_error("no such function");
    return names_[function];
  }
  py::str module(std::uint32_t function) { return text(used().module(function).data()); }
  std::size_t functions() { return used().functions(); }
  std::vector<std::uint32_t> functions_of(std::uint32_t path) {
    std::vector<std::uint32_t> functions = used().functions_of(path);
    return {functions.rbegin(), functions.rend()};
  }

 private:
  reader::Calls& used() {
    if (!calls_.has_value()) throw std::runtime_error("the calls are closed");
    return *calls_;
  }

  std::shared_ptr<reader::Trace> trace_;
  std::optional<reader::Calls> calls_;
  std::vector<py::str> names_;  // by function
};

class PyRecords {
 public:
  PyRecords(std::shared_ptr<reader::Trace> trace, reader::Records records)
      : trace_(std::move(trace)), records_(std::move(records)) {}
  void close() { records_.reset(); }
  py::tuple next() {
    if (!records_.has_value()) throw std::runtime_error("the records are closed");
    const arctrace_reader_record* record = records_->next();
    if (record == nullptr) throw py::stop_iteration();
    return py::make_tuple(record->time_ns, text(record->type_name),
                          number_or_none(record->thread), text(record->json));
  }

 private:
  std::shared_ptr<reader::Trace> trace_;
  std::optional<reader::Records> records_;
};

py::dict facts_of(const reader::Trace& trace) {
  const arctrace_reader_facts& f = trace.facts();
  py::dict lost;
  for (std::size_t cause = 0; cause < f.lost_causes; ++cause) {
    if (f.lost_by_cause[cause] == 0) continue;
    lost[arctrace_reader_lost_cause(cause)] = f.lost_by_cause[cause];
  }
  py::dict facts;
  facts["path"] = text(f.path);
  facts["host"] = text(f.host);
  facts["kernel"] = text(f.kernel);
  facts["version"] = py::make_tuple(f.version_major, f.version_minor);
  facts["finished"] = f.finished != 0;
  facts["has_kernel"] = f.has_kernel != 0;
  facts["start_realtime_ns"] = f.start_realtime_ns;
  facts["records"] = f.records;
  facts["lost"] = f.lost;
  facts["lost_by_cause"] = lost;
  facts["overwritten"] = f.overwritten;
  facts["elsewhere"] = f.elsewhere;
  facts["filtered_out"] = f.filtered_out;
  facts["removed_files"] = f.removed_files;
  facts["goes_on"] = f.goes_on != 0;
  facts["findings"] = f.findings;
  facts["first_ns"] = f.first_ns;
  facts["last_ns"] = f.last_ns;
  facts["duration_ns"] = f.duration_ns;
  return facts;
}

py::list processes_of(const reader::Trace& trace) {
  py::list processes;
  for (const arctrace_reader_process& p : trace.processes()) {
    py::list arguments;
    for (std::size_t i = 0; i < p.argument_count; ++i) {
      arguments.append(text(p.arguments[i]));
    }
    processes.append(py::make_tuple(p.pid, p.ppid, number_or_none(p.parent),
                                    text(p.program), arguments, p.start_ns,
                                    time_or_none(p.end_ns), p.end_status));
  }
  return processes;
}

py::list threads_of(const reader::Trace& trace) {
  py::list threads;
  for (const arctrace_reader_thread& t : trace.threads()) {
    threads.append(py::make_tuple(t.tid, t.pid, number_or_none(t.process), text(t.name),
                                  t.start_ns, time_or_none(t.end_ns)));
  }
  return threads;
}

py::list findings_of(const reader::Trace& trace) {
  py::list findings;
  for (const arctrace_reader_finding& f : trace.findings()) {
    findings.append(py::make_tuple(text(f.rule), text(f.message)));
  }
  return findings;
}

// (begin or None, end or None) of the time in which calls were left out, or None.
py::object partly_of(const arctrace_reader_function_sums& function) {
  if (function.partly_from_ns == INT64_MAX) return py::none();
  return py::make_tuple(time_or_none(function.partly_from_ns),
                        time_or_none(function.partly_to_ns));
}

// [(name, pid, tid, total_ns, functions, nodes)] of each group.
py::list groups_of(const reader::Profile& profile) {
  py::list groups;
  std::size_t number = 0;
  for (const arctrace_reader_group& g : profile.groups()) {
    py::list functions, nodes;
    for (const arctrace_reader_function_sums& f : profile.functions(number)) {
      functions.append(
          py::make_tuple(text(f.name), text(f.module), f.calls, f.self_ns, f.total_ns,
                         duration_or_none(f.avg_ns), duration_or_none(f.min_ns),
                         duration_or_none(f.max_ns), duration_or_none(f.p50_ns),
                         duration_or_none(f.p90_ns), duration_or_none(f.p99_ns),
                         duration_or_none(f.p999_ns), time_or_none(f.until_ns),
                         partly_of(f), text(f.left_out_by)));
    }
    for (const arctrace_reader_node& n : profile.nodes(number)) {
      nodes.append(py::make_tuple(text(n.name), text(n.module), n.level,
                                  number_or_none(n.parent), n.calls, n.self_ns,
                                  n.total_ns));
    }
    groups.append(
        py::make_tuple(text(g.name), g.pid, g.tid, g.total_ns, functions, nodes));
    ++number;
  }
  return groups;
}

// [(reason, on purpose, pid, tid, cpu, from_ns, to_ns, records)]; None: not known, or
// none.
py::list missing_of(const reader::Profile& profile) {
  py::list missing;
  for (const arctrace_reader_missing& m : profile.missing()) {
    missing.append(py::make_tuple(text(m.reason), m.on_purpose != 0, m.pid, m.tid,
                                  number_or_none(m.cpu), time_or_none(m.from_ns),
                                  time_or_none(m.to_ns), duration_or_none(m.records)));
  }
  return missing;
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const reader::Error& error) {
    PyObject* type = PyExc_ValueError;
    if (error.code() == ARCTRACE_READER_NOT_FOUND) type = PyExc_FileNotFoundError;
    if (error.code() == ARCTRACE_READER_DENIED) type = PyExc_PermissionError;
    if (error.code() == ARCTRACE_READER_INPUT) type = PyExc_OSError;
    if (error.code() == ARCTRACE_READER_NO_MEMORY) type = PyExc_MemoryError;
    if (error.code() == ARCTRACE_READER_BUSY ||
        error.code() == ARCTRACE_READER_INTERNAL) {
      type = PyExc_RuntimeError;
    }
    PyErr_SetString(type, error.what());
  }
}

}  // namespace

PYBIND11_MODULE(_reader, module) {
  py::register_exception_translator(&translate);
  module.attr("__version__") = arctrace_reader_version();

  py::class_<PyCalls>(module, "Calls")
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &PyCalls::next)
      .def("batch", &PyCalls::batch)
      .def("name", &PyCalls::name)
      .def("module", &PyCalls::module)
      .def("functions", &PyCalls::functions)
      .def("functions_of", &PyCalls::functions_of)
      .def("close", &PyCalls::close);
  py::class_<PyRecords>(module, "Records")
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &PyRecords::next)
      .def("close", &PyRecords::close);
  py::class_<reader::Trace, std::shared_ptr<reader::Trace>>(module, "Trace")
      .def(py::init([](const std::vector<std::string>& paths, std::uint32_t flags) {
        return std::make_shared<reader::Trace>(paths, flags);
      }))
      .def("facts", &facts_of)
      .def("scan", &reader::Trace::scan)
      .def("processes", &processes_of)
      .def("threads", &threads_of)
      .def("findings", &findings_of)
      .def("calls",
           [](const std::shared_ptr<reader::Trace>& trace,
              std::optional<std::int64_t> from_ns, std::optional<std::int64_t> until_ns,
              std::vector<std::string> only, std::vector<std::string> except,
              std::uint64_t min_duration_ns, std::uint32_t max_depth, bool values) {
             return PyCalls(
                 trace,
                 trace->calls(make_filter(from_ns, until_ns, std::move(only),
                                          std::move(except), min_duration_ns, max_depth),
                              values ? std::uint32_t{ARCTRACE_READER_VALUES} : 0));
           })
      .def("records",
           [](const std::shared_ptr<reader::Trace>& trace,
              std::optional<std::int64_t> from_ns, std::optional<std::int64_t> until_ns,
              bool fields) {
             return PyRecords(
                 trace, trace->records(fields ? std::uint32_t{ARCTRACE_READER_FIELDS} : 0,
                                       from_ns.value_or(INT64_MIN),
                                       until_ns.value_or(INT64_MAX)));
           })
      .def("profile",
           [](const std::shared_ptr<reader::Trace>& trace,
              std::optional<std::int64_t> from_ns, std::optional<std::int64_t> until_ns,
              std::vector<std::string> only, std::vector<std::string> except,
              std::uint64_t min_duration_ns, std::uint32_t max_depth,
              std::uint32_t grouping) {
             const reader::Filter filter =
                 make_filter(from_ns, until_ns, std::move(only), std::move(except),
                             min_duration_ns, max_depth);
             const reader::Profile profile =
                 trace->profile(filter, static_cast<arctrace_reader_grouping>(grouping));
             return py::make_tuple(groups_of(profile), missing_of(profile));
           });
}
