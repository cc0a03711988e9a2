// SPDX-License-Identifier: BSL-1.0
// Finds the causes of a probe's failed steps. Servers name the forbidden command, except Redis 7.0 when a script calls
// it: then it is a command that no successful step has called.
#include "cli/doctor/probe_causes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace redlock::cli
{

namespace
{

/// The commands of one step: the one that is sent, and those that its script calls.
struct step_commands
{
    std::string_view sent;
    std::vector<std::string_view> called;
};

const std::array<step_commands, probe_steps>& commands_of_steps()
{
    static const std::array<step_commands, probe_steps> all{
        {{"set", {}},
         {"eval", {"get", "pttl"}},
         {"evalsha", {"get", "pttl", "pexpire"}},
         {"evalsha", {"get", "del"}}}};
    return all;
}

void add_once(words& to, std::string_view word)
{
    if (std::find(to.begin(), to.end(), word) == to.end())
    {
        to.emplace_back(word);
    }
}

/// Returns the quoted command after `before`, in lower case; empty if there is none.
std::string quoted_after(std::string_view text, std::string_view before)
{
    const std::size_t start = text.find(before);
    if (start == std::string_view::npos)
    {
        return {};
    }
    text.remove_prefix(start + before.size());
    std::string command{text.substr(0, text.find('\''))};
    for (char& each : command)
    {
        each = each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
    }
    return command;
}

/// Returns true if a successful step called this command.
bool has_worked(const probe& made, std::string_view command)
{
    for (std::size_t step = 0; step < probe_steps; ++step)
    {
        const std::vector<std::string_view>& called = commands_of_steps().at(step).called;
        if (made.steps.at(step).succeeded() &&
            std::find(called.begin(), called.end(), command) != called.end())
        {
            return true;
        }
    }
    return false;
}

/// Returns the command that the server named for a failed step, or the candidates if it named none.
words missing_for(const probe& made, std::size_t step, const std::string& named, bool in_script)
{
    const step_commands& commands = commands_of_steps().at(step);
    if (!named.empty() || !in_script)
    {
        return {named.empty() ? std::string{commands.sent} : named};
    }
    words left;
    for (const std::string_view called : commands.called)
    {
        if (!has_worked(made, called))
        {
            left.emplace_back(called);
        }
    }
    return left;
}

/// The commands missing for one reason, in all steps.
struct missing_commands
{
    words named; ///< Known to be missing.
    /// For each step whose error names no command: the candidates, one of which is missing.
    std::vector<words> suspected;

    void add(words commands)
    {
        if (commands.size() == 1)
        {
            add_once(named, commands.front());
        }
        else
        {
            suspected.push_back(std::move(commands));
        }
    }

    /// Returns commands that explain all failures: a step that a known command explains adds none; a candidate of
    /// several steps, and of all, is preferred to all candidates of one.
    words explained() const
    {
        words all = named;
        for (const words& step : suspected)
        {
            const auto known = [&all](const std::string& each)
            { return std::find(all.begin(), all.end(), each) != all.end(); };
            if (std::any_of(step.begin(), step.end(), known))
            {
                continue;
            }
            const auto everywhere = std::find_if(
                step.begin(), step.end(), [this](const std::string& each) { return is_in_all(each); });
            if (everywhere != step.end())
            {
                add_once(all, *everywhere);
                continue;
            }
            for (const std::string& each : step)
            {
                add_once(all, each);
            }
        }
        return all;
    }

  private:
    bool is_in_all(const std::string& command) const
    {
        return suspected.size() > 1 &&
               std::all_of(
                   suspected.begin(), suspected.end(),
                   [&command](const words& step)
                   { return std::find(step.begin(), step.end(), command) != step.end(); });
    }
};

/// Groups failures by cause.
class sorter
{
  public:
    void add(const probe& made, std::size_t step)
    {
        const probe_outcome& failed = made.steps.at(step);
        const std::string_view text = failed.detail;
        const bool in_script = text.find("script") != std::string_view::npos;
        if (failed.key_gone)
        {
            found_.key_gone = true;
        }
        else if (failed.reason == master_errc::timed_out || failed.reason == master_errc::unresponsive)
        {
            found_.no_answer = true;
        }
        else if (
            failed.reason == master_errc::no_permission && text.find(" to access ") != std::string_view::npos)
        {
            found_.keys = true;
        }
        else if (failed.reason == master_errc::no_permission)
        {
            forbidden_.add(missing_for(made, step, quoted_after(text, "to run the '"), in_script));
        }
        else if (text.starts_with("ERR unknown command") || text.starts_with("ERR Unknown "))
        {
            unknown_.add(missing_for(made, step, quoted_after(text, "command '"), in_script));
        }
        else if (std::none_of(
                     found_.others.begin(), found_.others.end(),
                     [&failed](const probe_outcome* each) { return each->reason == failed.reason; }))
        {
            found_.others.push_back(&failed);
        }
    }

    causes result() &&
    {
        found_.forbidden = forbidden_.explained();
        found_.unknown = unknown_.explained();
        return std::move(found_);
    }

  private:
    causes found_;
    missing_commands forbidden_; // Forbidden by the ACL.
    missing_commands unknown_;   // Unknown to the server.
};

} // namespace

causes causes_of(const probe& made)
{
    sorter failures;
    for (std::size_t step = 0; step < probe_steps; ++step)
    {
        if (made.steps.at(step).tried && !made.steps.at(step).succeeded())
        {
            failures.add(made, step);
        }
    }
    return std::move(failures).result();
}

} // namespace redlock::cli
