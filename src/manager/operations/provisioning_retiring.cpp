// SPDX-License-Identifier: BSL-1.0
// A run of provisioning that deletes markers.
#include "manager/operations/provisioning.hpp"
#include "net/arming_scripts.hpp"
#include "net/provision_commands.hpp"

#include <vector>

namespace redlock::manager
{

/// Deletes the markers that a look has shown.
runtime::task<error_code> provisioning::retire()
{
    bool succeeded = co_await connect();
    if (succeeded)
    {
        succeeded = co_await look();
    }
    if (!succeeded)
    {
        co_return failure();
    }
    judge();
    if (plan_.next == core::provision_step::complete)
    {
        report_.outcome = provision_outcome::complete;
        co_return error_code{};
    }
    if (plan_.next == core::provision_step::refuse)
    {
        co_return failure();
    }
    std::vector<std::size_t> marked;
    for (std::size_t master = 0; master < seen_.size(); ++master)
    {
        if (plan_.masters[master].takes_part)
        {
            marked.push_back(master);
        }
    }
    const broadcast_query<changes> query{seen_.size(), marked.size(), net::read_quarantine, self_.wake_event};
    report_.outcome = provision_outcome::unfinished;
    for (const std::size_t master : marked)
    {
        command_.clear();
        net::append_retire(command_, keys_, *seen_[master].marker, database_of(master));
        service_.send_query(master, command_, *query);
    }
    succeeded = co_await await_replies(*query);
    for (const std::size_t master : marked)
    {
        succeeded = note_retired(master, query->of(master)) && succeeded;
    }
    if (succeeded)
    {
        report_.outcome = provision_outcome::retired;
    }
    co_return succeeded ? error_code{} : failure();
}

/// Returns whether the marker was deleted.
bool provisioning::note_retired(std::size_t master, const change_answer& answer)
{
    if (answer.reason)
    {
        const bool is_blind = answer.refusal == net::databases_unknown;
        note_failure(master, answer.reason, is_blind ? unknown_databases : answer.detail);
        return false;
    }
    const bool is_deleted = answer.marker.empty();
    note(master, is_deleted ? provision_finding::unmarked : provision_finding::changed);
    return is_deleted;
}

} // namespace redlock::manager
