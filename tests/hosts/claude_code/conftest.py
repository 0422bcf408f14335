"""A story as each supported version of Claude Code writes it."""

from __future__ import annotations

import pytest

from tests.support.hosts.claude_code_story import Story


@pytest.fixture(params=[False, True], ids=["2.1.330", "2.1.197"])
def story(request: pytest.FixtureRequest) -> Story:
    return Story(old=request.param)
