"""post.py SOCKET ROUTE SECONDS [-H 'Name: value']...: what hook.sh uses where there is no curl.

Posts stdin over a Unix socket; prints the answer's body, a newline and its status. Exit codes as curl's: 7
nobody listens, 28 too late, 1 anything else. Imports only `socket`, because start-up time is all it costs:
it runs as `python3 -I -S`, on any Python 3.
"""

import os
import sys
import time
from socket import AF_UNIX, SOCK_STREAM, socket

LIMIT = 1 << 20
PROBE_S = 3.0


def probe(path):
    """Whether the daemon answers anything, before it is waited for long. Raises OSError if not."""
    with socket(AF_UNIX, SOCK_STREAM) as link:
        link.settimeout(PROBE_S)
        link.connect(path)
        link.sendall(b"GET /v1/status HTTP/1.0\r\nHost: reflectd\r\n\r\n")
        if not link.recv(1):
            raise OSError("no answer")


def main():
    path, route, seconds = (os.fsencode(value) for value in sys.argv[1:4])
    headers = [os.fsencode(value) for value in sys.argv[5::2]]
    body = sys.stdin.buffer.read()
    if route.partition(b"?")[0] == b"/v1/hooks/Stop":
        probe(path)
    end = time.monotonic() + float(seconds)
    with socket(AF_UNIX, SOCK_STREAM) as link:
        link.settimeout(float(seconds))
        try:
            link.connect(path)
        except OSError:
            return 7
        head = [b"POST " + route + b" HTTP/1.0", b"Host: reflectd", b"Content-Length: %d" % len(body)]
        link.sendall(b"\r\n".join(head + headers) + b"\r\n\r\n" + body)
        answer = bytearray()
        while len(answer) <= LIMIT:
            link.settimeout(max(end - time.monotonic(), 0.001))
            data = link.recv(65536)
            if not data:
                break
            answer += data
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
    code = 28 if "timed out" in str(error) else 1
except Exception:
    code = 1
sys.exit(code)
