// SPDX-License-Identifier: BSL-1.0
// Clients of etcd and PostgreSQL that compete for one lock. The servers keep the queue.
#pragma once

#include "harness/contender.hpp"

#include <string>

namespace redlock::bench
{

/// Clients of etcd's lock API, each with the lease of a session, through the JSON gateway.
contender_factory etcd_contenders(int port);

/// Clients of an advisory lock, with simple queries.
contender_factory postgres_contenders(int port, std::string user, std::string password);

} // namespace redlock::bench
