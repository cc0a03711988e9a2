// SPDX-License-Identifier: BSL-1.0
// The outstanding keys of one master: which count, which are due, and what an error can rule out.
#include "net/ledger.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <vector>

namespace redlock::test
{

namespace
{

using net::claim_ptr;
using net::outstanding_state;

class test_claim final : public net::claim
{
    void recycle() noexcept override { delete this; }
};

claim_ptr make_claim()
{
    return claim_ptr{new test_claim};
}

constexpr std::size_t master = 2;

} // namespace

TEST_CASE("a SET that is ruled out leaves no outstanding key", "[release][scenario-87]")
{
    net::ledger all{master, 10};
    const claim_ptr one = make_claim();
    all.mark_sent(*one);
    CHECK(all.count() == 1);
    SECTION("before its release is demanded") {}
    SECTION("when its release is due")
    {
        all.mark_due(*one);
    }
    SECTION("when its release is in flight")
    {
        all.mark_release_sent(*one);
    }
    all.rule_out(*one);
    CHECK(all.count() == 0);
    CHECK(one->at(master).state == outstanding_state::none);
    CHECK(all.next_due() == nullptr);
    CHECK_FALSE(all.has_due());
}

TEST_CASE(
    "a SET that is ruled out leaves an outstanding key if another SET may have run", "[release][scenario-87]")
{
    net::ledger all{master, 10};
    const claim_ptr one = make_claim();
    all.mark_sent(*one);
    SECTION("an earlier one")
    {
        one->at(master).maybe_there = true;
        all.mark_sent(*one);
    }
    SECTION("one that is unanswered")
    {
        all.mark_sent(*one);
    }
    all.rule_out(*one);
    CHECK(all.count() == 1);
    all.mark_due(*one);
    CHECK(all.next_due() == one.get());
}

TEST_CASE("a SET that follows one that was ruled out counts by itself", "[release]")
{
    net::ledger all{master, 10};
    const claim_ptr one = make_claim();
    all.mark_sent(*one);
    all.rule_out(*one);
    all.mark_sent(*one);
    CHECK(all.count() == 1);
    all.rule_out(*one);
    CHECK(all.count() == 0);
}

TEST_CASE(
    "keys are released in the order in which they became due, and refused ones after all others", "[release]")
{
    net::ledger all{master, 10};
    std::vector<claim_ptr> claims{make_claim(), make_claim(), make_claim()};
    for (const claim_ptr& each : claims)
    {
        all.mark_sent(*each);
        all.mark_due(*each);
    }
    REQUIRE(all.next_due() == claims[0].get());
    all.mark_release_sent(*claims[0]);
    all.requeue(*claims[0]);
    for (const std::size_t next : {1U, 2U, 0U})
    {
        REQUIRE(all.next_due() == claims[next].get());
        all.mark_release_sent(*claims[next]);
        all.clear(*claims[next]);
    }
    CHECK_FALSE(all.has_due());
    CHECK(all.count() == 0);
}

TEST_CASE("a key whose release is refused repeatedly is queued once", "[release]")
{
    net::ledger all{master, 10};
    const claim_ptr one = make_claim();
    all.mark_sent(*one);
    all.mark_due(*one);
    for (int refusals = 0; refusals < 100; ++refusals)
    {
        REQUIRE(all.next_due() == one.get());
        all.mark_release_sent(*one);
        CHECK_FALSE(all.has_due());
        all.requeue(*one);
    }
    all.clear(*one);
    CHECK(all.next_due() == nullptr);
    CHECK_FALSE(all.has_due());
}

} // namespace redlock::test
