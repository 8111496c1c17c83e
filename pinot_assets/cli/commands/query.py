"""`pinot-assets query`: run SQL at a broker, and show its answer and what is missing of it."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import typer
from rich.markup import escape

from pinot_assets.cli.options import AsJson, table_names
from pinot_assets.cli.program import error_values
from pinot_assets.cli.result_table import ResultColumn, layout
from pinot_assets.cli.terminal import new_console, show_json
from pinot_assets.core.connections import origin_of
from pinot_assets.core.exit_codes import ExitCode, code_of
from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.core.text import plural
from pinot_assets.core.untrusted import SPEC_BYTES
from pinot_assets.errors import PinotError, TypedWrong
from pinot_assets.pinot import HttpPinotClient, NoResult
from pinot_assets.pinot.client.broker_answer import BrokerAnswer
from pinot_assets.pinot.query_text import USUAL_LIMIT, explains, limit_of, of_name, possible_tables, writes
from pinot_assets.printable import visible
from pinot_assets.settings.environment import load_settings
from pinot_assets.table_spec.yaml.document import did_you_mean

NULL: Final = "NULL"
"""How a value that is null is shown; Pinot's own default for a missing text is `null`."""
_NUMBERS: Final = frozenset(("INT", "LONG", "FLOAT", "DOUBLE", "BIG_DECIMAL"))
_STDIN: Final = "-"
_ENGINE: Final = "useMultistageEngine"


