"""Finds tokens by their shape: the prefixes that vendors publish, JSON web tokens, hashes of passwords, and
random text as long as a bare cloud key (I46).

Only runs of 16 or more characters are looked at.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from .secret_text import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .secret_text import Text

LEAST: Final = 16  # characters of a run
RUN_COST: Final = 2  # see ``Text.affords``

_UUID = "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_DIGIT = "(?=[A-Za-z_-]{0,60}[0-9])"  # words joined by hyphens are no token
_END = "(?![A-Za-z0-9])"
_MIXED = "(?=[A-Za-z]{0,23}[0-9])(?=[A-Z0-9]{0,23}[a-z])(?=[a-z0-9]{0,23}[A-Z])"
# what may follow a prefix
_TAILS: Final = {
    "run": "[A-Za-z0-9_-]{10,}+",
    "long": "[A-Za-z0-9_-]{30,}+",
    "digit": _DIGIT + "[A-Za-z0-9_-]{20,}+",
    "alnum": "[A-Za-z0-9]{20,}+",
    "word": _DIGIT + "[A-Za-z0-9_]{16,}+",
    "hex": "[a-f0-9]{32,}+",
    "hex32": "[a-f0-9]{32}" + _END,
    "uuid": _UUID,
    "dots": _DIGIT + r"[A-Za-z0-9_-]{10,}+(?:\.[A-Za-z0-9_-]{2,200}){0,4}",
    "base64": "[A-Za-z0-9+/_%-]{16,}+={0,2}",
}
# kind, tail, prefixes
_VENDORS: Final = """
anthropic run sk-ant-
openai digit sk-
stripe base64 sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ whsec_
clerk digit sk_ csk- pcsk_ ctx7sk- testsk_
github alnum ghp_ gho_ ghu_ ghs_ ghr_
github run github_pat_
gitlab dots glpat- gldt- glrt- glrtr- glptt- glcbt- glimt- glagent- gloas- glsoat- glft- glffct- glwt- GR1348941
atlassian base64 ATATT3 ATCTT3 ATSTT3 ATBB ATTA ATOA
slack dots xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp- xwfp-
aws base64 IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz ABSKQmVkcm9ja0FQSUtleS
google long AIza AQ.
google dots ya29. GOCSPX- 1//0 4/0A
npm alnum npm_
pypi digit pypi-
rubygems hex rubygems_
clojars alnum CLOJARS_
docker run dckr_pat_ dckr_oat_
jfrog long AKCp cmVmdGtuOj
huggingface alnum hf_ api_org_
groq alnum gsk_
xai digit xai-
model alnum r8_ pplx- fc-
model digit nvapi- lsv2_pt_ lsv2_sk_ ls__ tvly- fw_ jina_ tgp_v1_ wandb_v1_ e2b_ rpa_ vck_ glhf_ apify_api_ pa-
digitalocean hex dop_v1_ doo_v1_ dor_v1_
vault run hvs. hvb. hvr.
doppler dots dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.
onepassword base64 ops_eyJ
age run AGE-SECRET-KEY-1 AGE-PLUGIN-
pulumi hex pul-
prefect alnum pnu_ pnb_
databricks hex dapi dkea dose
shopify alnum shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ shprt_
square run sq0atp- sq0csp- sq0idp-
plaid uuid access-sandbox- access-development- access-production-
payment word shippo_live_ shippo_test_ duffel_live_ duffel_test_ EZAK EZTK FLWSECK- FLWSECK_TEST-
payment alnum live_ test_
twilio hex32 SK
mail base64 xkeysib- xsmtpsib-
mail word re_
mail hex32 key-
linear alnum lin_api_ lin_oauth_ lin_wh_
notion alnum ntn_ secret_
figma digit figd_ figu_ figo_ figdr_ figur_ figor_
hubspot uuid pat-na1- pat-na2- pat-na3- pat-eu1- pat-ap1-
contentful long CFPAT-
typeform dots tfp_
sentry base64 sntrys_ sntryu_ sntrya_
newrelic run NRAK- NRII- NRJS- NRRA- NRIQ- NRAL- NRSP-
grafana base64 glsa_ glc_ eyJrIjoi
monitoring dots hcaik_ hcamk_ hcbik_ hcxik_ pylf_ phx_ phs_ ddapp_ ddp_ sgp_ dt0c01. dt0s01. dt0s02. dt0s16. hcp.
ci digit bkua_ bkct_ bkaj_ bkpt_ CCIPAT_ CCIPRJ_ sqp_ sqa_ squ_ cfut_ cfat_ cfk_
hosting base64 fo1_ fm1_ fm2_ fm1r_ fm1a_ rnd_ nfp_ nfc_ nfo_ nfb_ nfu_ sbp_ sb_secret_ napi_ vcp_ vercel_blob_rw_
hosting base64 HRKU- upsh_ pscale_tkn_ pscale_pw_ pscale_oauth_ mdb_sa_sk_ v1.0-
service word oauth: signkey-prod- signkey-test- API- PMAK- intra- rdme_ cal_live_ zpka_
service digit ory_at_ ory_rt_ ory_ac_ ory_pat_ polar_oat_ polar_pat_ tr_dev_ tr_prod_ tr_pat_ AQVN y0_ y1_ y2_ t1.
service digit p8e- fio-u- sha256~ mfa. sl. sl.u.
launchdarkly uuid sdk- mob- api-
vpn run tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook-
"""
# kind, prefixes, a tail of their own
_OTHERS: Final = (
    ("aws", "AKIA ASIA ABIA ACCA", "[A-Z0-9]{16}" + _END),
    ("crates", "cio", _MIXED + "[A-Za-z0-9]{32}" + _END),
    ("nuget", "oy2", "[a-z0-9]{43}" + _END),
    ("sendgrid", "SG.", r"[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}+"),
    ("vault", "s. b.", _MIXED + "[A-Za-z0-9]{24}" + _END),
    ("onepassword", "A3-", "[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){2,4}[A-Z0-9]{5,11}"),
    ("facebook", "EAA IGQ", _DIGIT + "[A-Za-z0-9_-]{56,}+"),
    ("twitter", "AAAAAAAAAAAAAAAAAAAA", "[A-Za-z0-9%]{40,}+"),
    ("paypal", "access_token$", r"(?:production|sandbox)\$[a-z0-9$]{20,}+"),
    ("airtable", "pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{40,}+"),
    ("airtable", "key", _MIXED + "[A-Za-z0-9]{14}" + _END),
    ("clickup", "pk_", "[0-9]{4,12}_[A-Z0-9]{24,}+"),
    ("salesforce", "00D", "[A-Za-z0-9]{12,15}![A-Za-z0-9._]{60,}+"),
    ("okta", "00", r"(?=[a-z0-9_-]{0,30}[A-Z])(?=[A-Z0-9_-]{0,30}[a-z])[A-Za-z0-9_-]{40}(?![\w-])"),
    ("recaptcha", "6L", r"(?=[a-z0-9_-]{0,30}[A-Z])[A-Za-z0-9_-]{38}(?![\w-])"),
    ("mapbox", "sk.eyJ", r"[A-Za-z0-9_-]{20,2048}\.[A-Za-z0-9_-]{16,}+"),
    ("bitwarden", "0.", _UUID + r"\.[A-Za-z0-9]{20,}+(?::[A-Za-z0-9+/=]{16,}+)?"),
    ("alibaba", "LTAI", "[A-Za-z0-9]{12,24}" + _END),
    ("bitcoin", "5", "[1-9A-HJ-NP-Za-km-z]{50}" + _END),
    ("bitcoin", "K L", "[1-9A-HJ-NP-Za-km-z]{51}" + _END),
    ("payment", "rzp_live_ rzp_test_", "[A-Za-z0-9]{14,}+"),
    ("neon", "npg_", "[A-Za-z0-9]{10,}+"),
    ("tencent", "AKID", "[A-Za-z0-9]{13,40}" + _END),
)


def _shapes() -> list[tuple[str, str, str]]:
    """Prefix, kind and tail of all shapes, the longest prefix first."""
    found = [
        (prefix, kind, _TAILS[tail])
        for kind, tail, *prefixes in map(str.split, _VENDORS.strip().splitlines())
        for prefix in prefixes
    ]
    found += [(prefix, kind, tail) for kind, prefixes, tail in _OTHERS for prefix in prefixes.split()]
    return sorted(found, key=lambda shape: -len(shape[0]))


def _one_pattern(shapes: list[tuple[str, str, str]]) -> re.Pattern[str]:
    """A pattern for all of them. In JSON text a token may follow the n of an escaped line end."""
    branches: dict[str, list[str]] = defaultdict(list)  # by first letter: `re` skips the others at once
    for prefix, _, tail in shapes:
        branches[re.escape(prefix[0])].append(re.escape(prefix[1:]) + tail)
    joined = "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in branches.items())
    return re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:{joined})")


_SHAPES: Final = _shapes()
_KINDS: Final = {prefix: kind for prefix, kind, _ in reversed(_SHAPES)}
_SIZES: Final = sorted({len(prefix) for prefix in _KINDS}, reverse=True)
_TOKEN: Final = _one_pattern(_SHAPES)
_EXAMPLE: Final = re.compile("[xX]{6}|(?i:example_|your_?)")
_HAS_DIGIT: Final = re.compile("[0-9]")
# without the check before it a long run without a dot would be scanned again from every "eyJ" in it
_JWT: Final = re.compile(
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"
    r"(?:\.[A-Za-z0-9_-]{0,4096}){0,3}"
)
_TELEGRAM: Final = re.compile(r":AA(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{32,}+")
_DISCORD: Final = re.compile(
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])"
)
_TERRAFORM: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,100}")
_BOOTSTRAP: Final = re.compile(
    r"(?<![A-Za-z0-9_./@-])(?=[a-z]{0,5}[0-9])[a-z0-9]{6}\.(?=[a-z]{0,15}[0-9])[a-z0-9]{16}(?![A-Za-z0-9_./-])"
)
_FIREBASE: Final = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{7,30}:APA91b[A-Za-z0-9_-]{60,}+")
_TWILIO: Final = re.compile(r"(?<![A-Za-z0-9])AC[0-9a-f]{32}[\"', :]{3,5}[0-9a-f]{32}(?![0-9a-f])")
_MAILCHIMP: Final = re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])")
_AZURE: Final = re.compile(
    r"(?<![A-Za-z0-9_.~-])[A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34}(?![A-Za-z0-9_.~-])"
    r"|(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{32,76}(?:JQQJ99|AzFu|AzSe|ACDb|\+A[A-Z]{2}[A-Za-z])[A-Za-z0-9+/]{4,32}={0,2}"
)
_CRYPT: Final = re.compile(
    r"\$(?:2[abxy]|1|5|6|7|y|gy|apr1|argon2(?:id|i|d)|scrypt|pbkdf2(?:-sha[0-9]{1,3})?)\$[A-Za-z0-9./$,=+-]{20,250}"
    r"|pbkdf2_sha[0-9]{1,3}\$[0-9]{1,9}\$[A-Za-z0-9./$+=]{20,150}"
)
_BARE: Final = re.compile(r"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=_.-])")
_STEP: Final = re.compile("[a-z](?=[A-Z0-9+/])|[0-9](?=[A-Za-z+/])|[A-Z](?=[0-9+/A-Z])")


def tokens(text: Text) -> Iterator[Span]:
    """All tokens of known shapes."""
    whole = text.text
    for start, end in text.runs(LEAST):
        if not text.affords(start, RUN_COST + (end - start) // 10):
            continue
        stop = end + 2  # base64 is padded with at most two =
        for found in _TOKEN.finditer(whole, start, stop):
            if not _EXAMPLE.search(found[0]):
                yield Span(*found.span(), _kind(found[0]))
        for kind, hint, pattern, skipped in _RARE:
            if hint in whole[start:end]:
                for found in pattern.finditer(whole, start, end + 40 if kind == "twilio" else stop):
                    yield Span(found.start() + skipped, found.end(), kind)
        if end - start >= 40:
            yield from (
                Span(*found.span(), "aws") for found in _BARE.finditer(whole, start, stop) if noise(found[0])
            )


# kind, what the run holds then, the pattern, how many characters of it are kept
_RARE: Final = (
    ("jwt", "eyJ", _JWT, 0),
    ("discord", ".", _DISCORD, 0),
    ("terraform", ".atlasv1.", _TERRAFORM, 0),
    ("hash", "$", _CRYPT, 0),
    ("telegram", ":AA", _TELEGRAM, 1),
    ("mailchimp", "-us", _MAILCHIMP, 0),
    ("kubernetes", ".", _BOOTSTRAP, 0),
    ("firebase", ":APA91b", _FIREBASE, 0),
    ("twilio", "AC", _TWILIO, 37),
    ("azure", "Q~", _AZURE, 0),
    ("azure", "JQQJ99", _AZURE, 0),
    ("azure", "Az", _AZURE, 0),
    ("azure", "ACDb", _AZURE, 0),
    ("azure", "+A", _AZURE, 0),
)


def _kind(token: str) -> str:
    return next(_KINDS[prefix] for size in _SIZES if (prefix := token[:size]) in _KINDS)


def noise(value: str) -> bool:
    """Whether letters of both cases and digits follow each other as in no word, path or name."""
    return (
        len(_HAS_DIGIT.findall(value)) >= 2
        and not value.islower()
        and not value.isupper()
        and len(_STEP.findall(value)) >= 0.4 * len(value)
    )
