"""Measure pages of the built site on a slow phone: 4 × slower processor, 1.4 Mbit/s, 560 ms.

make bench-site                                    the landing page, rotation and orthogonality
python website/bench.py book/rotation.html …       some of the pages

The median of three visits with an empty cache: requests and bytes, as a usual server compresses;
the first text, the formulas of the first screen set in their two fonts, and the time that long
tasks block the page. Layout shift is the browser's own sum, the largest of the three.
"""

import statistics
import sys

from playwright.sync_api import Browser, sync_playwright

from website.browser import start_browser
from website.built_site import SIZES_OF_FILES, serve

VISITS = 3
DEFAULT = "index", "rotation", "orthogonality"
# Notes while the page loads, because a browser tells of long tasks and shifts as they happen.
WATCH = """() => {
  window.measured = { text: 0, maths: 0, blocked: 0, shift: 0 };
  const note = (type, add) => new PerformanceObserver((list) => list.getEntries().forEach(add))
    .observe({ type, buffered: true });
  note("paint", (e) => { if (e.name === "first-contentful-paint") measured.text = e.startTime; });
  note("longtask", (e) => { measured.blocked += Math.max(0, e.duration - 50); });
  note("layout-shift", (e) => { if (!e.hadRecentInput) measured.shift += e.value; });
  const look = () => {
    const formulas = [...document.querySelectorAll(".bd-article .math")].filter((formula) =>
      formula.checkVisibility() && formula.getBoundingClientRect().top < innerHeight);
    const set = formulas.every((formula) => formula.querySelector("mjx-math"));
    const filled = measured.text && document.documentElement.scrollHeight > 2 * innerHeight;
    const fonts = ["MJXTEX", "MJXTEX-I"].every((name) => document.fonts.check(`1em ${name}`));
    if (filled && set && fonts) measured.maths = performance.now();
    else setTimeout(look, 50);
  };
  look();
}"""


def measure(browser: Browser, address: str) -> dict[str, float]:
    """One visit with an empty cache."""
    with browser.new_page(viewport={"width": 390, "height": 844}) as page:
        page.add_init_script(f"({WATCH})()")
        devtools = page.context.new_cdp_session(page)
        devtools.send("Network.enable")
        throughput = {"downloadThroughput": 1.4e6 / 8, "uploadThroughput": 0.7e6 / 8}
        limits = {"offline": False, "latency": 560, **throughput}
        devtools.send("Network.emulateNetworkConditions", limits)
        devtools.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        page.goto(address)
        page.wait_for_function("measured.maths", timeout=90_000)
        page.wait_for_timeout(6000)  # what comes later may block and shift too
        measured: dict[str, float] = page.evaluate("measured")
        sizes = [size for size, _ in page.evaluate(SIZES_OF_FILES)]
        return measured | {"requests": len(sizes), "bytes": sum(sizes)}


def main() -> None:
    print("page                          requests  kB gz  text  maths  blocked  shift")
    with sync_playwright() as playwright, serve() as url, start_browser(playwright) as browser:
        for name in sys.argv[1:] or [f"book/{name}.html" for name in DEFAULT]:
            visits = [measure(browser, url + name) for _ in range(VISITS)]
            usual = {what: statistics.median(one[what] for one in visits) for what in visits[0]}
            print(
                f"{name:30} {usual['requests']:7.0f} {usual['bytes'] / 1000:6.0f}"
                f" {usual['text'] / 1000:5.1f} {usual['maths'] / 1000:6.1f}"
                f" {usual['blocked'] / 1000:8.2f} {max(one['shift'] for one in visits):6.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
