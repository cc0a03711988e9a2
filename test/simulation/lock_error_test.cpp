// SPDX-License-Identifier: BSL-1.0
// Tests of the exceptions of async_with_lock, and of how they differ from those of the body.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>

#include <exception>
#include <optional>
#include <string>

namespace redlock::test
{

namespace
{

/// Returns the text of a `lock_error`; empty for any other exception.
std::optional<std::string> words_of(const std::exception_ptr& thrown)
{
    try
    {
        std::rethrow_exception(thrown);
    }
    catch (const lock_error& error)
    {
        return error.what();
    }
    catch (...)
    {
        return std::nullopt;
    }
}

bool contains(const std::optional<std::string>& text, std::string_view part)
{
    return text && text->find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a refused lock throws the votes, the masters and the limits", "[with_lock]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    sim.master(0).set("lock:stock", "another");
    sim.master(1).set("lock:stock", "another");
    sim.master(2).refuse("SET", "-OOM no memory\r\n");
    job body;
    const outcome_ptr work =
        sim.with_lock(locks, "stock", {.ttl = 10s, .max_hold = no_limit, .wait = 0ms}, body);
    REQUIRE(sim.finish(work));
    CHECK(work->error == errc::held_by_other);
    const std::optional<std::string> said = words_of(work->thrown);
    REQUIRE(said);
    CHECK(*said == "stock: " + work->report.to_string());
    for (std::size_t index = 0; index < 3; ++index)
    {
        CHECK(contains(said, work->report.name(index)));
    }
    CHECK(contains(said, "2 denied of 3; 2 needed; node timeout 50 ms"));
    CHECK(contains(said, "-OOM no memory") == contains(work->report.to_string(), "-OOM no memory"));
    CHECK(body.starts == 0);
}

TEST_CASE("a refused argument throws its value and its range", "[with_lock]")
{
    simulation sim{1};
    lock_manager locks = sim.make_connected_manager();
    job body;
    const outcome_ptr work = sim.with_lock(locks, "stock", {.ttl = 3ms, .max_hold = no_limit}, body);
    REQUIRE(sim.finish(work));
    CHECK(work->error == errc::invalid_ttl);
    CHECK(work->error == condition::misuse);
    CHECK(contains(words_of(work->thrown), "3 ms"));
    CHECK(contains(words_of(work->thrown), work->report.argument_error));
}

TEST_CASE("a loss is a lock_error, and what the body throws isn't", "[with_lock]")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    job body;
    SECTION("a loss")
    {
        const outcome_ptr work = sim.with_lock(locks, "stock", {.ttl = 1s, .max_hold = 2s}, body);
        REQUIRE(sim.finish(work));
        CHECK(work->error == errc::hold_limit_reached);
        CHECK(work->error == condition::lost);
        CHECK(words_of(work->thrown));
    }
    SECTION("an exception of the body's, with an error of this library")
    {
        body.works = 1ms;
        body.throws = std::make_exception_ptr(system_error{errc::no_quorum});
        const outcome_ptr work = sim.with_lock(locks, "stock", {.ttl = 1s, .max_hold = no_limit}, body);
        REQUIRE(sim.finish(work));
        CHECK(work->error == errc::no_quorum);
        CHECK_FALSE(words_of(work->thrown));
    }
    SECTION("an acquire after a shutdown")
    {
        REQUIRE(sim.finish(sim.shut_down(locks)));
        const outcome_ptr work = sim.with_lock(locks, "stock", {.ttl = 1s, .max_hold = no_limit}, body);
        REQUIRE(sim.finish(work));
        CHECK(work->error == errc::closed);
        CHECK(contains(words_of(work->thrown), "stock: "));
    }
    SECTION("a cancelled acquire")
    {
        sim.master(0).hang();
        sim.master(1).hang();
        const outcome_ptr work =
            sim.with_lock(locks, "stock", {.ttl = 1s, .max_hold = no_limit, .wait = no_limit}, body);
        sim.run_for(20ms);
        work->cancel.emit(asio::cancellation_type::terminal);
        REQUIRE(sim.finish(work));
        CHECK(work->error == asio::error::operation_aborted);
        CHECK(words_of(work->thrown));
    }
}

} // namespace redlock::test
