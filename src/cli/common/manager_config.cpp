// SPDX-License-Identifier: BSL-1.0
// Converts the command's options to those of a manager.
#include "cli/common/manager_config.hpp"

#include "cli/common/exit_code.hpp"
#include "cli/common/message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

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
    // Checked here, because the library's message would name its own option.
    if (options.tls != tls_options{} && !over_tls)
    {
        throw system_error{
            errc::invalid_config,
            "--ca-file and --certificate-file apply to masters over TLS, and there are none: give "
            "rediss:// instead of redis://, or omit these options"};
    }
    options.connect_timeout = asked.connect_timeout.value_or(options.connect_timeout);
    return options;
}

config manager_config(const resource_arguments& asked)
{
    config options = manager_config(asked.servers);
    options.key_prefix = asked.prefix;
    return options;
}

std::string in_terms_of_command(std::string text)
{
    for (const auto& [option, flag] :
         {std::pair{"tls.ca_file", "--ca-file"},
          {"tls.certificate_file", "--certificate-file"},
          {"tls.private_key_file", "--private-key-file"}})
    {
        if (const std::size_t found = text.find(option); found != std::string::npos)
        {
            text.replace(found, std::string_view{option}.size(), flag);
        }
    }
    return text;
}

int refuse(const system_error& error)
{
    std::string text = error.what();
    // The sentence of the error code follows the message about the value, and adds nothing to it.
    const std::size_t sentence = text.find(": " + error.code().message());
    if (error.code().category() == error_category() && sentence != std::string::npos)
    {
        text.resize(sentence);
        text = in_terms_of_command(std::move(text));
    }
    else if (error.code().category() == boost::system::system_category())
    {
        // Only what was refused, without the error's number and source location.
        text = fmt::format("the system refuses: {}", text.substr(0, sentence));
        text += sentence == std::string::npos ? "" : ": " + error.code().message();
    }
    say(text);
    return number_of(exit_code_of(error.code()));
}

} // namespace redlock::cli
