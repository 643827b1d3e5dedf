"""Names, suggestions and the listing."""

import pytest

from mmes import problems


def test_every_name_can_be_had():
    for name in problems.names():
        assert problems.get(name).name == name


def test_spelling_of_names_is_forgiving():
    assert problems.get("Rotated-Cigar", dimension=5).name == "rotated_cigar"
    assert problems.get("different powers", dimension=5).name == "different_powers"


@pytest.mark.parametrize(
    ("name", "suggestion"), [("elipsoid", "'ellipsoid'"), ("rotated_cigr", "'rotated_cigar'")]
)
def test_unknown_name_suggests_the_nearest(name, suggestion):
    with pytest.raises(ValueError, match=f"no problem named '{name}'; did you mean {suggestion}"):
        problems.get(name)


def test_hopeless_name_points_to_the_list():
    with pytest.raises(ValueError, match="names\\(\\) lists them all"):
        problems.get("@@@@")


def test_wrong_type_and_unknown_option():
    with pytest.raises(TypeError, match="a problem's name is a string, not 7"):
        problems.get(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sphere has no option 'dim'; it takes dimension"):
        problems.get("sphere", dim=3)


def test_listing_has_a_sentence_for_each():
    listing = problems.entries()
    assert [entry.name for entry in listing] == problems.names()
    assert len(set(problems.names())) == len(listing)
    for entry in listing:
        assert entry.description.endswith(".")
        assert entry.dimension is None or problems.get(entry.name).dimension == entry.dimension
