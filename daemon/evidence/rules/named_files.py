"""Files and tags that the request names anywhere in a sentence, and that nothing wrote or set.

``topics_unmet`` reads orders that open a clause; here they may stand behind a condition, in a list or in
another language. A row is closed where the final text explains it. There is no row where a command may have
done it, or where the request forbids it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...core.evidence import Row
from ..calls.writes import file_name, is_prose
from ..words import explains_absence, sentences, shorten, split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..facts import Facts

MAX_ROWS: Final = 4
MAX_SENTENCES: Final = 60
_FILE: Final = (
    r"[`\"']?(?P<path>(?:[\w@.-]{1,60}/){0,8}(?:[\w@-][\w@.-]{0,60}\.(?:py|[cm]?[jt]sx?|rs|go|mod|java|kts?"
    r"|rb"
    r"|php|cs|csproj|swift|cc?|cpp|hpp|h|exs?|mdx?|rst|adoc|txt|json|ya?ml|toml|ini|cfg|conf|env|example|sh"
    r"|sql"
    r"|html|s?css|vue|svelte|xml|gradle|tf|proto|graphql|ipynb|dart|lua|scala|gemspec|lock)"
    r"|CHANGELOG|README|Makefile|Dockerfile|CONTRIBUTING|LICENSE))(?![\w-])[`\"']?"
)
_VERB: Final = (  # they write into what they name; "fix" and "check" may end elsewhere
    r"(?:set|bump|raise|add|append|write|update|put|document|mention|note|describe|register|list|record"
    r"|extend"
    r"|insert|create|remove|drop|delete|enter|include|adjust|section|entry|line|paragraph|chapter|example"
    r"|setz\w?|erhöh\w?|trag\w?|schreib\w?|ergänz\w?|füg\w?|aktualisier\w?|dokumentier\w?|entfern\w?"
    r"|abschnitt|eintrag|zeile|absatz"
    r"|mets|mettez|mettre|ajoute[rz]?|écri[st]|inscri[st]|complète|documente|supprime|retire|section|ligne"
    r"|entrée"
    r"|pon|añad[ea]|agreg[ae]|escrib[ea]|actualiza|documenta|sube|elimina|quita|sección|línea|entrada"
    r"|coloca|adicion[ae]|acrescent[ae]|escrev[ea]|atualiz[ae]|remov[ae]|seção|linha"
    r"|aggiung[ie]|aggiorn[ai]|scriv[ie]|inserisc[ie]|imposta|metti|documenta|rimuovi|togli|sezione|riga|voce"
    r"|voeg|schrijf|werk|zet|dodaj|zaktualizuj|wpisz)"
)
_ORDER: Final = re.compile(
    rf"(?<![\w-]){_VERB}(?![\w-])(?P<gap>[^;:?()\n]{{0,70}}?)(?<![\w./-]){_FILE}", re.IGNORECASE
)
_ASIDE: Final = re.compile(  # what the file is there for, other than to be written
    r"\b(?:see|like|as in|based on|similar|according|per|using|reads?|than|via|that|which|who|where|when|so"
    r"|if"
    r"|loads?|uses?|calls?|imports?|parses?|wie|laut|siehe|gemäß|comme|selon|voir|como|según|véase|conforme"
    r"|come|secondo|through|with|against|next to|beside|instead)\b",
    re.IGNORECASE,
)
_FROM: Final = re.compile(r"\b(?:from|aus|von|de|du|desde|da|dal|do)\b", re.IGNORECASE)
_TAKES: Final = re.compile(
    r"^(?:remove|drop|delete|entfern|supprim|retire|elimin|quita|remov|rimuovi|togli)", re.IGNORECASE
)
_UNSURE: Final = re.compile(
    r"\b(?:if|unless|maybe|perhaps|optional\w*|could|might|may|feel free|where needed|as needed|wenn|falls"
    r"|evtl"
    r"|eventuell|vielleicht|si|peut-être|quizás?|se|talvez|forse|already|currently|schon|bereits|déjà|ya|già"
    r"|error|traceback|exception|fails?|failed|was|were)\b",
    re.IGNORECASE,
)
_NEVER: Final = re.compile(
    r"\b(?:don't|do not|not|never|no(?! (?:fim|final)\b| [`\"']?[\w./-]{0,60}(?:\.\w|LOG|README))|without"
    r"|except|leave|keep"
    r"|nicht|kein\w*|ohne|außer|ne|pas|sans|sauf|sin|nunca"
    r"|salvo|não|sem|exceto|non|senza|tranne|untouched|alone|ignore|skip|forget|scratch)\b",
    re.IGNORECASE,
)
_KNOWS: Final = re.compile(  # tools that rewrite such files themselves
    r"\b(?:npm|pnpm|yarn|bun|composer|cargo|poetry|uv|pdm|hatch|go (?:mod|get|work)|bundle|mix|dotnet|mvn"
    r"|gradlew?"
    r"|release|version|bump\w*|changeset|cz|towncrier|git-cliff|generate\w*|codegen|make|just|task) ?"
    r"(?:\S{0,20} )?(?:version|add|remove|rm|uninstall|install|tidy|get|require|up|update|bump|edit|release"
    r"|drop"
    r"|build|generate|gen|docs?|set)\b",
    re.IGNORECASE,
)
_MANIFEST: Final = re.compile(
    r"(?:package\.json|composer\.json|go\.mod|pyproject\.toml|Cargo\.toml|mix\.exs|pom\.xml|\.lock|\.csproj"
    r"|requirements\w{0,20}\.txt|Gemfile\w{0,10}|\.gradle|\.kts)$",
    re.IGNORECASE,
)
_TAG: Final = re.compile(
    r"(?:^|[,;.+&] ?|\b(?:and|then|und|dann|et|puis|y|luego|e|poi|depois|please|a|ein\w{0,2}|un|the) )"
    r"(?:git )?(?:tagg?\w{0,4}|etiquet\w{1,4})(?: (?:it|as|with|als|mit|comme|como|con|com|come|the release"
    r"|release)){0,2}"
    r" [`\"']?v?\d{1,4}\.\d{1,4}[\w.-]{0,20}",
    re.IGNORECASE | re.MULTILINE,
)
_TAGGED: Final = re.compile(r"\btag\b|--tags|release|\bversion\b|\bbump", re.IGNORECASE)
_PRODUCT: Final = re.compile(r"[A-Z][a-z]+\.js$")
_CODE: Final = re.compile(
    r"\.(?:py|[cm]?[jt]sx?|rs|go|java|kts?|rb|php|cs|swift|cc?|cpp|hpp|h|exs?|vue|svelte|dart|lua|scala)$"
)
_FOR: Final = re.compile(
    r"\b(?:for|to|für|um|zu|pour|à|para|a|per)\b(?! (?:the )?$)", re.IGNORECASE
)  # it may do so elsewhere
_TELLS: Final = re.compile(  # what the program is to do, or what somebody does
    r"\b(?:to|should|shall|will|would|can|could|that|which|it|they|tool|script|flag|command|program|job|i"
    r"|we|he|she"
    r"|soll(?:en)?|wird|kann|doit|peut|debe|puede|deve|pode|può|zu)[ `\"']+$",
    re.IGNORECASE,
)
_YOURS: Final = re.compile(
    r"\b(?:you|need|remember|forget|sure|like|want|have|pass auf|vergiss nicht|pense|n'oublie pas)"
    r"(?: to| zu| à)? $|\byou (?:should|can|could|will) $",
    re.IGNORECASE,
)
_PURPOSE: Final = re.compile(
    r"\b(?:to|zu) (?!(?:(?:the|our|my|its|file|end|top|bottom|of) ){0,4}$)", re.IGNORECASE
)
_BULLET: Final = re.compile(r"^[ \t]*(?:[-*+•]|\(?\d{1,2}[.)])[ \t]+(?:\[ \][ \t]*)?")


def named_files(facts: Facts, missing: Sequence[Row] = ()) -> list[Row]:
    """The rows of kind ``unmet``, without ids, that none of ``missing`` says already."""
    work = facts.work
    if facts.wants == "plan" or facts.denied or facts.ending == "question":
        return []
    if not work.code_writes or work.delegated or work.blind_writes:
        return []
    known = "\n".join(f"{r.text} {r.detail}" for r in missing if r.open).lower()
    known += "\n".join(f"\n{r.topic}" for r in missing if r.topic in {"docs", "changelog"})
    return [*_files(facts, known), *_tag(facts)][:MAX_ROWS]


def _said(facts: Facts) -> list[str]:
    return [
        s for raw in split_sentences(facts.said)[:MAX_SENTENCES] if (s := _BULLET.sub("", raw[:1200]).strip())
    ]


def _files(facts: Facts, known: str) -> Iterator[Row]:
    """Files into which something was to be written, and that nothing wrote."""
    written = {file_name(w.path).lower() for w in facts.work.writes}
    said, told, seen = _said(facts), sentences(facts.final), set[str]()
    for s in said:
        if _UNSURE.search(s) or s.endswith("?") or _NEVER.search(s):
            continue
        for m in _ORDER.finditer(s):
            name = file_name(m["path"]).lower()
            if name == "license" and m["path"].islower():
                continue  # a word
            if name in seen or name in known or name in written or f"{name}.md" in written or _aside(m, s):
                continue
            if ("change" in name and "\nchangelog" in known) or (is_prose(name) and "\ndocs" in known):
                continue
            seen.add(name)
            if any(name in other.lower() and _NEVER.search(other) for other in said):
                continue
            if _ran(name, facts):
                continue
            stem = name.split(".", 1)[0]
            excused = any((name in t.lower() or stem in t.lower()) and explains_absence(t) for t in told)
            text = f"the request wants {shorten(m['path'])} written; nothing wrote it"
            detail = f"{shorten(m['path'])} was to be written"
            yield _row(text, detail, facts, m["path"], is_open=not excused)


def _aside(m: re.Match[str], sentence: str) -> bool:
    """Whether the file stands there for another reason than to be written by the agent."""
    gap, before = m["gap"], sentence[max(0, m.start() - 40) : m.start()]
    if _TELLS.search(before) and not _YOURS.search(before):
        return True
    if _PRODUCT.match(m["path"]) or (_CODE.search(m["path"]) and _FOR.search(gap)):
        return True
    return bool(_ASIDE.search(gap) or _PURPOSE.search(gap) or (_FROM.search(gap) and not _TAKES.match(m[0])))


def _ran(name: str, facts: Facts) -> bool:
    """Whether a command may have written the file."""
    scripts = facts.work.scripts
    tools = bool(_MANIFEST.search(name)) or "change" in name
    return any(name in s.lower() or (tools and _KNOWS.search(s[:2000])) for s in scripts)


def _tag(facts: Facts) -> Iterator[Row]:
    """A git tag that was asked for by its version, and no command that could set one."""
    for s in _said(facts):
        if not (m := _TAG.search(s)) or _UNSURE.search(s) or _NEVER.search(s) or s.endswith("?"):
            continue
        if any(_TAGGED.search(script[:4000]) for script in facts.work.scripts):
            return
        told = any(
            re.search(r"\btag", t, re.IGNORECASE) and explains_absence(t) for t in sentences(facts.final)
        )
        what = shorten(m[0].strip(" ,;.+&"))
        yield _row(
            f'the request asks for a tag: "{what}"; none was set',
            f'"{what}" was not done',
            facts,
            s,
            is_open=not told,
        )
        return


def _row(text: str, detail: str, facts: Facts, word: str, *, is_open: bool) -> Row:
    source = next((i for i, r in facts.live if word in r.text), "")
    return Row("", "unmet", text, open=is_open, detail=detail, cites=(source,) if source else ())
