"""Streamlit: a page whose script trains in the thread that runs it."""

from streamlit.testing.v1 import AppTest


def page():
    import streamlit
    from small_model import train

    streamlit.text(str([round(loss, 6) for loss in train(count=40)[::8]]))


test = AppTest.from_function(page, default_timeout=120).run()
assert not test.exception, test.exception
print("result", test.text[0].value, flush=True)
