"""A trace has the names of its functions, so it can be read without its program. `arctrace archive` adds source
lines."""

import os
import pathlib
import signal
import struct
import subprocess

import cases
from command import ARCTRACE, arctrace, read, read_report, refused, start_arctrace
from support import bytes_text
from tracing import TracedTest

CHUNK = struct.Struct("<IHHIIIIQ")
HEADER_SIZE = 4096
SYMBOLS = 3

PROGRAM = """
#include <stdlib.h>
#include <string.h>
int inner(int x) {
  char* copy = strdup("text");
  free(copy);
  return x + 1;
}
int outer(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += inner(i);
  return sum;
}
int main(void) { return outer(20) == 0; }
"""
FUNCTIONS = {"main", "outer", "inner"}
# A lock that is a variable, and one in an array of structs of 64 bytes.
LOCKS = """
#include <pthread.h>
static struct { _Alignas(64) pthread_mutex_t lock; } pool[2];
static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static void use(pthread_mutex_t* lock) {
  pthread_mutex_lock(lock);
  pthread_mutex_unlock(lock);
}
int main(void) {
  pthread_mutex_init(&pool[1].lock, 0);
  use(&busy);
  use(&pool[1].lock);
}
"""


def chunks(trace):
    """(kind, offset, size of the payload) of each chunk."""
    data = trace.read_bytes()
    offset = HEADER_SIZE
    while offset < len(data):
        _, kind, _, size, _, _, _, _ = CHUNK.unpack_from(data, offset)
        yield kind, offset + CHUNK.size, size
        offset += CHUNK.size + size


def kinds(trace):
    return [kind for kind, _, _ in chunks(trace)]


