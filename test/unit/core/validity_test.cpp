// SPDX-License-Identifier: BSL-1.0
// How long a lease is valid, and which times are allowed.
#include "core/validity.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using core::drift;
using core::later;
using core::max_ttl;
using core::min_validity_complaint;
using core::node_timeout;
using core::remaining;
using core::timing;
using core::ttl_complaint;
using core::ttl_for;
using core::valid_until;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// An arbitrary time since boot, with nanoseconds.
constexpr clock::time_point boot_plus_day{std::chrono::hours{24} + 123'456'789ns};

bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

timing with_ttl(milliseconds ttl, double drift_factor = 0.01, std::optional<milliseconds> timeout = {})
{
    return {
        .ttl = ttl, .min_validity = 0ms, .configured_node_timeout = timeout, .drift_factor = drift_factor};
}

/// True if a round that takes the whole node timeout leaves any validity, computed in whole nanoseconds.
bool leaves_some(milliseconds ttl, std::int64_t drift_percent, milliseconds timeout)
{
    const std::int64_t in_ns = nanoseconds{ttl}.count();
    const std::int64_t lost = in_ns / 100 * drift_percent + nanoseconds{2ms}.count();
    const std::int64_t whole_ms = (lost + 999'999) / 1'000'000 * 1'000'000;
    return in_ns > nanoseconds{timeout}.count() + whole_ms;
}

} // namespace

