"""A headless Chromium, driven through its debugging protocol: just what the tests of the page need."""

import base64
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.request

CHROMIUM = shutil.which("chromium")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1400,900")
SECONDS = 300  # how long to wait for what hangs; a busy machine is slow


class Socket:
    """The client's side of a WebSocket, of text messages."""

    def __init__(self, url):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.split(":")
        self.stream = socket.create_connection((name, int(port)), timeout=SECONDS)
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.reader = self.stream.makefile("rb")
        if b" 101 " not in self.reader.readline():
            raise RuntimeError("no WebSocket")
        while self.reader.readline() not in (b"\r\n", b""):
            pass

    def send(self, text):
        data = text.encode()
        head = bytes([0x81])
        if len(data) < 126:
            head += bytes([0x80 | len(data)])
        elif len(data) < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack("!H", len(data))
        else:
            head += bytes([0x80 | 127]) + struct.pack("!Q", len(data))
        self.stream.sendall(head + bytes(4) + data)  # a mask of zeros

    def receive(self):
        whole = b""
        while True:
            first, second = self.reader.read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self.reader.read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self.reader.read(8))
            whole += self.reader.read(size)
            if first & 0x80:
                return whole.decode()

    def close(self):
        self.stream.close()


class Browser:
    """One page. `problems`: errors of scripts, and what the console and the log complain of."""

    def __init__(self, directory):
        self.profile = pathlib.Path(directory) / "profile"
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [CHROMIUM, *FLAGS, f"--user-data-dir={self.profile}", "--remote-debugging-port=0",
             "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        try:
            self.socket = Socket(self._page())
        except BaseException:
            self._kill()
            raise
        self.ids = itertools.count(1)
        self.problems = []
        for domain in ("Runtime", "Page", "Log"):
            self.call(domain + ".enable")

    def _page(self):
        port_file = self.profile / "DevToolsActivePort"
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                port = int(port_file.read_text().splitlines()[0])
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=SECONDS) as answer:
                    for target in json.load(answer):
                        if target["type"] == "page":
                            return target["webSocketDebuggerUrl"]
            except (OSError, IndexError, ValueError):
                pass
            time.sleep(0.05)
        raise RuntimeError("Chromium did not start")

    def call(self, method, **values):
        number = next(self.ids)
        self.socket.send(json.dumps({"id": number, "method": method, "params": values}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message):
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(values["exceptionDetails"])[:2000])
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(values["args"])[:2000])
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.problems.append(values["entry"]["text"] + " " + values["entry"].get("url", ""))

    def run(self, expression):
        """The value of an expression; a promise is awaited."""
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(json.dumps(done["exceptionDetails"])[:2000])
        return done["result"].get("value")

    def wait(self, expression):
        """Waits until the expression is true."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if self.run(f"Boolean({expression})"):
                return
            time.sleep(0.05)
        raise AssertionError(f"never true: {expression}; {self.problems}")

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def key(self, key, modifiers=0):
        """Presses a key, as KeyboardEvent.key names it."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        for kind, extra in (("keyDown", text), ("keyUp", {})):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers,
                      windowsVirtualKeyCode=code.get(key, 0), **extra)

    def mouse(self, kind, x, y, **values):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **values)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def screenshot(self, path):
        picture = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(picture))

    def _kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # its children are in its session
        self.process.wait()

    def close(self):
        self.socket.close()
        self._kill()
