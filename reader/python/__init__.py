"""Reads traces of arctrace.

    import arctrace
    trace = arctrace.open("arctrace.data")
    for call in trace.calls(only=["malloc"]):
        print(call.start_ns, call.name, call.duration_ns)

The module reads by libarctrace-reader, as the command `arctrace` does; its numbers are those of
`arctrace report --format=json`. Times are ns since the session's start, durations ns. Names are
text as programs wrote it: escape them before a terminal sees them.

A trace can be read by one iterator (calls, batches, records) at a time; close() one that was not
read to its end, or use it in a `with` statement. Traces must not be used in a fork's child.
Errors: FileNotFoundError, PermissionError, OSError; ValueError if a file is no trace;
RuntimeError if the trace has an iterator already.
"""

import json as _json
import os as _os
import typing as _typing

from . import _reader

if _typing.TYPE_CHECKING:
    import numpy

__version__ = _reader.__version__
__all__ = ["Batch", "Call", "Calls", "Finding", "FunctionSums", "Group", "Missing", "Node", "Process", "Profile",
           "Record", "Records", "Thread", "Trace", "open"]

# Bits of Call.flags and Batch.flags.
UNWOUND, EXIT_LOST, ENTRY_LOST, ENTERED_BEFORE = 1, 2, 4, 8
INHERITED, NOT_ENDED, RESUMED, BEGAN_BEFORE, ENDED_AFTER, GUESSED = 16, 32, 64, 128, 256, 512
ACROSS_GAP = 1024
# A frame with one of these bits is no call, but the rest of a call that another frame
# stands for: of a fork's parent, or of a call that a vfork child abandoned.
COUNTED_ELSEWHERE = INHERITED | RESUMED


class Call(_typing.NamedTuple):
    """A call of a function. `thread` is an index of Trace.threads; args and retval are text, "" where none was
    recorded; `function` and `path` are numbers for Calls.name() and Calls.stack()."""
    name: str
    start_ns: int
    end_ns: int
    self_ns: int
    duration_ns: int
    thread: int
    depth: int
    args: str
    retval: str
    flags: int
    function: int
    path: int

    @property
    def is_call(self) -> bool:
        """Whether it counts: it is not the rest of a call that another frame stands for."""
        return not self.flags & COUNTED_ELSEWHERE


class Batch(_typing.NamedTuple):
    """Columns of as many calls, numpy arrays of one length: times are int64, self_ns is uint64, the others are
    uint32."""
    start_ns: "numpy.ndarray"
    end_ns: "numpy.ndarray"
    self_ns: "numpy.ndarray"
    function: "numpy.ndarray"
    thread: "numpy.ndarray"
    depth: "numpy.ndarray"
    path: "numpy.ndarray"
    flags: "numpy.ndarray"

    @property
    def size(self) -> int:
        """The number of calls."""
        return int(self.start_ns.size)


class Record(_typing.NamedTuple):
    """A record. `thread` is an index of Trace.threads, or None: the recorder's. `fields` are those of
    `arctrace dump --format=json`."""
    time_ns: int
    type: str
    thread: _typing.Optional[int]
    fields: _typing.Dict[str, _typing.Any]


class Process(_typing.NamedTuple):
    """A process. `parent` is an index of Trace.processes; end_ns is None if no end was seen."""
    pid: int
    ppid: int
    parent: _typing.Optional[int]
    program: str
    arguments: _typing.List[str]
    start_ns: int
    end_ns: _typing.Optional[int]
    end_status: int


class Thread(_typing.NamedTuple):
    """A thread. `process` is an index of Trace.processes."""
    tid: int
    pid: int
    process: _typing.Optional[int]
    name: str
    start_ns: int
    end_ns: _typing.Optional[int]


class Finding(_typing.NamedTuple):
    """A breach of a rule of SPEC.md in the file."""
    rule: str
    message: str


