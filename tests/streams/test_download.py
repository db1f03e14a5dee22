"""Downloads against a server on 127.0.0.1: whole, damaged, cut off, missing."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pdcl.errors import PdclError
from pdcl.lab.benchmarks.raw.archive import fetch, locate, verify
from pdcl.lab.benchmarks.raw.download import DownloadFailed, download
from pdcl.lab.benchmarks.raw.sources import SOURCES, File, Source

CONTENT = bytes(range(256)) * 4000
RIGHT = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves CONTENT. `cuts` answers stop half-way; `ranges` says whether a download can be continued."""

    daemon_threads = True
    cuts = 0
    ranges = True
    asked: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted or "all")
        if self.path != "/raw.bin":
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.ranges else 0
        if start >= len(CONTENT):
            self.send_error(416)
            return
        rest = CONTENT[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        cut = self.server.cuts > 0
        self.server.cuts -= cut
        self.wfile.write(rest[: len(rest) // 2] if cut else rest)

    def log_message(self, *_: object) -> None:
        """Tests stay quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = Server(("127.0.0.1", 0), Handler)
    running.asked = []
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def raw(server: Server, path: str = "raw.bin", checksum: str = RIGHT) -> File:
    return File("raw.bin", checksum, len(CONTENT), f"http://127.0.0.1:{server.server_port}/{path}")


def test_a_good_file_arrives_whole_and_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    path = download(raw(server), tmp_path, progress=False)
    assert path.read_bytes() == CONTENT
    assert download(raw(server), tmp_path, progress=False) == path
    assert server.asked == ["all"]


@pytest.mark.parametrize("checksum", ["sha256:" + "0" * 64, "md5:" + "0" * 32])
def test_a_wrong_checksum_leaves_no_file(server: Server, tmp_path: Path, checksum: str) -> None:
    with pytest.raises(DownloadFailed, match=r"gave something else than raw\.bin"):
        download(raw(server, checksum=checksum), tmp_path, progress=False)
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".lock"]


def test_a_cut_connection_is_continued_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.cuts = 2
    assert download(raw(server), tmp_path, progress=False).read_bytes() == CONTENT
    first, *later = server.asked
    starts = [int(wanted.removeprefix("bytes=").rstrip("-")) for wanted in later]
    assert first == "all"
    assert len(starts) == 2
    assert len(CONTENT) / 3 < starts[0] < starts[1]


def test_what_arrived_is_kept_for_the_next_try(server: Server, tmp_path: Path) -> None:
    server.cuts = 4
    with pytest.raises(DownloadFailed, match=r"broke off 4 times.*the same command continues there"):
        download(raw(server), tmp_path, progress=False)
    kept = (tmp_path / "raw.bin.part").stat().st_size
    assert kept > len(CONTENT) // 2
    assert download(raw(server), tmp_path, progress=False).read_bytes() == CONTENT
    assert server.asked[-1] == f"bytes={kept}-"
    assert not (tmp_path / "raw.bin.part").exists()


def test_a_server_that_can_not_continue_begins_anew(server: Server, tmp_path: Path) -> None:
    server.cuts, server.ranges = 1, False
    assert download(raw(server), tmp_path, progress=False).read_bytes() == CONTENT


def test_leftovers_longer_than_the_file_are_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "raw.bin.part").write_bytes(CONTENT + b"more")
    assert download(raw(server), tmp_path, progress=False).read_bytes() == CONTENT


def test_a_damaged_file_is_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "raw.bin").write_bytes(b"damaged")
    assert download(raw(server), tmp_path, progress=False).read_bytes() == CONTENT


def test_a_missing_file_names_address_and_way_out(server: Server, tmp_path: Path) -> None:
    with pytest.raises(PdclError, match=r"404.*127\.0\.0\.1.*put it into") as caught:
        download(raw(server, "gone.bin"), tmp_path, progress=False)
    assert str(tmp_path) in str(caught.value)
    assert len(server.asked) == 1


def test_the_bar_ends_full(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    download(raw(server), tmp_path, progress=True)
    assert "raw.bin" in capsys.readouterr().out


def test_fetch_puts_a_streams_files_where_it_finds_them(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDCL_CACHE", str(tmp_path))
    monkeypatch.delenv("PDCL_DATA", raising=False)
    monkeypatch.setitem(SOURCES, "toy", Source("toy", "toys", "MIT", "", (raw(server),)))
    (path,) = fetch("toy", progress=False)
    assert locate("toy").paths == (path,)
    assert [check.right for check in verify("toy")] == [True]
    path.write_bytes(b"damaged")
    assert [check.right for check in verify("toy")] == [False]
