"""The report's page as text, as tags, and as what may act in it."""

import base64
import hashlib
import re
from dataclasses import replace

from history_kit import make_report_snapshot
from report_kit import HOME, make_page, make_period, make_report, read_page, read_text


def test_the_whole_page_as_text(check_golden):
    check_golden("report.txt", read_text(make_page()))


def test_a_hostile_name_is_text_wherever_it_stands():
    page = make_page()
    reader = read_page(page)
    assert not [tag for tag, _ in reader.tags if tag in ("img", "b", "iframe", "object", "link")]
    assert not [name for _, found in reader.tags for name in found if name.startswith("on")]
    assert not [found for _, found in reader.tags if "style" in found]
    assert page.count("&lt;img src=x onerror") >= 4
    assert "\x1b" not in page and "\u202e" not in page
    assert [tag for tag, _ in reader.tags].count("script") == 1 + 6  # ours, and data of the charts


def test_the_policy_lets_only_our_two_texts_act():
    page = make_page()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    directives = dict(
        part.strip().split(" ", 1) for part in policy.replace("&#x27;", "'").split(";")
    )
    assert directives["default-src"] == "'none'"
    for kind, pattern in (("style", "<style>(.*?)</style>"), ("script", "<script>(.*?)</script>")):
        (content,) = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert directives[f"{kind}-src"] == f"'sha256-{digest}'"
    assert "http" not in re.sub(r'http-equiv|"http://www.w3.org[^"]*"', "", page)


def test_no_private_path_and_no_argument():
    text = make_page()
    assert HOME not in text and "hunter2" not in text and "secret" not in text


def test_without_history_it_says_who_records():
    text = read_text(make_page(make_report(periods=(), probe=None)))
    assert (
        "Nothing has been recorded yet. The menu bar app, mpsbar top and mpsbar status --watch record"
        in text
    )
    assert "dtypes" not in text.split("Diagnostics")[0]


def test_one_span_needs_no_choice():
    page = make_page(make_report(periods=(make_period(),)))
    assert 'type="radio"' not in page


def test_an_empty_computer_has_a_page_too():
    seen = replace(make_report_snapshot(), workers=(), processes=(), ended=())
    text = read_text(make_page(replace(make_report(periods=(), probe=None), snapshot=seen)))
    assert "You have no PyTorch or MLX processes running" in text
