"""Chromium without a window, driven through its own protocol over two pipes; nothing else is needed.

Source: the Chrome DevTools Protocol; ``--remote-debugging-pipe``: messages in JSON, each ended by a NUL.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60.0
INSIDE = ("file:", "about:", "data:")
"""Addresses that need no network."""


def find_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page. ``complaints``: errors and warnings of its console, and what it tried to load."""

    def __init__(self, program: str, profile: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        flags += ["--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={profile}"]

        def place_pipes() -> None:  # Chromium reads from 3 and writes to 4
            high = [os.dup(fd) for fd in (to_browser, from_browser)]
            high = [fd if fd > 4 else os.dup2(fd, 20 + k) for k, fd in enumerate(high)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [program, *flags, "about:blank"],
            preexec_fn=place_pipes,
            close_fds=False,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number = b"", 0
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session = None
        try:
            self.send("Browser.close")
        except (TimeoutError, OSError):
            self._process.kill()
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)

    # ---- The protocol

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; what happens meanwhile is noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("Chromium does not answer")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        about = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(about["exceptionDetails"]))
            case "Log.entryAdded" if about["entry"]["level"] in ("warning", "error"):
                self.complaints.append(about["entry"]["text"])
            case "Runtime.consoleAPICalled" if about["type"] in ("warning", "error", "assert"):
                self.complaints.append(json.dumps(about["args"]))
            case "Network.requestWillBeSent" if not about["request"]["url"].startswith(
                ("file:", "about:", "data:")
            ):
                self.complaints.append(f"loads {about['request']['url']}")

    # ---- What a person does

    def open(self, page: Path) -> None:
        """Open a report and wait until its scripts have drawn it."""
        self.send("Page.navigate", url=page.resolve().as_uri())
        end = time.monotonic() + PATIENCE
        while not self.evaluate("document.body?.dataset.ready === 'yes'"):
            assert time.monotonic() < end and not self.complaints, self.complaints or "never ready"
            time.sleep(0.05)

    def show(self, page: Path) -> None:
        """Open any page and wait until it is loaded."""
        self.send("Page.navigate", url=page.resolve().as_uri())
        end = time.monotonic() + PATIENCE
        while self.evaluate("document.readyState") != "complete" and time.monotonic() < end:
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def resize(self, width: int, height: int = 900) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """``light`` or ``dark``."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def click(self, x: float, y: float, *, shift: bool = False) -> None:
        where = {"x": x, "y": y, "button": "left", "clickCount": 1, "modifiers": 8 if shift else 0}
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, **where)

    def press(self, key: str, code: int = 0) -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def screenshot(self, path: Path, selector: str = "html") -> None:
        """Write a picture of an element of the page."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y, width, height = self.evaluate(
            f"(b => [b.x + scrollX, b.y + scrollY, b.width, b.height])({box})"
        )
        clip = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(answer["data"]))

    def view(self, path: Path) -> None:
        """Write a picture of what the window shows."""
        answer = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))
