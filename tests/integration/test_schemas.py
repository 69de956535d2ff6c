"""Checks the JSON of every view and command against the schemas in docs/schema, and the schemas against JSON
that is slightly wrong."""

import copy
import json
import jsonschema
import os
import pathlib
import platform
import re
import subprocess
import sys
import unittest

import cases
import support
from command import arctrace, read, read_report
from test_kernel import NO_KERNEL
from tracing import TracedTest

try:
    import referencing
except ImportError:  # jsonschema before 4.18, as in Debian 12, resolves by itself
    referencing = None

SCHEMAS = {path.name: json.loads(path.read_text()) for path in
           (pathlib.Path(__file__).resolve().parents[2] / "docs/schema").glob("*.json")}

EVENTS = support.API + """
f, g, text = key("f"), key("g"), name("queue")
def call(function, body):
    api.arctrace_enter(function)
    body()
    api.arctrace_exit(function)
def recurse(depth):
    if depth: call(f, lambda: recurse(depth - 1))
for turn in range(40):
    call(g, lambda: recurse(turn % 3))
    api.arctrace_counter(text, ctypes.c_int64(turn))
    api.arctrace_instant(text)
thread = threading.Thread(target=lambda: call(f, lambda: None))
thread.start()
thread.join()
api.arctrace_enter(g)
"""
LOCKS = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void* work(void* unused) {
  for (int i = 0; i < 20; ++i) {
    pthread_mutex_lock(&lock);
    usleep(100);
    pthread_mutex_unlock(&lock);
  }
  return unused;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, work, NULL);
  work(NULL);
  pthread_join(other, NULL);
}
"""

# Members that may be missing, wherever they belong.
OPTIONAL = {"cpu_ns", "off_cpu_ns", "ready_ns", "switches", "recursion", "marks", "flags", "args",
            "arg_names", "retval", "errno", "line", "pid", "tid", "threads", "module", "thread",
            "self_ns", "depth", "coroutine", "fields", "end_within_ns", "chunk", "block", "buffer",
            "frames", "reason", "task_state", "path", "waker_pid", "waker_tid", "waker_path",
            "from_interrupt", "main", "vdso", "name", "bpf", "raw", "overhead_ns",
            "corrected", "not_known_ns", "interrupted_ns", "stamps", "resolution_ns", "mean_age_ns", "longest_step_ns"}
# Objects that may have members of any name; content of records is another one.
OPEN = {"exits", "records_by_type", "blocks_by_phase", "lost_by_cause", "fields"}


def validator(name):
    if referencing is None:
        resolver = jsonschema.RefResolver(name, SCHEMAS[name], store=SCHEMAS)
        return jsonschema.Draft202012Validator(SCHEMAS[name], resolver=resolver)
    registry = referencing.Registry().with_resources(
        (key, referencing.Resource.from_contents(schema)) for key, schema in SCHEMAS.items())
    return jsonschema.Draft202012Validator(SCHEMAS[name], registry=registry)


def cut(value):
    """The same value with two elements of each list."""
    if isinstance(value, list):
        return [cut(element) for element in value[:2]]
    if isinstance(value, dict):
        return {key: cut(member) for key, member in value.items()}
    return value


def objects(value, path=()):
    """The first object in each place."""
    if isinstance(value, dict):
        yield path, value
        for key, member in value.items():
            yield from objects(member, path + (key,))
    elif isinstance(value, list) and value:
        yield from objects(value[0], path + (0,))


def at(document, path):
    for step in path:
        document = document[step]
    return document


class SchemasTest(TracedTest):
    def check(self, name, document):
        errors = [f"{name} {list(error.absolute_path)}: {error.message[:500]}"
                  for error in validator(name).iter_errors(document)]
        self.assertEqual(errors[:3], [])

    def check_lines(self, name, lines):
        """One line for each form."""
        forms = {}
        for line in lines:
            document = json.loads(line)
            forms.setdefault((document["type"], tuple(sorted(
                (key, type(value).__name__) for key, value in document.items()))), document)
        self.assertGreater(len(forms), 1)
        for document in forms.values():
            self.check(name, document)

    def views(self):
        """The names of all views, out of the message that lists them."""
        message = arctrace("report", "--view=none").stderr
        views = re.findall(r"[a-z]+(?:-[a-z]+)*", message[message.index(" is not ") + 8:])
        views = [view for view in views if view != "or"]
        self.assertIn("slowest", views)
        self.assertGreater(len(views), 15)
        return views

    def reports(self, trace, function, kernel):
        """(schema, JSON) of all views, of the trace as a whole and by threads and processes."""
        for view in self.views():
            if view in ("critical-path", "threads", "wakers") and not kernel:
                continue
            options = ("-F", function) if view in ("histogram", "slowest", "graph") else ()
            found = read_report(trace, view, *options)
            yield f"report-{view}.json", found
            if view in ("summary", "tree", "flat", "arcs", "kinds", "histogram", "graph"):
                per = "process" if view in ("summary", "tree") else "thread"
                yield f"report-{view}.json", read_report(trace, view, f"--per={per}", *options)
        yield "report-graph.json", json.loads(read("graph", function, trace,
                                                   "--format=json"))

    def check_trace(self, trace, function, kernel=False):
        """Returns one document of each schema, but for those of lines."""
        documents = {}
        for name, document in self.reports(trace, function, kernel):
            self.check(name, document)
            documents[name] = document
        for command in ("info", "check"):
            document = json.loads(read(command, trace, "--format=json"))
            self.check(f"{command}.json", document)
            documents[f"{command}.json"] = document
        self.check_lines("dump.json", read("dump", trace, "--format=json").splitlines())
        self.check_lines("dump.json",
                         read("dump", trace, "--format=json", "--raw").splitlines())
        out = self.directory / "out"
        read("export", "--to=ndjson", "-o", out, trace)
        self.check_lines("export-ndjson.json", out.read_text().splitlines())
        out.unlink()
        return documents

    def test_schemas_are_well_formed(self):
        for name, schema in SCHEMAS.items():
            jsonschema.Draft202012Validator.check_schema(schema)
            self.assertEqual(schema["$id"], name)
        self.assertEqual({name for name in SCHEMAS if name.startswith("report-")},
                         {f"report-{view}.json" for view in self.views()})

    def test_calls_and_events(self):
        """Also tests the schemas: a key too few or too many, and a time that is no integer, are errors
        everywhere."""
        done = self.record(sys.executable, "-c", EVENTS, options=("--no-libcall",))
        self.assertEqual(done.status, 0, done.stderr)
        documents = self.check_trace(done.trace, "g")
        documents["diff.json"] = json.loads(read("diff", "--format=json", done.trace,
                                                 done.trace))
        self.check("diff.json", documents["diff.json"])
        self.check("diff.json", json.loads(read(
            "diff", "--format=json", done.trace, done.trace, "--", done.trace, done.trace)))
        wrong = dict.fromkeys(("less", "more", "real"), 0)
        for name, document in documents.items():
            document = cut(document)
            valid = validator(name).is_valid
            self.assertTrue(valid(document), name)
            for path, found in objects(document):
                for kind, change in self.changes(name, path, found):
                    changed = copy.deepcopy(document)
                    change(at(changed, path))
                    wrong[kind] += 1
                    self.assertFalse(valid(changed), (name, path, kind))
        for kind, count in wrong.items():
            self.assertGreater(count, 50, kind)

    def test_locks_and_arguments(self):
        program = self.directory / "program"
        subprocess.run(["gcc", "-O1", "-pthread", "-x", "c", "-o", program, "-"], input=LOCKS,
                       text=True, check=True)
        done = self.record(program, options=("-a",))
        self.assertEqual(done.status, 0, done.stderr)
        self.check_trace(done.trace, "usleep")

    @unittest.skipIf(platform.machine() != "x86_64", "nothing is patched on this machine")
    def test_patches(self):
        program = self.directory / "program"
        subprocess.run(["gcc", "-O1", "-pthread", "-x", "c", "-o", program, "-"], input=LOCKS,
                       text=True, check=True)
        done = self.record(program, options=("-P", ".", "-Z", "1"))
        self.assertEqual(done.status, 0, done.stderr)
        self.check_trace(done.trace, "usleep")
        document = json.loads(read("info", "-v", "--format=json", done.trace))
        self.assertTrue(document["processes"][0]["patches"]["functions"])
        self.check("info.json", document)
        document["processes"][0]["patches"]["functions"][0]["address"] = 1
        self.assertFalse(validator("info.json").is_valid(document))

    def test_events_that_are_left_out(self):
        trace = self.record(os.environ["ARCTRACE_TYPED_EVENTS"], options=("--no-libcall",)).trace
        report = read_report(trace, "flow", "--where", "id > 3")
        self.assertGreater(report["summary"]["events_left_out"], 0)
        self.check("report-flow.json", report)
        del report["summary"]["where"]
        self.assertFalse(validator("report-flow.json").is_valid(report))
        lines = read("dump", trace, "--format=json", "--where", "id > 3").splitlines()
        self.assertEqual(json.loads(lines[-1])["type"], "LEFT_OUT")
        self.check_lines("dump.json", lines)
        out = self.directory / "out"
        read("export", "--to=ndjson", "-o", out, "--where", "id > 3", trace)
        self.check_lines("export-ndjson.json", out.read_text().splitlines())
        out.unlink()

    def test_losses(self):
        program = support.API + "f = key('f')\nfor i in range(3000):\n api.arctrace_enter(f)\n" \
            " api.arctrace_exit(f)"
        done = self.record(sys.executable, "-c", program, options=(
            "--no-libcall", "--mode=stop", "-b", "64k", "--block-size", "1k"))
        report = read_report(done.trace, "flat")
        self.assertGreater(report["summary"]["lost"], 0)
        self.check("report-flat.json", report)
        self.check_lines("dump.json",
                         read("dump", done.trace, "--format=json").splitlines())

    def test_corrected(self):
        program = support.API + "f = key('f')\nfor i in range(300):\n api.arctrace_enter(f)\n" \
            " api.arctrace_exit(f)"
        trace = self.record(sys.executable, "-c", program, options=("--no-libcall",)).trace
        for view, options in (("summary", ()), ("tree", ()), ("flat", ()), ("arcs", ()),
                              ("kinds", ()), ("histogram", ("-F", "f")), ("graph", ("-F", "f"))):
            report = read_report(trace, view, "--corrected", *options)
            self.assertIs(report["corrected"], True)
            self.check(f"report-{view}.json", report)

    def test_times_that_are_not_exact(self):
        program = support.API + "f = key('f')\nfor i in range(300):\n api.arctrace_enter(f)\n" \
            " api.arctrace_exit(f)"
        done = self.record(sys.executable, "-c", program, options=("--no-libcall", "--clock=coarse"))
        for view in ("summary", "flat", "tree"):
            report = read_report(done.trace, view)
            self.assertEqual(report["stamps"], "coarse")
            self.check(f"report-{view}.json", report)
        self.check("info.json", json.loads(read("info", done.trace, "--format=json")))
        self.check_lines("dump.json", read("dump", done.trace, "--format=json").splitlines())

    @cases.not_in_gate
    @unittest.skipIf(NO_KERNEL, NO_KERNEL)
    def test_kernel(self):
        for use in ("auto", "irq"):
            done = self.record("sh", "-c", "sleep 0.01; true", options=(f"--kernel={use}",), trace=f"{use}.data")
            self.assertEqual(done.status, 0, done.stderr)
            self.check_trace(done.trace, "m*", kernel=True)

    @staticmethod
    def changes(name, path, found):
        """Changes that make this object of a document wrong: (kind, function that changes it)."""
        is_open = bool(path) and path[-1] in OPEN or name == "report-flow.json" and path
        if not is_open:
            yield "more", lambda target: target.update(unknown=0)
        for key, value in found.items():
            if key.endswith("_ns") and isinstance(value, int):
                yield "real", lambda target, key=key: target.update({key: 0.5})
            if not is_open and key not in OPTIONAL and path[-1:] != ("marks",):
                yield "less", lambda target, key=key: target.pop(key)


if __name__ == "__main__":
    cases.main()
