"""Texts as Java writes them: UTF-16 order, floating point numbers, and lines of a properties file.

`metadata.properties` and `index_map` are what commons-configuration2 makes of Pinot's values after two saves
(docs/design/segment-format.md#s4-2); floating point texts are those of `Double.toString` on JDK 19 and later
(docs/design/segment-format.md#s4-5).
"""

from __future__ import annotations

import re

import numpy as np

_NAMED = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 92: "\\\\"}
_ESCAPED = re.compile(r"[\x00-\x1f\\\u0080-\uffff]")
UNSAFE_VALUE = re.compile(r"[,\U00010000-\U0010ffff]|\$\{")
"""What a value cannot hold: a comma makes it a list, `${` is interpolated, and commons-configuration2 writes
five hex digits for a character beyond U+FFFF and reads back four."""

_KEY_ESCAPED = re.compile(r"[ \t\f=:\\]")
_SURROGATE = re.compile(r"[\ud800-\udfff\U00010000-\U0010ffff]")


def utf16_key(text: str) -> bytes:
    """Sort key that orders texts by UTF-16 code unit, as `String.compareTo` does."""
    return text.encode("utf-16-be", "surrogatepass")


def utf16_length(text: str) -> int:
    """Length in UTF-16 units, as `String.length` counts."""
    return len(text) + sum(unit > "\uffff" for unit in text)


def cut_utf16(text: str, units: int) -> str:
    """The first `units` UTF-16 units; may leave half a surrogate pair at the end, as in Java."""
    return text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "surrogatepass")


def _escape_unit(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _NAMED.get(code) or f"\\u{code:04X}"


def property_line(key: str, value: str) -> str:
    """One line of `metadata.properties`, line end included.

    Source: docs/design/segment-format.md#s4-2, rules 1 to 3.
    """
    line = f"{escaped_key(key)} = {_ESCAPED.sub(_escape_unit, value)}"
    return line.rstrip(" ") + "\n"


def escaped_key(key: str) -> str:
    """A key of `metadata.properties` or `index_map`, escaped (docs/design/segment-format.md#s2)."""
    return _KEY_ESCAPED.sub(lambda found: "\\" + found[0], key)


def protected_value(text: str) -> str | None:
    """A data value made safe for a properties file, or None when it cannot be written.

    Source: `CommonsConfigurationUtils.replaceSpecialCharacterInPropertyValue`
    (docs/design/segment-format.md#s4-2, rule 4).
    """
    if _SURROGATE.search(text):
        return None
    if text.startswith(" "):
        text = "\0" + text
    if text.endswith(" "):
        text += "\0"
    return text.replace(",", "\0\0")


def java_double(value: float) -> str:
    """`Double.toString` of JDK 19 and later."""
    return _java_real(np.float64(value))


def java_float(value: float) -> str:
    """`Float.toString` of JDK 19 and later: the shortest text that round-trips in 32 bits."""
    return _java_real(np.float32(value))


def _java_real(value: np.floating) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if np.signbit(value) else ""
    if value == 0:
        return sign + "0.0"
    digits, exponent = _shortest(abs(value))
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: np.floating) -> tuple[str, int]:
    """Shortest digits that round-trip and the exponent of the first one.

    Java asks for at least two digits, so a single digit gives way to the closest two-digit decimal when that
    round-trips too (4.9E-324, not 5.0E-324).
    """
    digits, exponent = _split(np.format_float_scientific(value, unique=True, trim="-"))
    if len(digits) == 1:
        two = f"{float(value):.1e}"
        if type(value)(two) == value:
            digits, exponent = _split(two)
    return digits, exponent


def _split(scientific: str) -> tuple[str, int]:
    mantissa, _, exponent = scientific.partition("e")
    return mantissa.replace(".", "").rstrip("0"), int(exponent)
