// SPDX-License-Identifier: BSL-1.0
// A master that answers as the fuzzer's input says: its connections, and what comes over them.
#include "fuzz_master.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace redlock::test
{

namespace asio = boost::asio;

namespace
{

constexpr clock::duration one_way = std::chrono::microseconds{100};
constexpr std::size_t max_in_pieces = 256;
constexpr std::size_t commands_of_handshake = 16; // More than it has.

/// Kept for all runs: their buffers are large.
resp::parser& parser_of(std::size_t index)
{
    static std::array<resp::parser, witness::max_fuzz_masters> all;
    return all[index];
}

} // namespace

hostile_stream::hostile_stream(runtime::scheduler& strand, fuzz_master& to)
    : strand_{strand}, handlers_{pending_handlers::of(strand)}, master_{to}
{
    master_.count_stream(1);
}

hostile_stream::~hostile_stream()
{
    master_.on_close(*this);
    master_.count_stream(-1);
}

pending_handlers::ticket hostile_stream::begin(runtime::io_operation& operation)
{
    require(!operation.pending, "an operation is begun twice");
    operation.start();
    return handlers_.add(
        strand_, [&operation](error_code error, std::size_t bytes) { operation.finish(error, bytes); });
}

void hostile_stream::connect(runtime::io_operation& operation, clock::time_point)
{
    connecting_ = begin(operation);
    master_.on_connect(*this);
}

void hostile_stream::read_some(std::span<char> buffer, runtime::io_operation& operation)
{
    require(reading_ == 0 && !buffer.empty() && !closed_, "a read that may not be");
    reading_ = begin(operation);
    buffer_ = buffer;
    read();
}

void hostile_stream::write(std::span<const char> bytes, runtime::io_operation& operation)
{
    require(writing_ == 0 && !bytes.empty() && !closed_, "a write that may not be");
    writing_ = begin(operation);
    to_write_ = bytes;
    as_it_was_.assign(bytes.begin(), bytes.end());
    if (end_)
    {
        handlers_.complete(writing_, asio::error::broken_pipe);
        return;
    }
    master_.on_command_bytes(as_it_was_);
    if (master_.takes_bytes)
    {
        on_room();
    }
}

void hostile_stream::close() noexcept
{
    closed_ = true;
    master_.on_close(*this);
    if (writing_ != 0)
    {
        // Another thread may be copying these bytes to the kernel.
        const bool same =
            std::equal(to_write_.begin(), to_write_.end(), as_it_was_.begin(), as_it_was_.end());
        require(same, "what is being written was changed");
    }
    for (pending_handlers::ticket* each : {&connecting_, &reading_, &writing_})
    {
        handlers_.complete(*each, asio::error::operation_aborted);
    }
}

void hostile_stream::on_bytes(std::string_view bytes)
{
    arrived_ += bytes;
    read();
}

void hostile_stream::on_end(error_code why)
{
    end_ = why;
    handlers_.complete(connecting_, why);
    handlers_.complete(writing_, why);
    read();
}

void hostile_stream::read()
{
    if (reading_ == 0 || (arrived_.empty() && !end_))
    {
        return;
    }
    if (arrived_.empty())
    {
        handlers_.complete(reading_, end_);
        return;
    }
    std::size_t bytes = std::min(arrived_.size(), buffer_.size());
    // A long one in small pieces would take the whole run's time, and teach nothing new.
    const bool whole = master_.piece == 0 || arrived_.size() > max_in_pieces;
    bytes = whole ? bytes : std::min(bytes, master_.piece);
    std::memcpy(buffer_.data(), arrived_.data(), bytes);
    arrived_.erase(0, bytes);
    handlers_.complete(reading_, {}, bytes);
}

fuzz_master::fuzz_master(
    std::size_t index, virtual_world& world, fuzz_input& input, witness& seen, std::size_t max_in_flight)
    : index_{index},
      world_{world},
      input_{input},
      seen_{seen},
      max_in_flight_{max_in_flight},
      replies_{parser_of(index)},
      keys_{world}
{
}

clock::time_point fuzz_master::arrival() noexcept
{
    last_sent_ = std::max(last_sent_, world_.now() + one_way + delay);
    return last_sent_;
}

void fuzz_master::on_connect(hostile_stream& client)
{
    require(client_ == nullptr, "two connections to one master");
    client_ = &client;
    ++connection_;
    votes_ = false;
    protocol_ = 2;
    subscribed_.clear();
    seen_.on_connect(index_);
    requests_ = {};
    unanswered_.clear();
    unknown_scripts_ = 0;
    misfit_ = false;
    unread_.clear();
    replies_.reset();
    kept_back_.clear();
    last_sent_ = last_answer_ = {};
    later(
        world_.now() + 2 * one_way,
        [this] { client_->on_connected(listens ? error_code{} : asio::error::connection_refused); });
}

void fuzz_master::on_close(const hostile_stream& client) noexcept
{
    client_ = client_ == &client ? nullptr : client_;
}

void fuzz_master::on_command_bytes(std::string_view bytes)
{
    requests_.feed(bytes);
    std::vector<command> all;
    while (std::optional<command> next = requests_.next())
    {
        unanswered_.push_back(seen_.on_command(index_, *next, world_.now()));
        const purpose what = unanswered_.back().what;
        votes_ = votes_ || what == purpose::set || what == purpose::ask;
        if (unanswered_.back().in_full)
        {
            require(unknown_scripts_ > 0, "a script is sent in full though its digest is known");
            --unknown_scripts_;
        }
        all.push_back(std::move(*next));
    }
    require(unanswered_.size() <= max_in_flight_ + commands_of_handshake, "too many commands are in flight");
    match();
    if (!takes_bytes)
    {
        kept_back_.insert(kept_back_.end(), all.begin(), all.end());
        return;
    }
    auto arrive = [this, all = std::move(all)]
    {
        for (const command& each : all)
        {
            if (hangs || !kept_back_.empty())
            {
                kept_back_.push_back(each);
            }
            else if (client_ != nullptr)
            {
                answer(each);
            }
        }
    };
    later(world_.now() + one_way, std::move(arrive));
}

void fuzz_master::go_on()
{
    hangs = false;
    takes_bytes = true;
    if (client_ == nullptr)
    {
        return;
    }
    client_->on_room();
    auto arrive = [this]
    {
        for (const command& each : std::exchange(kept_back_, {}))
        {
            if (client_ != nullptr)
            {
                answer(each);
            }
        }
    };
    later(world_.now() + one_way, std::move(arrive));
}

void fuzz_master::become_honest()
{
    listens = true;
    is_hostile = false;
    piece = 0;
    delay = {};
    go_on();
}

void fuzz_master::send(std::string bytes)
{
    if (client_ == nullptr || bytes.empty())
    {
        return;
    }
    auto arrive = [this, bytes = std::move(bytes)]
    {
        unread_ += bytes;
        match();
        client_->on_bytes(bytes);
    };
    later(arrival(), std::move(arrive));
}

void fuzz_master::end(error_code why)
{
    if (client_ == nullptr)
    {
        return;
    }
    auto arrive = [this, why]
    {
        hostile_stream& client = *std::exchange(client_, nullptr);
        client.on_end(why);
    };
    later(arrival(), std::move(arrive));
}

/// The next one that isn't a push, of all that was sent.
const resp::reply* fuzz_master::next_reply()
{
    for (;;)
    {
        const resp::reply* const reply = replies_.next();
        if (reply != nullptr && !reply->is_push())
        {
            return reply;
        }
        if (reply != nullptr)
        {
            seen_.on_push(index_, *reply);
            continue;
        }
        if (unread_.empty() || replies_.error() != resp::parse_error::none)
        {
            return nullptr;
        }
        const std::span<char> room = replies_.prepare();
        const std::size_t bytes = std::min(room.size(), unread_.size());
        std::memcpy(room.data(), unread_.data(), bytes);
        replies_.commit(bytes);
        unread_.erase(0, bytes);
    }
}

void fuzz_master::match()
{
    while (!unanswered_.empty() && !misfit_)
    {
        const resp::reply* const reply = next_reply();
        if (reply == nullptr)
        {
            return;
        }
        if (unanswered_.front().what == purpose::subscribe)
        {
            last_answer_ = world_.now();
            const part_of_request part = seen_.on_request_reply(index_, *reply);
            misfit_ = part == part_of_request::none;
            if (misfit_)
            {
                return;
            }
            if (part == part_of_request::last)
            {
                end_request();
            }
            continue;
        }
        const written& first = unanswered_.front();
        seen_.on_answer(index_, first, *reply);
        const bool by_digest =
            (first.what == purpose::ask || first.what == purpose::extend || first.what == purpose::release) &&
            !first.in_full;
        const bool unknown = by_digest && reply->is_error() && reply->text().starts_with("NOSCRIPT");
        last_answer_ = world_.now();
        unknown_scripts_ += unknown ? 1U : 0U;
        unanswered_.pop_front();
    }
}

void fuzz_master::end_request()
{
    for (const purpose each : {purpose::subscribe, purpose::publish, purpose::greeting})
    {
        require(!unanswered_.empty() && unanswered_.front().what == each, "a request that isn't whole");
        unanswered_.pop_front();
    }
}

void fuzz_master::check_patience(clock::duration most) const
{
    if (client_ != nullptr && votes_ && !unanswered_.empty())
    {
        const clock::time_point since = std::max(unanswered_.front().at, last_answer_);
        require(world_.now() <= since + most, "a master that doesn't answer is waited for");
    }
}

void fuzz_master::check_when_idle()
{
    if (client_ == nullptr)
    {
        return;
    }
    require(replies_.error() == resp::parse_error::none, "a stream that is broken is read on");
    require(!misfit_, "a reply that can't be one to a request of the subscription is accepted");
    seen_.on_idle(index_);
    // In a handshake it may still answer something that is to come.
    const bool unasked = votes_ && unanswered_.empty() && next_reply() != nullptr;
    require(!unasked, "a reply that nobody asked for is kept");
    // A question that isn't written may have paid for a push.
    require(!takes_bytes || seen_.too_many_pushes(index_) == 0, "a flood of pushes is read on");
}

} // namespace redlock::test
