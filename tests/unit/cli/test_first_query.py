from __future__ import annotations

import shlex

from pinot_assets.cli.first_query import first_query


def test_the_command_is_one_that_a_shell_takes() -> None:
    look = first_query("my-table", "https://c.example")
    assert shlex.split(look.command) == ["pinot-assets", "query", look.sql]
    assert look.sql == 'SELECT * FROM "my-table" LIMIT 10'
    assert look.console == "https://c.example/#/query?query=SELECT+*+FROM+%22my-table%22+LIMIT+10"
