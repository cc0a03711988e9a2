// SPDX-License-Identifier: BSL-1.0
// The change of a guarded group.
#include "change_run.hpp"

#include "cluster_run.hpp"

#include "api/provision.hpp"

#include <redlock/detail/completion.hpp>

namespace redlock::test
{

change_run::change_run(cluster_run& cluster, std::chrono::milliseconds max_ttl, bool takeover)
    : process_{cluster.add_process().shared_from_this()}, state_{std::make_shared<state>()}
{
    process_->operate();
    auto handler = [&cluster, its = state_, pause = cluster.drawn().does.pause](error_code error)
    {
        its->result = error;
        if (cluster.told().printing())
        {
            const clock::time_point now = cluster.world().now();
            cluster.told().print(now, "operator", now, its->report.to_string());
        }
        if (!error)
        {
            cluster.restart_clients_within(pause);
        }
    };
    const boost::asio::any_io_executor executor = process_->context().get_executor();
    detail::status_completion done = detail::type_erase<void(error_code)>(handler, executor);
    api::provision(
        executor, cluster.options(),
        {.action = provision_action::change_group, .max_ttl = max_ttl, .takeover = takeover},
        process_->shared_environment(), &state_->report, done);
}

bool change_run::ended() const
{
    return state_->result || !process_->up();
}

} // namespace redlock::test
