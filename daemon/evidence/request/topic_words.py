"""How people ask for tests, a commit, a changelog … and how they rule them out, in a few languages.

Tables only; ``topics`` reads clauses with them. Every pattern is bounded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...core.evidence import Topic

TEST: Final = (
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
ASKS: Final[dict[Topic, re.Pattern[str]]] = {
    "tests": _any(
        rf"{ORDERED}(?:re-?)?(?:run|execute)\b{_GAP}\b{TEST}\b",
        rf"\b{_MAKE_SURE}\b{_GAP}\b{TEST}\b{_GAP}\b(?:pass|green|succeed|work|run|ok)",
        rf"\b{_MAKE_SURE} (?:that )?(?:they|it all|everything|all of (?:it|them)) (?:still )?pass",
        rf"\b(?:make|get|keep|have|until|so)\b{_GAP}\b{TEST}\b{_GAP}\b(?:pass|green|succeed)",
        rf"{ORDERED}fix\b{_GAP}\b(?:failing|broken|red)\b{_GAP}\b{TEST}\b",
        rf"{ORDERED}fix\b{_GAP}\b{TEST}\s+(?:that\s+)?(?:fail|are failing|is failing)",
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
        rf"|escrev[ae]|adicion[ae]|acrescent[ae]|cri[ae])\b(?!\s{{1,3}}(?:un|une|el|la|o|a|den|die"
        rf"|das)?\s{{0,3}}(?:champ|campo))"
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
FORBIDS: Final[dict[Topic, re.Pattern[str]]] = {
    "tests": _any(
        rf"\b{_NONE}(?:running\s+(?:the\s+)?)?(?:unit\s+)?(?:tests?|test suite)\b(?!\s+(?:should|may"
        rf"|must|can|are|fail|break|be|file|data))",
        rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}?(?:re-?)?(?:run|running|execute)\s+(?:\w+\s+){{0,3}}?{TEST}\b",
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
