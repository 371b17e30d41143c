"""Identities are texts that know their parts, wherever they go."""

import copy
import json
import pickle

import pyarrow as pa
import pytest

from millpond.catalog import name_complaint
from millpond.identities import GroupId, OperatorId, QueryId, QueryName, QueueId, StreamId
from millpond.planning.identified import identified
from millpond.sharing.arrangement import Begun

SOME = [
    StreamId("Bids"),
    StreamId("a:b").queue,
    QueueId("relation:r@5"),
    OperatorId("op7_1"),
    QueryName("Q").aside,
    QueryId("Q"),
    GroupId.of("401aa2ec812d77", None),
]


@pytest.mark.parametrize("identity", SOME)
def test_an_identity_is_its_text(identity):
    text = str(identity)
    assert type(text) is str
    assert identity == text
    assert {text: 1}[identity] == 1
    assert repr(identity) == repr(text)
    assert json.loads(json.dumps({identity: [identity]})) == {text: [text]}
    assert pa.array([identity]).to_pylist() == [text]


@pytest.mark.parametrize("identity", SOME)
@pytest.mark.parametrize("again", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_knows_its_parts(identity, again):
    made = again(identity)
    assert type(made) is type(identity)
    assert made == identity
    slots = [name for kind in type(made).__mro__ for name in getattr(kind, "__slots__", ())]
    for name in slots:
        assert getattr(made, name, None) == getattr(identity, name, None)


def test_an_identity_made_of_one_is_that_one():
    assert all(type(each)(each) is each for each in SOME)
    assert QueueId(SOME[3]) is SOME[3]


def test_the_name_of_an_input_is_no_operator_whatever_it_is():
    queue = StreamId("op7").queue
    assert not isinstance(queue, OperatorId)
    assert queue.stream == "op7"
    assert StreamId("a:b").queue.stream == "a:b"


@pytest.mark.parametrize("text", ["", "op", "opus", "op1_", "op-1", "OP1", "op१", "op1 "])
def test_what_names_no_operator_is_none(text):
    assert OperatorId.written(text) is None
    assert type(QueueId(text)) is QueueId
    with pytest.raises(ValueError, match="names no operator"):
        OperatorId(text)


def test_what_the_engine_makes_of_names_nobody_can_declare():
    for each in (QueryId("q").aside, GroupId.of("401aa2ec812d77", 0), "r@5"):
        assert name_complaint(each)


def test_what_was_read_as_text_is_an_identity_again():
    found = identified(Begun, {"query": "q", "output": "op3", "aside": None, "epoch": 1})
    assert [type(found[name]) for name in ("query", "output")] == [QueryId, OperatorId]
    assert found["aside"] is None
