"""I46: secrets never reach a prompt, a log, a verdict file or the database; ordinary text stays as it is."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daemon.redact import MAX_DEPTH, Numbers, redact, redact_head, redact_tail, redact_value, values
from tests.support.secrets import ALL_TOKENS, LOW, MIXED, PEM, SECRET_LINES, TOKENS


@pytest.mark.shows("I46")
@pytest.mark.parametrize(("kind", "token"), [(kind, token) for kind in TOKENS for token in TOKENS[kind]])
@pytest.mark.parametrize(
    "around", ["{}", "key is {}.", '"{}"', "({})", "a={}&b", "\\n{}\\n", "`{}`,", "x\n{}\ny"]
)
def test_a_token_of_a_known_shape_goes_wherever_it_stands(kind: str, token: str, around: str) -> None:
    """No part of it is left, and the mark says what it was."""
    clean = redact(around.format(token))
    assert "[redacted:" in clean
    assert token[-10:] not in clean
    if around == "{}":
        assert clean == (f"123456789:[redacted:{kind}]" if kind == "telegram" else f"[redacted:{kind}]")


@pytest.mark.shows("I46")
@pytest.mark.parametrize("line", SECRET_LINES)
def test_a_value_under_a_telling_name_goes(line: str) -> None:
    """.env lines, headers, JSON, YAML, INI, code, query strings and flags; the name stays readable."""
    clean = redact(line)
    assert "[redacted:" in clean
    assert "hunter" not in clean
    assert "aHVudGVy" not in clean
    assert "dXNlcjpo" not in clean
    assert clean.split("[redacted:")[0] == line[: clean.index("[redacted:")]


@pytest.mark.shows("I46")
@pytest.mark.parametrize("line", SECRET_LINES)
def test_the_line_before_is_no_part_of_the_name(line: str) -> None:
    """A value goes behind any other line as it does alone."""
    for before in ("done", "config:", "x = 1;", ""):
        assert redact(f"{before}\n{line}") == f"{before}\n{redact(line)}"


ORDINARY_LINES = """
commit 4dda8e3f0c9b1a2d3e4f5a6b7c8d9e0f1a2b3c4d
550e8400-e29b-41d4-a716-446655440000
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
token_count = 5
max_tokens: 4096
MAX_TOKENS=4096
key=lambda x: x
sorted(items, key=len)
password: str
    password: str,
