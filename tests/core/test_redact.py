"""I46: secrets never reach a prompt, a log, a verdict file or the database; ordinary text stays as it is."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daemon.core.redact import MAX_DEPTH, redact, redact_value

LOW, MIXED, HEX = (
    "abcdefghij0123456789abcdefghij012345",
    "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5",
    "0123456789abcdef" * 4,
)
# put together here, so that no scanner takes this file for a leak
TOKENS = {
    "openai": ["sk-proj-" + MIXED, "sk-" + HEX[:32], "sk-or-v1-" + HEX],
    "anthropic": ["sk-ant-api03-" + MIXED, "sk-ant-oat01-" + MIXED],
    "github": ["ghp_" + LOW, "gho_" + LOW, "ghs_" + LOW, "github_pat_11ABC_" + LOW],
    "gitlab": ["glpat-" + LOW[:20]],
    "slack": ["xoxb-" + "123456789012-" + LOW, "xoxp-" + LOW, "xapp-1-" + LOW],
    "aws": ["AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE"],
    "google": ["AIza" + MIXED[:35], "GOCSPX-" + LOW],
    "npm": ["npm_" + LOW],
    "pypi": ["pypi-" + "AgEIcHlwaS5vcmc" + MIXED],
    "huggingface": ["hf_" + MIXED],
    "stripe": ["sk_live_" + LOW, "rk_test_" + LOW],
    "telegram": ["123456789:AA" + MIXED[:33]],
    "sendgrid": ["SG." + LOW[:22] + "." + MIXED],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + MIXED],
}
ALL_TOKENS = [token for tokens in TOKENS.values() for token in tokens]
PEM_BODY = ("MIIEpAIBAAKCAQEA7bq9+/" + MIXED + "\n") * 6 + "abc=\n"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(("kind", "token"), [(kind, token) for kind in TOKENS for token in TOKENS[kind]])
@pytest.mark.parametrize(
    "around", ["{}", "key is {}.", '"{}"', "({})", "a={}&b", "\\n{}\\n", "`{}`,", "x\n{}\ny"]
)
def test_a_token_of_a_known_shape_goes_wherever_it_stands(kind: str, token: str, around: str) -> None:
    """I46: no part of it is left, and the mark says what it was."""
    clean = redact(around.format(token))
    assert "[redacted:" in clean
    assert token[-10:] not in clean
    if around == "{}":
        assert clean == (f"123456789:[redacted:{kind}]" if kind == "telegram" else f"[redacted:{kind}]")


SECRET_LINES = """
Authorization: Bearer hunter2
authorization: bearer abc.def
curl -H "Authorization: Basic aHVudGVyMjpodW50ZXIy" https://x
{"Authorization": "token hunter2"}
Basic dXNlcjpodW50ZXIy
postgres://admin:hunter2@db.example.com:5432/app
redis://:hunter2@localhost
https://x-access-token:hunter2@github.com/a/b.git
API_KEY=hunter2
API_KEY="hunter2"
export API_KEY='hunter2'
  STRIPE_SECRET=hunter2 # comment
DB_PASSWORD=hunter2,;&)x
MY_SERVICE_TOKEN=hunter2
GOOGLE_CREDENTIALS=hunter2
MYSQL_PWD=hunter2
SMTP_PASSWD=hunter2
docker run -e DB_PASSWORD=hunter2 image
+ API_TOKEN=hunter2
00012| SECRET_KEY=hunter2
   12\tdb_password=hunter2
db_password=hunter2
password = "hunter2"
password = hunter2
const apiKey: string = "hunter2";
password: str = 'hunter2'
os.environ["API_KEY"] = "hunter2"
{"api_key": "hunter2", "n": 1}
{"apiKey":"hunter2"}
{\\"api_key\\": \\"hunter2\\"}
"line\\nDB_PASSWORD=hunter2\\nOTHER=1"
password: hunter2
  client_secret: 'hunter2 and more'
access_token: "hunter2"
- DB_PASSWORD=hunter2
passphrase: correcthorsehunter
X-Api-Key: hunter2
https://api.example.com/v1?api_key=hunter2&page=2
--password hunter2
--api-key=hunter2
aws_secret_access_key = hunter2/K7MDENG/bPxRfiCYEXAMPLE
token = "hunter2aB3dE5gH7"
""".strip().splitlines()


@pytest.mark.parametrize("line", SECRET_LINES)
def test_a_value_under_a_telling_name_goes(line: str) -> None:
    """I46: .env lines, headers, JSON, YAML, INI, code, query strings and flags; the name stays readable."""
    clean = redact(line)
    assert "[redacted:" in clean
    assert "hunter" not in clean
    assert "aHVudGVy" not in clean
    assert "dXNlcjpo" not in clean
    assert clean.split("[redacted:")[0] == line[: clean.index("[redacted:")]


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
npm_config_registry=https://registry.npmjs.org
""".strip().splitlines()


@pytest.mark.parametrize("line", ORDINARY_LINES)
def test_ordinary_text_and_code_stays(line: str) -> None:
    """A judge that reads mangled code judges badly: mentions of secrets are no secrets."""
    assert redact(line) == line


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
    """I46: tool outputs are cut to head and tail, so half a key has one mark only."""
    clean = redact(f"before words\n{text}\nafter words")
    assert MIXED not in clean
    assert "MIIE" not in clean
    assert clean.startswith("before words\n")
    assert clean.endswith("\nafter words")


def test_a_value_longer_than_what_is_looked_at_goes_whole() -> None:
    """I46: the decision is made on the beginning, the replacement covers the end."""
    for line in (
        f"API_KEY={'a1B2' * 3000}",
        f'"api_key": "{"a1B2" * 3000}"',
        f"x?api_key={'a1B2' * 3000}&p=1",
    ):
        assert "a1B2" not in redact(line)


def test_values_of_nested_json() -> None:
    """I46: what stands under a secret's name is replaced whole; the rest keeps its shape."""
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


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("API_KEY=sk-" + MIXED + ",password=x")
def test_redacting_twice_changes_nothing(text: str) -> None:
    """What is stored is redacted again when it is sent: the second time must be a fixed point."""
    once = redact(text)
    assert redact(once) == once


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(ALL_TOKENS),
    st.text(max_size=40).filter(lambda t: not t[-1:].isalnum() and t[-1:] not in {"-", "_"}),
    st.text(max_size=40).filter(lambda t: not t[:1].isalnum()),
)
def test_a_token_in_any_text_goes(token: str, before: str, after: str) -> None:
    """I46: whatever stands around it, as long as it stands free."""
    assert token not in redact(before + token + after)


@settings(max_examples=200, deadline=None)
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
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_linear_on_hostile_input(name: str) -> None:
    """I46 must not cost the daemon its loop: four times the text takes some four times as long."""

    def seconds(size: int) -> float:
        text = HOSTILE[name] * (size // len(HOSTILE[name]))
        best = float("inf")
        for _ in range(2):
            started = time.process_time()
            redact(text)
            best = min(best, time.process_time() - started)
        return best

    small, large = seconds(32_000), seconds(128_000)
    assert large < 8 * small + 0.05
    assert large < 5.0
