// SPDX-License-Identifier: BSL-1.0
// The library's pipeline compared with a model of it.
#include "model_pipeline.hpp"

#include "net/command.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace redlock::test
{

namespace
{

constexpr std::array<std::string_view, 24> replies{
    "+OK\r\n",
    ":1\r\n",
    ":0\r\n",
    "$-1\r\n",
    "_\r\n",
    "-NOSCRIPT No matching script.\r\n",
    "-OOM no memory\r\n",
    "-ERR other\r\n",
    "-READONLY no\r\n",
    "-MISCONF no\r\n",
    "-NOPERM no\r\n",
    "-MOVED 1 127.0.0.1:1\r\n",
    ":2\r\n",
    "$2\r\nOK\r\n",
    "*2\r\n$1\r\n7\r\n$3\r\n123\r\n",
    "*2\r\n$1\r\nx\r\n:5\r\n",
    ">2\r\n+invalidate\r\n*0\r\n",
    "|1\r\n+a\r\n+b\r\n",
    "*0\r\n",
    "!3\r\nERR\r\n",
    "#t\r\n",
    "$3\r\n",
    "abc\r\n",
    "*4294967295\r\n"};

constexpr std::array<std::size_t, 4> limits_of_debts{3, 1, 8, 64};
constexpr std::array<std::size_t, 3> limits_of_bytes{100'000, 500, 1500};
constexpr std::size_t max_probe_size = 20; // A sign of life needs no room.
constexpr std::size_t script_in_full =
    net::turn_script.text.size() + 200; // And the key: the room that a script needs after NOSCRIPT.

/// What a reply means: the table of replies, once more.
vote meaning(asked what, const resp::reply& reply)
{
    const resp::kind kind = reply.root().kind;
    if (what == asked::set)
    {
        const bool ok = kind == resp::kind::simple_string && reply.text() == "OK";
        return ok ? vote::granted : reply.is_null() ? vote::denied : vote::failed;
    }
    if (kind != resp::kind::integer)
    {
        const bool other_type = what != asked::turn && reply.is_error() &&
                                core::classify(reply.text()) == core::server_error::wrong_type;
        return other_type ? vote::denied : vote::failed;
    }
    const std::int64_t number = reply.integer();
    if (what == asked::turn)
    {
        constexpr std::int64_t hour = 3'600'000;
        return number < -1 || number > hour ? vote::failed : number > 0 ? vote::denied : vote::granted;
    }
    const bool known = number >= 0 && number <= (what == asked::release ? 3 : 1);
    return !known ? vote::failed : number % 2 == 1 ? vote::granted : vote::denied;
}

resp::parser& shared_parser()
{
    static resp::parser one;
    return one;
}

} // namespace

bool listener::append_in_full(std::string& out) const
{
    if (wants && what == asked::turn)
    {
        net::append_turn(out, *of, turn_request, net::script_form::text);
    }
    else if (wants)
    {
        net::append_extend(out, *of, ttl, net::script_form::text);
    }
    return wants;
}

counted_claim::counted_claim(std::size_t index)
{
    key_ = "lock:" + std::to_string(index);
    owner_id_.fill(static_cast<char>('a' + index));
}

model_pipeline::model_pipeline(fuzz_input& input)
    : input_{input},
      max_outstanding_{input.one_of(limits_of_debts)},
      max_bytes_{input.one_of(limits_of_bytes)},
      owed_{std::make_unique<net::ledger>(0, max_outstanding_)},
      pipeline_{std::make_unique<net::pipeline>(
          0, *owed_, 2 * max_outstanding_, max_bytes_,
          core::backoff_policy{std::chrono::milliseconds{10}, std::chrono::milliseconds{500}})},
      parser_{shared_parser()}
{
    for (std::size_t index = 0; index < max_claims; ++index)
    {
        claims_[index] = std::make_unique<counted_claim>(index);
        // As an operation would: the claim is there as long as it is worked with.
        intrusive_ptr_add_ref(claims_[index].get());
    }
    parser_.reset();
}

/// What is sent is what was asked for, in its order.
void model_pipeline::require_asked(const place& first, const command& words) const
{
    const std::string name = name_of(words);
    switch (first.what)
    {
    case asked::set:
        require(
            name == "SET" && words[1] == first.of->key() && words[2] == first.of->owner_id(), "not the SET");
        break;
    case asked::turn:
    case asked::extend:
    case asked::release:
    {
        const net::script& which = first.what == asked::extend ? net::extend_script
                                   : first.what == asked::turn ? net::turn_script
                                                               : net::release_script;
        require(name == (first.in_full ? "EVAL" : "EVALSHA"), "not the script's form");
        require(words[1] == (first.in_full ? which.text : which.sha1), "not the script");
        require(
            words[3] == first.of->key() && words[4] == first.of->owner_id(), "not the script's arguments");
        break;
    }
    case asked::query:
    case asked::probe:
        require(name == "TIME", "not the question");
    }
}

void model_pipeline::write()
{
    require(pipeline_->has_output() == (unwritten_ > 0), "something is to be written, or nothing");
    if (unwritten_ == 0)
    {
        return;
    }
    const std::span<const char> bytes = pipeline_->take_output();
    std::size_t most = max_bytes_;
    for (std::size_t at = queue_.size() - unwritten_; at < queue_.size(); ++at)
    {
        most += queue_[at].what == asked::probe ? max_probe_size : 0U;
    }
    require(bytes.size() <= most, "more waits to be written than may");
    requests_.feed({bytes.data(), bytes.size()});
    while (unwritten_ > 0)
    {
        const std::optional<command> words = requests_.next();
        require(words.has_value(), "a command isn't written");
        require_asked(queue_[queue_.size() - unwritten_], *words);
        --unwritten_;
    }
    require(!requests_.next(), "more is written than was asked for");
}

/// One of the usual replies, or the beginning of one.
void model_pipeline::answer()
{
    const std::uint8_t which = input_.byte();
    std::string bytes{replies[which % replies.size()]};
    if (which >= 240)
    {
        bytes.resize(bytes.size() / 2);
    }
    read(bytes);
}

void model_pipeline::read(const std::string& bytes)
{
    const std::span<char> room = parser_.prepare();
    std::memcpy(room.data(), bytes.data(), bytes.size());
    parser_.commit(bytes.size());
    while (const resp::reply* reply = parser_.next())
    {
        if (!reply->is_push())
        {
            take(*reply);
        }
    }
    if (parser_.error() != resp::parse_error::none)
    {
        break_off();
    }
}

void model_pipeline::take(const resp::reply& reply)
{
    if (queue_.size() == unwritten_)
    {
        const error_code result = pipeline_->on_reply(reply, now_);
        require(result == master_errc::protocol_error, "a reply that nobody asked for is taken");
        return;
    }
    place first = std::move(queue_.front());
    queue_.pop_front();
    const bool script =
        first.what == asked::turn || first.what == asked::extend || first.what == asked::release;
    const bool unknown = script && reply.is_error() && reply.text().starts_with("NOSCRIPT");
    const bool wanted =
        unknown && (first.what == asked::release ||
                    (first.who->wants &&
                     (first.what == asked::extend || first.of->at(0).state == net::outstanding_state::sent)));
    const bool repeated =
        wanted && !first.in_full && pipeline_->has_room(first.of->key().size() + script_in_full);
    const bool ruled_out = reply.is_error() && core::rules_out_a_key(core::classify(reply.text()));
    if (first.what == asked::set)
    {
        first.of->maybe_there = first.of->maybe_there || !ruled_out;
    }
    else if (first.what == asked::turn && !unknown && !ruled_out)
    {
        first.of->maybe_there = meaning(asked::turn, reply) != vote::denied;
    }
    else if (first.what == asked::release && !unknown)
    {
        first.of->maybe_there = false;
    }
    pipeline_->on_reply(reply, now_);
    if (repeated)
    {
        require(!first.who || first.who->heard == 0, "there is a vote though the script is sent in full");
        first.in_full = true;
        queue_.push_back(std::move(first));
        ++unwritten_;
        return;
    }
    if (first.who)
    {
        require(first.who->heard == 1, "a reply didn't reach the one who waits for it");
        const vote expected = first.what == asked::query ? vote::granted : meaning(first.what, reply);
        require(first.who->last == expected, "a reply is taken for something else");
    }
}

void model_pipeline::break_off()
{
    const std::size_t written = queue_.size() - unwritten_;
    bool may_run = false;
    for (std::size_t at = 0; at < written; ++at)
    {
        const bool set = queue_[at].what == asked::set || queue_[at].what == asked::turn;
        may_run = may_run || set;
        if (set)
        {
            queue_[at].of->maybe_there = true;
        }
    }
    require(
        pipeline_->break_off(master_errc::connection_lost, now_) == may_run,
        "a SET that may run isn't remembered");
    for (std::size_t at = 0; at < queue_.size(); ++at)
    {
        if (queue_[at].who)
        {
            const vote expected = at < written ? vote::failed : vote::unsent;
            require(queue_[at].who->heard == 1, "a command that is lost has no vote, or two");
            require(queue_[at].who->last == expected, "a command that is lost has another vote");
        }
    }
    queue_.clear();
    unwritten_ = 0;
    requests_ = {};
    parser_.reset();
    require(!pipeline_->has_output(), "something is to be written to a connection that is gone");
}

void model_pipeline::check()
{
    require(pipeline_->empty() == queue_.empty(), "a place is lost, or left");
    require(owed_->count() <= max_outstanding_, "more is owed than may be");
    for (const auto& each : claims_)
    {
        require(each->recycled == 0, "a claim is dropped too often");
        require(
            !each->maybe_there || each->at(0).state != net::outstanding_state::none,
            "a key that may be there is forgotten");
    }
    for (const place& each : queue_)
    {
        require(!each.who || each.who->heard == 0, "somebody is told who has to wait");
    }
}

void model_pipeline::end()
{
    break_off();
    check();
    pipeline_.reset();
    owed_.reset();
    for (const auto& each : claims_)
    {
        net::claim* const last = each.get();
        intrusive_ptr_release(last);
        require(each->recycled == 1, "somebody still refers to a claim");
    }
}

} // namespace redlock::test
