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

void virtual_link::transmit(direction& way, arrival what)
{
    const latency& network = master_.network;
    const auto jitter = static_cast<std::size_t>(network.jitter.count());
    const clock::duration later{static_cast<clock::rep>(jitter == 0 ? 0 : world_.random_below(jitter + 1))};
    if (!network.joins || std::exchange(way.sent, world_.now()) != world_.now())
    {
        way.last = std::max(way.last, world_.now() + network.*way.delay + later);
    }
    way.in_flight.push_back(std::move(what));
    world_.at(way.last, event_kind::network, [self = shared_from_this(), &way] { self->arrive(way); });
}

bool virtual_link::is_held(const direction& way) const
{
    const latency& network = master_.network;
    return way.held || network.*way.is_cut || network.cut_off == at_master_.origin;
}

void virtual_link::arrive(direction& way)
{
    if (way.in_flight.empty())
    {
        return; // It was cut.
    }
    const arrival what = std::move(way.in_flight.front());
    way.in_flight.pop_front();
    if (is_held(way))
    {
        way.waiting.push_back(what);
        return;
    }
    what();
}

void virtual_link::to_client(arrival what)
{
    auto behind_the_bytes = [this, what = std::move(what)]
    {
        hand_over();
        if (is_heard())
        {
            what();
        }
    };
    transmit(back_, std::move(behind_the_bytes));
}

/// A piece of a reply has arrived at the client's end.
void virtual_link::on_piece(std::string_view bytes)
{
    const bool is_first = unread_.empty();
    unread_ += bytes;
    if (!master_.network.joins || master_.network.piece != 0)
    {
        hand_over();
    }
    else if (is_first)
    {
        world_.at(world_.now(), event_kind::network, [self = shared_from_this()] { self->hand_over(); });
    }
}

/// The client reads what has arrived.
void virtual_link::hand_over()
{
    if (const std::string bytes = std::exchange(unread_, {}); is_heard() && !bytes.empty())
    {
        client_->on_bytes(bytes);
    }
}

void virtual_link::connect()
{
    master_.on_link(shared_from_this());
    transmit(
        there_,
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

void virtual_link::send(std::string bytes, bool late)
{
    if (master_.on_sent)
    {
        master_.on_sent(at_master_.origin, bytes, late);
    }
    waits_for_room_ = false;
    sent_bytes_ += bytes.size();
    begin_to_owe();
    if (++sent_ == master_.network.breaks_at)
    {
        world_.at(world_.now(), event_kind::network, [self = shared_from_this()] { self->cut(); });
    }
    auto arrive = [this, bytes = std::move(bytes)]
    {
        arrived_bytes_ += bytes.size();
        master_.on_bytes(*this, bytes);
    };
    transmit(there_, std::move(arrive));
}

void virtual_link::wait_for_room()
{
    waits_for_room_ = true;
    begin_to_owe();
}

void virtual_link::begin_to_owe()
{
    owes_since_ = owes_since_.value_or(world_.now());
}

/// Returns for how long the master has owed a reply, or room.
clock::duration virtual_link::silence() const
{
    const clock::time_point now = world_.now();
    return now - owes_since_.value_or(now);
}

/// The reply to a command has arrived, which ended after so many bytes.
void virtual_link::answered(std::size_t up_to)
{
    const bool owes_more = waits_for_room_ || sent_bytes_ > up_to;
    // A suspended process can't know of this reply yet.
    const bool is_read = !master_.is_suspended || !master_.is_suspended(at_master_.origin);
    unread_silence_ = is_read ? clock::duration{0} : std::max(unread_silence_, silence());
    owes_since_ = owes_more ? std::optional{world_.now()} : std::nullopt;
}

void virtual_link::close() noexcept
{
    if (std::exchange(client_, nullptr) != nullptr)
    {
        if (master_.on_left)
        {
            master_.on_left(at_master_.origin, std::max(unread_silence_, silence()));
        }
        if (master_.network.close_resets)
        {
            there_.in_flight.clear();
            there_.waiting.clear();
        }
        transmit(there_, [this] { master_.on_end(*this); });
    }
}

void virtual_link::reply(const std::string& bytes)
{
    const std::size_t piece = master_.network.piece == 0 ? bytes.size() : master_.network.piece;
    const bool is_push = bytes.starts_with('>');
    const std::size_t executed = arrived_bytes_ - at_master_.requests.left();
    for (std::size_t at = 0; at < bytes.size(); at += piece)
    {
        const bool is_end = !is_push && at + piece >= bytes.size();
        auto arrive = [this, part = bytes.substr(at, piece), is_end, executed]
        {
            if (!is_heard())
            {
                return;
            }
            if (is_end)
            {
                answered(executed);
            }
            on_piece(part);
        };
        transmit(back_, std::move(arrive));
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
    for (direction* each : {&there_, &back_})
    {
        each->in_flight.clear();
        each->waiting.clear();
    }
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
    transmit(there_, [this] { master_.on_end(*this); });
}

void virtual_link::go_on()
{
    for (direction* each : {&there_, &back_})
    {
        if (!is_held(*each))
        {
            deliver(*each);
        }
    }
}

void virtual_link::deliver(direction& way)
{
    way.held = false;
    for (const arrival& what : std::exchange(way.waiting, {}))
    {
        what();
    }
}

} // namespace redlock::test
