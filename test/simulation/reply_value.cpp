// SPDX-License-Identifier: BSL-1.0
// A reply of a simulated master.
#include "reply_value.hpp"

#include "support/fake_replies.hpp"

namespace redlock::test
{

std::string reply_value::bytes(int protocol) const
{
    switch (what)
    {
    case kind::null:
        return protocol == 3 ? "_\r\n" : "$-1\r\n";
    case kind::status:
        return "+" + text + "\r\n";
    case kind::error:
        return "-" + text + "\r\n";
    case kind::integer:
        return test::number(number);
    case kind::text:
        return test::bulk(text);
    case kind::array:
        break;
    }
    std::string all = fmt::format("*{}\r\n", items.size());
    for (const reply_value& each : items)
    {
        all += each.bytes(protocol);
    }
    return all;
}

} // namespace redlock::test
