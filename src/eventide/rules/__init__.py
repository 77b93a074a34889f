"""Detection rules: Sigma rules over streams of log events, stored or live.

loading.py   files to rules: `load`, `examine`
ruleset.py   the rules of a database: run over history, or live with one receiver
rule.py      a rule with its query; an alert
kept.py      rules that a database keeps: `add`, `kept`, `drop`
mapping.py   which stream a rule is about, and which column a field is: a small YAML
columns.py   the columns of a stream under the names that rules use
texts.py     parts of SQL: names, literals, conditions
yaml_files.py files of YAML, found and read
sigma/       what is read with pySigma: conditions and correlations become queries

Rules need the packages of `pip install 'eventide[rules]'`.
"""

from eventide.rules.kept import add, drop, kept
from eventide.rules.loading import examine, load
from eventide.rules.rule import Alert, Rule
from eventide.rules.ruleset import LiveRules, RuleSet

__all__ = ["Alert", "LiveRules", "Rule", "RuleSet", "add", "drop", "examine", "kept", "load"]
