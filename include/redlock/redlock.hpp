// SPDX-License-Identifier: BSL-1.0
// Includes the whole library.
#pragma once

#include <redlock/arming_policy.hpp>
#include <redlock/clock.hpp>
#include <redlock/config.hpp>
#include <redlock/error.hpp>
#include <redlock/examination.hpp>
#include <redlock/guarded_step.hpp>
#include <redlock/inspection.hpp>
#include <redlock/lease.hpp>
#include <redlock/lock_manager.hpp>
#include <redlock/master.hpp>
#include <redlock/observer.hpp>
#include <redlock/options.hpp>
#include <redlock/provision.hpp>
#include <redlock/provision_action.hpp>
#include <redlock/provision_finding.hpp>
#include <redlock/report.hpp>
#include <redlock/tls.hpp>
#include <redlock/vote.hpp>
#include <redlock/with_report.hpp>
