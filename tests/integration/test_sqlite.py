"""export --to=sqlite: its sums are compared with the report's, the guide's schema and queries run on
a fresh database, and its memory is bounded."""

import collections
import pathlib
import re
import resource
import sqlite3
import sys
import unittest

import cases
import support
from command import SANITIZED, arctrace, read, read_report
from test_kernel import NO_KERNEL
from tracing import TracedTest

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/sqlite.md"

PROGRAM = support.API + """
outer, inner, queue = key("outer"), key("inner"), name("queue")
def work():
    for turn in range(50):
        api.arctrace_enter(outer)
        for i in range(3):
            api.arctrace_enter(inner)
            api.arctrace_exit(inner)
        api.arctrace_counter(queue, ctypes.c_int64(turn))
        api.arctrace_exit(outer)
thread = threading.Thread(target=work)
thread.start()
thread.join()
if os.fork() == 0:
    work()
    os._exit(3)
os.wait()
api.arctrace_enter(outer)
time.sleep(0.05)
"""


def queries():
    """The guide's queries, each with the output that stands below it."""
    return re.findall(r"```sql\n(.*?)```\n+```\n(.*?)```", GUIDE.read_text(), re.DOTALL)


class SqliteTest(TracedTest):
    KERNEL = () if NO_KERNEL else ("--kernel=bpf",)

    def database(self, trace, *options):
        path = self.directory / "trace.db"
        done = arctrace("export", "--to=sqlite", "-o", path, "--force", *options, trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.addCleanup(base.close)
        self.assertEqual(base.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        return base

    def test_sums_are_those_of_the_report(self):
        done = self.record(sys.executable, "-c", PROGRAM, options=(*self.KERNEL, "-a"))
        self.assertEqual(done.status, 0, done.stderr)
        base = self.database(done.trace)
        # Made-up phases of a process are no calls.
        counted = collections.Counter()
        for call in read_report(done.trace, "invocations")["invocations"]:
            counted[call["name"], call["module"]] += "inherited" not in call.get("flags", ())
        self.assertEqual(dict(base.execute("SELECT name || char(0) || module, count(*) FROM "
                                           "named_calls GROUP BY name, module")),
                         {f"{name}\0{module}": n for (name, module), n in counted.items()})
        # A call that has not ended has no duration, but self time; the frames that a fork child
        # begins in are no calls, and have self time too.
        self.assertEqual({(name, module): (calls, self_ns) for name, module, calls, self_ns in
                          base.execute("SELECT name, module, calls, self_ns FROM function_sums")},
                         {(f["name"], f["module"]): (f["calls"], f["base_ns"])
                          for f in read_report(done.trace, "flat")["functions"]
                          if not f["name"].startswith("[")})
        # These are the thread's paths, and the child's, which begin in the main thread's.
        paths = {text for text, in base.execute(
            "SELECT text FROM path_names JOIN calls ON path_id = path_names.id JOIN functions ON "
            "functions.id = function_id WHERE name = 'inner' GROUP BY path_id")}
        self.assertIn("outer > inner", paths)
        for path in paths:
            self.assertTrue(path.endswith("outer > inner"), paths)
        self.assertEqual(base.execute("SELECT count(*) FROM named_calls WHERE name = 'outer'")
                         .fetchone(), (101,))
        self.assertEqual(base.execute("SELECT count(*), sum(json_extract(fields, '$.value')) FROM "
                                      "events WHERE type = 'counter' AND name = 'queue'").fetchone(),
                         (100, 2 * sum(range(50))))
        self.assertEqual(base.execute("SELECT origin, status FROM processes ORDER BY id").fetchall(),
                         [("exec", 0), ("fork", 3)])
        self.assertEqual(base.execute("SELECT count(*) FROM threads t LEFT JOIN processes p ON "
                                      "p.id = process_id WHERE stop_ns > t.start_ns AND p.id IS NULL")
                         .fetchone(), (0,))
        if not NO_KERNEL:
            for thread in read_report(done.trace, "threads")["threads"]:
                got = dict(base.execute(
                    "SELECT substr(state, 1, 7), sum(duration_ns) FROM state_sums WHERE tid = ? "
                    "GROUP BY 1", (thread["tid"],)))
                self.assertEqual(got.get("running", 0), thread["running_ns"])
                self.assertEqual(got.get("blocked", 0), thread["blocked_ns"])

    def test_the_guide(self):
        """The guide's tables and columns are those of a database, and its queries run."""
        (self.directory / "hello.c").write_text("#include <stdio.h>\nint main() { puts(\"hi\"); }\n")
        done = self.record("gcc", "-O1", "-c", "hello.c", options=(*self.KERNEL, "-a"))
        base = self.database(done.trace)
        described = collections.defaultdict(list)
        for table, columns in re.findall(r"^\| `(\w+)` \| ([^|]*) \|", GUIDE.read_text(), re.M):
            described[table] += re.findall(r"`(\w+)`", columns)
        made = {name: [row[1] for row in base.execute(f"PRAGMA table_info({name})")]
                for name, in base.execute("SELECT name FROM sqlite_master WHERE type IN "
                                          "('table', 'view')")}
        self.assertEqual(dict(described), made)
        self.assertGreaterEqual(len(queries()), 10)
        for query, output in queries():
            cursor = base.execute(query)
            rows = cursor.fetchall()
            # The guide's output has the same column heads.
            head = output.splitlines()[0].split("|")
            self.assertEqual([column[0] for column in cursor.description],
                             [word.strip() for word in head], query)
            if not re.search("scheduling|state_sums|ENOENT", query):
                self.assertTrue(rows, query)

    @unittest.skipIf(SANITIZED, "sanitizers reserve more than the limit")
    def test_memory_does_not_grow_with_the_calls(self):
        done = self.record(sys.executable, "-c", support.API + """
outer = key("outer")
for i in range(300000):
    api.arctrace_enter(outer)
    api.arctrace_exit(outer)
""", options=("--no-libcall", "-b", "64M"))  # space for all records, should the recorder get no CPU
        limit = 220 << 20
        path = self.directory / "large.db"
        read("export", "--to=sqlite", "-o", path, done.trace,
             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
        self.assertGreater(path.stat().st_size, 10 << 20)


if __name__ == "__main__":
    cases.main()
