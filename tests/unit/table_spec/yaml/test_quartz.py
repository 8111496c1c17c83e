"""Quartz into cron: the table of what is meant, and Quartz itself as the judge of when it fires."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from dagster._utils.schedules import cron_string_iterator, is_valid_cron_string
from fakes.processes.other_jvm import errors_of_py4j
from hypothesis import example, given, settings
from hypothesis import strategies as st
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from pinot_assets.core.this_machine import find_java
from pinot_assets.local import jars
from pinot_assets.table_spec.yaml.quartz import normalise_quartz, to_cron


@pytest.mark.parametrize(
    ("quartz", "cron"),
    [
        ("0 0 4 * * ?", "0 4 * * *"),
        ("0 0 4 ? * *", "0 4 * * *"),
        ("0 * * * * ? *", "* * * * *"),
        ("0 */30 * * * ?", "*/30 * * * *"),
        ("0 0/30 * * * ?", "*/30 * * * *"),
        ("0 /30 * * * ?", "*/30 * * * *"),
        ("0 5/15 * * * ?", "5,20,35,50 * * * *"),
        ("0 5/1 * * * ?", "5-59 * * * *"),
        ("0 10-30/7 * * * ?", "10,17,24 * * * *"),
        ("0 */45 * * * ?", "*/45 * * * *"),
        ("0 0 0/4 * * ?", "0 */4 * * *"),
        ("0 0 22-2 * * ?", "0 0,1,2,22,23 * * *"),
        ("0 0 22-2/3 * * ?", "0 1,22 * * *"),
        ("0 0 0-23 * * ?", "0 * * * *"),
        ("0 0 4 1/10 * ?", "0 4 1,11,21,31 * *"),
        ("0 0 4 30-2 * ?", "0 4 1,2,30,31 * *"),
        ("0 0 4 1 JAN,JUL ?", "0 4 1 1,7 *"),
        ("0 0 4 1 nov-feb ?", "0 4 1 1,2,11,12 *"),
        ("0 0 4 1 */3 ?", "0 4 1 1,4,7,10 *"),
        ("0 0 4 ? * 1", "0 4 * * 0"),
        ("0 0 4 ? * 7", "0 4 * * 6"),
        ("0 0 4 ? * MON-FRI", "0 4 * * 1-5"),
        ("0 0 4 ? * 2-6", "0 4 * * 1-5"),
        ("0 0 4 ? * FRI-MON", "0 4 * * 0,1,5,6"),
        ("0 0 4 ? * 6-2", "0 4 * * 0,1,5,6"),
        ("0 0 4 ? * SUN,3", "0 4 * * 0,2"),
        ("0 0 4 ? * 2/2", "0 4 * * 1,3,5"),
        ("0 0 4 ? * 1-7", "0 4 * * *"),
        ("0 0 4 29 FEB ?", "0 4 29 2 *"),
        ("0 15,45,15 9 ? * MON", "15,45 9 * * 1"),
    ],
)
def test_what_cron_says_for_it(quartz: str, cron: str) -> None:
    assert to_cron(quartz) == cron
    assert is_valid_cron_string(cron)


@pytest.mark.parametrize(
    ("quartz", "reason"),
    [
        ("*/30 * * * *", "five fields, as Unix cron"),
        ("0 0 4 * * ? * *", "8 fields"),
        ("30 0 4 * * ?", "seconds, 30, is not 0"),
        ("* 0 4 * * ?", "seconds, *, is not 0"),
        ("0,30 0 4 * * ?", "seconds, 0,30, is not 0"),
        ("0/30 0 4 * * ?", "seconds, 0/30, is not 0"),
        ("0 0 4 * * *", "exactly one"),
        ("0 0 4 ? * ?", "exactly one"),
        ("0 0 4 1 * MON", "exactly one"),
        ("0 0 4 * * ? 2027", "the year 2027"),
        ("0 0 4 * * ? */2", "the year */2"),
        ("0 0 4 L * ?", "L, W, # or C"),
        ("0 0 4 L-3 * ?", "L, W, # or C"),
        ("0 0 4 LW * ?", "L, W, # or C"),
        ("0 0 4 15W * ?", "L, W, # or C"),
        ("0 0 4 5C * ?", "L, W, # or C"),
        ("0 0 4 ? * 6L", "L, W, # or C"),
        ("0 0 4 ? * FRIL", "L, W, # or C"),
        ("0 0 4 ? * L", "L, W, # or C"),
        ("0 0 4 ? * 6#3", "L, W, # or C"),
        ("0 0 4 ? * FRI#3", "L, W, # or C"),
        ("0 60 4 * * ?", "minutes, 60, is not between 0 and 59"),
        ("0 0 24 * * ?", "hours, 24, is not between 0 and 23"),
        ("0 0 4 0 * ?", "day of month, 0, is not between 1 and 31"),
        ("0 0 4 1 13 ?", "month, 13, is not between 1 and 12"),
        ("0 0 4 ? * 0", "day of week, 0, is not between 1 and 7"),
        ("0 */60 * * * ?", "step that is not between 1 and 59"),
        ("0 0/0 * * * ?", "step that is not between 1 and 59"),
        ("0 ? 4 * * ?", "may not be ?"),
        ("0 0 4 ?,1 * ?", "may not be ?"),
        ("0 0 4 1,? * ?", "may not be ?"),
        ("0 0 noon! * * ?", "hours, NOON!, is not Quartz cron"),
        ("0 0 4 1 FOO ?", "month, FOO, is not Quartz cron"),
        ("0 0 4 ? * MONDAY", "day of week, MONDAY, is not Quartz cron"),
        ("0 0 4 ? * MON/2", "day of week, MON/2, is not Quartz cron"),
        ("0 0 4 ? * MON-6", "day of week, MON-6, is not Quartz cron"),
        ("0 0 MON * * ?", "hours, MON, is not Quartz cron"),
        ("0 5- 4 * * ?", "minutes, 5-, is not Quartz cron"),
        ("0 5, 4 * * ?", "is not Quartz cron"),
        ("0 *5 4 * * ?", "is not Quartz cron"),
        ("0 */ 4 * * ?", "is not Quartz cron"),
        ("0 0 4 30 FEB ?", "never fires"),
        ("0 0 4 31 2,4,6,9,11 ?", "never fires"),
    ],
)
def test_what_is_refused_and_why(quartz: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        to_cron(quartz)


def test_spaces_do_not_matter() -> None:
    assert normalise_quartz("  0 0\t4  * * ? ") == "0 0 4 * * ?"


# --- against Quartz itself -----------------------------------------------------------------------


class Quartz:
    """Quartz's own reading of an expression, as the local stack's Pinot has it."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._expression = gateway.jvm.org.quartz.CronExpression
        self._date = gateway.jvm.java.util.Date
        self._utc = gateway.jvm.java.util.TimeZone.getTimeZone("UTC")

    def fires(self, text: str, after: datetime, count: int) -> list[datetime] | None:
        """The next times, None where Quartz refuses the expression."""
        try:
            with errors_of_py4j():
                expression = self._expression(text)
        except Py4JJavaError:
            return None
        expression.setTimeZone(self._utc)
        found: list[datetime] = []
        moment = self._date(int(after.timestamp()) * 1000)
        while len(found) < count:
            moment = expression.getNextValidTimeAfter(moment)
            if moment is None:
                break
            found.append(datetime.fromtimestamp(moment.getTime() / 1000, UTC))
        return found


