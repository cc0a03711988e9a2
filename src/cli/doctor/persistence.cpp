// SPDX-License-Identifier: BSL-1.0
// Describes the settings appendonly, appendfsync and save.
#include "cli/doctor/persistence.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace redlock::cli
{

namespace
{

constexpr const char* keep_out = "keep it out of reach after a restart until the longest ttl has passed";
constexpr const char* two_holders = "and a lock may have two holders";

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
        return "unknown";
    }
    return *one.appendonly == "yes" ? "appendfsync " + *one.appendfsync : "appendonly " + *one.appendonly;
}

std::optional<finding> about_persistence(const master_examination& one)
{
    if (!is_told(one))
    {
        return note(
            "persistence_unknown", "it doesn't answer CONFIG GET, so its persistence is unknown",
            fmt::format("Without persistence a restart loses every lock, {}", two_holders),
            "Make sure that it has appendonly yes and appendfsync always; or allow CONFIG GET: ACL SETUSER "
            "... +config|get");
    }
    if (*one.appendonly != "yes")
    {
        const bool snapshots = one.save && !one.save->empty();
        return note(
            "forgets", persistence_of(one),
            fmt::format(
                "A restart loses every lock{}, {}", snapshots ? " since its last snapshot" : "", two_holders),
            fmt::format("Set appendonly yes and appendfsync always; or {}", keep_out));
    }
    if (*one.appendfsync == "always")
    {
        return std::nullopt;
    }
    const bool every_second = *one.appendfsync == "everysec";
    return note(
        "forgets_newest", persistence_of(one),
        fmt::format(
            "A crash of its machine loses {}, {}",
            every_second ? "up to two seconds of locks" : "the locks that the system hasn't written",
            two_holders),
        fmt::format("Set appendfsync always; or, after a crash, {}", keep_out));
}

} // namespace redlock::cli
