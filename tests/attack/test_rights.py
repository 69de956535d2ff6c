#!/usr/bin/env python3
"""Nobody who is traced, or who plants files, gets more rights by the recorder or the reader."""

import grp
import os
import pathlib
import subprocess
import sys

import attack
from attack import NOBODY
from command import arctrace, read_dump, read_report, start_arctrace
from support import API
from tracing import TracedTest

# Joins as root, gives up its rights, and in namespaces of its own puts a file that it may not
# read where the recorder looks for the names of its code. Then it outlives the recording.
CONFUSING = API + f"""
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result != 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
api.arctrace_instant(name("joined"))
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, so that it may write its maps
check(libc.unshare(0x10000000 | 0x20000 | 0x20000000))  # user, mount, PID
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write("0 {NOBODY} 1")
open("/proc/self/gid_map", "w").write("0 {NOBODY} 1")
ready, done = os.pipe()
if os.fork() == 0:
    check(libc.mount(b"none", b"/", None, 0x40000 | 0x4000, None))  # private
    check(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
    open("/tmp/perf-1.map", "w").close()
    check(libc.mount(sys.argv[1].encode(), b"/tmp/perf-1.map", None, 0x1000, None))
    api.arctrace_instant(name("in a namespace"))
    os.write(done, b"x")
    os.closerange(0, 3)
    time.sleep(20)
    os._exit(0)
os.close(done)
assert os.read(ready, 1) == b"x", "the child failed"
os._exit(0)
"""


class CodeNamesTest(TracedTest):
    @attack.needs_root
    def test_files_that_the_process_may_not_read(self):
        # The hostile process must still see the file, so it is not in /tmp.
        secret = pathlib.Path(f"/dev/shm/arctrace-secret-{os.getpid()}")
        secret.write_text("5000 20 secret\n")
        secret.chmod(0o600)
        os.utime(secret, (2 ** 32, 2 ** 32))  # as if it were written during the recording
        self.addCleanup(secret.unlink)
        for planted in (secret, "/proc/kallsyms", "/proc/kmsg"):
            with self.subTest(planted=planted):
                recorded = self.record(sys.executable, "-c", CONFUSING, planted,
                                       options=("--no-libcall",))
                self.assertEqual(recorded.status, 0, recorded.stderr)
                records = read_dump(recorded.trace)
                self.assertIn("PID_NAMESPACE", [r["type"] for r in records])
                self.assertEqual([r for r in records if r["type"].startswith("CODE")], [])

    def test_own_map_is_read(self):
        program = API + """
map = f"/tmp/perf-{os.getpid()}.map"
open(map, "w").write("5000 20 mine\\n")
api.arctrace_instant(name("joined"))
print(map)
"""
        recorded = self.record(sys.executable, "-c", program, options=("--no-libcall",))
        self.addCleanup(os.unlink, recorded.stdout.strip())
        self.assertEqual([r["name"] for r in read_dump(recorded.trace) if r["type"] == "CODE"],
                         ["mine"])


PROGRAM = """
__attribute__((noinline)) void revealed(void) { asm volatile(""); }
int main(void) { revealed(); return 0; }
"""


class ModulesTest(TracedTest):
    @attack.needs_root
    def test_root_reads_a_users_trace_with_that_users_rights(self):
        self.directory.chmod(0o711)
        theirs, hidden = self.directory / "theirs", self.directory / "hidden"
        theirs.mkdir()
        os.chown(theirs, NOBODY, NOBODY)
        hidden.mkdir()
        subprocess.run(["gcc", "-x", "c", "-finstrument-functions", "-o", hidden / "program", "-"],
                       input=PROGRAM, text=True, check=True)
        trace = theirs / "arctrace.data"
        # The recorder stores no names, because the user's recorder could read them itself.
        done = arctrace("record", "--no-symbols", "-o", trace, "--", hidden / "program", cwd=theirs,
                        preexec_fn=lambda: attack.become(NOBODY))
        self.assertEqual(done.returncode, 0, done.stderr)
        for mode, is_known in ((0o711, True), (0o700, False)):
            hidden.chmod(mode)
            names = {row["name"] for row in read_report(trace, "flat")["functions"]}
            self.assertEqual("revealed" in names, is_known, names)
            dump = arctrace("dump", trace).stdout
            self.assertEqual("revealed" in dump, is_known, dump)


class SharedBufferTest(TracedTest):
    def create(self, *options):
        session = self.directory / "session"
        done = arctrace("create", session, "--start", "-b", "4M", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return session

    @attack.needs_root
    def test_root_does_not_join_a_users_buffer(self):
        session = self.create()
        os.chown(session, NOBODY, NOBODY)
        done = subprocess.run([sys.executable, "-c", API + """
print(api.arctrace_attach(os.environb[b"ARCTRACE_SESSION"]))
"""], env={**os.environ, "ARCTRACE_SESSION": str(session)}, stdout=subprocess.PIPE, check=False)
        self.assertEqual(done.stdout, b"-13\n")  # EACCES
        # A command may read the session.
        self.assertEqual(arctrace("info", session).returncode, 0)

    def test_a_cut_buffer_ends_neither_programs_nor_the_collector(self):
        for size in (0, 4096, 1 << 20):
            session = self.create("--group", grp.getgrgid(os.getgid()).gr_name)
            with subprocess.Popen([sys.executable, "-uc", API + """
print("ready")
while sys.stdin.readline(): api.arctrace_instant(name("x")), print("alive")
"""], env={**os.environ, "ARCTRACE_SESSION": str(session)}, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) as program, \
                 start_arctrace("attach", session, "-o", self.directory / "x.data", stderr=subprocess.PIPE,
                                text=True) as collector:
                collector.stderr.readline()  # it collects now
                def step(program=program):
                    program.stdin.write("\n")
                    program.stdin.flush()
                    return program.stdout.readline()
                self.assertEqual(program.stdout.readline(), "ready\n")
                self.assertEqual(step(), "alive\n")
                os.truncate(session, size)
                for _ in range(10):
                    self.assertEqual(step(), "alive\n")
                errors = collector.communicate(timeout=600)[1]
                self.assertEqual(collector.returncode, 2, errors)
                self.assertIn("No data available", errors)
                program.stdin.close()
                self.assertEqual(program.wait(timeout=600), 0)
            session.unlink()
            # The trace says that it ends early, which the checks of whole traces would refuse.
            (self.directory / "x.data").unlink()


if __name__ == "__main__":
    attack.main()
