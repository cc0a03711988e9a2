// SPDX-License-Identifier: BSL-1.0
// One virtual connection.
#include "virtual_link.hpp"

#include "sim_master.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <utility>

namespace redlock::test
{

namespace asio = boost::asio;

void virtual_link::to_master(arrival what)
{
    last_to_master_ = std::max(last_to_master_, world_.now() + master_.network.delay_there(world_));
    on_the_way_there_.push_back(std::move(what));
    world_.at(
        last_to_master_, event_kind::network, [self = shared_from_this()] { self->arrive_at_master(); });
}

void virtual_link::to_client(arrival what)
{
    last_to_client_ = std::max(last_to_client_, world_.now() + master_.network.delay_back(world_));
    on_the_way_back_.push_back(std::move(what));
    world_.at(
        last_to_client_, event_kind::network, [self = shared_from_this()] { self->arrive_at_client(); });
}

void virtual_link::arrive_at_master()
{
    if (on_the_way_there_.empty())
    {
        return; // It was cut.
    }
    const arrival what = std::move(on_the_way_there_.front());
    on_the_way_there_.pop_front();
    if (held_ || master_.network.cut_there)
    {
        waiting_.push_back(what);
        return;
    }
    what();
}

void virtual_link::arrive_at_client()
{
    if (on_the_way_back_.empty())
    {
        return;
    }
    const arrival what = std::move(on_the_way_back_.front());
    on_the_way_back_.pop_front();
    if (replies_held_ || master_.network.cut_back)
    {
        waiting_replies_.push_back(what);
    }
    else if (client_ != nullptr && !ended_for_client_)
    {
        what();
    }
}

void virtual_link::connect()
{
    master_.on_link(shared_from_this());
    to_master(
        [this]
        {
            if (master_.door == entrance::silent)
            {
                return;
            }
            const bool refused = master_.door == entrance::refuses;
            to_client(
                [this, refused] {
                    client_->on_connected(
                        refused ? error_code{asio::error::connection_refused} : error_code{});
                });
            if (!refused)
            {
                master_.on_arrival(shared_from_this());
            }
        });
}

bool virtual_link::takes_bytes()
{
    return master_.takes_bytes;
}

void virtual_link::send(std::string bytes)
{
    if (++sent_ == master_.network.breaks_at)
    {
        world_.at(world_.now(), event_kind::network, [self = shared_from_this()] { self->cut(); });
    }
    to_master([this, bytes = std::move(bytes)] { master_.on_bytes(*this, bytes); });
}

void virtual_link::close() noexcept
{
    if (std::exchange(client_, nullptr) != nullptr)
    {
        to_master([this] { master_.on_end(*this); });
    }
}

void virtual_link::reply(const std::string& bytes)
{
    const std::size_t piece = master_.network.piece == 0 ? bytes.size() : master_.network.piece;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
    {
        to_client([this, part = bytes.substr(at, piece)] { client_->on_bytes(part); });
    }
}

void virtual_link::close_by_master(error_code why)
{
    at_master_.id = 0;
    to_client([this, why] { std::exchange(client_, nullptr)->on_end(why); });
}

void virtual_link::break_off()
{
    if (client_ != nullptr)
    {
        if (!ended_for_client_)
        {
            client_->on_end(asio::error::connection_reset);
        }
        close();
    }
}

void virtual_link::cut()
{
    on_the_way_there_.clear();
    on_the_way_back_.clear();
    waiting_.clear();
    waiting_replies_.clear();
    if (client_end* const client = std::exchange(client_, nullptr); client != nullptr && !ended_for_client_)
    {
        client->on_end(asio::error::connection_reset);
    }
    master_.on_end(*this);
}

void virtual_link::end_for_client()
{
    to_client(
        [this]
        {
            ended_for_client_ = true;
            client_->on_end(asio::error::eof);
        });
}

void virtual_link::end_for_master()
{
    to_master([this] { master_.on_end(*this); });
}

void virtual_link::go_on()
{
    if (!held_ && !master_.network.cut_there)
    {
        let_go();
    }
    if (!replies_held_ && !master_.network.cut_back)
    {
        let_go_of_replies();
    }
}

void virtual_link::let_go()
{
    held_ = false;
    for (const arrival& what : std::exchange(waiting_, {}))
    {
        what();
    }
}

void virtual_link::let_go_of_replies()
{
    replies_held_ = false;
    for (const arrival& what : std::exchange(waiting_replies_, {}))
    {
        if (client_ != nullptr && !ended_for_client_)
        {
            what();
        }
    }
}

} // namespace redlock::test
