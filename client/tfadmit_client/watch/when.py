"""Times as the API server writes them, and lengths of time for people. Pure.

Kubernetes writes RFC 3339 in UTC: seconds in most fields, microseconds in `eventTime`, nanoseconds
in logs.
"""

import calendar
import re

_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def seconds(text: str) -> float | None:
    """Give the seconds since 1970 of a time; None when it is none."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    *numbers, fraction, zone = found.groups()
    whole = calendar.timegm((*map(int, numbers), 0, 0, 0))
    if zone != "Z":
        sign = -1 if zone[0] == "-" else 1
        whole -= sign * (int(zone[1:3]) * _HOUR + int(zone[4:]) * _MINUTE)
    return whole + float(fraction or 0)


def length(span: float) -> str:
    """Write a length of time as kubectl does: two units while small, one when it is long."""
    whole = max(0, int(span))
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 2 * _HOUR:
        minutes, rest = divmod(whole, _MINUTE)
        return f"{minutes}m{rest}s" if rest and minutes < 10 else f"{minutes}m"
    if whole < 2 * _DAY:
        hours, rest = divmod(whole, _HOUR)
        return f"{hours}h{rest // _MINUTE}m" if rest >= _MINUTE and hours < 8 else f"{hours}h"
    days, rest = divmod(whole, _DAY)
    return f"{days}d{rest // _HOUR}h" if rest >= _HOUR and days < 8 else f"{days}d"


def text(at: float) -> str:
    """Write seconds since 1970 as RFC 3339, in whole seconds."""
    days, rest = divmod(int(at), _DAY)
    # From days to a date, by the Gregorian calendar; times here are after 1970.
    year = 1970
    while days >= (length_of := 365 + calendar.isleap(year)):
        days -= length_of
        year += 1
    month = 1
    while days >= (length_of := calendar.monthrange(year, month)[1]):
        days -= length_of
        month += 1
    hour, rest = divmod(rest, _HOUR)
    return f"{year:04}-{month:02}-{days + 1:02}T{hour:02}:{rest // 60:02}:{rest % 60:02}Z"
