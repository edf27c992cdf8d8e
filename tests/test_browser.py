"""The report and JupyterLab in a browser: opened from disk with the network off, read, clicked through, run."""

import re
import shutil
import subprocess
import sys
import time

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium of the distribution")
WIDE, NARROW = 1280, 390

# Elements that stick out of the window on the right and cannot be scrolled into view: text that runs off the page.
OVERFLOWING = """() => [...document.querySelectorAll("body *")].filter(element => {
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height || box.right <= innerWidth + 1 || box.left >= innerWidth) return false;
    for (let outer = element.parentElement; outer; outer = outer.parentElement)
        if (["auto", "scroll", "hidden"].includes(getComputedStyle(outer).overflowX)) return false;
    return true;
}).map(element => `${element.tagName}: ${element.textContent.slice(0, 80)}`)"""
# Invisible tables, and pictures that were not drawn.
UNSEEN = """() => [
    ...[...document.querySelectorAll("article table:has(th, td)")].filter(table => !table.checkVisibility()),
    ...[...document.querySelectorAll("article img")].filter(image => !image.checkVisibility() || !image.naturalWidth),
    ...[...document.querySelectorAll("article .figure svg")].filter(picture => !picture.getBoundingClientRect().width),
].filter(element => !element.closest("details:not([open])")).map(element => element.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def window(chromium):
    """A wide window without a network, which keeps the addresses it requests in `asked`."""
    context = chromium.new_context(viewport={"width": WIDE, "height": 900}, offline=True)
    page = context.new_page()
    page.asked = []
    page.on("request", lambda request: page.asked.append(request.url))
    yield page
    context.close()


@pytest.fixture
def site(finished_study):
    """The report of a tiny study."""
    return finished_study.outputs / "report"


def test_no_page_asks_the_network_or_runs_out_of_its_window(window, site):
    pages = sorted(site.glob("*.html"))
    assert len(pages) > 20
    for path in pages:
        window.goto(path.as_uri())
        for width in (WIDE, NARROW):
            window.set_viewport_size({"width": width, "height": 900})
            window.evaluate("scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")  # smooth takes a second
            assert window.evaluate(OVERFLOWING) == [], (path.name, width)
            assert window.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path.name, width)
            assert window.evaluate(UNSEEN) == [], (path.name, width)
    assert window.asked and not [address for address in window.asked if not address.startswith(("file:", "data:"))]


def test_from_a_table_to_its_page_and_from_our_number_to_its_run(window, finished_study):
    window.goto((finished_study.outputs / "report" / "04_printed_numbers.html").as_uri())
    window.get_by_role("main").get_by_role("link", name="lee-4", exact=True).first.click()
    assert window.url.endswith("40_biobert.html")
    window.locator("table a", has_text="±").first.click()
    assert re.search(r"30_finetune_words--bert-\w+--lee--tagging\.html$", window.url)
    window.get_by_role("heading", name="Training and testing, every seed").wait_for()
    window.locator("article .figure svg").first.wait_for()  # the curve


def test_the_menu_and_the_search_lead_to_pages(window, finished_study):
    window.goto((finished_study.outputs / "report" / "index.html").as_uri())
    menu = window.get_by_role("complementary").first
    menu.get_by_role("link", name="What is easily missed, and what could we not do?").click()
    assert window.url.endswith("94_lessons.html")
    menu.get_by_role("link", name="What did the study find?").click()
    assert window.url.endswith("index.html")
    window.locator("input.sidebar-search").fill("undecided")
    window.keyboard.press("Enter")
    results = window.locator("#search-results li a")
    results.first.wait_for()
    results.first.click()
    window.wait_for_url(re.compile(r"/(?!search)\w+\.html"))
    window.locator("article", has_text="undecided").wait_for()


def test_pages_can_be_read_by_screen_readers_and_keyboards(window, site):
    """axe-core finds no violation of its rules on a page of each kind."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-playwright-python").Axe()
    kinds = ("index", "12_datasets", "20_*--*", "30_*--*", "40_biobert", "90_audit", "91_protocols")
    for path in (next(site.glob(f"{kind}.html")) for kind in kinds):
        window.goto(path.as_uri())
        broken = axe.run(window).response["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in broken] == [], path.name


def test_a_long_table_sorts_and_filters(window, site):
    window.goto((site / "12_datasets.html").as_uri())
    sizes = window.locator(".dt-container", has=window.get_by_role("columnheader", name="instances"))
    sizes.wait_for()
    numbers = sizes.locator("tbody td:nth-child(4)")
    before = numbers.all_inner_texts()
    for descending in (False, True):
        sizes.get_by_role("columnheader", name="instances").click()
        playwright.expect(numbers).to_have_text(sorted(before, key=int, reverse=descending))
    sizes.get_by_role("searchbox").fill("ncbi-disease")
    playwright.expect(sizes.locator("tbody tr").filter(has_not_text="ncbi-disease")).to_have_count(0)
    assert sizes.locator("tbody tr").count()


def test_a_notebook_runs_in_jupyterlab(chromium, study):
    """Choose Run All as a person would; requests go only to the server on this machine."""
    notebook = study.folder / "notebooks" / "40_biobert.ipynb"
    table = study.outputs / "tables" / "lee-4.csv"
    table.unlink()
    options = ["--no-browser", "--allow-root", "--port=0", "--IdentityProvider.token=once"]
    command = [sys.executable, "-m", "jupyterlab", *options]
    with open(study.folder / "lab.log", "w") as log:
        server = subprocess.Popen(command, cwd=study.folder, env=study.environment, stdout=log, stderr=log)
    try:
        address = wait_for_address(study.folder / "lab.log", server)
        window = chromium.new_page(viewport={"width": WIDE, "height": 900})
        window.set_default_timeout(180_000)
        requests = []
        window.on("request", lambda request: requests.append(request.url))
        window.goto(f"{address}/lab/tree/notebooks/{notebook.name}?token=once")
        window.get_by_text("| Idle").wait_for()  # the kernel; before it is there, JupyterLab asks which to use
        window.get_by_role("menuitem", name="Run", exact=True).click()
        window.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        settings = window.locator(".jp-OutputArea-output table", has_text="weight decay")  # output of the last cell
        settings.last.wait_for()
        assert table.exists()
        allowed = (address, address.replace("http", "ws"), "data:", "blob:")
        assert requests and not [url for url in requests if not url.startswith(allowed)]
        window.close()
    finally:
        server.terminate()
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:  # it is waiting for its kernel
            server.kill()
            server.wait()


def wait_for_address(log, server) -> str:
    """Wait until JupyterLab listens, and return its address."""
    for _ in range(180):
        if match := re.search(r"(http://(?:localhost|127\.0\.0\.1):\d+)/lab", log.read_text()):
            return match[1]
        assert server.poll() is None, log.read_text()
        time.sleep(1)
    raise AssertionError(f"JupyterLab did not start: {log.read_text()}")