def query(
    sql: Annotated[
        str,
        typer.Argument(
            help="A SELECT, or anything else that a broker answers; or the name of a table, for its "
            "first rows; - reads it from standard input.",
            metavar="SQL",
            autocompletion=table_names,
        ),
    ],
    broker: Annotated[
        str | None,
        typer.Option(
            "--broker",
            metavar="URL",
            help="http://host:port of the broker (default: one that serves the table).",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", min=0.001, max=3600, metavar="SECONDS", help="Seconds that the query may take."
        ),
    ] = 15.0,
    multistage: Annotated[
        bool, typer.Option("--multistage", help="Use Pinot's multi-stage engine, if the brokers have it.")
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Show the rows as CSV; a null is empty.")] = False,
) -> None:
    """Run SQL at a broker of Pinot and show its rows.

    `pinot-assets query flights` shows the first rows of a table. The command only reads: it refuses an
    INSERT. Pinot returns 10 rows of a query without LIMIT. In a terminal, long values are cut; `--json` and
    `--csv` show them whole. A null is NULL. For a missing value Pinot returns the default of its
    column, unless the query begins with `SET enableNullHandling = true;`, which Pinot 0.11 refuses. IS NULL
    finds missing values if the table stores them (`nullHandlingEnabled: true`).

    Exits 0; 2 when the answer is only a part, which is shown; 1 when there is no answer: Pinot refuses the
    query, or no broker can be reached.
    """
    if as_json and as_csv:
        raise TypedWrong("--json and --csv exclude each other", hint="give one of them")
    text = of_name(_stdin() if sql == _STDIN else sql)
    if not text.strip():
        raise TypedWrong("there is no query", hint="give one, or name a table: `pinot-assets query TABLE`")
    if writes(text):
        raise TypedWrong(
            "`query` only reads, so an INSERT is not sent",
            why="a broker would send it to the controller, which starts a task that adds segments",
            hint="let a run publish the files: `pinot-assets run TABLE`",
        )
    options = {_ENGINE: "true"} if multistage else {}
    with HttpPinotClient(load_settings().pinot) as pinot:
        answer = pinot.ask_brokers(_brokers(pinot, text, broker), text, options, timeout)
        trouble = _with_names(pinot, text, answer.trouble)
    more = _more(answer, text, multistage)
    code = ExitCode.DONE
    if trouble is not None:
        code = ExitCode.REFUSED if answer.has_result else code_of(trouble)
    if as_json:
        show_json(_values(answer, text, more) | _error(trouble, code))
    elif as_csv:
        _show_csv(answer)
    elif answer.has_result or trouble is None:
        _show(answer)
    _tell(answer, trouble, None if as_json else more)
    raise typer.Exit(code)


def _stdin() -> str:
    """Return the text of standard input.

    :raises TypedWrong: it is too long.
    """
    text = sys.stdin.read(SPEC_BYTES + 1)
    if len(text) > SPEC_BYTES:
        raise TypedWrong(
            "the query on standard input is too long",
            why=f"at most {SPEC_BYTES:,} characters are read",
        )
    return text


def _brokers(pinot: HttpPinotClient, sql: str, given: str | None) -> Sequence[str]:
    """Return the brokers to try, in this order: those that serve all the tables that the query may name.

    :raises PinotError: no broker is online.
    """
    if given is not None:
        if origin_of(given) is None:  # not shown: it may hold a password
            raise TypedWrong(
                "--broker is not the address of a broker",
                hint="write http://host:port or https://host:port, without user and password",
            )
        return [given]
    words, by_table = possible_tables(sql), pinot.brokers_by_table()
    named = [frozenset(brokers) for table, brokers in by_table.items() if table in words]
    brokers = sorted(frozenset.intersection(*named)) if named else pinot.all_brokers()
    if not brokers:
        raise PinotError(
            "no broker is online that could answer",
            hint="`pinot-assets doctor` shows which parts of Pinot answer",
        )
    return brokers


def _with_names(pinot: HttpPinotClient, sql: str, trouble: PinotError | None) -> PinotError | None:
    """Return the error with the tables that exist, if it is that there is no such table."""
    if not isinstance(trouble, NoResult):
        return trouble
    tables = sorted(pinot.brokers_by_table())
    meant = next(
        (hint for word in sorted(possible_tables(sql)) if (hint := did_you_mean(word, tables))), None
    )
    return NoResult(trouble.what, why=trouble.why, hint=meant or f"Pinot has: {', '.join(tables) or 'none'}")


def _more(answer: BrokerAnswer, sql: str, multistage: bool) -> str | None:
    """Return a note if the LIMIT may have cut rows off; None if it did not."""
    limit = limit_of(sql)
    if limit is not None and len(answer.rows) >= limit > 0:
        return f"the answer has as many rows as the LIMIT {limit:,}; there may be more"
    if limit is None and len(answer.rows) == USUAL_LIMIT and not multistage and not explains(sql):
        return f"Pinot returns {USUAL_LIMIT} rows of a query without LIMIT; to see more, add one: LIMIT 100"
    return None


# --- for people ----------------------------------------------------------------------------------


def _show(answer: BrokerAnswer) -> None:
    console = new_console()
    columns = [
        ResultColumn(name, kind in _NUMBERS) for name, kind in zip(answer.columns, answer.types, strict=True)
    ]
    rows = [[_text(value) for value in row] for row in answer.rows]
    if columns:
        table = layout(columns, rows, console.width if console.is_terminal else None)
        if table.head:
            console.print(table.head, style="bold", markup=False)
        for line in table.lines:
            typer.echo(line)
        if table.is_cut:
            console.print("… marks a value that is cut; --json and --csv show it whole", style="dim")
    for line in _summary(answer):
        console.print(line, style="dim", markup=False)


def _summary(answer: BrokerAnswer) -> Iterator[str]:
    """Yield where the rows come from."""
    yield f"{plural(len(answer.rows), 'row')} in {answer.time_ms:,} ms from {answer.broker}"
    if answer.servers:
        yield (
            f"{answer.servers_answered:,} of {plural(answer.servers, 'server')} answered, "
            f"{plural(answer.segments, 'segment')}, "
            f"{answer.docs_scanned:,} of {plural(answer.total_docs, 'document')} scanned"
        )


def _tell(answer: BrokerAnswer, trouble: PinotError | None, more: str | None) -> None:
    """Print on standard error what is missing of the answer."""
    err = new_console(stderr=True)
    if more is not None:
        err.print(f"[yellow]note[/]: {more}")
    if trouble is not None:
        what = "partial" if answer.has_result else "error"
        err.print(f"[bold red]{what}[/]: {escape(str(trouble))}")


def _text(value: JsonValue) -> str:
    if value is None:
        return NULL
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- for other programs --------------------------------------------------------------------------


def _show_csv(answer: BrokerAnswer) -> None:
    rows = [answer.columns, *([None if v is None else _text(v) for v in row] for row in answer.rows)]
    text = io.StringIO()
    csv.writer(text).writerows(rows if answer.columns else [])
    # Not by typer, which removes escape sequences from what is no terminal's.
    sys.stdout.write(_harmless(text.getvalue()) if sys.stdout.isatty() else text.getvalue())


def _harmless(text: str) -> str:
    """Return CSV as a terminal may get it; another program gets it unchanged."""
    return "\r\n".join(map(visible, text.split("\r\n")))


def _error(trouble: PinotError | None, code: ExitCode) -> JsonObject:
    return {} if trouble is None else {**error_values(trouble), "exit": int(code)}


def _values(answer: BrokerAnswer, sql: str, more: str | None) -> JsonObject:
    return {
        "sql": sql,
        "columns": [
            {"name": name, "type": kind} for name, kind in zip(answer.columns, answer.types, strict=True)
        ],
        "rows": [list(row) for row in answer.rows],
        "limited": more is not None,
        "timeMs": answer.time_ms,
        "broker": answer.broker,
        "partial": answer.has_result and answer.trouble is not None,
        "exceptions": [{"code": one.code, "message": one.message} for one in answer.exceptions],
        "servers": {"asked": answer.servers, "answered": answer.servers_answered},
        "segments": answer.segments,
        "docsScanned": answer.docs_scanned,
        "totalDocs": answer.total_docs,
    }
