"""The report from what is on disk, and its page in a real Chromium: seen, pressed, printed, judged."""

import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from browser import find_chromium, open_browser
from history_kit import HOSTILE, NOW, fill, make_doctor_report, make_report_snapshot
from png_kit import read_pixels
from report_kit import make_page, read_text
from worker_kit import wait_for

from mpsbar.history.report import build
from mpsbar.system import paths

AXE = Path(sys.prefix) / "axe.min.js"
ALLOCATED = {"light": (0, 103, 177), "dark": (90, 176, 255)}
BACK = {"light": (255, 255, 255), "dark": (20, 23, 28)}


@pytest.fixture(scope="module")
def browser():
    if find_chromium() is None:
        pytest.skip("no Chromium")
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(make_page(), encoding="utf-8")
    return file


@pytest.fixture
def seen(browser, page):
    browser.set_viewport(1200)
    browser.open(page)
    return browser


def test_a_week_of_twenty_workers_is_small(private, monkeypatch):
    """How long it takes: make bench ARGS=report."""
    fill(paths.history_file())
    monkeypatch.setattr(build.time, "time", lambda: NOW)
    text = build.make_report(make_report_snapshot(), make_doctor_report())
    assert len(text.encode()) < 2_000_000
    assert text.count('<figure class="chart"') == 2 * 21
    assert "Last 7 days" in read_text(text)


def test_a_history_that_can_not_be_read_is_not_called_empty(private):
    assert "Nothing has been recorded yet" in build.make_report(make_report_snapshot(), None)
    paths.history_file().parent.mkdir(parents=True, exist_ok=True)
    paths.history_file().write_text("this is no database, but it has a header" * 100)
    page = build.make_report(make_report_snapshot(), None)
    assert "can't be read: file is not a database" in read_text(page)
    assert "Nothing has been recorded yet" not in page


def test_a_history_that_is_damaged_further_on_is_not_called_empty_either(private):
    paths.history_file().parent.mkdir(parents=True, exist_ok=True)
    paths.history_file().touch()
    assert "can't be read: no such table" in read_text(
        build.make_report(make_report_snapshot(), None)
    )
    paths.history_file().unlink()
    fill(paths.history_file())
    with sqlite3.connect(paths.history_file()) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with paths.history_file().open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (paths.history_file().stat().st_size - 8192))
    page = build.make_report(make_report_snapshot(), None)
    assert "can't be read: database disk image is malformed" in read_text(page)
    assert "Nothing has been recorded yet" not in page


def test_it_is_written_for_this_user_alone(private):
    file = build.write_report(make_report_snapshot(), None)
    assert file == paths.report_file()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_names_that_are_no_text_at_all_can_be_written(private):
    odd = replace(make_report_snapshot().workers[0], name="a\udcffb\x00")
    file = build.write_report(replace(make_report_snapshot(), workers=(odd,)), None)
    assert "\x00" not in file.read_text(encoding="utf-8")


def test_nothing_is_loaded_nothing_is_blocked_and_nothing_hostile_acts(seen):
    assert (seen.complaints(), seen.requests()) == ([], [])
    assert seen.run("document.images.length + document.querySelectorAll('figure b').length") == 0
    names = seen.run("[...document.querySelectorAll('tbody th')].map(x => x.textContent)")
    assert [name for name in names if name.startswith(HOSTILE[:28])]


def test_the_policy_blocks_what_is_put_into_the_page(seen):
    done = seen.run(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.owned=1\">');"
        "const s = document.createElement('script'); s.textContent = 'window.owned = 2';"
        "document.body.append(s); new Promise(r => setTimeout(() => r(window.owned || 0), 300))"
    )
    assert done == 0

    def is_blocked():
        seen.run("0")  # what the browser tells comes with an answer
        return any("Content Security Policy" in str(one) for one in seen.complaints())

    wait_for(is_blocked, "complaint of the policy")


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core: make setup gets it where there is npm")
@pytest.mark.parametrize(
    ("width", "scheme"), [(1200, "light"), (1200, "dark"), (320, "light"), (320, "dark")]
)
def test_axe_finds_nothing(browser, page, width, scheme):
    browser.set_viewport(width, scheme=scheme)
    browser.open(page)
    browser.run("document.querySelectorAll('details').forEach(one => { one.open = true; }); 0")
    browser.run(AXE.read_text(encoding="utf-8") + "; 0")
    shown = browser.run(
        "axe.run().then(r => ({passes: r.passes.length, violations:"
        " r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200))])}))"
    )
    assert shown["violations"] == []
    assert shown["passes"] > 30


