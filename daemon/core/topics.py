"""What a clause of a request asks for or rules out: tests, a commit, a pull request …

Works on one clause at a time (``requirements`` cuts them) and believes only plain wording. A clause that is
conditional, optional or a question asks for nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from daemon.core.actions import Check
from daemon.core.commands import read_script
from daemon.core.evidence import CheckKind, Topic

MAX_PROJECT: Final = 1_500  # characters
MAX_GATES: Final = 10
MAX_CLAUSE: Final = 400  # characters
_TEST: Final = (
    r"(?:tests?|test[- ]?suites?|unit ?tests?|specs?|pytest|jest|vitest|cargo test|go test"
    r"|npm test|make test)"
)
_LINTER: Final = (
    r"(?:lint(?:er|ers|ing)?|eslint|ruff|mypy|pyright|clippy|rubocop|type[- ]?check\w*|golangci-lint)"
)
_PR: Final = r"(?:PRs?|pull[- ]?requests?|MRs?|merge[- ]?requests?)"
_GAP: Final = r"[^.;\n]{0,60}"
_MAKE_SURE: Final = r"(?:make sure|ensure|verify|check|confirm|see to it)"
_OBJECT: Final = (
    r"(?=\s*(?:$|[.,;:!)]|(?:it|this|that|them|these|everything|all|the|your|my|changes|when|once|after"
    r"|with|and (?:push|open|create|make|then|tag|deploy|publish|merge)"
    r"|to|as|then|both|in|on|at|only|each|result|und|et|y|e|puis|luego|depois|sur|auf|en|a|na|no|dans"
    r"|nach|mit|avec|con|com"
    r"|stp|svp|por|bitte|alles|tout|todo|tudo|die|le|les|la|los|as|os|pls|plz|w/)\b))"
)

_NEW_TESTS: Final = (
    r"(?:(?:unit|regression|integration|e2e) ?)?(?:tests?|test[- ]?cases?|specs)\b"
    r"(?![-_/(]|\.\w|\s+(?:flag|command|script|target|page|data|server|job|runner|button|id|mode|file|user"
    r"|account|output|results?|env\w*|step|config\w*|harness|suite runner|framework|helper\w*|fixture\w*)\b)"
)
_RUNNER: Final = (
    r"(?:npm|pnpm|yarn|bun|deno|node|cargo|go|cabal|stack|sbt|mvn|gradle|gradlew|make|just|mix|dotnet"
    r"|swift|flutter|dart"
    r"|zig|bazel|rails|rake|composer|artisan|django|tox|run|running|the|existing)"
)
_FOREIGN_NOT: Final = re.compile(
    r"\b(?:nichts?|kein\w{0,2}|ohne|ne|pas|sans|rien|sin|não|nem|sem)\b|\bn'\w", re.IGNORECASE
)
_FOREIGN_TESTS: Final = (
    r"(?:unit-?)?(?:tests?|testes|pruebas|testfälle|testsuite|suite|pytest|phpunit|rspec|jest|vitest|mocha"
    r"|junit)"
)
_DOCS: Final = (
    r"(?:docs?|documentation|readme)\b(?! (?:page|command|parser|generator|viewer|component"
    r"|endpoint|site)\b)"
)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns), re.IGNORECASE)


ORDERED: Final = (  # an imperative starts here: the clause's own, or one joined to it
    r"(?:^(?:(?:stp|svp|por favor|bitte|merci de|pls|plz|dann|puis|ensuite|luego|después|depois"
    r"|anschließend|am ende|zum schluss"
    r"|à la fin|al final|no final|y|e|et|fais|fait|haz|faz|mach(?:e)?|please|now|then|also|next|finally"
    r"|lastly|and|just|first|always|but|so|only|bitte|danach|und|ok(?:ay)?"
    r"|great|yes|thanks|looks good|lgtm|done|when (?:you're |you are |it's |it is |all is "
    r"|everything is )?(?:done|finished|ready|green)"
    r"|when \w{1,12} \w{1,12}|once (?:\w{1,12} ){0,3}\w{1,12}|after that|afterwards|in the end"
    r"|at the end|(?:can|could|would|will) you"
    r"|you (?:should|must|need to)|we (?:should|must|need to)|don't forget to|remember to"
    r"|make sure (?:to|you|that you)|be sure to"
    r"|i(?:'d like| want| need) you to|i(?:'d like| want) to|go ahead and|let's"
    r"|before \w{1,14}(?: \w{1,12}){0,3}"
    r"|after \w{1,14}(?: \w{1,12}){0,3})[,.!:]? ){0,6}"
    r"|[,;&] (?:and |then |also |finally )?|\b(?:and|then|und|et|puis|y|luego|e|depois|dann|ensuite)"
    r" (?:then |also |finally |fais |haz |faz |mach |puis |dann |luego |depois |ensuite |auch |un |um "
    r"|einen )?)"
)
_WORDS_TO: Final = r"(?:(?!(?:that|which|who|to|for|from|in|where|when|it)\b)[\w'/-]{1,30},? ){0,5}?"
_ASKS: Final[dict[Topic, re.Pattern[str]]] = {
    "tests": _any(
        rf"{ORDERED}(?:re-?)?(?:run|execute)\b{_GAP}\b{_TEST}\b",
        rf"\b{_MAKE_SURE}\b{_GAP}\b{_TEST}\b{_GAP}\b(?:pass|green|succeed|work|run|ok)",
        rf"\b{_MAKE_SURE} (?:that )?(?:they|it all|everything|all of (?:it|them)) (?:still )?pass",
        rf"\b(?:make|get|keep|have|until|so)\b{_GAP}\b{_TEST}\b{_GAP}\b(?:pass|green|succeed)",
        rf"{ORDERED}fix\b{_GAP}\b(?:failing|broken|red)\b{_GAP}\b{_TEST}\b",
        rf"{ORDERED}fix\b{_GAP}\b{_TEST}\s+(?:that\s+)?(?:fail|are failing|is failing)",
        rf"\b(?:führe?|lass(?:e|t)?|starte|lance[rz]?|exécute[rz]?|fais tourner|(?:re)?joue[rz]?"
        rf"|ejecuta[rd]?|corre[r]?|lanza|pasa"
        rf"|rod[ae]r?|execut[ae]r?)\b[^.;\n]{{0,40}}\b{_FOREIGN_TESTS}\b",
        rf"\b{_FOREIGN_TESTS}\b[^.;\n]{{0,20}}\b(?:laufen lassen|ausführen|durchlaufen lassen|starten)\b",
        rf"\b{_FOREIGN_TESTS}\b[^.;\n]{{0,20}}\b(?:müssen|sollen|doivent|deben|tienen que|devem|têm que"
        rf"|precisam)\b[^.;\n]{{0,20}}"
        r"\b(?:grün|bestehen|durchlaufen|laufen|passer|pasar|passar|verdes?|verts?)\b",
        rf"{ORDERED}test (?:it|this|that|everything|your|the (?:change|fix|result|whole))\b",
    ),
    "new_tests": _any(
        rf"\b(?:add|write|create|include|extend|provide|need|want)\b {_WORDS_TO}{_NEW_TESTS}",
        rf"\b(?:with|and|plus|including) (?!{_RUNNER}\b)(?:[\w-]{{1,20}} ){{0,2}}?{_NEW_TESTS}(?=\s*(?:$"
        rf"|[.,;!)]|for\b"
        rf"|too\b|as well))",
        rf"{ORDERED}cover {_GAP}\b(?:with|by) (?:[\w-]{{1,20}} ){{0,2}}?{_NEW_TESTS}",
        rf"\b(?:schreib\w*|ergänze?|füge?|écri(?:s|re|vez)|ajoute[rz]?|rajoute[rz]?|escrib[ea]|añad[ea]"
        rf"|agreg[ae]|crea"
        rf"|escrev[ae]|adicion[ae]|acrescent[ae]|cri[ae])\b(?!\s+(?:un|une|el|la|o|a|den|die"
        rf"|das)?\s*(?:champ|campo))"
        rf"[^.;,\n]{{0,30}}\b{_FOREIGN_TESTS}\b(?! (?:laufen|ausführen))",
        rf"\b(?:mit|inklusive|avec|con|com|samt|y|e|et|und) (?:des |den |passenden |neuen |los "
        rf"|os )?{_FOREIGN_TESTS}(?=\s*(?:$|[.,;!)]|für\b|pour\b|para\b|dazu\b))",
    ),
    "build": _any(
        r"\b(?:run|do|try) (?:(?:a|the|full|clean|production|release|npm run|make|cargo"
        r"|go) ){0,3}build\b(?! (?:a|an|the|me)\b)",
        rf"\b{_MAKE_SURE}\b{_GAP}\b(?:builds|compiles|build (?:passes|succeeds|works|is green))\b",
        rf"{ORDERED}(?:fix|repair) (?:the |our |my )?(?:\w{{1,15}} )?build(?=\s*(?:$|[.,;!]|and\b|error"
        rf"|failure))",
    ),
    "lint": _any(
        rf"{ORDERED}(?:run|pass)\b{_GAP}\b{_LINTER}\b",
        rf"{ORDERED}fix\b[^.;\n]{{0,30}}\b{_LINTER}\b[^.;\n]{{0,10}}\b(?:errors?|warnings?|issues?"
        rf"|findings?|problems?)\b",
        rf"\b{_MAKE_SURE}\b{_GAP}\b{_LINTER}\b",
    ),
    "commit": _any(
        rf"{ORDERED}(?:git )?commit(?! (?:message|hash|history|hook|log|graph|sha|id|format"
        rf"|style)s?\b){_OBJECT}",
        rf"{ORDERED}(?:make|create|do) (?:an? |the |one |separate |single |small "
        rf"|\w{{1,15}} ){{0,2}}commits?\b(?! (?:message|hook|log)s?\b)",
        r"\bcommitte\b(?! (?:nicht|noch|nichts|pas|rien)\b)|\bcommite[rz]?\b(?! pas\b)|\b(?:commitea"
        r"|comitea|commita|comita)\b",
        r"\b(?:fais|faites|haz|faz|faça|hacer|fazer|mach\w?)\b[^.;\n]{0,12}\bcommit\b",
    ),
    "push": _any(
        rf"{ORDERED}(?:git )?push(?! (?:notification|button|message|event|service|token)s?\b){_OBJECT}",
        r"\bpushe\b(?! (?:nicht|noch|nichts)\b)|\bpousse[rz]?\b(?! pas\b)|\b(?:haz|faz|faça|fais|faites"
        r"|mach\w?)\b[^.;\n]{0,24}\bpush\b"
        r"|\b(?:sube|súbelo|empuja|envia|suba)\b[^.;\n]{0,30}\b(?:rama|remoto|origin|branch|remote)\b",
    ),
    "pr": _any(
        rf"\b(?:branch|commits?|push)\b[^.;?\n]{{0,12}}(?:\+|&|,|and|und|et|y|e) ?"
        rf"(?:an? |open |then ){{0,2}}{_PR}\b"
        rf"(?! (?:template|title|description|text|body|workflow|check|bot|label|review|comment)s?\b)",
        rf"^(?:then |and |please |finally |a |one ){{0,3}}{_PR} (?:against|to|into|towards|gegen|nach"
        r"|vers|contre|contra|para|verso)\b",
        rf"{ORDERED}(?:open|create|make|submit|raise|file|send|put up)\b[^.;\n]{{0,30}}\b{_PR}\b",
        rf"\b(?:erstelle?|öffne|mach\w?|ouvre[rz]?|crée[rz]?|fais|abre|abra|crea|cria|crie|haz"
        rf"|faz)\b[^.;\n]{{0,20}}\b{_PR}\b",
    ),
    "ci": _any(
        rf"\b(?:make|get|keep|until|{_MAKE_SURE})\b[^.;\n]{{0,20}}\b(?:CI|pipelines?|github actions"
        rf"|workflows?)\b"
        r"[^.;\n]{0,40}\b(?:pass|green|succeed)",
        rf"{ORDERED}(?:wait for|watch)\b[^.;\n]{{0,20}}\b(?:CI|pipeline|checks)\b",
    ),
    "deploy": _any(rf"{ORDERED}(?:deploy|publish){_OBJECT}", rf"{ORDERED}release it\b"),
    "docs": _any(
        rf"{ORDERED}(?:update|write|add|extend|adjust|fix|improve) {_WORDS_TO}{_DOCS}",
        rf"{ORDERED}(?:add|mention|note|describe|explain|write)\b{_GAP}\b(?:to|in|into) the {_DOCS}",
        r"\b(?:dokumentiere?|documente[rz]?|documenta|documente)\b(?! nicht)",
        r"\b(?:aktualisier\w?|ergänz\w?|pass\w?|mets|mettre|mettez|actualiza|atualiza|atualize"
        r"|complète[rz]?)\b[^.;\n]{0,30}"
        r"\b(?:README|doku\w*|docs?|documentation|documentación|documentação)\b",
        rf"{ORDERED}document (?:it|this|that|them|the|how|what|all|both|your|these)\b",
    ),
    "changelog": _any(
        r"\b(?:ergänz\w?|aktualisier\w?|trag\w?|ajoute[rz]?|mets|complète|añade|actualiza|adiciona"
        r"|atualiza)\b[^.;\n]{0,40}\bchange-?log\b",
        rf"{ORDERED}(?:update|add|write|mention|note|put|extend)\b[^.;\n]{{0,60}}\bchange-?log\b"
        r"(?! (?:page|command|parser|generator|view|component|endpoint|script|feature)\b)",
    ),
}
_NOT: Final = (
    r"(?:don'?t|do not|never|must not|mustn't|should not|shouldn't|no need to|needn't|not|nicht|without"
    r"|avoid|stop|ne|não|nao|nem|sin|sem|sans|no (?:hagas|haga|hacer|subas|lances|ejecutes|crees|abras))"
)
_NONE: Final = (
    r"(?:no|without|skip(?:ping)?|ohne|kein\w{0,2}|leave out|sans|pas de|sin|sem|ningún|nenhum"
    r"|nada de)\s+(?:(?:any|the|all|a|more|new"
    r"|further)\s+){0,2}"
)
_NEVER_BARE: Final = (  # behind it stands nothing that narrows it: not "to main", not "secrets"
    r"(?=\s*(?:$|[.,;:!)/]|(?:or|and|nor|anything|it|this|that|them|yet|changes|the changes|my|your"
    r"|for now|these"
    r"|any changes|any of|und|oder|here|to (?:origin|the remote|remote|github|gitlab))\b))"
)
_FORBIDS: Final[dict[Topic, re.Pattern[str]]] = {
    "tests": _any(
        rf"\b{_NONE}(?:running\s+(?:the\s+)?)?(?:unit\s+)?(?:tests?|test suite)\b(?!\s+(?:should|may"
        rf"|must|can|are|fail|break|be|file|data))",
        rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}?(?:re-?)?(?:run|running|execute)\s+(?:\w+\s+){{0,3}}?{_TEST}\b",
        r"\btests?\s+nicht\s+(?:laufen|ausführen|starten)",
        r"\bne (?:lance|exécute)[rz]? pas\b[^.;\n]{0,20}\btests\b",
        r"\bsans (?:lancer|exécuter)\b[^.;\n]{0,20}\btests\b",
        r"\b(?:no|sin|sem|não|nem) (?:ejecut\w+|corr\w+|lan[cz]\w+|rod\w+"
        r"|execut\w+)\b[^.;\n]{0,20}\b(?:tests?|testes|pruebas)\b",
    ),
    "new_tests": _any(
        rf"\b{_NONE}(?:adding\s+|writing\s+)?(?:unit\s+)?tests?\b(?!\s+(?:should|may|must|can|are|fail"
        rf"|break|be|file|data))",
        rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}?(?:add|adding|write|writing|create)\s+(?:\w+\s+){{0,3}}?tests?\b",
    ),
    "build": _any(rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}?(?:build|compile|run (?:a|the) build){_NEVER_BARE}"),
    "lint": _any(
        rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}?(?:run|running)\s+(?:\w+\s+){{0,3}}?{_LINTER}\b",
        rf"\b{_NONE}lint\w*\b",
    ),
    "commit": _any(
        rf"\b{_NOT}\s+(?:[\w/]+\s+){{0,3}}?(?:or\s+)?commit(?:ting|ted|ten)?{_NEVER_BARE}",
        rf"\b{_NONE}commits?\b(?! message)",
        r"\bcommit(?:te|ten|tiere|er|e|ear|ees)? (?:noch |bitte |jetzt )?(?:nicht|nichts|pas|rien)\b"
        r"|\bnicht(?:s)? committen\b"
        r"|\b(?:ne|não|no|sans|sin|sem) (?:\w{1,8} ){0,2}(?:commit\w*|comit\w*)\b",
    ),
    "push": _any(
        rf"\b{_NOT}\s+(?:[\w/]+\s+){{0,3}}?(?:or\s+)?(?<!force )push(?:ing|ed|en)?{_NEVER_BARE}",
        rf"\b{_NONE}(?:push(?:es)?)\b(?! notification)",
        r"\bpush(?:e|en)? (?:noch |bitte |jetzt )?nichts?\b|\bnichts? pushen\b|\bne pousse[rz]? (?:pas"
        r"|rien)\b|\bsans pousser\b"
        r"|\b(?:não|no|sin|sem) (?:\w{1,8} ){0,2}push\b",
    ),
    "pr": _any(
        rf"\b{_NONE}{_PR}\b",
        rf"\b{_NOT}\s+(?:\w+\s+){{0,3}}?(?:open|create|make|submit|raise)\w*\s+(?:\w+\s+){{0,2}}?{_PR}\b",
    ),
    "deploy": _any(rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}?(?:deploy|publish|release)\w*{_NEVER_BARE}"),
    "docs": _any(
        rf"\b{_NONE}(?:docs?|documentation)\b",
        rf"\b{_NOT}\s+(?:\w+\s+){{0,1}}?(?:update|touch|change|write)\s+(?:\w+\s+){{0,2}}?(?:docs?"
        rf"|documentation|readme)\b",
    ),
    "changelog": _any(
        rf"\b{_NONE}change-?log\b",
        rf"\b{_NOT}\s+(?:\w+\s+){{0,1}}?(?:update|touch|change)\s+(?:\w+\s+){{0,2}}?change-?log\b",
    ),
}
_REMINDER: Final = re.compile(
    r"\b(?:don'?t|do not|never)\s+(?:forget|skip|omit|miss|leave out)\b", re.IGNORECASE
)
_PROHIBITS: Final = re.compile(
    r"^(?:please |and |but |also |just |so |then )*(?:don'?t|do not|never|no |without|avoid|skip|you must not"
    r"|nicht|kein|ohne|ne\b|sans\b|sin\b|sem\b|não\b|nem\b|no (?:hagas|toques|cambies|subas)\b|leave\b"
    r"|stop\b)",
    re.IGNORECASE,
)
_WITHHELD: Final = re.compile(  # asked only under a condition, as a wish, or said about someone else
    r"^(?:and |but |then )?(?:if|unless|maybe|perhaps|ideally|optionally|later|eventually)\b"
    r"|\b(?:you (?:may|can|could)"
    r"|feel free|if you (?:want|like|have time)|if possible|optional(?:ly)?|nice to have|i(?:'ll| will)"
    r"|we(?:'ll| will)"
    r"|unless|already|i've|i have|yesterday|you (?:just )?(?:said|ran|did|committed|pushed))\b",
    re.IGNORECASE,
)
_DESCRIBES: Final = re.compile(
    r"(?:the|a|an|this|it|our|my|its|each|every|there|all|users?|(?!(?:you|we|i|please|always|then"
    r"|and)\b)[\w-]{1,30}"
    r" (?:should|must|needs? to|has to|will|can))\b(?! (?:you|done|ready)\b)",
    re.IGNORECASE,
)
_TESTS_MUST_PASS: Final = re.compile(
    rf"\b{_TEST}\b[^.;\n]{{0,20}}\b(?:must|should|ha(?:ve|s) to|needs? to)\b[^.;\n]{{0,20}}"
    rf"\b(?:pass|(?:be|stay|remain|keep|are) (?:\w{{1,10}} )?green|succeed)",
    re.IGNORECASE,
)
_ASKS_POLITELY: Final = re.compile(
    r"^(?:please |and |then |also |now |ok(?:ay)?,? )*(?:can|could|would|will) you\b", re.IGNORECASE
)
_EXCEPTION: Final = re.compile(
    r"\s(?:unless|until|without)\s(?:i\b|asked|explicit\w*|my\b|permission|asking|approval|being|told"
    r"|you(?:'re| are)"
    r"|the user|it is|requested|instructed).*$",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"`([^`\n]{1,200})`")
_WANTS_RUN: Final = re.compile(
    rf"{ORDERED}(?:run|execute)\b|\b(?:must|should|ha(?:s|ve) to|needs? to) (?:still |all |always )?"
    rf"(?:pass|succeed|(?:be|stay|remain) (?:green|clean))\b"
    rf"|\b(?:keep|until|so that)\b[^;\n]{{0,60}}\b(?:pass(?:es)?|green|clean|succeeds?)\b",
    re.IGNORECASE,
)
_MUST_PASS: Final = re.compile(  # "dotnet test must stay green": a command typed without quotes
    r"(?:^|[.;,:(] ?|\b(?:and|but|that|while|und|et|y|e|mais|aber) )(?:the |our |das |der |die )?"
    r"(?P<cmd>[\w./:@-]{2,40}(?: [\w./:=@-]{1,30}){0,3}?) (?:must|should|ha(?:s|ve) to|needs? to|muss"
    r"|müssen|soll\w{0,2}|doi(?:t|vent)|deben?|tienen? que|devem?|tem que)\b[^.;\n]{0,24}?"
    r"\b(?:pass|succeed|green|clean|exit 0|grün|durchlaufen|durchgehen|bestehen|passer|verte?s?|pasar"
    r"|verdes?|passar)\b",
    re.IGNORECASE,
)
_OBLIGES: Final = re.compile(
    r"\b(?:always|must|never|before|after (?:every|each|any|all|you|making|changing)|make sure|ensure"
    r"|required?|do not|don't"
    r"|every change|each change|all changes|when (?:you're|you are|done|finished)|no)\b",
    re.IGNORECASE,
)
_CLAUSES: Final = re.compile(r"(?<=[.;!])\s+|,\s+(?=(?:then|and|never|always|do not|don't)\b)")
_TOPIC_OF: Final[dict[CheckKind, Topic]] = {"test": "tests", "build": "build", "lint": "lint"}


@dataclass(frozen=True, slots=True)
class Said:
    """The topics of one clause. ``negative``: the clause says what not to do."""

    asks: frozenset[Topic] = frozenset()
    forbids: frozenset[Topic] = frozenset()
    negative: bool = False


@lru_cache(maxsize=512)
def read_clause(clause: str, *, sentence_forbids: bool = False) -> Said:
    """What ``clause`` asks for and rules out. ``sentence_forbids``: the words before it, joined by "and",
    forbade something, so that a bare "push" may still belong to them.
    """
    text = _EXCEPTION.sub("", " ".join(clause[:MAX_CLAUSE].replace("\u2019", "'").split()))
    reminded = bool(_REMINDER.search(text))
    forbids = {t for t, pattern in _FORBIDS.items() if not reminded and pattern.search(text)}
    negative = not reminded and bool(_PROHIBITS.search(text))
    if negative or (text.endswith("?") and not _ASKS_POLITELY.search(text)) or _WITHHELD.search(text):
        return Said(frozenset(), frozenset(forbids), negative)
    if _DESCRIBES.match(text):  # says what the program does, not what to do
        must_pass = "tests" not in forbids and _TESTS_MUST_PASS.search(text)
        obliged = _commanded(text)
        if must_pass:
            obliged.add("tests")
        return Said(frozenset(obliged - forbids), frozenset(forbids), negative)
    asks = {t for t, pattern in _ASKS.items() if t not in forbids and pattern.search(text)}
    asks |= _commanded(text) - forbids
    if _FOREIGN_NOT.search(text):  # what it rules out is known only for the plainest wordings
        asks = set()
    if sentence_forbids and len(text.split()) <= 3:
        return Said(frozenset(), frozenset(forbids | (asks & {"commit", "push", "pr", "deploy"})), negative)
    return Said(frozenset(asks), frozenset(forbids), negative)


def _commanded(text: str) -> set[Topic]:
    """The kinds of the commands that the clause wants run: "run `make check`"."""
    scripts = [m["cmd"] for m in _MUST_PASS.finditer(text)]
    if _WANTS_RUN.search(text):
        scripts += [m[1] for m in _QUOTED.finditer(text)]
    kinds = {a.kind for script in scripts for a in read_script(script) if isinstance(a, Check)}
    return {_TOPIC_OF[kind] for kind in kinds}


def gate_lines(project: str) -> tuple[tuple[str, Said], ...]:
    """The lines of a project's rules that oblige: what they ask for and forbid; not mere descriptions."""
    found: list[tuple[str, Said]] = []
    for raw in project[:MAX_PROJECT].split("\n"):
        line = raw.strip(" \t-*+>#").strip()
        if not _OBLIGES.search(line):
            continue
        parts = [read_clause(part) for part in _CLAUSES.split(line)]
        asks = frozenset[Topic]().union(*(p.asks for p in parts))
        forbids = frozenset[Topic]().union(*(p.forbids for p in parts))
        if asks or forbids:
            found.append((line[:MAX_CLAUSE], Said(asks, forbids)))
    return tuple(found[:MAX_GATES])


def wording(topic: Topic) -> str:
    """The topic as a request names it."""
    return {
        "tests": "to run the tests",
        "new_tests": "for tests",
        "build": "for a build",
        "lint": "for a lint or type check",
        "commit": "for a commit",
        "push": "for a push",
        "pr": "for a pull request",
        "ci": "for CI to pass",
        "deploy": "for a deployment",
        "docs": "for documentation",
        "changelog": "for a changelog entry",
        "browser": "for a try by hand",
    }[topic]
