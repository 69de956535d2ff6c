"""Sessions that outlive commands: create, list, attach, start, stop, ctl, destroy; recording into them; the rights
that this takes; another collector after the first died."""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import unittest

import cases
import support
from command import ARCTRACE, LIBRARY, SANITIZED, arctrace, read, read_dump, read_info, refused, run, start_arctrace
from states import wait_until
from tracing import TracedTest

# Writes for ever; prints "ready" once, and for each line of its input how many times it has looped; ends when its
# input does.
WRITER = support.API + """
ring = name("ring")
event = api.arctrace_define_event(b"happened", 0, None, 0)
end, rounds = False, 0
def busy():
    global rounds
    while not end:
        rounds += 1
        api.arctrace_instant(ring)
        api.arctrace_write(event, None, 0)
        time.sleep(0.0002)
t = threading.Thread(target=busy)
t.start()
print("ready", flush=True)
for _ in sys.stdin: print(rounds, flush=True)
end = True
t.join()
"""


def has_ended(pid):
    """Whether the process has ended, even if its parent has not waited for it."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


def locking(path):
    """The processes in which all mappings of the file are locked."""
    # Tests that run beside this one have their own file systems, with files of the same number.
    device, inode = path.stat().st_dev, path.stat().st_ino
    own = [f"{os.major(device):02x}:{os.minor(device):02x}", str(inode)]
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "smaps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # the process has ended, or is another user's
        mappings = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", text)
        its = [mapping for mapping in mappings if mapping.split()[3:5] == own]
        if its and all(re.search(r"(?m)^VmFlags:.* lo\b", mapping) for mapping in its):
            found.append(int(process.name))
    return found


class SessionTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.name = f"test-{os.getpid()}-{self.id().rsplit('.', 1)[1]}"[:64]

    def create(self, *options, size="1M"):
        done = arctrace("create", self.name, "-b", size, "--block-size", "8k", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(arctrace, "destroy", "--force", self.name)
        return pathlib.Path(done.stdout.strip())

    def test_a_wrong_name_is_told_near_ones(self):
        self.create()
        wrong = self.name[:-1] + ("x" if self.name[-1] != "x" else "y")
        for command in ("live", "attach", "snapshot"):
            self.assertIn(f'no session {wrong}; did you mean "{self.name}"', refused(command, wrong))
        self.assertNotIn("did you mean", refused("live", "nothing-that-is-like-it"))

    def writer(self):
        process = start_arctrace("record", "--no-libcall", f"--session={self.name}", "--", sys.executable, "-c",
                                 WRITER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def attach(self, trace):
        process = start_arctrace("attach", self.name, "-o", trace, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        self.assertIn("collecting", process.stderr.readline())
        return process

    def listed(self):
        done = arctrace("list", "--format=json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {s["name"]: s for s in json.loads(done.stdout)}

    def end(self, process):
        process.stdin.close()
        self.assertEqual(process.wait(timeout=300), 0)

    def written(self):
        return sum(s["written"] for s in read_info(self.name)["buffer"]["slots"])

    def wait_until_written(self, count):
        """Waits until so many records have been written since the session began."""
        wait_until(lambda: self.written() >= count, lambda: f"{count} records: {self.written()}")

    def wait_for_rounds(self, writer):
        """Waits until a writer's thread has made one whole loop, and another."""
        def rounds():
            writer.stdin.write("\n")
            writer.stdin.flush()
            return int(writer.stdout.readline())
        begin = rounds()
        wait_until(lambda: rounds() >= begin + 3, "the writer goes on")

    @cases.in_gate
    def test_whole_life(self):
        path = self.create(size="64M")  # space for minutes in which the collector gets no CPU
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(self.listed()[self.name]["recording"], False)
        trace = self.directory / "trace"
        collector = self.attach(trace)
        writer = self.writer()
        self.wait_for_rounds(writer)
        self.assertEqual(self.written(), 0)  # recording is off
        self.assertEqual(arctrace("start", self.name).returncode, 0)
        self.wait_until_written(500)
        wait_until(lambda: read_info(self.name)["buffer"]["records_per_second"] > 0, "info shows a rate")
        self.assertTrue(read_info(self.name)["buffer"]["collector_alive"])
        self.assertGreaterEqual(self.listed()[self.name]["writers"], 1)
        # Once the collector has taken a block, the buffer alone is not the whole session.
        wait_until(lambda: f"being collected by process {collector.pid}" in arctrace("report", self.name).stderr,
                   "report says who collects")
        self.assertEqual(arctrace("stop", self.name).returncode, 0)
        before = self.written()
        self.wait_for_rounds(writer)
        # The writer's thread may have been in a record when the gate was closed.
        least, most = self.written(), before + 1
        self.assertLessEqual(least, most)
        self.end(writer)
        collector.send_signal(signal.SIGINT)
        self.assertEqual(collector.wait(timeout=300), 0)
        read("check", trace)
        self.assertEqual(read_info(trace)["summary"]["lost"], 0)
        self.assertIn(read_info(trace)["summary"]["records"], range(least, most + 1))
        self.assertEqual({r["name"] for r in read_dump(trace, "--type", "INSTANT")}, {"ring"})
        self.assertEqual(arctrace("destroy", self.name).returncode, 0)
        self.assertFalse(path.exists())
        self.assertNotIn(self.name, self.listed())

    def test_a_command_in_a_session_that_is_off(self):
        self.create()
        warning = f"recording is off: arctrace start {self.name} switches it on"
        command = ["record", f"--session={self.name}", "--", "true"]
        self.assertIn(warning, arctrace(*command).stderr)
        arctrace("start", self.name)
        self.assertNotIn("recording is off", arctrace(*command).stderr)

    @cases.in_gate
    def test_classes_are_switched_while_it_runs(self):
        self.create("--mode=overwrite", size="64M")  # large enough that no block is overwritten
        writer = self.writer()
        self.assertEqual(arctrace("ctl", self.name, "--on=events").returncode, 0)
        self.wait_until_written(100)
        self.assertEqual(arctrace("ctl", self.name, "--off=events", "--on=marks").returncode, 0)
        events = self.written()
        self.wait_until_written(events + 100)
        self.assertEqual(arctrace("stop", self.name).returncode, 0)
        self.end(writer)
        types = [r["type"] for r in read_dump(self.name, "--type", "EVENT,INSTANT")]
        change = types.index("INSTANT")
        self.assertGreaterEqual(change, 100)
        # The thread may have been between two records when the gate changed.
        self.assertLessEqual(types[change:].count("EVENT"), 1)
        self.assertIn("nothing", refused("ctl", self.name, "--on=nothing"))

    def test_second_collector_takes_over_from_a_dead_one(self):
        self.create("--start", size="64M")  # space for the time without a collector
        first, second = self.directory / "first", self.directory / "second"
        writer = self.writer()
        collector = self.attach(first)
        self.assertIn("already", refused("attach", self.name, "-o", self.directory / "x"))
        self.wait_until_written(500)
        collector.kill()
        collector.wait()
        self.addCleanup(first.unlink)  # the file is cut off
        collector = self.attach(second)
        self.wait_until_written(self.written() + 500)
        self.end(writer)
        collector.send_signal(signal.SIGTERM)
        self.assertEqual(collector.wait(timeout=300), 0)
        read("check", second)  # this file has all names, though the first one had them too
        self.assertGreater(read_info(second)["summary"]["records"], 100)
        last = max((r["time_ns"] for r in read_dump(first, "--type", "INSTANT")), default=0)
        times = [r["time_ns"] for r in read_dump(second, "--type", "INSTANT")]
        self.assertEqual(len(times), len(set(times)))
        self.assertGreater(times[-1], last)

    def test_ends_when_the_session_is_destroyed(self):
        self.create("--start")
        collector = self.attach(self.directory / "trace")
        self.assertIn("a collector, pid", refused("destroy", self.name))
        listed = self.listed()[self.name]
        self.assertIn("attach", listed["command"])
        self.assertGreater(listed["age_ns"], 0)
        arctrace("ctl", self.name, "-F", "some*", "--off=events", "--high-water=50")
        buffer = read_info(self.name)["buffer"]
        self.assertEqual(buffer["recorded"], "functions, marks, kernel")
        self.assertIn("+some*", buffer["live_filter"])
        self.assertGreater(buffer["high_water_blocks"], 0)
        self.assertEqual(arctrace("destroy", "--force", self.name).returncode, 0)
        self.assertEqual(collector.wait(timeout=300), 0)
        read("check", self.directory / "trace")

    def test_snapshot_of_a_session_without_a_collector(self):
        self.create("--mode=overwrite", "--start")
        writer = self.writer()
        self.wait_until_written(500)
        trace = self.directory / "snapshot"
        done = arctrace("snapshot", self.name, "-o", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        read("check", trace)
        self.assertGreaterEqual(read_info(trace)["summary"]["records"], 500)
        self.end(writer)

    def test_environment_for_programs_that_others_start(self):
        self.create("--start")
        done = arctrace("env", self.name, "-F", "re:^[a-z]*len$", "--libcall")
        self.assertEqual(done.returncode, 0, done.stderr)
        variables = dict(line.split("=", 1) for line in done.stdout.splitlines())
        values = {name: value[1:-1] for name, value in variables.items()}
        self.assertEqual(values["ARCTRACE_OPTIONS"], "libcall=program;filter=re:^[a-z]*len$")
        subprocess.run(["/bin/true"], env={**os.environ, **values}, check=True)
        info = json.loads(arctrace("info", self.name, "--format=json").stdout)
        self.assertEqual([process["executable"] for process in info["processes"]],
                         [os.path.realpath("/bin/true")])
        self.assertEqual(arctrace("env", self.name + "x").returncode, 2)

    def test_patterns_that_nothing_matches(self):
        self.create("--start")
        done = arctrace("record", f"--session={self.name}", "-F", "strlne", "-N", "free", "-L", "libnone*",
                        "-A", "re:^mall", "sh", "-c", "exit 3")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr.splitlines(), [
            'arctrace: warning: no function or scope matches -F strlne; did you mean "strlen"?',
            "arctrace: warning: no function of a module like -L libnone*"])

    def test_patterns_of_cpp_names(self):
        """A C++ name that no program of the session can match is said at the end."""
        source = ("namespace shop { __attribute__((noinline)) int leaf(int n) { return n + 1; } }\n"
                  "int main(int argc, char**) { return shop::leaf(argc) - 2; }\n")
        why = ("arctrace: warning: no function or scope matches -F shop::leaf; it is in the program, but C++ names "
               "match only in programs with libstdc++; try -F _ZN4shop4leafEi\n")
        self.create("--start")
        program = self.directory / "shop"
        for options, said in (((), why), (("-Wl,--no-as-needed", "-lstdc++"), "")):
            subprocess.run(["gcc", "-x", "c++", "-", "-O1", "-finstrument-functions", "-o", program, *options],
                           input=source, text=True, check=True)
            done = arctrace("record", f"--session={self.name}", "-F", "shop::leaf", "--", program)
            self.assertEqual((done.returncode, done.stderr), (0, said))

    def test_options_of_another_buffer(self):
        """Options of buffers are refused on the command line; in the file they are for other recordings."""
        self.create("--start")
        config = self.directory / "config"
        config.write_text("[record]\nbuffer-size=1M\noutput=x\nkernel=require\n", encoding="utf-8")
        done = arctrace("record", "--config", config, f"--session={self.name}", "true")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        refused("record", f"--session={self.name}", "-b", "1M", "true")

    @cases.in_gate
    def test_refusals(self):
        self.create()
        self.assertIn("already", refused("create", self.name))
        for name in (".hidden", "a b", "x" * 65, ""):
            refused("create", name)
        for command in ("start", "stop", "ctl", "destroy", "attach", "snapshot", "recover"):
            refused(command, "no-such-session-anywhere")
        refused("record", "--session=no-such-session-anywhere", "--", "true")
        self.assertIn("no group", refused("create", "other", "--group=no-such-group"))
        notes = self.directory / "notes"
        notes.write_text("not a buffer" * 1000)
        for command in ("attach", "snapshot", "recover", "destroy"):
            refused(command, notes)
        self.assertTrue(notes.exists())

    @unittest.skipIf(SANITIZED, "sanitizers' mlock() does nothing")
    @cases.in_gate
    def test_pinned_sessions(self):
        """A buffer that is shown as pinned is locked in some process, as long as it is shown so."""
        path = self.create("--pin=require")
        keeper, = locking(path)
        self.assertEqual(pathlib.Path(f"/proc/{keeper}/comm").read_text(encoding="ascii"), "arctrace-keeper\n")
        self.assertEqual(os.getsid(keeper), keeper)
        self.assertEqual({os.readlink(fd) for fd in pathlib.Path(f"/proc/{keeper}/fd").iterdir()},
                         {"/dev/null", str(path), "anon_inode:inotify"})
        self.assertTrue(read_info(self.name)["session"]["pinned"])
        os.kill(keeper, signal.SIGINT)  # a terminal does not end it
        collector = self.start_collector()
        self.assertTrue(read_info(self.name)["session"]["pinned"])
        self.end_collector(collector)
        self.assertTrue(read_info(self.name)["session"]["pinned"])
        self.assertEqual(locking(path), [keeper])
        read("destroy", self.name)
        wait_until(lambda: has_ended(keeper), "the keeper ends with its session")

    @unittest.skipIf(SANITIZED, "sanitizers' mlock() does nothing")
    @cases.in_gate
    def test_collectors_pin(self):
        path = self.create()
        self.assertFalse(read_info(self.name)["session"]["pinned"])
        collector = self.start_collector()
        self.assertEqual(locking(path), [collector.pid])
        self.assertTrue(read_info(self.name)["session"]["pinned"])
        self.end_collector(collector)
        self.assertEqual(locking(path), [])
        self.assertFalse(read_info(self.name)["session"]["pinned"])
        self.assertTrue(read_info(self.directory / "collected")["session"]["pinned"])
        collector = self.start_collector("--pin=no")
        self.assertEqual(locking(path), [])
        self.assertFalse(read_info(self.name)["session"]["pinned"])
        self.end_collector(collector)

    @unittest.skipIf(SANITIZED, "sanitizers' mlock() does nothing")
    @cases.in_gate
    def test_a_dead_keeper_pins_nothing(self):
        path = self.create("--pin=auto")
        keeper, = locking(path)
        os.kill(keeper, signal.SIGKILL)
        wait_until(lambda: not read_info(self.name)["session"]["pinned"], "nothing is pinned any more")
        self.assertEqual(locking(path), [])

    @unittest.skipIf(SANITIZED, "sanitizers' mlock() does nothing")
    @cases.in_gate
    def test_a_keeper_that_dies_beside_a_collector(self):
        path = self.create("--pin=auto")
        keeper, = locking(path)
        collector = self.start_collector("--pin=no")
        self.assertTrue(read_info(self.name)["session"]["pinned"])
        os.kill(keeper, signal.SIGKILL)
        wait_until(lambda: not read_info(self.name)["session"]["pinned"], "the collector has nothing pinned")
        self.end_collector(collector)

    @unittest.skipIf(SANITIZED, "sanitizers' mlock() does nothing")
    @unittest.skipIf(os.geteuid() == 0 and shutil.which("setpriv") is None, "no setpriv to drop CAP_IPC_LOCK with")
    @cases.in_gate
    def test_what_cannot_be_pinned(self):
        def limited(*options):
            command = [ARCTRACE, "create", self.name, "-b", "1M", "--block-size", "8k", *options]
            if os.geteuid() == 0:
                command = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", *command]
            return run(*command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536)))

        done = limited("--pin=require")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("RLIMIT_MEMLOCK is 65536", done.stderr)
        self.assertNotIn(self.name, arctrace("list").stdout)
        self.addCleanup(arctrace, "destroy", "--force", self.name)
        done = limited("--pin=try")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("going on with 65536 bytes pinned", done.stderr)
        self.assertEqual(read_info(self.name)["session"]["pinned_bytes"], 65536)

    def start_collector(self, *options):
        collector = start_arctrace("attach", self.name, "-o", self.directory / "collected", *options, text=True,
                                   stderr=subprocess.PIPE)
        self.addCleanup(collector.stderr.close)
        self.addCleanup(collector.kill)
        self.assertIn("collecting session", collector.stderr.readline())
        return collector

    def end_collector(self, collector):
        collector.send_signal(signal.SIGINT)
        self.assertEqual(collector.wait(timeout=300), 0, collector.stderr.read())

    def test_links_are_not_followed(self):
        path = self.create()
        link = path.parent / f"link-{os.getpid()}"
        os.symlink(path, link)
        self.addCleanup(os.unlink, link)
        for command in ("start", "attach", "snapshot"):
            refused(command, link.name)

    @unittest.skipIf(os.geteuid() != 0, "only root can be others")
    def test_others_have_no_access_but_a_group_that_is_named(self):
        library = self.directory / "libarctrace.so.0"
        library.write_bytes(LIBRARY.read_bytes())
        os.chmod(self.directory, 0o755)
        os.chmod(library, 0o755)
        program = support.API.replace(str(LIBRARY), str(library))

        def joins(path, group):
            done = run("setpriv", "--reuid=65534", f"--regid={group}", "--clear-groups", sys.executable, "-c",
                       program + "print(api.arctrace_attach(sys.argv[1].encode()))", path, check=True)
            return int(done.stdout)

        path = self.create()
        self.assertLess(joins(path, 65534), 0)
        arctrace("destroy", self.name)
        path = self.create("--group=games")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o660)
        self.assertLess(joins(path, 65534), 0)
        self.assertEqual(joins(path, path.stat().st_gid), 0)
        os.chmod(path, 0o666)  # anybody may have written to it
        self.assertLess(joins(path, path.stat().st_gid), 0)
        os.chmod(path, 0o660)  # otherwise we refuse it too

    @unittest.skipIf(os.geteuid() != 0, "only root can be others")
    def test_readers_need_no_right_to_write(self):
        command = self.directory / "arctrace"
        command.write_bytes(pathlib.Path(ARCTRACE).read_bytes())
        os.chmod(self.directory, 0o755)
        os.chmod(command, 0o755)
        output = self.directory / "output"
        output.mkdir()
        os.chown(output, 65534, 65534)

        def nobody(group, *arguments):
            return run("setpriv", "--reuid=65534", f"--regid={group}", "--clear-groups", command, *arguments)

        def check_reader(path, group):
            for arguments in (("info", path), ("dump", path), ("report", path), ("check", path),
                              ("snapshot", path, "-o", output / "trace"),
                              ("recover", path, "-o", output / "trace")):
                done = nobody(group, *arguments)
                self.assertEqual(done.returncode, 0, (arguments, done.stderr))
            self.assertGreater(read_info(output / "trace")["summary"]["records"], 0)
            for arguments in (("start", path), ("attach", path, "-o", output / "none"),
                              ("record", f"--session={path}", "--", "true")):
                done = nobody(group, *arguments)
                self.assertEqual(done.returncode, 2, arguments)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

        path = self.create("--mode=overwrite", "--start", "--group=games")
        writer = self.writer()
        self.wait_until_written(100)
        group = path.stat().st_gid
        self.assertEqual(nobody(65534, "info", path).returncode, 2)
        os.chmod(path, 0o640)  # the group may read, and no more
        check_reader(path, group)
        self.end(writer)
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o400)  # the user's own buffer, abandoned
        check_reader(path, 65534)
        os.chown(path, 0, 0)
        for leftover in output.iterdir():
            leftover.unlink()


if __name__ == "__main__":
    cases.main()