@pytest.mark.parametrize("width", [320, 768, 1200, 2400])
def test_no_width_scrolls_sideways(browser, page, width):
    browser.set_viewport(width)
    browser.open(page)
    browser.run("document.querySelectorAll('details').forEach(one => { one.open = true; }); 0")
    assert browser.run("document.documentElement.scrollWidth") == width


def test_hover_shows_the_values_under_the_pointer(seen):
    box = seen.run(
        "(() => { const d = document.querySelector('.drawing'); d.scrollIntoView();"
        " const b = d.getBoundingClientRect(); return [b.left, b.top, b.width]; })()"
    )
    for part, words in ((0.1, "memory in use 1.0 GB"), (0.62, "memory in use 4.0 GB")):
        x = box[0] + box[2] * part
        seen.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=box[1] + 50)
        assert words in seen.run("document.querySelector('.values').textContent")
    assert seen.run("document.querySelector('.cursor').getAttribute('visibility')") == "visible"


def test_the_keyboard_shows_them_too(seen):
    seen.run("document.querySelector('.reader input').focus(); 0")
    seen.press("Home", 36)
    seen.press("ArrowRight", 39)
    shown = seen.run("document.querySelector('.values').textContent")
    assert "memory in use 1.0 GB · GPU memory 1.0 GB · swap 0.0 MB" in shown
    slider = "document.querySelector('.reader input')"
    assert seen.run(f"{slider}.getAttribute('aria-valuetext')") == shown
    assert seen.run(f"{slider}.getAttribute('aria-label')") == "Point in time, This computer"


def test_a_cell_of_the_heat_map_tells_its_reason_on_focus(seen):
    seen.run("document.querySelector('button.inaccurate').focus(); 0")
    shown = seen.run("document.querySelector('.reason').textContent")
    assert shown == "float16, matmul: wrong results: off by 0.3 <b>"


def test_the_span_is_chosen_by_a_radio_button(seen):
    shown = "['part-0', 'part-1'].map(id => document.getElementById(id).offsetHeight > 0)"
    assert seen.run(shown) == [True, False]
    seen.run("document.getElementById('span-0').focus(); 0")
    seen.press("ArrowRight", 39)
    assert seen.run(shown) == [False, True]


def test_the_diagnostics_are_copied(seen):
    seen.send("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    seen.send("Page.bringToFront")
    seen.run("document.getElementById('copy').click(); 0")
    wait_for(lambda: seen.run("document.getElementById('copied').textContent"), "an answer")
    assert seen.run("document.getElementById('copied').textContent") == "Copied."
    assert seen.run("navigator.clipboard.readText()").startswith(
        "mpsbar 0.1.0 · Python 3.12.1\n\nApple M3 Max"
    )


def test_without_its_script_nothing_is_missing_but_the_cursor(browser, page):
    browser.set_viewport(1200)
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page)
    browser.send("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.run("document.querySelector('.reader').offsetHeight") == 0
    assert browser.run("document.getElementById('copy').offsetHeight") == 0
    assert browser.run("document.querySelector('.drawing').getBoundingClientRect().height") == 160


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1200])
def test_it_is_drawn(browser, page, scheme, width):
    browser.set_viewport(width, scheme=scheme)
    browser.open(page)
    left, top, wide = browser.run(
        "(() => { const b = document.querySelector('.drawing').getBoundingClientRect();"
        " return [b.left, b.top, b.width].map(Math.round); })()"
    )
    assert tuple(read_pixels(browser.picture(most=4))[2][2][:3]) == BACK[scheme]
    rows = read_pixels(browser.picture(first=top, most=160))
    assert len(rows[0]) == width
    plot = [pixel for row in rows for pixel in row[left : left + wide]]
    drawn = sum(tuple(pixel[:3]) == ALLOCATED[scheme] for pixel in plot)
    assert drawn > wide / 3, "the line of the memory in use"


def test_it_prints(seen):
    pdf = seen.print()
    assert pdf.startswith(b"%PDF")
    seen.send("Emulation.setEmulatedMedia", media="print")
    hidden = (
        "['nav', '.reader', '.choice', '#copy'].map(x => document.querySelector(x).offsetHeight)"
    )
    assert seen.run(hidden) == [0, 0, 0, 0]
    assert seen.run("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    seen.send("Emulation.setEmulatedMedia", media="")
