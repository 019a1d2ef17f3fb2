"""gunicorn --preload: the app is imported once, its workers are forked."""

from ask_web_app import ask

ask(
    [
        "gunicorn",
        "web_app:app",
        "--preload",
        "-w",
        "2",
        "-k",
        "uvicorn_worker.UvicornWorker",
        "-b",
        "127.0.0.1:{port}",
        "--log-level",
        "error",
    ]
)
