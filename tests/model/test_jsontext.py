"""JSON is written and read as the `json` module does it, without that module."""

import importlib.util
import json
import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.model.text import json_text

TEXTS = st.text(st.characters(exclude_categories=()))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


def _without_c() -> ModuleType:
    """Load `jsontext` as an interpreter does whose `json` has no C functions."""
    spec = importlib.util.find_spec("takeback.model.text.json_text")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "_json", None)
        spec.loader.exec_module(module)
    return module


WITHOUT_C = _without_c()


@given(VALUES)
def test_without_c_functions_the_text_is_the_same(value: "json_text.Json") -> None:
    """Where `_json` is missing, `json` writes the same bytes and reads the same values."""
    text = WITHOUT_C.dumps(value)
    assert text == json_text.dumps(value)
    assert WITHOUT_C.loads(text) == value
    assert WITHOUT_C.dumps({"a": range(2)}) == '{"a":[0,1]}'


@given(VALUES)
def test_what_was_written_is_read(value: "json_text.Json") -> None:
    """A value comes back as it was, lone surrogates too, and the `json` module agrees."""
    text = json_text.dumps(value)
    said = json_text.loads(text)
    assert said == value == json.loads(text)


@given(st.text('[]{}"\\:,019.eE-+ntrufalsx \n') | TEXTS)
def test_rubbish_is_refused_as_ever(text: str) -> None:
    """What the `json` module refuses is refused; what it reads is read, but for blanks around."""
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            json_text.loads(text)
        return
    if text.strip(" \n\r\t") == text:
        assert json.dumps(json_text.loads(text)) == json.dumps(expected)


def test_what_stands_behind_a_value_is_refused() -> None:
    """A line holds one value and nothing else."""
    for text in ("[] []", "1 ", "{}x"):
        with pytest.raises(ValueError, match="behind"):
            json_text.loads(text)
