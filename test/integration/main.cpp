// SPDX-License-Identifier: BSL-1.0
// Runs the integration tests, and fails if any text that they produced contains a password of a server.
#include "support/overheard.hpp"

#include <catch2/catch_session.hpp>
#include <catch2/interfaces/catch_interfaces_config.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>

#include <cstdlib>
#include <iostream>
#include <string>

namespace
{

/// Searches every assertion's expression with its values, and its messages: results of functions, exceptions.
class eavesdropper final : public Catch::EventListenerBase
{
  public:
    explicit eavesdropper(const Catch::IConfig* config) : EventListenerBase{config}
    {
        m_preferences.shouldReportAllAssertions = true;
    }

    void assertionEnded(const Catch::AssertionStats& stats) override
    {
        const Catch::AssertionResult& result = stats.assertionResult;
        redlock::test::overhear(result.getExpandedExpression(), "an assertion");
        redlock::test::overhear(std::string{result.getMessage()}, "a message");
        for (const Catch::MessageInfo& each : stats.infoMessages)
        {
            redlock::test::overhear(each.message, "a message");
        }
    }
};

} // namespace

CATCH_REGISTER_LISTENER(eavesdropper)

int main(int count, char** arguments)
{
    const int result = Catch::Session().run(count, arguments);
    const redlock::test::overheard heard = redlock::test::overheard_so_far();
    for (const std::string& each : heard.with_a_password)
    {
        std::cerr << "A password was said by " << each << '\n';
    }
    return heard.with_a_password.empty() ? result : EXIT_FAILURE;
}
