// SPDX-License-Identifier: BSL-1.0
// Describes the settings appendonly, appendfsync and save.
#include "cli/persistence.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace redlock::cli
{

namespace
{

constexpr const char* keep_out = "keep it out of reach after a restart until the longest ttl has passed";
constexpr const char* two_holders = "so that a lock may have two holders";

finding note(std::string_view kind, std::string what, std::string meaning, std::string advice)
{
    return {severity::note, kind, std::move(what), std::move(meaning), std::move(advice)};
}

bool is_told(const master_examination& one)
{
    return one.appendonly && (*one.appendonly != "yes" || one.appendfsync);
}

} // namespace

std::string persistence_of(const master_examination& one)
{
    if (!is_told(one))
    {
        return "not told";
    }
    return *one.appendonly == "yes" ? "appendfsync " + *one.appendfsync : "appendonly " + *one.appendonly;
}

std::optional<finding> about_persistence(const master_examination& one)
{
    if (!is_told(one))
    {
        return note(
            "persistence_unknown", "it doesn't answer CONFIG GET, so what it keeps can't be seen",
            fmt::format("Without persistence it forgets every lock when it restarts, {}", two_holders),
            "See to it that it has appendonly yes and appendfsync always; or allow the user to look: ACL "
            "SETUSER ... +config|get");
    }
    if (*one.appendonly != "yes")
    {
        const bool snapshots = one.save && !one.save->empty();
        return note(
            "forgets", persistence_of(one),
            fmt::format(
                "When it restarts it forgets every lock{}, {}", snapshots ? " since its last snapshot" : "",
                two_holders),
            fmt::format("Then {}; or set appendonly yes and appendfsync always", keep_out));
    }
    if (*one.appendfsync == "always")
    {
        return std::nullopt;
    }
    const bool every_second = *one.appendfsync == "everysec";
    return note(
        "forgets_newest", persistence_of(one),
        fmt::format(
            "When its machine crashes it loses {}, {}",
            every_second ? "up to two seconds of locks" : "the locks that the system hasn't written yet",
            two_holders),
        fmt::format("Set appendfsync always; or, after such a crash, {}", keep_out));
}

} // namespace redlock::cli
