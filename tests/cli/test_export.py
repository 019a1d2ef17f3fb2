"""mpsbar export as a person or a service starts it."""

import signal

import pytest
from fleet_kit import MLX_WORKER, ask, run_exporter, run_mpsbar, wait_page
from worker_kit import TIMEOUT, need_module, wait_for


def test_a_worker_comes_and_goes(workers):
    need_module("mlx")
    with run_exporter(workers) as (process, url):
        assert url.startswith("http://127.0.0.1:")
        wait_page(url, 'mpsbar_workers{state="live"} 0.0')
        worker = workers.start(MLX_WORKER)
        page = wait_page(
            url, f'framework="mlx",name="worker0.py",pid="{worker.pid}"}} 4.194304e+06'
        )
        assert (
            f'mpsbar_process_start_time_seconds{{framework="mlx",name="worker0.py",pid="{worker.pid}"}}'
            in page
        )
        worker.end()
        page = wait_page(
            url, 'mpsbar_workers{state="live"} 0.0', 'mpsbar_worker_ends_total{how="killed"} 1.0'
        )
        assert f'pid="{worker.pid}"' not in page
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=TIMEOUT) == ("", "")
        assert process.returncode == 0


def test_a_free_is_counted(workers):
    need_module("mlx")
    worker = workers.start(MLX_WORKER)
    with run_exporter(workers) as (_, url):
        wait_page(url, f'pid="{worker.pid}"')
        assert worker.ask("free")["state"] == "done"
        page = wait_page(url, 'mpsbar_frees_total{state="done"} 1.0')
        assert "mpsbar_freed_bytes_total 1.67" in page


def test_a_file_and_no_port(workers, tmp_path):
    path = tmp_path / "mpsbar.prom"
    with run_mpsbar(workers, "export", "--textfile", str(path)) as process:
        wait_for(path.exists, "file")
        assert "mpsbar_ticks_total" in path.read_text()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=TIMEOUT) == ("", "")
        assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_the_settings_token_is_asked_for(workers, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret")
    token.chmod(0o600)
    with run_exporter(workers, "--token-file", str(token)) as (_, url):
        assert ask(url)[0] == 401
        wait_page(url, "mpsbar_build_info", Authorization="Bearer s3cret")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--listen", "0.0.0.0:9478"], 1, "mpsbar: 0.0.0.0 can be reached from other computers: add --tls-cert and --tls-key, or --insecure to serve it unencrypted\n"),
        (["--listen", "127.0.0.1:x"], 1, "mpsbar: 'x' is not a port: it must be from 0 to 65535\n"),
        (["--textfile", "metrics.txt"], 1, "mpsbar: metrics.txt must end in .prom: node_exporter reads no other files\n"),
        (["--tls-cert", "/nothing.pem"], 1, "mpsbar: couldn't read /nothing.pem: No such file or directory\n"),
        (["--tls-key", "k"], 2, "mpsbar export: --tls-key and --tls-client-ca require --tls-cert (see mpsbar export --help)\n"),
        (["--textfile", "a.prom", "--insecure"], 2, "mpsbar export: --textfile alone opens no port: name one with --listen (see mpsbar export --help)\n"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(workers, arguments, code, words):
    with run_mpsbar(workers, "export", *arguments) as process:
        assert process.communicate(timeout=TIMEOUT) == ("", words)
        assert process.returncode == code
