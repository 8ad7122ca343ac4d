"""Walks a parsed command line and judges every simple command that it would run.

tree-sitter reads the line. What it cannot read counts as opaque, and so does what is too deep.
"""

from takeback.guard.call import Call
from takeback.guard.expansion import Expander, source_of
from takeback.guard.findings import (
    DECODED,
    DOWNLOAD,
    FILE,
    HIDDEN,
    HIDDEN_FLOW,
    LISTING,
    NO_FLOW,
    TEXT,
    UNKNOWN,
    Finding,
    Flow,
    Word,
)  # fmt: skip
from takeback.guard.programs import files, hidden, registry
from takeback.guard.scope import Scope
from takeback.model.beyond.effects import OPAQUE
from takeback.model.reasons import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tree_sitter import Node, Parser

    from takeback.guard.rules import Rules

_DEEPEST = 24
_MOST_COMMANDS = 2000
_MOST_TURNS = 24
_parsers: "list[Parser]" = []


def parser() -> "Parser":
    if not _parsers:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        _parsers.append(Parser(Language(tree_sitter_bash.language())))
    return _parsers[0]


class Shell:
    """Judges command lines; the findings are in the order of the commands."""

    __slots__ = ("_left", "findings", "rules")

    def __init__(self, rules: "Rules") -> None:
        self.rules = rules
        self.findings: list[Finding] = []
        self._left = _MOST_COMMANDS

    # -- texts and trees ------------------------------------------------------------------------

    def run_text(self, text: str, scope: Scope, stdin: Flow = NO_FLOW) -> Flow:
        """Judge a command line."""
        scope.depth += 1
        try:
            if scope.depth > _DEEPEST:
                return self.hide(text, "too-deep")
            data = text.encode("utf-8", "surrogateescape")
            root = parser().parse(data).root_node
            if root.has_error:
                root = _rewritten(text) or root
            if root.has_error:
                self.hide(text, "unparsed")
            before = len(self.findings)
            given = self.statements(root, scope, stdin)
            if hidden.is_light(self.findings[before:]):
                hidden.judge_quoted(self, root, text, scope)
            return given
        finally:
            scope.depth -= 1

    def hide(self, text: str, code: str, rule: str = "") -> Flow:
        """Note what cannot be read."""
        self.findings.append(
            Finding(OPAQUE, rule or f"shell.{code}", Reason(code), command=text.strip())
        )
        return HIDDEN_FLOW

    def statements(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        flow = NO_FLOW
        for child in node.named_children:
            flow = _joined(flow, self.statement(child, scope, stdin))
        return flow

    def statement(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        self._left -= 1
        if self._left < 0:
            return self.hide("", "too-long") if self._left == -1 else HIDDEN_FLOW
        walk = _WALKS.get(node.type)
        if walk is not None:
            return walk(self, node, scope, stdin)
        if node.type in _WORDS:
            self.expander(scope).words(node)  # a substitution in a word runs, too
            return NO_FLOW
        return self.statements(node, scope, stdin)

    def _subshell(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        return self.statements(node, scope.copy(), stdin)

    def _pipeline(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        flow = stdin
        for child in node.named_children:
            # Each stage runs in a subshell; a `while read` at the end reads what came before.
            flow = self._stage(child, scope, flow)
        return flow

    def _stage(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        inner = scope.copy()
        given = self.statement(node, inner, stdin)
        if stdin.has_secret and not given.has_secret:
            given = given.replace(has_secret=True)
        return given

    def _nothing(self, _node: "Node", _scope: Scope, _stdin: Flow) -> Flow:
        return NO_FLOW

    def _function(self, node: "Node", scope: Scope, _stdin: Flow) -> Flow:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            scope.functions[source_of(name)] = body
        return NO_FLOW

    def _for(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is None or body is None:
            return self.hide(source_of(node), "unparsed")
        values = [
            word
            for child in node.children_by_field_name("value")
            for word in self.expander(scope).words(child)
        ] or [Word(UNKNOWN)]
        if len(values) > _MOST_TURNS:
            values = [*values[:_MOST_TURNS], Word(UNKNOWN)]
        flow = NO_FLOW
        for value in values:
            scope.variables[source_of(variable)] = (value,)
            flow = _joined(flow, self.statement(body, scope, stdin))
        return flow

    def _case(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        flow = NO_FLOW
        for child in node.named_children:
            if child.type == "case_item":
                patterns = {each.id for each in child.children_by_field_name("value")}
                for each in child.named_children:
                    if each.id not in patterns:
                        flow = _joined(flow, self.statement(each, scope, stdin))
            else:
                self.expander(scope).words(child)
        return flow

    def _error(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        self.statements(node, scope, stdin)
        return HIDDEN_FLOW

    # -- assignments ----------------------------------------------------------------------------

    def _assign(self, node: "Node", scope: Scope, _stdin: Flow) -> Flow:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return NO_FLOW
        text = source_of(name)
        words: tuple[Word, ...] = (Word(""),)
        if value is not None and value.type == "array":
            members = [
                word for child in value.named_children for word in self.expander(scope).words(child)
            ]
            words = tuple(members)
        elif value is not None:
            words = (self.expander(scope).text(value),)
        if "[" in text:
            text = text.partition("[")[0]
            words = (*scope.variables.get(text, ()), *words)
        if any(not child.is_named and child.type == "+=" for child in node.children):
            words = _appended(scope.variables.get(text, ()), words, value)
        scope.variables[text] = words
        return NO_FLOW

    def _assignment(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        self._assign(node, scope, stdin)
        registry.judge_variable(self, scope, node)
        return NO_FLOW

    def _assigns(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        for child in node.named_children:
            self.statement(child, scope, stdin)
        return NO_FLOW

    def _unset(self, node: "Node", scope: Scope, _stdin: Flow) -> Flow:
        for child in node.named_children:
            scope.variables.pop(source_of(child), None)
            scope.functions.pop(source_of(child), None)
        return NO_FLOW

    # -- commands -------------------------------------------------------------------------------

    def expander(self, scope: Scope) -> Expander:
        return Expander(scope, self.substitute)

    def substitute(self, node: "Node", scope: Scope) -> Flow:
        """Judge what stands in `$(…)` or `<(…)`; gives what it writes."""
        inner = scope.copy()
        inner.depth += 1
        if inner.depth > _DEEPEST:
            return self.hide(source_of(node), "too-deep")
        redirects = [each for each in node.named_children if each.type == "file_redirect"]
        if redirects and len(redirects) == len(node.named_children):  # `$(< file)`
            word = self._destination(redirects[0], scope)
            return registry.content_of(word, scope)
        return self.statements(node, inner, NO_FLOW)

    def _command(
        self, node: "Node", scope: Scope, stdin: Flow, more: "Sequence[Node]" = ()
    ) -> Flow:
        expander = self.expander(scope)
        groups: list[list[Node]] = []
        assigned: list[Node] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assigned.append(child)
            elif child.type in {"herestring_redirect", "heredoc_redirect", "file_redirect"}:
                stdin = self._redirect(child, scope, stdin, source_of(node))
            elif child.is_named and child.type != "comment":
                if groups and groups[-1][-1].end_byte == child.start_byte:
                    groups[-1].append(child)  # a word that tree-sitter gives in pieces
                else:
                    groups.append([child])
        groups += [[each] for each in more]
        words = [word for group in groups for word in expander.words(*group)]
        inner = scope
        if assigned and words:
            inner = scope.copy()
        for child in assigned:
            self._assign(child, inner, stdin)
            registry.judge_variable(self, inner, child)
        if not words:
            return NO_FLOW
        given = self.invoke(words, stdin, source_of(node), inner)
        if inner is not scope:
            scope.cwd = inner.cwd
        return given

    def invoke(self, words: "Sequence[Word]", stdin: Flow, raw: str, scope: Scope) -> Flow:
        """Judge one command whose words are known as far as they are."""
        if not words:
            return NO_FLOW
        scope.depth += 1
        try:
            if scope.depth > _DEEPEST:
                return self.hide(raw, "too-deep")
            return self._invoked(words, stdin, raw, scope)
        finally:
            scope.depth -= 1

    def _invoked(self, words: "Sequence[Word]", stdin: Flow, raw: str, scope: Scope) -> Flow:
        name = words[0].value
        if name in scope.functions:
            inner = scope
            kept = {key: inner.variables.get(key) for key in "@*123456789"}
            set_arguments(inner, words[1:])
            given = self.statement(scope.functions[name], inner, stdin)
            inner.variables.update({key: value for key, value in kept.items() if value})
            return given
        if name in scope.aliases:
            inner = scope.copy()
            text = inner.aliases.pop(name)
            return self.run_text(" ".join([text, *(each.raw for each in words[1:])]), inner, stdin)
        before = len(self.findings)
        given = registry.judge_command(self, words, stdin, raw, scope)
        self.findings[before:] = registry.with_rules(self.rules, words, self.findings[before:], raw)
        return given

    # -- redirections ---------------------------------------------------------------------------

    def _redirected(self, node: "Node", scope: Scope, stdin: Flow) -> Flow:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.named_children if child.type in _REDIRECTS]
        written: list[tuple[Word, bool]] = []
        for child in redirects:
            for each in self._inner_redirects(child):
                stdin = self._redirect(each, scope, stdin, source_of(node), written)
        more = [word for child in redirects for word in _behind(child)]
        if more and body is not None and body.type == "command":
            given = self._command(body, scope, stdin, more)
        else:
            given = self.statement(body, scope, stdin) if body is not None else NO_FLOW
        for word, is_append in written:
            files.note_written(scope, word, given, is_append=is_append)
        for child in redirects:
            if child.type == "heredoc_redirect":
                given = self._after_heredoc(child, scope, given)
        return NO_FLOW if written and _is_stdout(redirects) else given

    def _inner_redirects(self, node: "Node") -> "list[Node]":
        """A redirection and those that tree-sitter puts into a here-document's."""
        inner = [child for child in node.named_children if child.type in _REDIRECTS]
        return [node, *inner]

    def _redirect(
        self,
        node: "Node",
        scope: Scope,
        stdin: Flow,
        raw: str,
        written: "list[tuple[Word, bool]] | None" = None,
    ) -> Flow:
        if node.type == "herestring_redirect":
            word = self.expander(scope).text(node.named_children[-1])
            return Flow(TEXT, word.value + "\n", has_secret=word.has_secret)
        if node.type == "heredoc_redirect":
            return self._heredoc(node, scope)
        operator = next((each.type for each in node.children if not each.is_named), ">")
        word = self._destination(node, scope)
        if operator in {"<", "<&"}:
            return registry.content_of(word, scope) if operator == "<" else stdin
        if operator in {">&", ">&-", "<&-"} and (word.value.isdigit() or word.value in {"-", ""}):
            return stdin
        descriptor = node.child_by_field_name("descriptor")
        is_output = descriptor is None or source_of(descriptor) == "1"
        if word.flow is None and not _is_harmless(word):
            call = Call(self, scope, "shell.redirect", (), stdin, raw)
            is_append = operator.endswith(">>")
            files.judge_redirect(call, word, is_append=is_append)
            self.findings += call.findings
            if written is not None and is_output:
                written.append((word, is_append))
        return stdin

    def _destination(self, node: "Node", scope: Scope) -> Word:
        found = node.child_by_field_name("destination")
        if found is None:
            return Word("-")
        words = self.expander(scope).words(found)
        return words[0] if len(words) == 1 else Word(UNKNOWN, source_of(found))

    def _heredoc(self, node: "Node", scope: Scope) -> Flow:
        start = next((each for each in node.children if each.type == "heredoc_start"), None)
        body = next((each for each in node.children if each.type == "heredoc_body"), None)
        if body is None:
            return Flow(TEXT)
        text = source_of(body)
        if start is not None and source_of(start)[:1] in {"'", '"', "\\"}:
            return Flow(TEXT, text)
        return self._expanded(body, scope)

    def _expanded(self, body: "Node", scope: Scope) -> Flow:
        source, at, made, secret = body.text or b"", 0, "", False
        for child in body.named_children:
            if child.type == "heredoc_content":
                continue
            made += source[at : child.start_byte - body.start_byte].decode("utf-8", "replace")
            word = self.expander(scope).text(child)
            made, at = made + word.value, child.end_byte - body.start_byte
            secret = secret or word.has_secret
        return Flow(TEXT, made + source[at:].decode("utf-8", "replace"), has_secret=secret)

    def _after_heredoc(self, node: "Node", scope: Scope, given: Flow) -> Flow:
        """The rest of a line that has a here-document: tree-sitter puts it before the text."""
        for child in node.named_children:
            if child.type == "pipeline":
                given = self._pipeline(child, scope, given)
            elif child.type not in {"heredoc_start", "heredoc_body", "heredoc_end", *_REDIRECTS}:
                given = _joined(given, self.statement(child, scope, NO_FLOW))
        return given


_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_WORDS = frozenset(
    """
    word string raw_string ansi_c_string concatenation simple_expansion expansion number
    command_substitution process_substitution arithmetic_expansion translated_string
    """.split()
)
_WALKS: "dict[str, Callable[[Shell, Node, Scope, Flow], Flow]]" = {
    "comment": Shell._nothing,
    "command": Shell._command,
    "redirected_statement": Shell._redirected,
    "pipeline": Shell._pipeline,
    "subshell": Shell._subshell,
    "function_definition": Shell._function,
    "variable_assignment": Shell._assignment,
    "variable_assignments": Shell._assigns,
    "declaration_command": Shell._assigns,
    "unset_command": Shell._unset,
    "for_statement": Shell._for,
    "case_statement": Shell._case,
    "ERROR": Shell._error,
}


def _is_harmless(word: Word) -> bool:
    from takeback.guard.scope import DEVICES

    return word.value in DEVICES or word.value.startswith("/dev/fd/") or word.value.isdigit()


def _behind(redirect: "Node") -> "list[Node]":
    """Words of the command that stand behind a redirection: `rm < list -rf x`."""
    if redirect.type != "file_redirect":
        return []
    return redirect.children_by_field_name("destination")[1:]


def _is_stdout(redirects: "list[Node]") -> bool:
    return any(
        each.type == "file_redirect" and "<" not in source_of(each)[:2] for each in redirects
    )


def set_arguments(scope: Scope, words: "Sequence[Word]") -> None:
    scope.variables["@"] = scope.variables["*"] = tuple(words)
    for number in range(1, 10):
        scope.variables[str(number)] = (words[number - 1],) if number <= len(words) else (Word(""),)


def _appended(
    before: "tuple[Word, ...]", added: "tuple[Word, ...]", value: "Node | None"
) -> "tuple[Word, ...]":
    if not before or (value is not None and value.type == "array"):
        return before + added
    last, more = before[-1], added[0]
    return (*before[:-1], last.replace(value=last.value + more.value))


def _rewritten(text: str) -> "Node | None":
    """The tree of a text in forms that tree-sitter reads; None if it cannot read these either."""
    from takeback.guard.rewriting import rewrite

    other = rewrite(text)
    if other == text:
        return None
    root = parser().parse(other.encode("utf-8", "surrogateescape")).root_node
    return None if root.has_error else root


_GRAVITY = {TEXT: 0, FILE: 1, LISTING: 1, DECODED: 3, DOWNLOAD: 4, HIDDEN: 2}


def _joined(one: Flow, two: Flow) -> Flow:
    """What two commands write one after the other."""
    if two is NO_FLOW:
        return one
    if one is NO_FLOW:
        return two
    secret = one.has_secret or two.has_secret
    if one.kind == two.kind == TEXT:
        return Flow(TEXT, one.text + two.text, has_secret=secret)
    if one.kind == two.kind == LISTING:
        return Flow(LISTING, paths=one.paths + two.paths, has_secret=secret)
    gravest = max(one, two, key=lambda each: _GRAVITY.get(each.kind, 0))
    kind = gravest.kind if gravest.kind in {DOWNLOAD, DECODED, FILE} else HIDDEN
    return Flow(kind, has_secret=secret)
