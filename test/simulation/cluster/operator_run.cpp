// SPDX-License-Identifier: BSL-1.0
// A run of `redlock provision`, as an operator makes it to change the group.
#include "operator_run.hpp"

#include "cluster_run.hpp"

#include "api/provision.hpp"

#include <redlock/detail/completion.hpp>

namespace redlock::test
{

operator_run::operator_run(cluster_run& cluster, const config& masters, const provision_options& options)
    : process_{cluster.add_process().shared_from_this()}, state_{std::make_shared<state>()}
{
    process_->operate();
    const bool is_change = options.action == provision_action::change_group;
    auto handler = [&cluster, its = state_, is_change, pause = cluster.drawn().does.pause](error_code error)
    {
        its->result = error;
        if (cluster.told().printing())
        {
            const clock::time_point now = cluster.world().now();
            cluster.told().print(now, "operator", now, its->report.to_string());
        }
        if (!error && is_change)
        {
            cluster.restart_clients_within(pause);
        }
    };
    const boost::asio::any_io_executor executor = process_->context().get_executor();
    detail::status_completion done = detail::type_erase<void(error_code)>(handler, executor);
    api::provision(executor, masters, options, process_->shared_environment(), &state_->report, done);
}

bool operator_run::ended() const
{
    return state_->result || !process_->up();
}

std::vector<std::size_t> operator_run::strangers() const
{
    std::vector<std::size_t> found;
    for (std::size_t index = 0; !succeeded() && index < state_->report.masters.size(); ++index)
    {
        if (state_->report.masters[index].found == provision_finding::other_group)
        {
            found.push_back(index);
        }
    }
    return found;
}

} // namespace redlock::test