password: string;
api_key: Optional[str] = None
def login(user: str, password: str) -> Token:
login(user=user, password=password)
connect(api_key=os.environ["API_KEY"])
api_key = settings.api_key
token = get_token()
if password == expected:
if token != "x":
PASSWORD=
PASSWORD=""
export API_KEY
OPENAI_API_KEY
set OPENAI_API_KEY in your shell
${SECRET}
API_KEY=${API_KEY}
API_KEY=$API_KEY
API_KEY=<your key>
TOKEN=$(cat token)
api_key: ${{ secrets.API_KEY }}
for key, value in d.items():
key = "name"
{"key": "value", "tokens": 12}
<Foo key="item-1">
PRIMARY_KEY = "id"
token: Token | None = None
TOKENIZERS_PARALLELISM=false
Basic understanding of things
Basic internationalization
Bearer authentication is used
task-management-system-with-many-words-2
risk-assessment-2024-final-version
https://example.com:8080/path@x
git@github.com:a/b.git
"password": "Enter your password"
"password": {"type": "string"}
password must be at least 8 characters
Password: required
--password to set it
secret: Secret
KEYBOARD=us
PWD=/home/me
authorization: string
secrets.token_hex(16)
if "-----BEGIN PRIVATE KEY-----" in text and "-----END PRIVATE KEY-----" in text:
-----BEGIN PUBLIC KEY-----
password_min_length: 8
case "token": return x
npm_config_registry=https://packages.pier.lan
SORT_KEY=created_at
password = input("Password: ")
token: Annotated[str, Depends(scheme)]
pin = random.randint(0, 9999)
Cache restored from key: linux-cargo-0407d9473915a38e5b69c2aa9a2388145bbdbf12
"integrity": "sha512-7CytMJXgXjWk6BjBV8NAYC/SxV/hEMdTiCPb8j/RyGoUflr9KARo7+lVjtzDeolD7hJAV6FmfTRxNEgvNuRH8A=="
password: "{{ vault_db_password }}"
OPENAI_API_KEY=sk-...
STRIPE_KEY=sk_live_xxxxxxxxxxxxxxxxxxxxxxxx
id-token: write
kubectl create secret generic db --from-file=password=./pw.txt
docker run -u 1000:1000 -p 8080:80 image
mkdir -p a/b/c
The password is wrong, so the login fails with 401.
for encoding in ('utf-8-sig', 'cp1252'):
use --password to set it
redis://cache:6379/0
""".strip().splitlines()


@pytest.mark.parametrize("line", ORDINARY_LINES)
def test_ordinary_text_and_code_stays(line: str) -> None:
    """A judge that reads mangled code judges badly: mentions of secrets are no secrets."""
    assert redact(line) == line


@pytest.mark.shows("I46")
@pytest.mark.parametrize(
    "text",
    [
        PEM,
        PEM[:150],
        PEM[100:],
        json.dumps(PEM),
        json.dumps(PEM)[100:],
        PEM.replace("\n", "\n    "),
        PEM + PEM,
    ],
    ids=["whole", "cut end", "cut start", "json", "json cut start", "indented", "two"],
)
def test_a_private_key_goes_even_when_its_output_was_cut(text: str) -> None:
    """Tool outputs are cut to head and tail, so half a key has one mark only."""
    clean = redact(f"before words\n{text}\nafter words")
    assert MIXED not in clean
    assert "MIIE" not in clean
    assert clean.startswith("before words\n")
    assert clean.endswith("\nafter words")


@pytest.mark.shows("I46")
def test_a_long_key_without_its_end_goes() -> None:
    """A key in a numbered listing, of which the host kept head and tail only."""
    body = [LOW.upper() + MIXED[:28] for _ in range(60)]
    lines = ["-----BEGIN PRIVATE KEY-----", *body[:30], "[... 2000 characters cut ...]", *body[30:]]
    clean = redact("\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, 1)))
    assert clean.strip() == "1\t[redacted:private]"


@pytest.mark.shows("I46")
@pytest.mark.parametrize("first", ["hunter2", "swordfish", "Xyzzy"])
def test_lines_that_were_joined_lose_both_values(first: str) -> None:
    """Whoever joins lines with blanks makes the second name part of the first value."""
    clean = redact(f"password: {first} password = 'Yonder7'")
    assert clean == "password: [redacted:named] password = '[redacted:named]'"


@pytest.mark.shows("I46")
def test_a_column_under_a_telling_name_goes() -> None:
    """Tables of a database's shell, Markdown and CSV; the other columns stay."""
    for separator in ("|", ",", "\t"):
        text = f"id{separator}api_token\n1{separator}{LOW[:20]}\n2{separator}{MIXED[:20]}\n"
        clean = redact(text)
        assert (
            clean == f"id{separator}api_token\n1{separator}[redacted:column]\n2{separator}[redacted:column]\n"
        )


@pytest.mark.shows("I46")
def test_text_that_was_encoded_is_looked_into() -> None:
    """Base64 of a text with a password, as in a Docker configuration; other base64 stays."""
    hidden = base64.b64encode(b'{"auths":{"r.example.com":{"password":"hunter2"}}}').decode()
    plain = base64.b64encode(b"hello world, this is a test of nothing").decode()
    assert redact(f"x: {hidden}") == "x: [redacted:base64]"
    assert redact(f"x: {plain}") == f"x: {plain}"


