"""Do the maps of accesses and banks draw the requests that simt counted?"""

import random

import pytest

from grader import pictures
from grader.pictures import request as rules
from tests.grader.pictures.drawn import groups, words


def random_request(rng, size):
    return rules.Access([rng.choice([None, rng.randrange(0, 300) * size]) for _ in range(31)] + [0], size)


# --- access and bank maps --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_access_map_draws_the_sectors_that_simt_counted(counted):
    line = counted[0]["strided"]
    (request,) = (r for r in line.requests if r.kind == "global_loads")
    drawn = groups(pictures.access_map(request), "access-0-sector")
    assert len(drawn) == request.sectors == line.counters.global_loads.sectors == 32
    assert pictures.access_map(request).alt == "Lanes 0 to 31 touch 32 sectors of x; 4 would be enough."
    assert len(groups(pictures.access_map(request), "access-1-sector")) == request.ideal_sectors == 4


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 8, 16])
def test_access_map_draws_the_sectors_of_a_brute_force_count(size):
    rng = random.Random(size)
    for _ in range(8):
        request = random_request(rng, size)
        touched = {byte // 32 for a in request.addresses if a is not None for byte in range(a, a + size)}
        drawn = groups(pictures.access_map(request, request), "access-0-sector")
        assert len(drawn) == len(touched)
        assert f"{len(touched)} sector" in pictures.access_map(request).alt
        assert groups(pictures.access_map(request, request), "access-0-lanes")["access-0-lanes"] == sum(
            a is not None for a in request.addresses
        )


def test_a_misaligned_float4_touches_one_more_sector_and_is_drawn_in_both():
    request = rules.Access([16 * lane for lane in range(32)], 16, start=8)
    picture = pictures.access_map(request)
    assert picture.alt == "Lanes 0 to 31 touch 17 sectors; 16 would be enough."
    assert groups(picture, "access-0-lanes")["access-0-lanes"] == 32 + 16  # every second one crosses a border


def test_alt_text_compares_a_coalesced_and_a_strided_request():
    near, far = rules.Access([4 * lane for lane in range(32)]), rules.Access([8 * lane for lane in range(32)])
    alt = pictures.access_map(near, far, titles=["x[i]", "x[2 * i]"]).alt
    assert alt == (
        "x[i]: lanes 0 to 31 touch 4 sectors, the minimum. x[2 * i]: lanes 0 to 31 touch 8 sectors; 4 would be enough."
    )


def test_bank_map_draws_the_conflicts_that_simt_counted(counted):
    plain, padded = (next(r for r in report["columns"].requests if r.kind == "shared_loads") for report in counted)
    assert (plain.wavefronts, padded.wavefronts) == (32, 1)
    picture = pictures.bank_map(plain, padded, titles=["rows of 32", "rows of 33"])
    assert groups(picture, "bank-0") == {"bank-0-conflict": 32}
    assert groups(picture, "bank-1") == {"bank-1-free": 32}
    assert (
        "32 wavefronts instead of 1 because of bank conflicts: 32 words of bank 0 are requested at once." in picture.alt
    )
    assert "rows of 33: lanes 0 to 31 need 1 wavefront: no bank conflict" in picture.alt


def test_padded_gives_the_request_that_real_padding_gives(counted):
    plain, padded = (next(r for r in report["columns"].requests if r.kind == "shared_loads") for report in counted)
    assert tuple(rules.padded(plain, 32, 1).addresses) == padded.addresses
    assert "rows of 32 + 1: lanes 0 to 31 need 1 wavefront" in pictures.bank_map(plain, row=32).alt


def test_explain_line_shows_only_requests_that_cost_too_much(counted):
    assert [p.name for p in pictures.explain_line(counted[0]["columns"], row=32)] == ["Bank map"]
    assert [p.name for p in pictures.explain_line(counted[0]["strided"])] == ["Access map"]
    (picture,) = pictures.explain_line(counted[0]["strided"], text="y[i] = x[i * 32];")
    assert "y[i] = x[i * 32]; (this line on average: 32 sectors per request)" in words(picture)
    assert pictures.explain_line(counted[0]["rows"]) == pictures.explain_line(counted[1]["columns"]) == []


def test_out_of_bounds_map_names_the_element_and_refuses_one_inside():
    picture = pictures.out_of_bounds_map("x", 1000, 1000, thread=(232, 0, 0), block=(3, 0, 0))
    assert picture.alt == (
        "Thread (232, 0, 0) of block (3, 0, 0) reads element 1,000 of x, 1 element past the end: x has 1,000 "
        "elements, 0 to 999."
    )
    assert "1 element before the start" in pictures.out_of_bounds_map("x", -1, 8).alt
    with pytest.raises(ValueError, match="inside"):
        pictures.out_of_bounds_map("x", 7, 8)
