"""uvicorn on uvloop."""

from ask_web_app import ask

ask(
    ["uvicorn", "web_app:app", "--host", "127.0.0.1", "--port", "{port}", "--log-level", "error",
     "--loop", "uvloop"]
)  # fmt: skip
