#!/usr/bin/env python3
"""Opens a report in headless Chromium and uses it as a reader would: pointer, keyboard, links.

Usage: check_page.py BROWSER PAGE.html HOSTILE.json [SCREENSHOT_FOLDER]
HOSTILE.json lists texts that must be seen letter by letter. Speaks the DevTools protocol over a pipe: no port, no
network. Prints what does not hold and exits 1.
"""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

browser, page, hostile = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), json.load(open(sys.argv[3]))
pictures = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None


class Refused(Exception):
    """The browser did not do what it was told."""


class Chromium:
    """One page; commands go out on descriptor 3, answers come in on 4, each ended by a zero byte."""

    def __init__(self, profile):
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()

        def wire():
            os.dup2(to_read, 3)
            os.dup2(from_write, 4)

        # Above 4, so that neither is closed by the other's dup2.
        to_read, from_write = self.move(to_read), self.move(from_write)
        self.process = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND",
             "--force-color-profile=srgb", "about:blank"],
            preexec_fn=wire, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.events, self.last, self.session = b"", [], 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    @staticmethod
    def move(descriptor):
        import fcntl
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
        os.close(descriptor)
        return moved

    def receive(self):
        while b"\0" not in self.buffer:
            chunk = os.read(self.from_read, 1 << 16)
            if not chunk:
                sys.exit("the browser ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise Refused(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for(f"document.readyState === 'complete' && location.href === {json.dumps(path.as_uri())}", "the page")

    def wait_for(self, expression, what):
        for _ in range(600):
            try:
                if self.js(expression):
                    return
            except Refused:  # between two pages there is none to ask
                pass
            time.sleep(0.05)
        sys.exit(f"does not come about: {what}")

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise Refused(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def move_pointer(self, selector):
        box = self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView();"
                      "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
        return box

    def click(self, selector):
        x, y = self.move_pointer(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key, text=""):
        code = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowRight": 39, "ArrowDown": 40}[key]
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, name):
        if pictures:
            data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
            (pictures / name).write_bytes(base64.b64decode(data))


def names(chromium):
    return chromium.js("[...document.querySelectorAll('#scores tbody tr')].map(r => r.cells[0].textContent)")


def visible(chromium, tip):
    return chromium.js(f"getComputedStyle(document.getElementById({json.dumps(tip)})).display") != "none"


def check(holds, what):
    if not holds:
        sys.exit(f"does not hold: {what}")


def check_sorting(chromium):
    given = names(chromium)
    check(len(given) >= 3, "at least three rows")
    value = "thead th:nth-child(2)"
    keys = "[...document.querySelectorAll('#scores tbody tr')].map(r => r.cells[1].dataset.v)"
    as_given = chromium.js(keys)
    filled = sorted((float(v) for v in as_given if v is not None), reverse=True)
    chromium.click(f"{value} button")
    check(chromium.js(f"document.querySelector('{value}').ariaSort") == "descending", "a click sorts, best first")
    now = chromium.js(keys)
    check([float(v) for v in now if v is not None] == filled, f"rows in order of values: {now}")
    check(all(v is None for v in now[len(filled):]), "rows without a value last")
    chromium.press("Enter", "\r")
    check([float(v) for v in chromium.js(keys) if v is not None] == filled[::-1], "Enter turns the order round")
    check(all(v is None for v in chromium.js(keys)[len(filled):]), "rows without a value stay last")
    chromium.click("thead th:first-child button")
    check(names(chromium) == sorted(given), f"by name: {names(chromium)}")


def check_tips(chromium):
    cell = "#scores tbody tr[data-i='0'] td.value"
    tip = chromium.js(f"document.querySelector(\"{cell}\").getAttribute('aria-describedby')")
    check(not visible(chromium, tip), "a tip is hidden at first")
    chromium.move_pointer(cell)
    check(visible(chromium, tip), "the pointer shows a cell's tip")
    text = chromium.js(f"document.getElementById('{tip}').innerText")
    for part in ("95 % interval", "items scored", "weights", "prompts", "numerics"):
        check(part in text, f"the tip says {part}: {text}")
    chromium.picture("hover.png")
    chromium.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    check(not visible(chromium, tip), "the tip goes with the pointer")
    chromium.js(f"document.querySelector(\"{cell}\").focus()")
    check(visible(chromium, tip), "focus shows the tip")
    chromium.press("ArrowDown")
    check(not visible(chromium, tip), "the tip goes with the focus")
    check(chromium.js("document.activeElement.matches('td.value')"), "an arrow key moves to another cell")
    chromium.press("Escape")
    check(chromium.js("document.activeElement === document.body"), "Escape closes")


def check_links(chromium):
    link = "#scores tbody tr[data-i='0'] td.value a"
    chromium.js(f"document.querySelector(\"{link}\").closest('td').focus()")
    chromium.press("Tab")
    check(chromium.js(f"document.activeElement === document.querySelector(\"{link}\")"), "Tab reaches the link of a tip")
    chromium.press("Enter", "\r")
    target = chromium.js(f"document.querySelector(\"{link}\").hash")
    check(target.startswith("#samples-"), f"it leads to samples: {target}")
    chromium.wait_for(f"document.querySelector('{target}').open", "the samples of a link open")


def check_text(chromium):
    shown = chromium.js("document.body.textContent")
    for text in hostile:
        check(text in shown, f"shown as it is: {text!r}")
    check(chromium.js("document.querySelectorAll('img, iframe, object, link, base, form, svg').length") == 0,
          "no element but ours")
    check(chromium.js("document.scripts.length") == 1 and chromium.js("document.styleSheets.length") == 1,
          "one script, one style")
    check(chromium.js("window.stolen === undefined"), "nothing of the text ran")


def check_network(chromium):
    asked = [event["params"]["request"]["url"] for event in chromium.events
             if event.get("method") == "Network.requestWillBeSent"]
    check(all(url.startswith("file:") or url == "about:blank" for url in asked), f"no network: {asked}")
    said = [event["params"] for event in chromium.events
            if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]
    check(not said, f"a quiet console: {said}")


def main():
    with tempfile.TemporaryDirectory() as profile:
        chromium = Chromium(profile)
        try:
            chromium.open(page)
            chromium.picture("light.png")
            check_text(chromium)
            check_sorting(chromium)
            check_tips(chromium)
            check_links(chromium)
            chromium.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
            check(chromium.js("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)", "dark")
            chromium.picture("dark.png")
            # A policy that holds: what the page did not come with does not run.
            chromium.js("document.body.insertAdjacentHTML('beforeend', '<p id=late onclick=\"window.stolen = 1\">')")
            chromium.js("document.getElementById('late').click()")
            check(chromium.js("window.stolen === undefined"), "the policy stops what is not ours")
            chromium.events = [e for e in chromium.events if "Content Security Policy" not in json.dumps(e)]
            check_network(chromium)
        except Refused as refused:
            sys.exit(str(refused))
        finally:
            chromium.process.kill()
            chromium.process.wait()


main()
