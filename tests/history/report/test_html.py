"""Text stays text, whatever it holds."""

import html.parser

from history_kit import HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from mpsbar.history.report.html import Markup, join, tag, text, void


def test_tags_and_attributes():
    made = tag("p", "a<b", tag("b", "&"), class_="x y", aria_label='"', hidden=True, id=None)
    assert made == '<p class="x y" aria-label="&quot;" hidden>a&lt;b<b>&amp;</b></p>'
    assert void("input", name="n", checked=False) == '<input name="n"/>'
    assert join(["<", Markup("<i>")], ", ") == "&lt;, <i>"


def test_nothing_turns_the_page_around():
    shown = text(HOSTILE)
    assert "<" not in shown and "\x1b" not in shown and "\u202e" not in shown
    assert text("a\nb\tc") == "a\nb\tc"


class _Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.words = [], []

    def handle_starttag(self, name, attributes):
        self.tags.append((name, attributes))

    def handle_data(self, data):
        self.words.append(data)


@given(st.text())
def test_any_text_in_any_place_is_only_text(words):
    reader = _Reader()
    reader.feed(tag("p", words, title=words) + "<i>")
    assert [name for name, _ in reader.tags] == ["p", "i"]
    assert [name for name, _ in reader.tags[0][1]] == ["title"]
