from flakestorm.config.vocabulary import MUTATION_WEIGHTS
from flakestorm.mutations.base import REQUEST_TYPES, Operator, RequestOperator, types
from flakestorm.mutations.generate import operators_of


def test_every_type_has_operators_of_its_sort_with_names_of_their_own() -> None:
    assert {*types} == MUTATION_WEIGHTS.keys() - {"custom"}
    for name in types:
        operators = operators_of(name, {})
        assert len(operators) >= 3
        assert len({operator.name for operator in operators}) == len(operators)
        sort = RequestOperator if name in REQUEST_TYPES else Operator
        assert all(isinstance(operator, sort) for operator in operators)


def test_there_are_nine_types_of_requests() -> None:
    assert len(set(REQUEST_TYPES)) == 9
    assert set(REQUEST_TYPES) < MUTATION_WEIGHTS.keys()
