#!/usr/bin/env python3
"""A collector that is killed: what the next one writes, what is recovered, and snapshots of a
buffer that is drained are good files, in which everything has its name if a file has it."""

import collections
import os
import pathlib
import signal
import subprocess
import sys

import attack
from command import arctrace, read, read_dump, start_arctrace
from support import API
from tracing import TracedTest

# Threads that come and go, each with a name of its own and records under it.
WRITER = API + """
def work(number):
    ring = name(f"ring {number}")
    for _ in range(3000): api.arctrace_instant(ring)
for line in sys.stdin:
    first = int(line)
    threads = [threading.Thread(target=work, args=(first + i,)) for i in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print("done", flush=True)
"""
ROUNDS = 4 if os.environ.get("ARCTRACE_SANITIZE") else 12


class TakeoverTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.session = self.directory / "session"
        done = arctrace("create", self.session, "--start", "-b", "16M", "--block-size=8k")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.written = 0

    def write(self, program):
        program.stdin.write(f"{self.written * 3}\n")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), "done\n")
        self.written += 1

    def attach(self, name, *options):
        collector = start_arctrace("attach", self.session, "-o", self.directory / name, *options,
                                   stderr=subprocess.PIPE, text=True)
        self.assertIn("collecting", collector.stderr.readline())
        return collector

    def names(self, *files):
        """How many records of INSTANT these files have, by name."""
        return collections.Counter(r["name"] for file in files for r in
                                   read_dump(self.directory / file, "--type=INSTANT"))

    def test_killed_collectors(self):
        with subprocess.Popen([sys.executable, "-c", WRITER], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "ARCTRACE_SESSION": str(self.session)}) as program:
            definitions = ()
            for turn in range(ROUNDS):
                collector = self.attach(f"{turn}.data", *definitions)
                self.write(program)
                snapshot = arctrace("snapshot", self.session, "-o",
                                    self.directory / f"snapshot{turn}")
                self.assertEqual(snapshot.returncode, 0, snapshot.stderr)
                collector.kill()
                collector.communicate()
                self.write(program)
                definitions = (f"--definitions={self.directory / f'{turn}.data'}",)
            recovered = arctrace("recover", self.session, "-o", self.directory / "recovered",
                                 *definitions)
            self.assertEqual(recovered.returncode, 0, recovered.stderr)
            # Alone, without the names that other files have, it is still a good file.
            bare = arctrace("recover", self.session, "-o", self.directory / "bare")
            self.assertEqual(bare.returncode, 0, bare.stderr)
            program.stdin.close()
        found = self.names(*(f"{turn}.data" for turn in range(ROUNDS)), "recovered")
        # A collector that is killed between writing a block and freeing it leaves the block to the
        # next one too: at most one block each, of the same handout (COL-7).
        self.assertGreaterEqual(found.total(), 2 * ROUNDS * 3 * 3000)
        self.assertLessEqual(found.total(), 2 * ROUNDS * 3 * 3000 + ROUNDS * 8192 // 8)
        # Only the file of a collector that was killed before it copied a name may lack it; the
        # next one's has it.
        self.assertLessEqual({key for key in found if not key.startswith("name#")},
                             {f"ring {i}" for i in range(2 * ROUNDS * 3)})
        self.assertEqual([key for key in self.names("recovered") if key.startswith("name#")], [])
        for turn in range(ROUNDS):
            read("check", self.directory / f"snapshot{turn}")
        read("check", self.directory / "recovered")
        read("check", self.directory / "bare")
        for turn in range(ROUNDS):  # they were cut off, which check says
            done = arctrace("check", self.directory / f"{turn}.data")
            rules = [line.split()[0] for line in done.stdout.splitlines()[:-1]]
            self.assertIn("F6", rules, done.stdout)
            # Half a chunk (F5), and no definitions of the last second, which the next collector's
            # file has (COL-1 (f)).
            self.assertLessEqual(set(rules), {"F5", "F6", "R7", "D4"}, done.stdout)
            (self.directory / f"{turn}.data").unlink()


class RespawnTest(TakeoverTest):
    def test_killed_collectors(self):
        """With --respawn, killing the collector's process ends nothing."""
        supervisor = self.attach("out", "--respawn")
        with subprocess.Popen([sys.executable, "-c", WRITER], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "ARCTRACE_SESSION": str(self.session)}) as program:
            for turn in range(3):
                self.write(program)
                children = pathlib.Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children")
                os.kill(int(children.read_text()), signal.SIGKILL)
                self.assertIn(f"another one goes on in {self.directory}/out.{turn + 1}",
                              supervisor.stderr.readline())
                self.assertIn("collecting", supervisor.stderr.readline())
            self.write(program)
            program.stdin.close()
        supervisor.send_signal(signal.SIGTERM)
        errors = supervisor.communicate(timeout=600)[1]
        self.assertEqual(supervisor.returncode, 0, errors)
        files = ["out", "out.1", "out.2", "out.3"]
        found = self.names(*files)
        self.assertGreaterEqual(found.total(), 4 * 3 * 3000)
        self.assertLessEqual(found.total(), 4 * 3 * 3000 + 3 * 8192 // 8)
        read("check", self.directory / "out.3")
        for file in files[:-1]:  # cut off
            (self.directory / file).unlink()


if __name__ == "__main__":
    attack.main()
