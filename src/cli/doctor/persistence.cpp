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
constexpr const char* unknown = "it doesn't answer CONFIG GET, so its persistence is unknown";
constexpr const char* allow_config = "allow CONFIG GET: ACL SETUSER ... +config|get";

finding note(std::string_view kind, std::string what, std::string meaning, std::string advice)
{
    return {severity::note, kind, std::move(what), std::move(meaning), std::move(advice)};
}

bool is_told(const master_examination& one)
{
    return one.appendonly && (*one.appendonly != "yes" || one.appendfsync);
}

/// In guarded mode, a master that has lost the newest keys costs a quarantine, and one that is empty may cost more.
std::optional<finding> about_guarded_persistence(const master_examination& one)
{
    constexpr const char* meaning = "If more than a minority of masters come back empty, no lock can be "
                                    "acquired until an operator arms them: redlock provision --again";
    const bool keeps_data = is_told(one) && (*one.appendonly == "yes" || (one.save && !one.save->empty()));
    if (keeps_data)
    {
        return std::nullopt;
    }
    return is_told(one)
               ? note("forgets", persistence_of(one), meaning, "Set appendonly yes; everysec is enough")
               : note(
                     "persistence_unknown", unknown, meaning,
                     fmt::format("Make sure that it has appendonly yes; or {}", allow_config));
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
    if (one.guarded)
    {
        return about_guarded_persistence(one);
    }
    if (!is_told(one))
    {
        return note(
            "persistence_unknown", unknown,
            fmt::format("Without persistence a restart loses every lock, {}", two_holders),
            fmt::format("Make sure that it has appendonly yes and appendfsync always; or {}", allow_config));
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
