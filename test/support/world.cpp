// SPDX-License-Identifier: BSL-1.0
// The world of this process: read from the environment, with certificates created here, and the documented user.
#include "world.hpp"

#include "child_process.hpp"
#include "server.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

namespace redlock::test
{

namespace
{

world read_world()
{
    static const std::map<std::string, bool world::*> words_of_worlds{
        {"valkey", &world::valkey},
        {"unix", &world::unix_sockets},
        {"tls", &world::tls},
        {"acl", &world::least_acl}};
    world found;
    const char* const words = std::getenv("REDLOCK_TEST_SERVERS");
    std::istringstream text{words == nullptr ? "" : words};
    for (std::string word; text >> word;)
    {
        const auto named = words_of_worlds.find(word);
        if (named == words_of_worlds.end())
        {
            throw std::runtime_error{fmt::format(
                "REDLOCK_TEST_SERVERS has the word '{}': known are valkey, unix, tls and acl", word)};
        }
        found.*named->second = true;
    }
    return found;
}

/// The certificate authority of this process and the certificates it has signed; the files are removed with the
/// process.
class authority_of_world
{
  public:
    const world_certificates& certificates() const { return certificates_; }

  private:
    temporary_directory directory_;
    certificate_authority ca_{directory_.path(), "world"};
    world_certificates certificates_{ca_.issue("master"), ca_.file()};
};

/// Returns the lines of the documentation that start with `begin`.
std::vector<std::string> documented_lines(const std::string& begin)
{
    std::ifstream page{REDLOCK_DEPLOYMENT_PAGE};
    std::vector<std::string> found;
    for (std::string line; std::getline(page, line);)
    {
        if (line.starts_with(begin))
        {
            found.push_back(line.substr(begin.size()));
        }
    }
    return found;
}

/// Returns the rules of the user. The documentation has them twice, for pasting and in the configuration; both must
/// agree.
std::string documented_rules()
{
    const std::string user = documented_user_name;
    const std::vector<std::string> pasted = documented_lines("ACL SETUSER " + user + " ");
    const std::vector<std::string> configured = documented_lines("user " + user + " ");
    if (pasted.size() != 1 || pasted != configured)
    {
        throw std::runtime_error{fmt::format(
            "{} must have one line that begins with ACL SETUSER {}, and one with user {} and the same rules",
            REDLOCK_DEPLOYMENT_PAGE, user, user)};
    }
    return pasted.front();
}

/// Returns the block of the documentation whose first line starts with `begin`.
std::string documented_block(const std::string& begin)
{
    std::ifstream page{REDLOCK_DEPLOYMENT_PAGE};
    std::string found;
    for (std::string line; std::getline(page, line);)
    {
        const bool inside = !found.empty();
        if (inside && line.starts_with("```"))
        {
            return found;
        }
        if (inside || line.starts_with(begin))
        {
            found += line + "\n";
        }
    }
    throw std::runtime_error{
        fmt::format("{} has no block that begins with {}", REDLOCK_DEPLOYMENT_PAGE, begin)};
}

} // namespace

const world& this_world()
{
    static const world found = read_world();
    return found;
}

std::string program_of(const std::string& name)
{
    const char* variable = name == "redis-server"    ? "REDLOCK_TEST_REDIS"
                           : name == "valkey-server" ? "REDLOCK_TEST_VALKEY"
                                                     : nullptr;
    const char* const chosen = variable == nullptr ? nullptr : std::getenv(variable);
    if (chosen == nullptr || *chosen == '\0')
    {
        return name;
    }
    if (find_program(chosen).empty())
    {
        throw std::runtime_error{fmt::format("{}: there is no program {}", variable, chosen)};
    }
    return chosen;
}

const world_certificates& certificates_of_world()
{
    static const authority_of_world authority;
    return authority.certificates();
}

std::vector<std::string> documented_user(const std::string& password)
{
    std::istringstream text{documented_rules()};
    std::vector<std::string> words{documented_user_name};
    bool has_password = false;
    for (std::string word; text >> word;)
    {
        has_password = has_password || word == ">PASSWORD";
        words.push_back(word == ">PASSWORD" ? ">" + password : word);
    }
    if (!has_password)
    {
        throw std::runtime_error{"no password in: " + documented_rules()};
    }
    return words;
}

std::string documented_configuration()
{
    return documented_block("bind ");
}

std::string documented_lines_to_paste()
{
    return documented_block("ACL SETUSER ");
}

} // namespace redlock::test
