"""A marketd for each test: copy this file beside your tests. MARKETD names the program."""
import json, os, subprocess, time, urllib.request
import pytest
AT = 1795338000000  # what its clock shows at the start: 2026-11-22T09:00:00Z
PROGRAM = os.environ.get("MARKETD", "marketd")

class Marketd:
    def __init__(self, folder, demo):
        self.file, config, self.addresses = (folder / name for name in ("script", "config", "addresses"))
        self.script()
        source = {"dialect": "demo", "pollMs": 100, "staleAfterMs": 1000}
        demo = {"script": str(self.file), "at": AT, **demo}
        config.write_text(json.dumps({"listen": "127.0.0.1:0", "data": ":memory:", "sources": [source],
                                      "demo": demo, "limits": {"backoffMaxMs": 1000, "lingerMs": 10}}))
        self.process = subprocess.Popen([PROGRAM, "--config", config, "--address-file", self.addresses])
    def await_ready(self):
        while not self.addresses.exists():
            assert self.process.poll() is None, "marketd has ended"
            time.sleep(0.01)
        self.url = json.loads(self.addresses.read_text())["listen"]
        subprocess.run([PROGRAM, "healthcheck", "--wait", "30", self.url], check=True)
    def script(self, **members):
        self.file.write_text(json.dumps(members))
    def get(self, target):
        return json.load(urllib.request.urlopen(self.url + target))
    def wait(self, target, holds, seconds=30):
        until = time.monotonic() + seconds
        while not holds(body := self.get(target)):
            assert time.monotonic() < until, body
            time.sleep(0.01)
        return body

@pytest.fixture
def marketd(tmp_path, request):
    marketd = Marketd(tmp_path, getattr(request, "param", {}))
    try:
        marketd.await_ready()
        yield marketd
    finally:
        marketd.process.terminate(), marketd.process.wait()
