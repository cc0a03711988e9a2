// SPDX-License-Identifier: BSL-1.0
// From URLs to a manager's options.
#include "cli/manager_config.hpp"

#include "cli/exit_code.hpp"
#include "cli/message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace redlock::cli
{

config manager_config(const master_arguments& asked)
{
    config options;
    for (const std::string& url : asked.masters)
    {
        options.masters.emplace_back(url);
    }
    options.tls = asked.tls;
    const bool over_tls = std::any_of(
        options.masters.begin(), options.masters.end(), [](const master& each) { return each.is_tls(); });
    // The library would refuse it too, in a programmer's words.
    if (options.tls != tls_options{} && !over_tls)
    {
        throw system_error{
            errc::invalid_config,
            "--ca-file and --certificate-file are for masters over TLS, and there is none: give "
            "rediss:// instead of redis://, or leave them out"};
    }
    return options;
}

config manager_config(const resource_arguments& asked)
{
    config options = manager_config(asked.servers);
    options.key_prefix = asked.prefix;
    return options;
}

int refuse(const system_error& error)
{
    std::string text = error.what();
    // Behind what was wrong with which value stands the sentence of its error code, which says nothing more.
    const std::size_t sentence = text.find(": " + error.code().message());
    if (error.code().category() == error_category() && sentence != std::string::npos)
    {
        text.resize(sentence);
    }
    else if (error.code().category() == boost::system::system_category())
    {
        // With what was refused, without a number and the place in our code.
        text = fmt::format("the system refuses: {}", text.substr(0, sentence));
        text += sentence == std::string::npos ? "" : ": " + error.code().message();
    }
    say(text);
    return number_of(exit_code_of(error.code()));
}

} // namespace redlock::cli
