// SPDX-License-Identifier: BSL-1.0
// One virtual connection.
#include "virtual_link.hpp"

#include "scripted_master.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <utility>

namespace redlock::test
{

namespace asio = boost::asio;

void virtual_link::to_master(arrival what)
{
    last_to_master_ = std::max(last_to_master_, world_.now() + master_.network.delay_there(world_));
    auto arrive = [self = shared_from_this(), what = std::move(what)]() mutable
    {
        if (self->held_)
        {
            self->waiting_.push_back(std::move(what));
            return;
        }
        what();
    };
    world_.at(last_to_master_, event_kind::network, std::move(arrive));
}

void virtual_link::to_client(arrival what)
{
    last_to_client_ = std::max(last_to_client_, world_.now() + master_.network.delay_back(world_));
    auto arrive = [self = shared_from_this(), what = std::move(what)]() mutable
    {
        if (self->replies_held_)
        {
            self->waiting_replies_.push_back(std::move(what));
        }
        else if (self->client_ != nullptr)
        {
            what();
        }
    };
    world_.at(last_to_client_, event_kind::network, std::move(arrive));
}

void virtual_link::connect()
{
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

bool virtual_link::takes_bytes() const noexcept
{
    return master_.takes_bytes;
}

void virtual_link::send(std::string bytes)
{
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
        client_->on_end(asio::error::connection_reset);
        close();
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
        if (client_ != nullptr)
        {
            what();
        }
    }
}

} // namespace redlock::test