class Symbols(TracedTest):
    def setUp(self):
        super().setUp()
        self.home = self.directory / "home"
        self.home.mkdir()
        self.program = self.home / "program"
        subprocess.run(["gcc", "-x", "c", "-", "-g", "-O0", "-finstrument-functions", "-o", self.program],
                       input=PROGRAM, text=True, check=True, cwd=self.home)

    def recorded(self, *options):
        done = self.record(self.program, options=options)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertNotIn("archive", done.stderr)
        self.assertIn(f" {bytes_text(done.trace.stat().st_size)}, ", done.stderr)
        read("check", done.trace)
        return done.trace

    def take_away(self):
        self.program.rename(self.home / "away")

    def refused(self, *arguments):
        """The one line that a refused command prints; it does not change any files."""
        before = self.contents()
        line = refused(*arguments)
        self.assertEqual(self.contents(), before)
        return line

    def contents(self):
        return {path: path.read_bytes() for path in self.directory.iterdir() if path.is_file()}

    def locks(self, trace):
        return {lock["name"] for lock in read_report(trace, "locks")["locks"]}

    def rows(self, trace):
        """The rows of a report with source lines, without the line about the file."""
        return read("report", "--view=flat", "--lines", trace).splitlines()[1:]

    def functions(self, trace):
        return {(row["name"], row["module"]) for row in read_report(trace, "flat")["functions"]}

    def test_names_are_there_without_the_program(self):
        trace = self.recorded()
        self.assertEqual(kinds(trace).count(SYMBOLS), 1)
        self.assertEqual(kinds(trace)[-1], SYMBOLS)
        before = self.functions(trace)
        self.assertLessEqual({(name, str(self.program)) for name in FUNCTIONS}, before)
        self.assertIn("strdup", {name for name, module in before if module and "libc" in module})
        self.take_away()
        self.assertEqual(self.functions(trace), before)
        self.assertIn(" inner", read("dump", trace))
        self.assertIn("outer;inner", read("export", trace, "--to=folded", "-o", "-"))
        self.assertIn("inner", read("graph", "inner", trace))

    def test_another_program_at_the_path_is_not_taken_for_it(self):
        trace = self.recorded()
        before = self.functions(trace)
        self.take_away()
        subprocess.run(["gcc", "-x", "c", "-", "-g", "-finstrument-functions", "-o", self.program],
                       input=PROGRAM.replace("inner", "other"), text=True, check=True)
        self.assertEqual(self.functions(trace), before)

    def test_no_symbols(self):
        trace = self.recorded("--no-symbols")
        self.assertNotIn(SYMBOLS, kinds(trace))
        self.take_away()
        names = {name for name, module in self.functions(trace) if module == str(self.program)}
        self.assertEqual(len(names), len(FUNCTIONS))
        for name in names:
            self.assertTrue(name.startswith("program+0x"), name)

    def test_into_a_pipe_there_are_none(self):
        done = arctrace("record", "-o", "-", "--", self.program, text=False, check=True)
        trace = self.directory / "piped"
        trace.write_bytes(done.stdout)
        self.assertNotIn(SYMBOLS, kinds(trace))
        self.assertNotIn(b"archive", done.stderr)

    def test_in_overwrite_mode_and_of_a_session(self):
        trace = self.recorded("--mode=overwrite")
        self.assertEqual(kinds(trace)[-1], SYMBOLS)
        name = f"symbols-{os.getpid()}"
        read("create", name, "--start")
        collected = self.directory / "collected"
        try:
            with start_arctrace("attach", name, "-o", collected, stderr=subprocess.PIPE, text=True) as attached:
                self.assertIn("collecting", attached.stderr.readline())
                read("record", "--session", name, "--", self.program)
                attached.send_signal(signal.SIGINT)
                attached.stderr.read()
            self.assertEqual(attached.returncode, 0)
        finally:
            read("destroy", name)
        self.take_away()
        for path in (trace, collected):
            self.assertLessEqual(FUNCTIONS, {function for function, _ in self.functions(path)})

    def test_an_archive_has_lines(self):
        trace = self.recorded()
        here = self.rows(trace)
        archive = self.directory / "arctrace.data.archive"
        self.assertEqual(read("archive", trace), "")
        read("check", archive)
        self.assertEqual(kinds(archive).count(SYMBOLS), 1)
        self.assertEqual(archive.stat().st_mode & 0o777, 0o600, "a trace is for its owner only")
        self.take_away()
        self.assertEqual(self.rows(archive), here)
        self.assertRegex("\n".join(here), "inner.*<stdin>:")
        # An archive of an archive retains its names, though the program is gone.
        again = self.directory / "again"
        read("archive", archive, "-o", again)
        self.assertEqual(self.rows(again), here)
        self.assertEqual(read("archive", trace, "-o", "-", text=False)[:8], b"ARCTFILE")
        # A pipe can be read once only.
        piped = self.directory / "piped"
        subprocess.run(["sh", "-c", 'cat "$1" | "$2" archive - -o "$3"', "sh", archive, ARCTRACE, piped],
                       stderr=subprocess.DEVNULL, check=True)
        self.assertEqual(piped.read_bytes(), again.read_bytes())

    def test_why_lines_are_missing_is_said(self):
        trace = self.recorded()
        archive = self.directory / "arctrace.data.archive"
        read("archive", trace)
        said = ("1 module is not here as it was recorded, so its source lines are missing: "
                "run arctrace archive where it is\n")
        views = ((), ("--view=flat",))
        for view in views:
            self.assertNotIn("are missing", read("report", "--lines", *view, trace))
        here = read("report", "--lines", trace)
        self.assertRegex(here, r"inner \(.*:\d+\)")
        # The command that is suggested has a name, without its line.
        self.assertRegex(here, rf"arctrace graph '\w+' {trace}\n")
        self.take_away()
        for view in views:
            self.assertIn(said, read("report", "--lines", *view, trace))
            self.assertNotIn("are missing", read("report", *view, trace))
            self.assertNotIn("are missing", read("report", "--lines", *view, archive))

    def test_an_archive_has_the_names_of_locks(self):
        subprocess.run(["gcc", "-x", "c", "-", "-O0", "-o", self.program], input=LOCKS, text=True, check=True,
                       cwd=self.home)
        trace = self.recorded()
        names = {"busy in program", "pool+0x40 in program"}
        self.assertLessEqual(names, self.locks(trace))
        archive, again = self.directory / "arctrace.data.archive", self.directory / "again"
        read("archive", trace)
        read("check", archive)
        self.take_away()
        self.assertLessEqual(names, self.locks(archive))
        read("archive", archive, "-o", again)
        self.assertLessEqual(names, self.locks(again))
        self.assertLessEqual(names, self.locks(trace))  # which record stored

    def test_an_archive_of_a_file_that_has_none(self):
        for options in (["--no-symbols"], ["--no-symbols", "--mode=overwrite"]):
            trace = self.recorded(*options)
            archive = self.directory / "whole"
            read("archive", trace, "-o", archive, "--force")
            read("check", archive)
            self.assertEqual(self.functions(archive), self.functions(trace))
            # A file that was cut off works, too.
            cut = self.directory / "cut"
            cut.write_bytes(trace.read_bytes()[:-5])
            read("archive", cut, "-o", archive, "--force")
            self.take_away()
            self.assertLessEqual(FUNCTIONS, {name for name, _ in self.functions(archive)})
            (self.home / "away").rename(self.program)
            for path in (cut, archive):
                path.unlink()

    def test_refusals(self):
        trace = self.recorded()
        missing = self.directory / "missing"
        self.assertIn("No such file", self.refused("archive", missing))
        self.assertIn("is the trace itself", self.refused("archive", trace, "-o", trace, "--force"))
        taken = self.directory / "taken"
        taken.write_text("as it was")
        self.assertIn("exists: --force replaces it", self.refused("archive", trace, "-o", taken))
        self.assertIn("not an arctrace trace", self.refused("archive", taken, "-o", missing))
        self.assertIn("No such file", self.refused("archive", trace, "-o", self.directory / "none/out"))
        self.assertIn("No space left", self.refused("archive", trace, "-o", "/dev/full"))
        taken.unlink()
        name = f"archived-{os.getpid()}"
        buffer = pathlib.Path(read("create", name).strip())
        try:
            self.assertIn("arctrace snapshot makes a file of it", self.refused("archive", buffer, "-o", missing))
        finally:
            read("destroy", name)

    def test_damage_is_a_finding(self):
        trace = self.recorded()
        self.take_away()
        whole = trace.read_bytes()
        [(_, offset, size)] = [chunk for chunk in chunks(trace) if chunk[0] == SYMBOLS]
        damaged = self.directory / "damaged"
        for at in range(offset, offset + size, 12):
            damaged.write_bytes(whole[:at] + b"\xff" * 4 + whole[at + 4 :])
            done = arctrace("check", damaged)
            self.assertEqual(done.returncode, 1)
            self.assertIn("F9", done.stdout)
            self.assertEqual(arctrace("report", "--view=flat", damaged).returncode, 0)
        damaged.write_bytes(whole[: offset + size // 2 & ~3])
        done = arctrace("check", damaged)
        self.assertEqual(done.returncode, 1)
        self.assertIn("F5", done.stdout)
        damaged.unlink()


if __name__ == "__main__":
    cases.main()
