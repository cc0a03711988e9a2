// SPDX-License-Identifier: BSL-1.0
// With REDLOCK_TEST_LOCALE in the environment, the unit tests run in a locale that groups digits and writes decimal
// commas, as applications set it: commands, addresses and messages must not depend on it.
#include <catch2/interfaces/catch_interfaces_reporter.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>

#include <cstdlib>
#include <locale>
#include <string>

namespace redlock::test
{

namespace
{

class grouping final : public std::numpunct<char>
{
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
};

class locale_listener final : public Catch::EventListenerBase
{
  public:
    using EventListenerBase::EventListenerBase;

    void testRunStarting(const Catch::TestRunInfo&) override
    {
        if (std::getenv("REDLOCK_TEST_LOCALE") != nullptr) // NOLINT: before any thread is started.
        {
            std::locale::global(std::locale{std::locale::classic(), new grouping});
        }
    }
};

CATCH_REGISTER_LISTENER(locale_listener)

} // namespace

} // namespace redlock::test
