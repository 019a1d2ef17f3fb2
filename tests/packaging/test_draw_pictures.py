"""The README's pictures: what the rows say is in the page, escaped, and Chromium draws it whole."""

import html
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from png_kit import read_pixels, read_size

from mpsbar.ui.rows import Bar, Menu, Row

ROOT = Path(__file__).parents[2]


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    import chromium
    import draw_pictures
    import menu_page

    return chromium, draw_pictures, menu_page


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append(tag)


def bar(text="7.6 GB", shape="ok"):
    return Bar(text, shape, is_dot=False, label="", tooltip="")


def test_the_page_says_what_the_real_rows_say(scripts):
    _, draw_pictures, menu_page = scripts
    menu = draw_pictures.read_menu()
    page = menu_page.build_page(menu, "light", "", draw_pictures.CAPTION)
    for row in menu.rows:
        for word in row.cells or (row.text,):
            assert html.escape(word) in page
    assert "not a screenshot" in page
    assert len(re.findall(r'class="row', page)) == len(menu.rows)


def test_the_first_row_with_a_submenu_is_open_at_its_first_action(scripts):
    _, draw_pictures, menu_page = scripts
    menu = draw_pictures.read_menu()
    first = next(row for row in menu.rows if row.children)
    page = menu_page.build_page(menu, "dark", first.key, "")
    assert len(re.findall(r'class="row', page)) == len(menu.rows) + len(first.children)
    assert f'<div class="row chosen">{html.escape(first.children[0].text)}' in page


@pytest.mark.parametrize("appearance", ["light", "dark"])
def test_the_report_is_that_of_the_recorded_mac(scripts, appearance):
    _, draw_pictures, _ = scripts
    page = draw_pictures.build_report(appearance)
    names = [row.cells[0] for row in draw_pictures.read_menu().rows if "mps" in row.cells]
    assert names
    for name in names:
        assert name in page
    assert "RECORDED" in page
    assert "prefers-color-scheme: dark" not in page


def test_hostile_names_stay_text(scripts):
    _, _, menu_page = scripts
    evil = "<script>alert(1)</script>\"><img src=x onerror=y>&amp;'"
    rows = (Row("a", evil), Row("b", "", (evil, evil, evil, evil), shortcut="<b>"))
    page = menu_page.build_page(Menu(bar(evil), (rows,)), "light", "a", evil)
    assert set(Tags(page).found) <= {"meta", "title", "style", "body", "div", "span", "svg", "path"}
    assert page.count(html.escape(evil)) == 7


def test_lines_stand_between_sections_that_are_not_empty(scripts):
    _, _, menu_page = scripts
    first, second = (Row("a", "a"),), (Row("b", "b", is_checked=True),)
    page = menu_page.build_page(Menu(bar(), (first, (), second, ())), "light", "", "")
    assert page.count('<div class="line">') == 1
    assert "menu checks" in page


@pytest.mark.parametrize(("shape", "file"), [("ok", "icon"), ("unknown", "icon"), ("warning", "icon-warning"), ("critical", "icon-critical")])  # fmt: skip
def test_the_bar_has_the_icon_of_its_health(scripts, shape, file):
    import base64

    _, _, menu_page = scripts
    page = menu_page.build_page(Menu(bar(shape=shape), ()), "light", "", "")
    picture = (ROOT / f"resources/{file}@3x.png").read_bytes()
    assert base64.b64encode(picture).decode() in page


def test_the_committed_pictures_are_whole():
    sizes = {
        read_size((ROOT / f"docs/menu-{appearance}.png").read_bytes())
        for appearance in ("light", "dark")
    }
    assert len(sizes) == 1


@pytest.mark.starts_processes
def test_chromium_draws_all_of_it(scripts, tmp_path, monkeypatch):
    chromium, draw_pictures, menu_page = scripts
    if chromium.find_chromium() is None:
        pytest.skip("no Chromium")
    monkeypatch.setattr(draw_pictures, "SCALE", 1)
    monkeypatch.setattr(sys, "argv", ["draw_pictures.py", str(tmp_path), "menu", "hosts"])
    draw_pictures.main()
    menu = draw_pictures.read_menu()
    lightness = {}
    for appearance in draw_pictures.APPEARANCES:
        data = (tmp_path / f"menu-{appearance}.png").read_bytes()
        assert read_size(data) == menu_page.measure_page(menu)
        pixels = read_pixels(data)
        corner, inside = pixels[-1][-1][:3], pixels[len(pixels) - 60][300][:3]
        assert corner not in ((255, 255, 255), (136, 136, 136))  # the wallpaper reaches it
        lightness[appearance] = sum(inside)
        assert len({pixel[:3] for row in pixels for pixel in row}) > 500  # text, edges, a gradient
    assert lightness["light"] > 2 * lightness["dark"]
