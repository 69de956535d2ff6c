"""Records the functions that a Python program is written in, under `arctrace record`:

    arctrace record -- python3 -m arctrace_python PROGRAM.py [ARGUMENT...]
    arctrace record -- python3 -m arctrace_python -m MODULE [ARGUMENT...]

Each call of a function written in Python is a frame `py:MODULE.NAME` in the trace, and what the interpreter calls
meanwhile stands in it. A generator or coroutine has a frame for each time that it runs. Without a recorder the program
runs as it is. The module uses none of arctrace's others, and runs in Python 3.11 and later. docs/guide/python.md has
what it costs, and its limits.
"""

import ctypes
import io
import os
import runpy
import sys
import threading
import types

NAME_BIT = 1 << 63  # ARCTRACE_FRAME_NAME_BIT of arctrace/format.h
TOOL = 4  # of sys.monitoring: a number that is no debugger's, profiler's or optimizer's


class Keys(dict):
    """{id of a code object: key of its frame}. Code with the key 0 has no frames."""

    def __init__(self, define_name):
        super().__init__()
        self.define_name, self.by_name, self.kept = define_name, {}, []

    def add(self, code, key):
        self.kept.append(code)  # so that no other object gets its id
        self[id(code)] = key
        return key

    def make(self, code):
        """The key of code that runs, below the caller. Code of one name has one key, as what is compiled again."""
        frame = sys._getframe(1)
        while frame.f_code is not code:
            frame = frame.f_back
        module = dict.get(frame.f_globals, "__name__")
        name = f"py:{module if isinstance(module, str) else '?'}.{code.co_qualname}"
        if name not in self.by_name:
            self.by_name[name] = NAME_BIT | self.define_name(name.encode(errors="backslashreplace"))
        return self.add(code, self.by_name[name])


def make_callbacks(library):
    """Two functions that record that code was entered, and that it is left."""
    library.arctrace_define_name.argtypes, library.arctrace_define_name.restype = [ctypes.c_char_p], ctypes.c_uint32
    enter, leave = library.arctrace_enter, library.arctrace_exit
    enter.argtypes, enter.restype = leave.argtypes, leave.restype = [ctypes.c_uint64], None
    keys = Keys(library.arctrace_define_name)

    # At the limit of recursion ctypes fails: at the exit of a frame as at its entry, because both are equally deep.
    def entered(code, *_):
        key = keys.get(id(code))
        if key is None:
            key = keys.make(code)
        if key:
            try:
                enter(key)
            except (ctypes.ArgumentError, RecursionError):
                pass

    def left(code, *_):
        key = keys.get(id(code))
        if key is None:
            key = keys.make(code)
        if key:
            try:
                leave(key)
            except (ctypes.ArgumentError, RecursionError):
                pass

    # What runs already, and what runs the program, has no frames: it is left later, but was not entered.
    frame = sys._getframe()
    while frame:
        keys.add(frame.f_code, 0)
        frame = frame.f_back
    for value in [start_monitoring, start_profiling, *vars(runpy).values()]:
        if isinstance(value, types.FunctionType):
            keys.add(value.__code__, 0)
    return entered, left


def start_monitoring(entered, left):
    """Python 3.12 and later: events of all threads."""
    monitoring, events = sys.monitoring, sys.monitoring.events
    monitoring.use_tool_id(TOOL, "arctrace")
    callbacks = {events.PY_START: entered, events.PY_RESUME: entered, events.PY_THROW: entered,
                 events.PY_RETURN: left, events.PY_YIELD: left, events.PY_UNWIND: left}
    for event, callback in callbacks.items():
        monitoring.register_callback(TOOL, event, callback)
    monitoring.set_events(TOOL, sum(callbacks))


def start_profiling(entered, left):
    """Python 3.11: a function that each thread of `threading` calls when it enters and leaves any function."""
    def profile(frame, event, _):
        if event == "call":
            entered(frame.f_code)
        elif event == "return":
            left(frame.f_code)
    threading.setprofile(profile)
    sys.setprofile(profile)


def load(path):
    """The code of a file, and the module __main__, which it is to run in, as the interpreter makes it."""
    with io.open_code(os.path.abspath(path)) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=__builtins__)
    return code, module


def main():
    is_module = sys.argv[1:2] == ["-m"]
    sys.argv[:] = sys.argv[2 if is_module else 1:]
    if not sys.argv or sys.version_info < (3, 11):
        sys.exit("usage: python3 -m arctrace_python PROGRAM.py [ARGUMENT...]     (Python 3.11 or later)\n"
                 "       python3 -m arctrace_python -m MODULE [ARGUMENT...]")
    if not is_module:
        code, module = load(sys.argv[0])
        sys.modules["__main__"] = module
    library = ctypes.PyDLL(None)  # keeps the interpreter's lock, and has libarctrace if the recorder has loaded it
    if hasattr(library, "arctrace_enter"):
        start = start_monitoring if hasattr(sys, "monitoring") else start_profiling
        start(*make_callbacks(library))
    profile = sys.getprofile()
    try:
        if is_module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            exec(code, module.__dict__)
    finally:
        if sys.getprofile() is not profile and not hasattr(sys, "monitoring"):
            print("arctrace_python: functions of the main thread are missing after it set a profile function of its "
                  "own, or reached the limit of recursion", file=sys.stderr)


if __name__ == "__main__":
    main()