class FunctionSums(_typing.NamedTuple):
    """The calls of a function: self_ns is time in itself, total_ns with all it called. The times from avg_ns to p999_ns
    are None where too few calls ended. left_out_by says what excluded calls by intent ("switched off", a filter), or is
    empty: all of them from until_ns on (None: not so), and an unknown number in `partly`, begin and end (None: from the
    beginning, to the end; `partly` None: not so)."""
    name: str
    module: str
    calls: int
    self_ns: int
    total_ns: int
    avg_ns: _typing.Optional[int]
    min_ns: _typing.Optional[int]
    max_ns: _typing.Optional[int]
    p50_ns: _typing.Optional[int]
    p90_ns: _typing.Optional[int]
    p99_ns: _typing.Optional[int]
    p999_ns: _typing.Optional[int]
    until_ns: _typing.Optional[int]
    partly: _typing.Optional[_typing.Tuple[_typing.Optional[int], _typing.Optional[int]]]
    left_out_by: str


class Node(_typing.NamedTuple):
    """The calls of a function on one path. `parent` is an index of the group's nodes; level 0 is the root."""
    name: str
    module: str
    level: int
    parent: _typing.Optional[int]
    calls: int
    self_ns: int
    total_ns: int


class Group(_typing.NamedTuple):
    """The sums of a thread, a process, or all."""
    name: str
    pid: int
    tid: int
    total_ns: int
    functions: _typing.List[FunctionSums]
    nodes: _typing.List[Node]


class Missing(_typing.NamedTuple):
    """What a trace lacks. on_purpose: a filter left calls out, or functions were switched off; else records are
    missing. pid and tid are 0 if several threads lack them, or it is not known whose they are; cpu is the one whose
    records of the kernel are missing, or None. from_ns None: from the beginning on, or not known; to_ns None: to the
    end; records None: not known how many."""
    reason: str
    on_purpose: bool
    pid: int
    tid: int
    cpu: _typing.Optional[int]
    from_ns: _typing.Optional[int]
    to_ns: _typing.Optional[int]
    records: _typing.Optional[int]


class Profile(_typing.List[Group]):
    """The groups, and in `missing` what the trace lacks of this time, as a list of Missing."""

    def __init__(self, groups: _typing.List[Group], missing: _typing.List[Missing]) -> None:
        super().__init__(groups)
        self.missing = missing


_Globs = _typing.Union[str, _typing.Iterable[str]]


class _Reading:
    """An iterator that can be closed."""

    def __init__(self, reader: _typing.Any) -> None:
        self._reader = reader

    def __iter__(self) -> "_typing.Self":
        return self

    def __enter__(self) -> "_typing.Self":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the iteration, so that the trace can be read anew."""
        self._reader.close()


class Calls(_Reading):
    """The calls of a trace: those that ended in the order of their ends, then the others."""

    def __next__(self) -> Call:
        return Call._make(next(self._reader))

    def batches(self, size: int = 8192) -> _typing.Iterator[Batch]:
        """The rest of the calls as Batch after Batch, of `size` calls but for the last one."""
        while (columns := self._reader.batch(size)) is not None:
            yield Batch._make(columns)

    def name(self, function: int) -> str:
        """The name of a function that a call had which was read before."""
        return self._reader.name(function)

    def module(self, function: int) -> str:
        """The path of such a function's module, or ""."""
        return self._reader.module(function)

    @property
    def names(self) -> _typing.List[str]:
        """The names of all functions so far; function numbers are its indices."""
        return [self._reader.name(i) for i in range(self._reader.functions())]

    def stack(self, path: int) -> _typing.List[str]:
        """The names of the functions on a path, outermost first."""
        return [self._reader.name(function) for function in self._reader.functions_of(path)]


class Records(_Reading):
    """The records of a trace in order of time."""

    def __next__(self) -> Record:
        time_ns, kind, thread, fields = next(self._reader)
        return Record(time_ns, kind, thread, _json.loads(fields) if fields else {})