@pytest.mark.shows("I46")
@pytest.mark.parametrize("size", [10, 200, 3_000, 40_000])
@pytest.mark.parametrize("before", [0, 150, 190, 199])
def test_what_is_cut_was_redacted_first(size: int, before: int) -> None:
    """However long a secret is and wherever the cut falls, no part of it is left."""
    secret = ("aB3dE5gH7" * size)[:size]
    text = "x " * (before // 2) + f'API_KEY="{secret}" and more words '
    assert "aB3" not in redact_head(text * 3, 200)
    assert "aB3" not in redact_tail(text * 3 + "x " * (before // 2), 200)


@pytest.mark.shows("I46")
def test_a_value_longer_than_what_is_looked_at_goes_whole() -> None:
    """The decision is made on the beginning, the replacement covers the end."""
    for line in (
        f"API_KEY={'a1B2' * 3000}",
        f'"api_key": "{"a1B2" * 3000}"',
        f"x?api_key={'a1B2' * 3000}&p=1",
    ):
        assert "a1B2" not in redact(line)


def test_a_text_that_stands_in_many_values_is_redacted_in_each() -> None:
    """A system prompt is searched once for all cases, and no secret in it stays."""
    system = f"Judge it. {TOKENS['github'][0]}"
    for _ in range(2):
        assert redact_value({"system": system, "n": 1}, [system]) == {"system": redact(system), "n": 1}
    assert TOKENS["github"][0] not in redact(system)


@pytest.mark.shows("I46")
def test_values_of_nested_json() -> None:
    """What stands under a secret's name is replaced whole; the rest keeps its shape."""
    value = {
        "password": {"nested": [1, 2]},
        "apiKey": 12345,
        "env": {"MY_TOKEN": "x", "PORT": 80, "PATH": "/bin"},
        "text": ["see " + TOKENS["github"][0], None, True, 1.5],
        "max_tokens": 5,
        "key": "value",
        "client_secret": None,
        "secret": "",
    }
    assert redact_value(value) == {
        "password": "[redacted:named]",
        "apiKey": "[redacted:named]",
        "env": {"MY_TOKEN": "[redacted:named]", "PORT": 80, "PATH": "/bin"},
        "text": ["see [redacted:github]", None, True, 1.5],
        "max_tokens": 5,
        "key": "value",
        "client_secret": None,
        "secret": "",
    }


def test_endless_nesting_ends() -> None:
    """A hostile depth neither overflows the stack nor lets anything through."""
    value: object = TOKENS["github"][0]
    for _ in range(50_000):
        value = [value]
    clean = redact_value(value)
    for _ in range(MAX_DEPTH):
        assert isinstance(clean, list)
        clean = clean[0]
    assert clean == "[redacted:depth]"


PIECES = [
    *ALL_TOKENS, PEM, PEM[:120], PEM[90:], "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
    "API_KEY", "password", "token", "key", "secret", "--password", "PWD", "=", ": ", " = ", "==", ":", '"',
    "'", '\\"', "\\n", "\n", " ", "  ", ",", ";", "&", "?", "(", ")", "[", "]", "{", "}", "$", "<", ">",
    "\\", "Authorization: ", "Bearer ", "Basic ", "://", "user", "@", "hunter2", "str", "[redacted:named]",
    "a1B2" * 40, "eyJ", "sk-", "ghp_", "AKIA", "export ", "é", "\x00", "0012| ",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("API_KEY=sk-" + MIXED + ",password=x")
def test_redacting_twice_changes_nothing(text: str) -> None:
    """What is stored is redacted again when it is sent: the second time must be a fixed point."""
    once = redact(text)
    assert redact(once) == once


@pytest.mark.shows("I46")
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_numbered_marks_stay_as_they_are(text: str) -> None:
    """What was numbered for a case is found again neither by the same numbers nor without any."""
    numbers = Numbers()
    once = redact(text, numbers)
    assert redact(once, numbers) == redact(once) == once


def test_equal_secrets_look_equal() -> None:
    """Within a case a secret has one number, wherever it stands, and its length is said."""
    numbers, first, other = Numbers(), "ghp_" + "a1B2" * 9, "ghp_" + "c3D4" * 9
    assert redact(f"x {first} y {other}", numbers) == (
        "x [redacted:github-1:40-characters] y [redacted:github-2:40-characters]"
    )
    assert redact_value({"command": [first, other]}, name=numbers) == {
        "command": ["[redacted:github-1:40-characters]", "[redacted:github-2:40-characters]"]
    }


@given(
    st.sampled_from(ALL_TOKENS),
    st.text(max_size=40).filter(lambda t: not t[-1:].isalnum() and t[-1:] not in {"-", "_"}),
    st.text(max_size=40).filter(lambda t: not t[:1].isalnum()),
)
def test_a_token_in_any_text_goes(token: str, before: str, after: str) -> None:
    """Whatever stands around it, as long as it stands free."""
    assert token not in redact(before + token + after)


@given(st.text(alphabet=st.characters(exclude_characters="=:-\"'"), max_size=300))
def test_text_without_any_assignment_or_token_stays(text: str) -> None:
    """Prose without marks of a secret is returned as it came."""
    assert redact(text) == text


HOSTILE = {
    "one word": "a", "key": "key", "key=": "key=", "key with open quote": 'key="',
    "escaped quotes": 'key=\\"', "quotes escaped": "key='\\'", "sk-": "sk-", "eyJ": "eyJ",
    "eyJ after -": "-eyJ", "eyJ after n": "\\neyJ", "begins": "-----BEGIN PRIVATE KEY-----",
    "ends": "-----END PRIVATE KEY-----", "open keys": "-----BEGIN PRIVATE KEY-----\n" + LOW + "\n",
    "closed keys": LOW + "\nx-----END PRIVATE KEY-----\n", "schemes": "://", "users": "://aaaa:aaa",
    "colons": "://a:", "bearer": "bearer ", "basic": "Basic aaaaaaaa ", "headers": "authorization:",
    "blanks": " ", "lines": "\n", "gaps": "key" + " " * 16, "names": "PASS_KEY=x ", "dots": "key.a",
    "annotations": "key: aaaa aaaa aaaa aaaa aaaa\n", "base64": "A1b2", "telegram": "12345678:AA",
    "sendgrid": "SG." + LOW[:20], "backslashes": "\\", "brackets": "key=[[[[", "placeholders": "key=<<<<",
    "cookies": "cookie: a=b;", "manifests": "kind: secret\ndata:\n  a: b\n", "web keys": '"kty"',
    "words": "mnemonic ", "seeds": "seed: abc ", "logins": "login a:", "tables": "key,key\n",
    "codes": "code 1a1a ", "hooks": "://a/hook/", "links": "://a/reset/", "echoes": "echo a > pass ",
    "hosts": "user:a1@", "flags": "mysql -p", "numbers": "-----BEGIN PRIVATE KEY-----\n1|",
    "told": "password is ", "arguments": 'auth("a",', "long rows": "token " * 60 + "x" * 500 + "\n",
    "joined": "password: a b: ",
}  # fmt: skip


def _seconds(text: str) -> float:
    started = time.process_time()
    redact(text)
    return time.process_time() - started


@pytest.mark.shows("I46")
@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_linear_on_hostile_input(name: str) -> None:
    """The search must not cost the daemon its loop: eight times the text takes some eight times as long.

    The best of some tries counts, as a busy machine only ever adds to them.
    """
    text = HOSTILE[name] * (128_000 // len(HOSTILE[name]))
    small = large = float("inf")
    for _ in range(8):
        small, large = min(small, _seconds(text[:16_000])), min(large, _seconds(text))
        if large < 11 * small + 0.02:
            return
    pytest.fail(f"{large / small:.0f} times as long for eight times the text")


TELLING = {
    "heads of tables": "password |\n", "tables": "password | x\n", "columns": "password|password|token|key\n",
    "names": "pw ", "words": "token ", "settings": "password=abc123x\n", "told": "pwd is x1y2z3 ",
    "flags": " -p", "codes": "code ", "hosts": "x@", "users": "://a:b@", "tokens": "AKIA" * 5 + " ",
    "logins": ":*:-<<<:5432:sig", "here": "pwd<(psk=", "piped": "pass: sudo -<<<chpasswd  token=",
    "cookies": "cookie: a=b; ", "arguments": "auth(", "phrases": "wpa_passphrase passbearer",
    "unseen": "otpvault login\u200b ", "labels": "密码: a1b2c3 ",
}  # fmt: skip


@pytest.mark.shows("I46", "I53")
@pytest.mark.parametrize("name", TELLING)
def test_telling_rows_take_little_longer_than_ordinary_text(name: str) -> None:
    """Looks and what they find are bounded, so telling rows take less than six times as long as code."""
    code = Path(values.__file__).read_text("utf-8") * 4
    text = (TELLING[name] * (len(code) // len(TELLING[name])))[: len(code)]
    ordinary = telling = float("inf")
    for _ in range(8):
        ordinary, telling = min(ordinary, _seconds(code)), min(telling, _seconds(text))
        if telling < 6 * ordinary:
            return
    pytest.fail(f"{telling / ordinary:.0f} times as long as code")


@pytest.mark.shows("I46")
@pytest.mark.parametrize(
    "line", ["password=hunter2x\n", "login a:p4ssw0rd\n", "my pin is p4ssw0rd, pw: 's3cret'\n"]
)
def test_secrets_among_more_telling_names_than_are_looked_at_go(line: str) -> None:
    """Where no more is looked at, all that may be a secret goes; words stay."""
    clean = redact(line * 20_000)
    assert not any(secret in clean for secret in ("hunter2x", "p4ssw0rd", "s3cret"))
    assert redact(clean) == clean
    rows = "password | required\n" * 20_000
    assert redact(rows) == rows


def test_what_a_build_prints_line_by_line_stays() -> None:
    """A compiler's flags are none of a command that takes a password."""
    line = "cc -O0 -g -c src/f1.c -o build/f1.o\n"
    assert redact(line * 2_000) == line * 2_000


@pytest.mark.shows("I46")
def test_a_page_of_settings_is_looked_at_in_full() -> None:
    """A file in which each line is a secret keeps its names, and each mark says what was there."""
    lines = [f"SERVICE_{n}_PASSWORD=hunter{n}x" for n in range(60)]
    assert redact("\n".join(lines)).count("[redacted:named]") == 60


@pytest.mark.shows("I46")
@pytest.mark.parametrize(
    "text",
    [
        "password: \x1b[32mhunter2x\x1b[0m ok",
        "\x1b[1mDB_PASSWORD\x1b[0m=hunter2x",
        "DB_PASS\u200bWORD=hunter\u200b2x",
        "tool --password \\\n  hunter2x",
        "export API_KEY=\\\nhunter2xabc123def456",
        "Server=db;UID=sa;PWD=hunter2x;Database=x",
        "token%3Dhunter2xabc123def456ghi",
        "https://app/back?code=hunter2xabc123def456&state=x",
        "htpasswd -nb admin hunter2x",
        "htpasswd -b -c .htpasswd admin hunter2x",
        "wandb login hunter2xabc123def456hunter2x",
        "rzp_live_hunter2xABCDEF",
        "密码:hunter2x",
        "账号\uff1aroot 密码\uff1ahunter2x",
        "Пароль: hunter2x",
        "user / password: root / hunter2x",
        "| username/password | root / hunter2x |",
    ],
)
def test_a_secret_goes_however_it_is_written(text: str) -> None:
    """Coloured, with spaces that nobody sees, on a line that goes on, in an address or a command."""
    clean = redact(text)
    assert "hunter" not in clean
    assert redact(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbC123",
        "public key: age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kdsfj8qs",
        "mysql -u root -p shop < dump.sql",
        "PWD=/home/me/work\nOLDPWD=~/x\nPWD=$HOME",
        "\x1b[31m1 failed\x1b[0m, 3 passed\ncc -o x \\\n  main.c",
        "/status?code=404&state=open",
        'fetch("/api/cart", { method: "POST", credentials: "include" })',
        "{ credentials: 'same-origin' }",
        "密码: required",
        "密码不能为空,请重新输入 abc1",
        "user / password: each / both",
        "sizes: root / hunter2x",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    """A name, a public key, a database, a folder, colours and long commands stay byte for byte."""
    assert redact(text) == text
