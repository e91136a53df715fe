"""Label selectors as Kubernetes has them: all of `matchLabels` and `matchExpressions` must hold.

Values and the matching of labels against them, by the rules of k8s.io/apimachinery's
`labels.Requirement`. Pure; whose labels they are is not known here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What one label must be like."""

    key: str
    """Name of the label."""

    operator: Operator
    """How the label is compared; NotIn and DoesNotExist also hold where there is no such label."""

    values: tuple[str, ...] = ()
    """What In and NotIn compare with."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil this."""
        if self.operator in ("In", "NotIn"):
            return (labels.get(self.key) in self.values) is (self.operator == "In")
        return (self.key in labels) is (self.operator == "Exists")


@dataclass(frozen=True, kw_only=True)
class LabelSelector:
    """Which labels are meant; without any condition, all."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that must be there, with these values."""

    match_expressions: tuple[Requirement, ...] = ()
    """Conditions on labels."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil all conditions."""
        return self.match_labels.items() <= labels.items() and all(
            item.matches(labels) for item in self.match_expressions
        )