TEST_CASE("drift is exactly one percent of the ttl and 2 ms", "[scenario-15]")
{
    CHECK(drift(10s, 0.01) == 102ms);
    CHECK(drift(1ms, 0.01) == 2ms + 10us);
    CHECK(drift(30s, 0.01) == 302ms);
    CHECK(drift(30s, 0.0) == 2ms);
    CHECK(drift(30s, 0.5) == 15'002ms);
    std::mt19937_64 random{20240904};
    for (int run = 0; run < 20'000; ++run)
    {
        // Up to 90 days. Above that, a double can't represent the nanoseconds exactly.
        const milliseconds ttl{1 + static_cast<std::int64_t>(random() % 7'776'000'000)};
        if (drift(ttl, 0.01) != nanoseconds{ttl} / 100 + 2ms)
        {
            FAIL("of " << ttl.count() << " ms: " << drift(ttl, 0.01).count() << " ns");
        }
    }
}

TEST_CASE("validity never exceeds ttl - elapsed - drift", "[scenario-14][scenario-15]")
{
    std::mt19937_64 random{20240905};
    int kept = 0;
    for (int run = 0; run < 50'000; ++run)
    {
        const auto up_to = [&random](std::int64_t most)
        { return static_cast<std::int64_t>(random() % (static_cast<std::uint64_t>(most) + 1)); };
        const milliseconds ttl{1 + up_to(run % 2 == 0 ? 60'000 : max_ttl.count() - 1)};
        const clock::time_point sent{nanoseconds{up_to(nanoseconds{365h * 24}.count())}};
        const nanoseconds elapsed{up_to(nanoseconds{ttl}.count() / 10 * 11)};
        const std::int64_t percent = up_to(50);
        const nanoseconds lost = nanoseconds{ttl} / 100 * percent + 2ms;

        const nanoseconds left =
            remaining(valid_until(sent, ttl, static_cast<double>(percent) / 100), sent + elapsed);
        const nanoseconds most = std::max(nanoseconds{ttl} - elapsed - lost, 0ns);
        const nanoseconds inexact = ttl > 2160h ? nanoseconds{ttl} / (std::int64_t{1} << 50) : 0ns;
        if (left > most + inexact || left < most - inexact - 1ns)
        {
            FAIL(
                "ttl " << ttl.count() << " ms, elapsed " << elapsed.count() << " ns, drift " << percent
                       << " %: " << left.count() << " ns instead of " << most.count() << " ns");
        }
        ++kept;
    }
    CHECK(kept == 50'000);
}

TEST_CASE("validity depends on the given times only, not on the wall clock", "[scenario-14]")
{
    // The same round on a machine that was started at another time: nothing else is an input.
    const clock::time_point late = boot_plus_day + std::chrono::hours{24 * 300};
    CHECK(valid_until(boot_plus_day, 10s, 0.01) - boot_plus_day == valid_until(late, 10s, 0.01) - late);
    CHECK(clock::is_steady);
}

TEST_CASE("nothing remains of a lease after its ttl", "[scenario-16]")
{
    const milliseconds ttl = GENERATE(10ms, 1000ms, 10'000ms, 86'400'000ms);
    const clock::time_point end = valid_until(boot_plus_day, ttl, 0.01);
    CHECK(end < boot_plus_day + ttl);
    CHECK(remaining(end, boot_plus_day + ttl) == 0ns);
    CHECK(remaining(end, boot_plus_day + ttl + 1ns) == 0ns);
    CHECK(remaining(end, boot_plus_day + 100 * ttl) == 0ns);
}

TEST_CASE("validity counts from the time of sending, however late the answers are", "[scenario-31]")
{
    const clock::time_point first_sent = boot_plus_day;
    const clock::time_point second_sent = first_sent + 3s;
    const clock::time_point answered = second_sent + 2s;
    const clock::time_point end = valid_until(second_sent, 10s, 0.01);
    CHECK(end == second_sent + 10s - 102ms);
    CHECK(remaining(end, answered) == 8s - 102ms);
    // The first attempt was answered at the same time; its validity counts from its own time of sending.
    CHECK(remaining(valid_until(first_sent, 10s, 0.01), answered) == 5s - 102ms);
}

TEST_CASE("a quorum that is reached after the validity has ended leaves none", "[scenario-33]")
{
    const clock::time_point end = valid_until(boot_plus_day, 100ms, 0.01);
    CHECK(remaining(end, boot_plus_day + 97ms - 1ns) == 1ns);
    CHECK(remaining(end, boot_plus_day + 97ms) == 0ns);
    CHECK(remaining(end, boot_plus_day + 98ms) == 0ns);
}

TEST_CASE("a ttl below its own drift is never valid", "[scenario-33]")
{
    CHECK(valid_until(boot_plus_day, 1ms, 0.01) < boot_plus_day);
    CHECK(remaining(valid_until(boot_plus_day, 1ms, 0.01), boot_plus_day) == 0ns);
}

TEST_CASE("a time beyond the range of the clock becomes its maximum")
{
    CHECK(later(boot_plus_day, 5ms) == boot_plus_day + 5ms);
    CHECK(later(boot_plus_day, milliseconds::max()) == clock::time_point::max());
    CHECK(later(clock::time_point::max() - 1s, 2s) == clock::time_point::max());
    CHECK(later(clock::time_point::max() - 2s, 1s) == clock::time_point::max() - 1s);
    CHECK(valid_until(boot_plus_day, max_ttl, 0.01) > boot_plus_day + max_ttl / 2);
}

TEST_CASE("the node timeout is a tenth of the ttl, from 1 ms to 50 ms, unless it was configured")
{
    CHECK(node_timeout(5ms, {}) == 1ms);
    CHECK(node_timeout(99ms, {}) == 9ms);
    CHECK(node_timeout(499ms, {}) == 49ms);
    CHECK(node_timeout(500ms, {}) == 50ms);
    CHECK(node_timeout(max_ttl, {}) == 50ms);
    CHECK(node_timeout(10s, 7ms) == 7ms);
    CHECK(node_timeout(10s, 700ms) == 700ms);
}

TEST_CASE("a ttl that leaves some validity is accepted")
{
    CHECK(ttl_complaint(with_ttl(10s)).empty());
    CHECK(ttl_complaint(with_ttl(max_ttl)).empty());
    CHECK(ttl_complaint(with_ttl(max_ttl, 0.5, milliseconds{1h})).empty());
}

TEST_CASE("the complaint about a ttl names it and the allowed range")
{
    const milliseconds ttl = GENERATE(0ms, -1ms, milliseconds::min(), max_ttl + 1ms, milliseconds::max());
    const std::string text = ttl_complaint(with_ttl(ttl));
    INFO(text);
    CHECK(contains(text, "a ttl of " + std::to_string(ttl.count()) + " ms"));
    CHECK(contains(text, "from 5 ms to " + std::to_string(max_ttl.count()) + " ms"));
}

TEST_CASE("a ttl consumed by node timeout and drift is refused, and the complaint names both")
{
    const std::string text = ttl_complaint(with_ttl(50ms, 0.01, 60ms));
    INFO(text);
    CHECK(contains(text, "a ttl of 50 ms"));
    CHECK(contains(text, "from 64 ms to"));
    CHECK(contains(text, "60 ms of node timeout"));
    CHECK(contains(text, "3 ms of drift"));
}

TEST_CASE("the smallest allowed ttl is the first that leaves a validity")
{
    const std::int64_t percent = GENERATE(0, 1, 7, 50);
    const auto timeout = GENERATE(
        std::optional<milliseconds>{}, std::optional{1ms}, std::optional{50ms}, std::optional{1234ms});
    const double factor = static_cast<double>(percent) / 100;
    milliseconds smallest{1};
    while (!leaves_some(smallest, percent, node_timeout(smallest, timeout)))
    {
        ++smallest;
    }
    CAPTURE(percent, node_timeout(smallest, timeout).count(), smallest.count());
    CHECK(ttl_complaint(with_ttl(smallest, factor, timeout)).empty());
    const std::string text = ttl_complaint(with_ttl(smallest - 1ms, factor, timeout));
    CHECK(contains(text, "from " + std::to_string(smallest.count()) + " ms to"));
}

TEST_CASE("a min_validity is accepted up to the most that the ttl can leave; the complaint names the range")
{
    timing times = with_ttl(10s);
    const auto complaint = [&times](milliseconds min_validity)
    {
        times.min_validity = min_validity;
        return min_validity_complaint(times);
    };
    // 10 s less 102 ms of drift; the validity must be above it.
    CHECK(complaint(0ms).empty());
    CHECK(complaint(9897ms).empty());
    const milliseconds wrong = GENERATE(-1ms, 9898ms, 10'000ms, milliseconds::max(), milliseconds::min());
    const std::string text = complaint(wrong);
    INFO(text);
    CHECK(contains(text, "a min_validity of " + std::to_string(wrong.count()) + " ms"));
    CHECK(contains(text, "with a ttl of 10000 ms"));
    CHECK(contains(text, "from 0 ms to 9897 ms"));
}

TEST_CASE("every allowed ttl leaves room for a min_validity of 0")
{
    const std::int64_t percent = GENERATE(0, 1, 50);
    for (milliseconds ttl{1}; ttl <= 200ms; ++ttl)
    {
        const timing times = with_ttl(ttl, static_cast<double>(percent) / 100);
        if (ttl_complaint(times).empty())
        {
            CAPTURE(ttl.count(), percent);
            CHECK(min_validity_complaint(times).empty());
        }
    }
}

TEST_CASE("a key with the ttl for the rest of a validity outlasts it, and by no more than needed")
{
    const double factor = GENERATE(0.0, 0.01, 0.1, 0.5);
    const milliseconds ttl = GENERATE(10ms, 1s, 60s, milliseconds{24h}, max_ttl);
    CAPTURE(factor, ttl.count());
    const clock::duration whole = ttl - drift(ttl, factor);
    for (const clock::duration elapsed : {clock::duration{100us}, whole / 3, whole - 1ns, whole})
    {
        const clock::duration left = whole - elapsed;
        const milliseconds found = ttl_for(left, factor);
        CHECK(found - drift(found, factor) >= left);
        CHECK((found - 1ms) - drift(found - 1ms, factor) < left);
        CHECK(found <= ttl);
    }
}

} // namespace redlock::test