def _globs(given: _Globs) -> _typing.List[str]:
    return [given] if isinstance(given, str) else list(given)


class Trace:
    """A trace file, the files of one recording, or a session's buffer.

    Opening costs time for each block of the file; memory is bounded by blocks, definitions and distinct stacks, not by
    the number of records."""

    _GROUPINGS = {"thread": 0, "process": 1, "all": 2}

    def __init__(self, *paths: "_typing.Union[str, _os.PathLike[str]]", checksums: bool = False,
                 download: bool = False) -> None:
        """checksums: compares all bytes with the file's checksums. download: fetches debug files from the servers of
        DEBUGINFOD_URLS."""
        self._trace = _reader.Trace([_os.fspath(path) for path in paths], (1 if checksums else 0) | (
            2 if download else 0))
        self.processes = [Process._make(fields) for fields in self._trace.processes()]
        self.threads = [Thread._make(fields) for fields in self._trace.threads()]

    @property
    def facts(self) -> _typing.Dict[str, _typing.Any]:
        """What holds for the whole trace, as a dict: path, host, kernel, version, finished, has_kernel,
        start_realtime_ns; removed_files and goes_on of a recording that was cut into files, of which another one
        may follow. The sums (records, lost, lost_by_cause, overwritten, elsewhere, filtered_out, findings, first_ns,
        last_ns, duration_ns) are 0 until the trace was read to its end, for example by scan()."""
        return self._trace.facts()

    @property
    def findings(self) -> _typing.List[Finding]:
        """What breaks the rules of the format, as far as the trace was read."""
        return [Finding._make(fields) for fields in self._trace.findings()]

    def scan(self) -> None:
        """Reads the whole trace for its sums and findings."""
        self._trace.scan()

    def calls(self, *, from_ns: _typing.Optional[int] = None, until_ns: _typing.Optional[int] = None, only: _Globs = (),
              exclude: _Globs = (), min_duration_ns: int = 0, max_depth: int = 2**32 - 1,
              values: bool = True) -> Calls:
        """The calls in a range of time. only, exclude: globs of function names as of `report -F` and `-N`. Without
        values, args and retval of calls are ""."""
        return Calls(self._trace.calls(from_ns, until_ns, _globs(only), _globs(exclude), min_duration_ns, max_depth,
                                       values))

    def batches(self, size: int = 8192, **limits: _typing.Any) -> _typing.Iterator[Batch]:
        """The calls as columns, Batch after Batch. For names of functions, use calls(values=False).batches()."""
        limits.setdefault("values", False)
        with self.calls(**limits) as calls:
            yield from calls.batches(size)

    def records(self, *, from_ns: _typing.Optional[int] = None, until_ns: _typing.Optional[int] = None,
                fields: bool = True) -> Records:
        """The records in a range of time."""
        return Records(self._trace.records(from_ns, until_ns, fields))

    def profile(self, group_by: str = "all", *, from_ns: _typing.Optional[int] = None,
                until_ns: _typing.Optional[int] = None, only: _Globs = (),
                exclude: _Globs = (), min_duration_ns: int = 0, max_depth: int = 2**32 - 1) -> Profile:
        """The sums of the calls, as a list of Group: for each thread or process, or all in one."""
        groups, missing = self._trace.profile(from_ns, until_ns, _globs(only), _globs(exclude), min_duration_ns,
                                              max_depth, self._GROUPINGS[group_by])
        return Profile([Group(*facts, [FunctionSums._make(fields) for fields in functions],
                              [Node._make(fields) for fields in nodes]) for *facts, functions, nodes in groups],
                       [Missing._make(fields) for fields in missing])


def open(*paths: "_typing.Union[str, _os.PathLike[str]]",
         **options: bool) -> Trace:  # pylint: disable=redefined-builtin
    """Opens a trace: Trace(*paths, **options)."""
    return Trace(*paths, **options)
