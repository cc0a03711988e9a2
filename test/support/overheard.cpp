// SPDX-License-Identifier: BSL-1.0
// Searches overheard texts for the passwords of this process's servers.
#include "overheard.hpp"

#include <mutex>
#include <set>

namespace redlock::test
{

namespace
{

constexpr std::size_t max_kept = 20;

struct eavesdropper
{
    std::mutex mutex;
    std::set<std::string, std::less<>> secrets;
    overheard so_far;
};

eavesdropper& the_eavesdropper()
{
    static eavesdropper one;
    return one;
}

} // namespace

void keep_secret(std::string_view password)
{
    eavesdropper& here = the_eavesdropper();
    const std::lock_guard lock{here.mutex};
    if (!password.empty())
    {
        here.secrets.emplace(password);
    }
}

void overhear(std::string_view text, std::string_view whom)
{
    eavesdropper& here = the_eavesdropper();
    const std::lock_guard lock{here.mutex};
    ++here.so_far.texts;
    for (const std::string& secret : here.secrets)
    {
        if (text.find(secret) != std::string_view::npos && here.so_far.with_a_password.size() < max_kept)
        {
            here.so_far.with_a_password.push_back(std::string{whom} + ": " + std::string{text});
        }
    }
}

overheard overheard_so_far()
{
    eavesdropper& here = the_eavesdropper();
    const std::lock_guard lock{here.mutex};
    here.so_far.secrets = here.secrets.size();
    return here.so_far;
}

} // namespace redlock::test
