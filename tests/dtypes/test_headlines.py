"""The first lines about a probe: wrong guides, and what changed since the last."""

from probe_samples import make_probe

from mpsbar.dtypes.headlines import find_headlines


def lines_of(probe, last=None):
    return [headline.text for headline in find_headlines(probe, last)]


def test_the_page_says_first_where_guides_are_wrong():
    assert lines_of(make_probe()) == [
        "bfloat16 works here; guides say it does not",
        "float16, int64 and int32 work here in every operation tried; guides call them limited",
    ]
    assert lines_of(make_probe("cpu")) == ["Everything works as expected."]
    refused = {f"*/{dtype}": ("unsupported", "x") for dtype in ("bfloat16", "int64", "int32")}
    partly = {"sort/float16": ("fallback", "x")}
    lines = lines_of(make_probe(torch="2.2.2", system="14.1", changed=refused | partly))
    assert lines[-1] == "int64 and int32 are unsupported here; guides call them limited"
    gone = {"*/float32": ("unsupported", "x")}
    assert "float32 is unsupported here; guides call it supported" in lines_of(
        make_probe(changed=gone)
    )


def test_what_changed_since_the_last_probe():
    before = make_probe(
        torch="2.2.2", changed={"*/bfloat16": ("unsupported", "x")}, time=1.7e9 - 7200
    )
    assert lines_of(make_probe(), before)[-1] == (
        "Since the last probe (2 h ago): torch: 2.2.2 → 2.13.0; bfloat16: unsupported → supported; "
        "18 operations changed"
    )
    same = make_probe(time=1.7e9 - 60, torch="2.12.0")
    assert lines_of(make_probe(), same)[-1] == (
        "No operation changed since the last probe (60 s ago, torch 2.12.0)"
    )
    one = make_probe(changed={"sort/int8": ("fallback", "x"), "add/int8": ("fallback", "x")})
    two = make_probe(changed={"sort/int8": ("fallback", "x")})
    assert lines_of(two, one)[-1] == "Since the last probe (just now): 1 operation changed"
