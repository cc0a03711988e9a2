// SPDX-License-Identifier: BSL-1.0
// Parses the command line, and checks its values. No message repeats a word that could be a URL, which may contain a password.
#include "cli/common/arguments.hpp"

#include "cli/common/duration.hpp"
#include "cli/common/exit_code.hpp"
#include "cli/common/message.hpp"
#include "cli/common/option_list.hpp"
#include "cli/common/times.hpp"
#include "cli/common/words.hpp"

#include <redlock/error.hpp>
#include <redlock/master.hpp>

#include <CLI/CLI.hpp>

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace redlock::cli
{

namespace
{

bool is_command(std::string_view word) noexcept
{
    return word == "run" || word == "status" || word == "doctor" || word == "provision";
}

std::string no_such_command(const std::string& word)
{
    // The word could be a URL with a password.
    const bool may_be_shown = word.find_first_of(":@") == std::string::npos;
    return fmt::format(
        "unknown subcommand{}: give run, status, doctor or provision",
        may_be_shown ? fmt::format(" {}", in_quotes(word)) : std::string{});
}

/// Describes an error of CLI11 in one line that repeats no value of an option.
std::string complaint_of(const CLI::ParseError& error, const std::vector<std::string>& words)
{
    const bool begins_with_option = !words.empty() && words.front().starts_with('-');
    if (!words.empty() && !begins_with_option && !is_command(words.front()))
    {
        return no_such_command(words.front());
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && (words.empty() || begins_with_option))
    {
        return "the subcommand is missing: give run, status, doctor or provision";
    }
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    {
        const std::string shown = fmt::format(" {} ", error.what()); // It ends with the words.
        for (const std::string& word : words)
        {
            const std::string name = word.substr(0, word.find('='));
            if (name.starts_with('-') && shown.find(fmt::format(" {} ", word)) != std::string::npos)
            {
                return name.find_first_of(":@") == std::string::npos
                           ? fmt::format("unknown option {}", in_quotes(name))
                           : std::string{"unknown option"};
            }
        }
        if (words.front() == "doctor" || words.front() == "provision")
        {
            return fmt::format(
                "{} takes no arguments besides options: give masters by --master", words.front());
        }
        return "too many arguments: give one RESOURCE, and for run -- and the command after it";
    }
    if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
    {
        return "a value was given to an option that takes none";
    }
    return error.what();
}

[[noreturn]] void refuse(const std::string& why)
{
    throw std::invalid_argument{why};
}

template <class Read>
auto option_value(const char* option, const std::string& text, Read read)
{
    try
    {
        return read(text);
    }
    catch (const std::invalid_argument& error)
    {
        refuse(fmt::format("{}: {}", option, error.what()));
    }
}

/// Splits the list of the environment at its commas, as `master_list` does. An empty entry may be a variable that isn't
/// set: without it, the quorum would be another one.
std::vector<std::string> masters_of_environment()
{
    const char* const variable = std::getenv(masters_variable);
    std::vector<std::string> entries;
    boost::algorithm::split(
        entries, std::string_view{variable == nullptr ? "" : variable}, boost::algorithm::is_any_of(","));
    for (std::string& each : entries)
    {
        boost::algorithm::trim_if(each, boost::algorithm::is_any_of(" \t\r\n"));
    }
    const auto empty = std::find(entries.begin(), entries.end(), "");
    if (empty == entries.end())
    {
        return entries;
    }
    if (entries.size() == 1)
    {
        return {};
    }
    const std::string why = fmt::format(
        "{}: entry {} of {} is empty, perhaps a variable that isn't set: give the URL of a master, or omit "
        "its comma",
        masters_variable, empty - entries.begin() + 1, entries.size());
    throw system_error{errc::invalid_config, why};
}

master_arguments complete(master_arguments servers, const raw_arguments& raw)
{
    if (servers.masters.empty())
    {
        servers.masters = masters_of_environment();
    }
    if (servers.masters.empty())
    {
        refuse(fmt::format(
            "no masters are given: give --master redis://host[:port] for each, or set {} to their URLs, "
            "separated by commas",
            masters_variable));
    }
    for (const std::string* const file :
         {&servers.tls.ca_file, &servers.tls.certificate_file, &servers.tls.private_key_file})
    {
        if (file->find("://") != std::string::npos) // No message may repeat it.
        {
            refuse("the options of TLS take the names of files: omit the URL");
        }
    }
    if (servers.tls.certificate_file.empty() != servers.tls.private_key_file.empty())
    {
        refuse("--certificate-file and --private-key-file belong together: give both, or neither");
    }
    if (raw.connect_timeout)
    {
        constexpr std::chrono::milliseconds longest =
            std::chrono::hours{1}; // The library's, which would name its option.
        servers.connect_timeout = option_value("--connect-timeout", *raw.connect_timeout, read_duration);
        if (*servers.connect_timeout < std::chrono::milliseconds{1} || *servers.connect_timeout > longest)
        {
            refuse("--connect-timeout: give 1ms to 1h");
        }
    }
    return servers;
}

/// Checked here, because the library's message would name its own option.
const std::string& read_prefix(const std::string& text)
{
    constexpr std::size_t longest = 1024;
    if (text.size() > longest)
    {
        refuse(fmt::format("--prefix has {} bytes: give at most {}", text.size(), longest));
    }
    bool is_reserved = text.starts_with("redlock-queue:");
    for (const char* const name : {":redlock-guard", ":redlock-fence", ":redlock-members"})
    {
        is_reserved = is_reserved || text.find(name) != std::string::npos;
    }
    if (is_reserved)
    {
        refuse(fmt::format(
            "--prefix {} can't be used: the library's own keys begin with redlock-queue:, or contain "
            ":redlock-guard, :redlock-fence or :redlock-members",
            in_quotes(text)));
    }
    return text;
}

resource_arguments complete_resource(const raw_arguments& raw)
{
    resource_arguments common = raw.common;
    common.prefix = read_prefix(common.prefix);
    common.servers = complete(std::move(common.servers), raw);
    if (common.resource.empty())
    {
        refuse("RESOURCE is missing or empty: give a name of 1 to 1024 bytes");
    }
    return common;
}

std::chrono::milliseconds read_grace(const raw_arguments& raw, std::chrono::milliseconds ttl)
{
    const bool given = raw.grace.has_value();
    const auto grace = given ? option_value("--grace", *raw.grace, read_duration) : default_grace(ttl);
    const auto most = max_grace(ttl);
    if (!most)
    {
        refuse(
            fmt::format("--ttl: {} is too short: give at least {}", in_words(ttl), in_words(shortest_ttl())));
    }
    if (grace > *most)
    {
        refuse(fmt::format(
            "--grace: {} is too long for a --ttl of {}: give at most {}{}", in_words(grace), in_words(ttl),
            in_words(*most), given ? "" : ", or a longer --ttl"));
    }
    return grace;
}

run_arguments complete_run(const raw_arguments& raw, std::optional<std::vector<std::string>> command)
{
    if (raw.max_hold.empty())
    {
        refuse("--max-hold is required: give the time after which the command is stopped, as in "
               "--max-hold 12h, or --max-hold unlimited");
    }
    if (!command || command->empty())
    {
        refuse("the command is missing: give -- and the command with its arguments after RESOURCE");
    }
    if (raw.common.resource.empty() && command->front().starts_with('-'))
    {
        refuse("-- is missing between RESOURCE and COMMAND: give -- RESOURCE -- COMMAND");
    }
    run_arguments all;
    all.common = complete_resource(raw);
    all.command = std::move(*command);
    all.ttl = option_value("--ttl", raw.ttl, read_duration);
    all.grace = read_grace(raw, all.ttl);
    all.max_hold = option_value("--max-hold", raw.max_hold, read_limit);
    all.wait = option_value("--wait", raw.wait, read_limit);
    all.try_once = raw.try_once;
    all.verbose = raw.verbose;
    all.guarded = raw.guarded;
    all.inherit_masters = !raw.no_inherit_masters;
    if (all.max_hold.value() <= std::chrono::milliseconds{0})
    {
        refuse("--max-hold: give 1ms or more, or 'unlimited'");
    }
    return all;
}

arming_policy read_policy(const std::string& text)
{
    if (text != "clocks" && text != "operator")
    {
        throw std::invalid_argument{
            fmt::format("{} is not a policy: give clocks or operator", shown_word(text))};
    }
    return text == "clocks" ? arming_policy::clocks : arming_policy::by_hand;
}

std::string read_group(const std::string& text)
{
    constexpr std::size_t digits = 16;
    if (text.size() != digits || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    {
        throw std::invalid_argument{fmt::format(
            "{} is not the name of a group: give its 16 digits, as redlock doctor --guarded shows them",
            shown_word(text))};
    }
    return text;
}

provision_action action_of(const raw_arguments& raw, bool is_again)
{
    if (!raw.retired.empty())
    {
        return provision_action::retire;
    }
    if (is_again)
    {
        return provision_action::arm_again;
    }
    if (raw.change)
    {
        return provision_action::change_group;
    }
    return raw.arm ? provision_action::arm : provision_action::make_group;
}

/// Refuses a master that is given as an old one twice. The message names it without its password.
void check_leaving(const raw_arguments& raw)
{
    std::vector<std::string> urls = raw.leaving;
    urls.insert(urls.end(), raw.stopped.begin(), raw.stopped.end());
    std::sort(urls.begin(), urls.end());
    const auto twice = std::adjacent_find(urls.begin(), urls.end());
    if (twice != urls.end())
    {
        refuse(fmt::format(
            "--from, --stopped: {} is given twice: give each old master once, with one of these options",
            master{*twice}.name()));
    }
}

/// Adds the masters that leave after those that are members. One that is in both lists stays.
void add_leaving(provision_arguments& all, const raw_arguments& raw)
{
    const bool is_given = !raw.leaving.empty() || !raw.stopped.empty();
    if (is_given && !raw.change && !raw.takeover)
    {
        refuse(fmt::format(
            "{} needs --change: masters leave only a group that is replaced",
            raw.leaving.empty() ? "--stopped" : "--from"));
    }
    check_leaving(raw);
    std::vector<std::string>& urls = all.servers.masters;
    const auto members = static_cast<std::ptrdiff_t>(urls.size());
    for (const std::string& url : raw.leaving)
    {
        if (std::find(urls.begin(), urls.begin() + members, url) == urls.begin() + members)
        {
            urls.push_back(url);
        }
    }
    urls.insert(urls.end(), raw.stopped.begin(), raw.stopped.end());
    all.options.leaving = urls.size() - static_cast<std::size_t>(members);
    all.options.stopped = raw.stopped.size();
}

provision_arguments complete_provision(const raw_arguments& raw, bool is_again)
{
    provision_arguments all;
    all.options.action = action_of(raw, is_again);
    const bool makes_group = all.options.action == provision_action::make_group ||
                             all.options.action == provision_action::change_group;
    if (raw.max_ttl.empty() && makes_group)
    {
        refuse("--max-ttl is required: give the longest ttl of a lock, as in --max-ttl 60s");
    }
    all.servers = raw.common.servers;
    if (all.options.action == provision_action::retire)
    {
        all.servers.masters = raw.retired; // Never those of the environment, which are in use.
    }
    all.servers = complete(std::move(all.servers), raw);
    add_leaving(all, raw);
    all.prefix = read_prefix(raw.common.prefix);
    all.options.takeover = raw.takeover;
    all.options.policy = option_value("--policy", raw.policy, read_policy);
    all.options.fresh = raw.fresh;
    all.json = raw.json;
    if (is_again)
    {
        all.group = option_value("--again", raw.group, read_group);
    }
    if (!raw.max_ttl.empty())
    {
        all.options.max_ttl = option_value("--max-ttl", raw.max_ttl, read_duration);
        if (all.options.max_ttl <= std::chrono::milliseconds{0})
        {
            refuse("--max-ttl: give 1ms or more");
        }
    }
    return all;
}

} // namespace

request read_arguments(int count, const char* const* words)
{
    std::vector<std::string> given{words + std::min(count, 1), words + count};
    std::optional<std::vector<std::string>> command = take_command(given);
    raw_arguments raw;
    CLI::App app{"Distributed locks over independent Redis or Valkey masters.", "redlock"};
    app.set_version_flag("--version", "redlock " REDLOCK_COMMAND_VERSION);
    app.require_subcommand(1);
    // The last occurrence counts, so that a user can override the options in an alias or a script.
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    const CLI::App& run = add_run(app, raw);
    const CLI::App& status = add_status(app, raw);
    const CLI::App& doctor = add_doctor(app, raw);
    const CLI::App& provision = add_provision(app, raw);
    try
    {
        const bool known = !given.empty() && is_command(given.front());
        const std::vector<std::string> complete_words =
            known ? with_empty_values(given, *app.get_subcommand(given.front())) : given;
        app.parse(std::vector<std::string>{complete_words.rbegin(), complete_words.rend()});
        if (status.parsed())
        {
            return status_arguments{complete_resource(raw), raw.json};
        }
        if (doctor.parsed())
        {
            return doctor_arguments{
                complete(raw.common.servers, raw), read_prefix(raw.common.prefix), !raw.no_probe, raw.guarded,
                raw.json};
        }
        if (!run.parsed())
        {
            return complete_provision(raw, provision.count("--again") > 0);
        }
        if (raw.common.resource.empty() && command)
        {
            raw.common.resource = take_resource(*command);
        }
        return complete_run(raw, std::move(command));
    }
    catch (const CLI::Success& wanted)
    {
        // Help or version, on stdout.
        return answered{app.exit(wanted)};
    }
    catch (const CLI::ParseError& error)
    {
        say(complaint_of(error, given) + "; see redlock --help");
    }
    catch (const std::invalid_argument& error)
    {
        say(error.what());
    }
    return answered{number_of(exit_code::usage)};
}

} // namespace redlock::cli