@pytest.fixture(scope="module")
def quartz() -> Iterator[Quartz]:
    port, process = launch_gateway(
        classpath=":".join(map(str, jars.class_path("pinot"))),
        java_path=str(find_java().executable),
        javaopts=["-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    yield Quartz(gateway)
    gateway.shutdown()
    process.stdin.close()
    process.wait(30)


def pieces(low: int, high: int, *names: str) -> st.SearchStrategy[str]:
    number = st.integers(low, high).map(str)
    word = st.one_of(number, st.sampled_from(names)) if names else number
    span = st.builds("{}-{}".format, number, number)
    if names:
        span |= st.builds("{}-{}".format, st.sampled_from(names), st.sampled_from(names))
    start = st.one_of(number, st.builds("{}-{}".format, number, number), st.sampled_from(["*", ""]))
    step = st.builds("{}/{}".format, start, st.integers(1, high))
    return st.lists(st.one_of(word, span, step), min_size=1, max_size=3).map(",".join)


MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MINUTE, HOUR, DAY = (st.just("*") | pieces(*ends) for ends in ((0, 59), (0, 23), (1, 31)))
MONTH = st.just("*") | pieces(1, 12, *MONTHS)
BY_DAY = st.builds("0 {} {} {} {} ?".format, MINUTE, HOUR, DAY, MONTH)
BY_WEEK_DAY = st.builds("0 {} {} ? {} {}".format, MINUTE, HOUR, MONTH, st.just("*") | pieces(1, 7, *DAYS))
AFTER = datetime(2027, 1, 15, 8, 1, tzinfo=UTC)


@settings(max_examples=300, deadline=None)
@given(BY_DAY | BY_WEEK_DAY)
@example("0 0 4 29 FEB ?")
@example("0 0 4 31 * ?")
@example("0 0 4 29-3 2-4 ?")
@example("0 59 23 ? 12-1 7-1")
@example("0 */7 */5 ? * */2")
@example("0 0 4 30 2 ?")
def test_dagster_starts_runs_when_quartz_would(quartz: Quartz, text: str) -> None:
    fires = quartz.fires(text, AFTER, 8)
    if not fires:
        with pytest.raises(ValueError, match=r"field|never fires"):
            to_cron(text)
        return
    cron = to_cron(text)
    assert is_valid_cron_string(cron)
    dagster = cron_string_iterator(AFTER.timestamp() + 1, cron, "UTC")
    assert fires == list(itertools.islice(dagster, len(fires)))


@settings(max_examples=300, deadline=None)
@given(st.text("0123456789*/-,?LW#CMONFRI ", min_size=6, max_size=20).map("0 0 {} ? * MON".format))
@example("0 0 4 * * *")
def test_what_quartz_refuses_is_refused(quartz: Quartz, text: str) -> None:
    try:
        to_cron(text)
    except ValueError:
        return
    assert quartz.fires(text, AFTER, 1)
