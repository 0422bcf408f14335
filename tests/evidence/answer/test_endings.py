"""How final texts end. The long tables are the ones that must stay quiet."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.evidence.answer.endings import ending


@pytest.mark.shows("I31")
@pytest.mark.parametrize(
    "text",
    [
        "Let me now run the tests:",
        "Let me run the tests.",
        "I'll now update the config.",
        "I\u2019ll now update the config.",
        "Next I will add the tests",
        "Next, I'll update the docs.",
        "I fixed the parser.\n\nNow let me fix the remaining import errors.",
        "Great! Now I'll run the full test suite to make sure nothing broke.",
        "The tests pass. Let me commit this.",
        "Let's run the tests…",
        "I'm going to check the logs",
        "Okay, let me take a look at the failing module:",
        "I will continue with the second file.",
        "Found it. I need to update the import in main.py:",
        "**Let me verify the build:**",
    ],
)
def test_announced(text: str) -> None:
    """An action announced as the last thing, with nothing behind it."""
    assert ending(text) == "announced"


@pytest.mark.parametrize(
    "text",
    [
        "I've changed a.py, b.py and the",
        "I updated the parser, the lexer,",
        "The fix works because",
        "Here is the new function:\n\n```python\ndef f():\n    return 1",
        "Changed:\n\n```",
        "The following files were changed:",
        "I added a new option to the command line and",
    ],
)
def test_cut_off(text: str) -> None:
    """Half a sentence, a lone colon or an open code block."""
    assert ending(text) == "cut_off"


def test_out_of_tokens() -> None:
    """The host says that the model ran out of tokens: cut off, however the text looks."""
    assert ending("All done.", "length") == "cut_off"
    assert ending("All done.", "stop") == "statement"


@pytest.mark.parametrize(
    "text",
    [
        "Fixed. Would you like me to also add tests?",
        "Should I proceed?",
        "Which do you prefer?\n1. A\n2. B",
        "Should I go with A or B? I recommend A.",
        "Do you want me to commit this? 🙂",
        "**Shall I continue?**",
        "Please provide the API key.",
        "Please confirm that I may delete the folder.",
        "Let me know which option you prefer.",
        "Let me know when you've set the token.",
        "Let me know how you'd like to proceed!",
        "I'm waiting for your approval.",
        "I need your AWS credentials to go on.",
        "Fertig. Soll ich noch Tests schreiben?",
        "続けますか\uff1f",
        "Which one? Let me know!",
        "The tests fail. Would you like me to fix them? Feel free to ask.",
        "I can do either. Let me know if you want me to start with A.",
    ],
)
def test_question(text: str) -> None:
    """A question or a request to the person, also above choices and before a polite closer."""
    assert ending(text) == "question"


@pytest.mark.parametrize(
    "text",
    [
        "Summary.\n\n## Next steps\n- a\n- b",
        "**Next steps:**\n1. Deploy it\n2. Watch it",
        "Done.\n\nRemaining work:\n- c",
        "All good.\n\n### Follow-ups\n\n* d\n\nLet me know if you have questions!",
        "Done.\n\n**What's left:** the docs",
        "Done. All tests pass.\n\nNext steps (optional): deploy it",
    ],
)
def test_next_steps(text: str) -> None:
    """A list of next steps at the end."""
    assert ending(text) == "next_steps"


@pytest.mark.parametrize(
    "text",
    [
        "Done.",
        "The answer is 42",
        "All done. Let me know if you need anything else!",
        "All done. Let me know if you'd like any changes.",
        "Done. Feel free to ask.",
        "Done. Is there anything else you'd like?",
        "Done. Anything else I can help with?",
        "Let me know if you have any questions.",
        "Let me know what you think.",
        "Happy to help with more.",
        "I'll be happy to help further.",
        "I'll wait for your feedback.",
        "I'll leave the rest to you.",
        "I'll stop here.",
        "I will not change that.",
        "I'll keep that in mind from now on.",
        "I'll run the linter first next time.",
        "Once you set the key, I'll run the tests.",
        "I'll run the tests once you set the key.",
        "If you want, I'll add tests.",
        "I'll add tests if you want.",
        "When you are ready, I will deploy it.",
        "Let me summarize: all 5 tests pass.",
        "Let me run the tests one more time: all 12 pass.",
        "Let me verify the build: it passes.",
        "Let me explain why that happened.",
        "Now the tests pass.",
        "The script will now run the tests.",
        "You can now run the tests.",
        "Now you can check the logs.",
        "To check it, run `pytest`.",
        "You can run it with:\n\n```\nmake run\n```",
        "```python\nprint(1)\n```",
        "````markdown\n```bash\nx\n```\n````",
        "```markdown\n```bash\nx\n```\n```",
        "1. Next, I'll add x",
        "- I'll now add x",
        "> Let me now run the tests:",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "| Do you like it? |",
        'It prints "Let me run the tests:" and exits.',
        "Good luck!",
        "That is what the flag is for",
        "It is the file the error comes from",
        "Everything you asked for is in",
        "Use option a",
        "Vitamin A and B",
        "See http://localhost:3000/",
        "Files: a.py, b.py",
        "Done ✅",
        "Ist erledigt.",
        "Why did it fail? The path was wrong. I fixed it.",
        "## Next steps\n- a\n\n## Summary\nAll of them are done.",
        "The next step of the loop is skipped.",
        "I'll see you tomorrow.",
        "Next, I will need access from your side.",
        "Let me know if there are any issues with the build.",
        "If you run into problems, let me know.",
        "Now I'll let you try it.",
        "Let me fix that — done.",
        "C:\\Users\\x",
    ],
)
def test_statement(text: str) -> None:
    """Everything that can be read as an end is one: a false "incomplete" is the costly error."""
    assert ending(text) == "statement"


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_empty(text: str) -> None:
    """No text at all."""
    assert ending(text) == "empty"


@pytest.mark.parametrize(
    "unit",
    [
        "a, ",
        "`",
        "```\n",
        "?",
        "let me ",
        "\n",
        " ",
        "a. A",
        "should i ",
        "next steps ",
        "> ",
        "**",
        "please ",
    ],
)
def test_hostile_texts_are_quick(unit: str) -> None:
    """A megabyte of anything takes milliseconds."""
    text = unit * (1_000_000 // len(unit))
    before = time.process_time()
    ending(text)
    assert time.process_time() - before < 5


@given(st.text(alphabet="aI'll let me run.?:,`~\n#*-> 1", max_size=300))
def test_any_text_has_an_ending(text: str) -> None:
    """No text makes it fail, and trailing blanks never change the answer."""
    assert ending(text + "\n \n") == ending(text)


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    "text",
    [
        "Agora vou passar o parâmetro no controller.",
        "Ahora voy a actualizar las llamadas.",
        "Maintenant je vais adapter le contrôleur.",
        "Jetzt werde ich den Controller anpassen.",
        "Als Nächstes baue ich den Controller um.",
        "Ora aggiungo il test.",
        "Nu ga ik de tests schrijven.",
    ],
)
def test_announced_in_other_languages(text: str) -> None:
    """An announcement nothing follows, in any of the usual languages."""
    assert ending(f"Repositorium 20.\n\n{text}") == "announced"


@pytest.mark.shows("I25")
@pytest.mark.parametrize(
    "text",
    [
        "Ahora voy a esperar a que decidas.",
        "Jetzt werde ich warten, bis du zustimmst.",
        "Maintenant je vais attendre ta réponse.",
        "Agora o controller usa o parâmetro.",
        "Jetzt ist alles grün.",
        "Ora funziona tutto.",
    ],
)
def test_not_announced_in_other_languages(text: str) -> None:
    """What is so now, or waits for the person, is no announcement."""
    assert ending(text) in {"statement", "question"}


@pytest.mark.shows("I17")
@pytest.mark.parametrize(
    "final",
    [
        "That would delete 41 backups for good. Shall I go ahead?",
        "It cannot be undone. Do you want me to continue?",
        "The registry refuses; the account has to be given the reader role by an admin.",
        "The handler is in. I need the webhook secret from your dashboard.",
        "flyctl is not logged in. Please run `flyctl auth login` and start me again.",
    ],
)
def test_only_the_person_can_go_on(final: str) -> None:
    """A warning before a question makes it a real one; so does a thing only the person has."""
    assert ending(final) == "question"


@pytest.mark.shows("I17")
@pytest.mark.parametrize(
    "final",
    [
        "PR 3 is open. Tell me when she has approved, and I'll merge it.",
        'The template compiles. Run `az login` in a terminal, then say "go on" and I\'ll deploy to staging.',
        "Ping me once the certificate is there.",
        "Der PR ist offen. Sag Bescheid, sobald sie zugestimmt hat.",
        "La PR est ouverte. Préviens-moi dès que c'est validé.",
        "La PR está abierta. Avísame cuando la aprueben.",
        "O PR está aberto. Me avise quando ela aprovar.",
    ],
)
def test_it_is_the_persons_turn(final: str) -> None:
    """The agent says what it waits for and what it does then; no more is left to it."""
    assert ending(final) == "question"
