"""post.py SOCKET ROUTE SECONDS PATIENCE [-H 'Name: value']...: hook.sh runs this where there is no curl.

Posts stdin over a Unix socket; prints the answer's body, a newline and its status. The exit codes are curl's: 7
nobody listens, 28 too late, 1 anything else, also when the other end is another user's program. Before Stop,
which may take SECONDS, it asks for at most PATIENCE seconds whether the daemon answers at all. It runs as
`python3 -I -S`, on any Python 3, and imports little, to start fast.
"""

import os
import sys
import time
from socket import AF_UNIX, SOCK_STREAM, SOL_SOCKET, socket
from struct import unpack

try:
    from socket import SO_PEERCRED
except ImportError:  # macOS
    SO_PEERCRED = None

LIMIT = 1 << 20


def is_private(path):
    """Whether the socket and its folder are this user's, and nobody else may write to them."""
    found = [os.stat(place) for place in (path, os.path.dirname(path))]
    return all(place.st_uid == os.geteuid() and not place.st_mode & 0o022 for place in found)


def connect(link, path, seconds):
    """0, or an exit code: nobody listens, or another user's program, put there after ``is_private``."""
    link.settimeout(seconds)
    try:
        link.connect(path)
    except OSError:
        return 7
    if SO_PEERCRED is None:
        return 0
    _, uid, _ = unpack("3i", link.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))
    return 0 if uid == os.geteuid() else 1


def probe(path, seconds):
    """Whether the daemon answers anything, before it is waited for long. Raises OSError if not."""
    with socket(AF_UNIX, SOCK_STREAM) as link:
        code = connect(link, path, seconds)
        if not code:
            link.sendall(b"GET /v1/status HTTP/1.0\r\nHost: reflectd\r\n\r\n")
            if not link.recv(1):
                raise OSError("no answer")
        return code


def main():
    path, route, seconds = (os.fsencode(value) for value in sys.argv[1:4])
    headers = [os.fsencode(value) for value in sys.argv[6::2]]
    if not is_private(path):
        return 1
    body = sys.stdin.buffer.read()
    if route.partition(b"?")[0] == b"/v1/hooks/Stop":
        code = probe(path, float(sys.argv[4]))
        if code:
            return code
    end = time.monotonic() + float(seconds)
    with socket(AF_UNIX, SOCK_STREAM) as link:
        code = connect(link, path, float(seconds))
        if code:
            return code
        head = [b"POST " + route + b" HTTP/1.0", b"Host: reflectd", b"Content-Length: %d" % len(body)]
        link.sendall(b"\r\n".join(head + headers) + b"\r\n\r\n" + body)
        answer = bytearray()
        while len(answer) <= LIMIT:
            link.settimeout(max(end - time.monotonic(), 0.001))
            data = link.recv(65536)
            if not data:
                break
            answer += data
    if not answer:
        return 52  # as curl says it: the daemon died meanwhile
    head, blank, text = bytes(answer).partition(b"\r\n\r\n")
    first, _, fields = head.partition(b"\r\n")
    words = first.split(b" ")
    if not blank or not words[0].startswith(b"HTTP/1.") or len(words) < 2 or len(answer) > LIMIT:
        return 1
    for field in fields.lower().split(b"\r\n"):
        name, _, value = field.partition(b":")
        if name == b"content-length" and int(value) != len(text) or name == b"transfer-encoding":
            return 1
    sys.stdout.buffer.write(text + b"\n" + words[1])
    return 0


try:
    code = main()
except OSError as error:
    code = 28 if "timed out" in str(error) else 56 if isinstance(error, ConnectionResetError) else 1
except Exception:
    code = 1
sys.exit(code)
