"""The report in a real browser: charts draw, nothing is wrong, on a desktop and on a phone.

The page runs in headless Chromium inside a frame of the wanted width, with a probe added to it that
looks at every chart, plays with the controls, and sends what it found to the surrounding page.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mmes.lab.report import write_report

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed (Debian package: chromium)"
)

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--allow-file-access-from-files", "--virtual-time-budget=60000", "--dump-dom",
)  # fmt: skip

LISTEN = """<script>
window.wrong = [];
addEventListener("error", (e) => wrong.push(e.message));
addEventListener("unhandledrejection", (e) => wrong.push(String(e.reason)));
for (const name of ["error", "warn"]) {
  console[name] = (...words) => wrong.push(words.join(" "));
}
</script>"""

PROBE = """<script>
(async () => {
  const pause = (ms = 60) => new Promise((go) => setTimeout(go, ms));
  const found = { wrong };
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  const figures = [...document.querySelectorAll("figure.chart")];
  for (const figure of figures) {
    figure.scrollIntoView({ behavior: "instant" });
    for (let k = 0; k < 50 && !figure.querySelector("svg"); k += 1) await pause(20);
  }
  figures[0].scrollIntoView({ behavior: "instant" });
  await pause(100);
  found.charts = figures.length;
  found.drawn = figures.filter((f) => [...f.querySelectorAll("path.curve")]
    .some((p) => (p.getAttribute("d") || "").length > 20)).length;
  found.bad = [...document.querySelectorAll("path, circle, line, text")].filter((e) =>
    [...e.attributes].some((a) => /NaN|Infinity|undefined/.test(a.value))).length;
  found.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  found.wide = figures.filter((f) => f.getBoundingClientRect().width > innerWidth).length;
  const first = figures[0];
  const svg = first.querySelector("svg"), box = svg.getBoundingClientRect();
  const curves = () => first.querySelectorAll("path.curve").length;
  const labels = () => [...first.querySelectorAll("svg text")].map((t) => t.textContent).join("|");
  const mouse = (name, share) => svg.dispatchEvent(new PointerEvent(name, { pointerType: "mouse",
    clientX: box.left + 62 + share * (box.width - 74), clientY: box.top + 50 }));
  mouse("pointermove", 0.5);
  found.tip = first.querySelector(".tip").textContent;
  const before = labels();
  mouse("pointerdown", 0.2); mouse("pointermove", 0.6); mouse("pointerup", 0.6);
  found.zoomed = labels() !== before;
  svg.dispatchEvent(new MouseEvent("dblclick"));
  found.reset = labels() === before;
  const tools = first.querySelectorAll(".tools button");
  tools[0].click(); found.toggled = labels() !== before; tools[0].click();
  const entry = first.querySelector(".legend button"), all = curves();
  entry.click(); found.hidden = all - curves();
  entry.click(); found.shown = curves() === all;
  const link = document.querySelector("table.numbers a");
  if (link) {
    document.querySelectorAll("details").forEach((d) => { d.open = false; });
    link.click(); await pause(1500);
    const target = document.getElementById(link.getAttribute("href").slice(1));
    found.opened = target.open && target.parentElement.closest("details").open;
    found.reached = Math.abs(target.getBoundingClientRect().top) < innerHeight;
  }
  parent.postMessage(JSON.stringify(found), "*");
})().catch((e) => parent.postMessage(JSON.stringify({ wrong: [String(e)] }), "*"));
</script>"""

FRAME = """<!DOCTYPE html><html><body style="margin:0">
<iframe src="probed.html" style="border:0;width:WIDTHpx;height:900px"></iframe>
<script>addEventListener("message", (e) => { document.body.dataset.found = e.data; });</script>
</body></html>"""


def probe(report: Path, width: int, folder: Path) -> dict:
    """Open the report at a width and return what the probe found."""
    text = report.read_text(encoding="utf-8")
    text = text.replace("<style>", LISTEN + "<style>", 1).replace("</body>", PROBE + "</body>", 1)
    (folder / "probed.html").write_text(text, encoding="utf-8")
    (folder / "frame.html").write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM,
            *FLAGS,
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={max(width, 600)},900",
            (folder / "frame.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    data = re.search(r'data-found="(.*?)"', done.stdout)
    assert data is not None, f"the probe never answered: {done.stdout[:500]} {done.stderr[-500:]}"
    return json.loads(html.unescape(data.group(1)))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", ["comparison_folder", "reproduction_folder", "single_folder"])
def test_the_report_works(kind, width, request, tmp_path):
    report = write_report(request.getfixturevalue(kind))
    found = probe(report, width, tmp_path)
    assert found["wrong"] == []
    assert found["charts"] > 0
    assert found["drawn"] == found["charts"]
    assert (found["bad"], found["overflow"], found["wide"]) == (0, 0, 0)
    assert "→" in found["tip"]
    assert found["zoomed"]
    assert found["reset"]
    assert found["toggled"]
    assert found["hidden"] > 0
    assert found["shown"]
    if kind != "single_folder":
        assert found["opened"]
        assert found["reached"]
