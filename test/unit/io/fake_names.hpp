// SPDX-License-Identifier: BSL-1.0
// The test's own resolver, which is in tcp_connector_test.cpp.
#pragma once

#include <string>

namespace redlock::test
{

/// Looks up `other` whenever `name` is looked up.
void let_name_lead_to(const std::string& name, const std::string& other);

} // namespace redlock::test
