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
using net::debt_state;

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
    all.incur(*one);
    CHECK(all.count() == 1);
    SECTION("before its release is demanded") {}
    SECTION("when its release is due")
    {
        all.demand(*one);
    }
    SECTION("when its release is in flight")
    {
        all.ask(*one);
    }
    all.rule_out(*one);
    CHECK(all.count() == 0);
    CHECK(one->at(master).state == debt_state::none);
    CHECK(all.next_due() == nullptr);
    CHECK_FALSE(all.has_due());
}

TEST_CASE(
    "a SET that is ruled out leaves an outstanding key if another SET may have run", "[release][scenario-87]")
{
    net::ledger all{master, 10};
    const claim_ptr one = make_claim();
    all.incur(*one);
    SECTION("an earlier one")
    {
        one->at(master).maybe_there = true;
        all.incur(*one);
    }
    SECTION("one that is unanswered")
    {
        all.incur(*one);
    }
    all.rule_out(*one);
    CHECK(all.count() == 1);
    all.demand(*one);
    CHECK(all.next_due() == one.get());
}

TEST_CASE("a SET that follows one that was ruled out counts by itself", "[release]")
{
    net::ledger all{master, 10};
    const claim_ptr one = make_claim();
    all.incur(*one);
    all.rule_out(*one);
    all.incur(*one);
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
        all.incur(*each);
        all.demand(*each);
    }
    REQUIRE(all.next_due() == claims[0].get());
    all.ask(*claims[0]);
    all.ask_again(*claims[0]);
    for (const std::size_t next : {1U, 2U, 0U})
    {
        REQUIRE(all.next_due() == claims[next].get());
        all.ask(*claims[next]);
        all.settle(*claims[next]);
    }
    CHECK_FALSE(all.has_due());
    CHECK(all.count() == 0);
}

TEST_CASE("a key whose release is refused repeatedly is queued once", "[release]")
{
    net::ledger all{master, 10};
    const claim_ptr one = make_claim();
    all.incur(*one);
    all.demand(*one);
    for (int refusals = 0; refusals < 100; ++refusals)
    {
        REQUIRE(all.next_due() == one.get());
        all.ask(*one);
        CHECK_FALSE(all.has_due());
        all.ask_again(*one);
    }
    all.settle(*one);
    CHECK(all.next_due() == nullptr);
    CHECK_FALSE(all.has_due());
}

} // namespace redlock::test
