// SPDX-License-Identifier: BSL-1.0
// The library's pipeline compared with a model of it.
#include "model_pipeline.hpp"

#include "refused_question.hpp"

#include "net/command.hpp"
#include "net/queue_scripts.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace redlock::test
{

namespace
{

constexpr std::array<std::string_view, 51> replies{
    "+OK\r\n", ":1\r\n", ":0\r\n", "$-1\r\n", "_\r\n", "-NOSCRIPT No matching script.\r\n",
    "-OOM no memory\r\n", "-ERR other\r\n", "-READONLY no\r\n", "-MISCONF no\r\n", "-NOPERM no\r\n",
    "-MOVED 1 127.0.0.1:1\r\n", ":2\r\n", "$2\r\nOK\r\n", "*2\r\n$1\r\n7\r\n$3\r\n123\r\n",
    "*2\r\n$1\r\nx\r\n:5\r\n", ">2\r\n+invalidate\r\n*0\r\n", "|1\r\n+a\r\n+b\r\n", "*0\r\n", "!3\r\nERR\r\n",
    "#t\r\n", "$3\r\n", "abc\r\n", "*4294967295\r\n",
    // To a question of the wait queue.
    "*3\r\n:0\r\n:5000\r\n:1\r\n", "*3\r\n:7\r\n:-1\r\n:9\r\n", "*3\r\n:-1\r\n:-2\r\n:0\r\n",
    "*3\r\n:-2\r\n:5000\r\n:1\r\n", "*3\r\n:1\r\n:5000\r\n:1\r\n",
    "*3\r\n:9223372036854775806\r\n:9223372036854775807\r\n:9223372036854775807\r\n",
    "*3\r\n:0\r\n:-9223372036854775808\r\n:1\r\n",
    "*3\r\n:-9223372036854775808\r\n:0\r\n:9223372036854775807\r\n", "*3\r\n:0\r\n:3153600000001\r\n:2\r\n",
    "*3\r\n$1\r\n0\r\n:5000\r\n:1\r\n", "*3\r\n:0\r\n_\r\n:1\r\n", "~3\r\n:0\r\n:5000\r\n:1\r\n",
    "*2\r\n:0\r\n:5000\r\n", "*4\r\n:0\r\n:5000\r\n:1\r\n:1\r\n", "*2\r\n*1\r\n:0\r\n:1\r\n",
    ":9223372036854775807\r\n", ":-1\r\n", ":3\r\n", ":4\r\n", "-WRONGTYPE no\r\n",
    // Messages, and what looks like one.
    ">3\r\n$7\r\nmessage\r\n$7\r\nredlock\r\n$2\r\nr7\r\n",
    ">3\r\n$7\r\nmessage\r\n$7\r\nredlock\r\n$21\r\nk18446744073709551615\r\n",
    ">3\r\n$7\r\nmessage\r\n$7\r\nredlock\r\n$21\r\nr18446744073709551616\r\n",
    ">3\r\n$7\r\nmessage\r\n$7\r\nredlock\r\n$3\r\nr-7\r\n",
    ">3\r\n$7\r\nmessage\r\n$7\r\nanother\r\n$2\r\nr7\r\n",
    ">3\r\n$9\r\nsubscribe\r\n$7\r\nredlock\r\n:1\r\n",
    ">4\r\n$7\r\nmessage\r\n$7\r\nredlock\r\n$2\r\nr7\r\n:1\r\n"};

constexpr std::array<std::size_t, 4> limits_of_debts{3, 1, 8, 64};
constexpr std::array<std::size_t, 3> limits_of_bytes{100'000, 500, 1500};
constexpr std::size_t max_probe_size = 20; // A sign of life needs no room.
constexpr std::size_t script_in_full =     // And the key: the room that a script needs after NOSCRIPT.
    std::max(net::ask_script.text.size(), net::release_to_queue_script.text.size()) + 300;
constexpr std::string_view channel = "redlock";

bool is_number(const resp::reply& reply, std::int64_t least, std::int64_t most)
{
    return reply.root().kind == resp::kind::integer && reply.integer() >= least && reply.integer() <= most;
}

bool is_release(asked what)
{
    return what == asked::release || what == asked::queue_release || what == asked::due_release;
}

bool writes_key(asked what)
{
    return what == asked::set || what == asked::question;
}

/// The meaning of a reply: the table of replies, once more.
vote meaning(asked what, const resp::reply& reply)
{
    const resp::kind kind = reply.root().kind;
    if (what == asked::set)
    {
        const bool ok = kind == resp::kind::simple_string && reply.text() == "OK";
        return ok ? vote::granted : reply.is_null() ? vote::denied : vote::failed;
    }
    if (what == asked::question)
    {
        constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
        return is_number(reply, 0, most) ? vote::granted : refusal_in(reply) ? vote::denied : vote::failed;
    }
    if (!is_number(reply, 0, is_release(what) ? 3 : 1))
    {
        const bool other_type =
            reply.is_error() && core::classify(reply.text()) == core::server_error::wrong_type;
        return other_type ? vote::denied : vote::failed;
    }
    return reply.integer() % 2 == 1 ? vote::granted : vote::denied;
}

/// Returns the number of the client that a push wakes; nothing if it is no message of the wait queue.
std::optional<std::uint64_t> woken_by(const resp::reply& push)
{
    const auto is_text = [&](std::size_t at, std::string_view text)
    { return push.nodes[at].depth == 1 && push.nodes[at].text == text; };
    if (push.root().size != 3 || push.nodes.size() != 4 || !is_text(1, "message") || !is_text(2, channel))
    {
        return std::nullopt;
    }
    const std::string_view text = push.nodes[3].text;
    constexpr std::size_t max_digits = 64; // With many leading zeros, the model has no opinion.
    if (text.size() < 2 || text.size() > max_digits || (text[0] != 'r' && text[0] != 'k'))
    {
        return std::nullopt;
    }
    std::uint64_t number = 0;
    for (const char each : text.substr(1))
    {
        const auto digit = static_cast<std::uint64_t>(each - '0');
        constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
        if (each < '0' || each > '9' || number > (most - digit) / 10)
        {
            return std::nullopt;
        }
        number = number * 10 + digit;
    }
    return number;
}

resp::parser& shared_parser()
{
    static resp::parser one;
    return one;
}

} // namespace

bool listener::append_in_full(std::size_t, std::string& out) const
{
    if (wants && what == asked::question)
    {
        net::append_ask(out, *of, model_question, net::script_form::text);
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

/// The script in its form, with its key, and with the owner id at this place.
void model_pipeline::require_script(
    const place& first, const command& words, const net::script& script, std::size_t owner_at)
{
    require(name_of(words) == (first.in_full ? "EVAL" : "EVALSHA"), "not the script's form");
    require(words.size() > owner_at && words[2] == "1", "not the script's arguments");
    require(words[1] == (first.in_full ? script.text : script.sha1), "not the script");
    require(
        words[3] == first.of->key() && words[owner_at] == first.of->owner_id(), "not the script's arguments");
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

/// A due release may be that of any key that was due.
void model_pipeline::identify(place& due, const command& words)
{
    require(words.size() == 8 && words[6] == "left" && words[7].empty(), "not a due release");
    const auto found = std::find_if(
        due_unwritten_.begin(), due_unwritten_.end(),
        [&](const counted_claim* each) { return each->key() == words[3]; });
    require(found != due_unwritten_.end(), "a release of a key that wasn't due");
    due.of = *found;
    due_unwritten_.erase(found);
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
    case asked::question:
        require_script(first, words, net::ask_script, 5);
        require(
            words.size() == 10 && words[4] == std::string{model_manager_id} + ":7" && words[6] == "1000" &&
                words[7] == "50" && words[8] == "1000" && words[9] == "100",
            "not the question");
        break;
    case asked::extend:
        require_script(first, words, net::extend_script, 4);
        break;
    case asked::release:
        require_script(first, words, net::release_script, 4);
        break;
    case asked::queue_release:
    case asked::due_release:
        require_script(first, words, net::release_to_queue_script, 4);
        break;
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
    if (queue_.size() == unwritten_)
    {
        owes_since_ = now_;
    }
    const std::span<const char> bytes = pipeline_->take_output(now_);
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
        place& first = queue_[queue_.size() - unwritten_];
        if (first.what == asked::due_release && first.of == nullptr)
        {
            identify(first, *words);
        }
        require_asked(first, *words);
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
            continue;
        }
        const std::optional<net::wake_up> message = net::read_wake_up(*reply, channel);
        const std::optional<std::uint64_t> woken = woken_by(*reply);
        const bool long_text = reply->nodes.size() == 4 && reply->nodes[3].text.size() > 64;
        require(
            long_text || message.has_value() == woken.has_value(),
            "a message is no message, or another push is");
        require(!message || !woken || message->number == *woken, "a message wakes another client");
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
        first.what == asked::question || first.what == asked::extend || is_release(first.what);
    const bool unknown = script && reply.is_error() && reply.text().starts_with("NOSCRIPT");
    const bool wanted =
        unknown && (is_release(first.what) ||
                    (first.who->wants &&
                     (first.what == asked::extend || first.of->at(0).state == net::outstanding_state::sent)));
    const bool repeated =
        wanted && !first.in_full && pipeline_->has_room(first.of->key().size() + script_in_full);
    const bool was_sent = first.of != nullptr && first.of->at(0).state == net::outstanding_state::sent;
    note_reply(first, reply, unknown);
    const bool gives_up = pipeline_->backoff().gives_up();
    const error_code result = pipeline_->on_reply(reply, now_);
    if (pipeline_->backoff().refused())
    {
        pipeline_->backoff().delay(now_, 0);
    }
    pipeline_->take_refusal();
    if (is_release(first.what) && unknown && !repeated && gives_up)
    {
        first.of->maybe_there = false; // Its ttl frees the key.
    }
    if (repeated)
    {
        require(!result, "a connection is closed because of a script that the server doesn't know");
        require(!first.who || first.who->heard == 0, "there is a vote though the script is sent in full");
        first.in_full = true;
        queue_.push_back(std::move(first));
        ++unwritten_;
        return;
    }
    if (first.what == asked::question && meaning(asked::question, reply) == vote::denied && was_sent)
    {
        require(
            first.of->at(0).state == net::outstanding_state::none, "a refused question leaves a key behind");
    }
    if (first.of != nullptr && !reply.is_error())
    {
        const bool invalid = meaning(first.what, reply) == vote::failed;
        require(
            (result == master_errc::protocol_error) == invalid,
            "an invalid reply is accepted, or a valid one isn't");
    }
    check_vote(first, reply);
}

/// Updates whether a key may be on the server, ahead of the pipeline.
void model_pipeline::note_reply(const place& first, const resp::reply& reply, bool unknown)
{
    const core::server_error error =
        reply.is_error() ? core::classify(reply.text()) : core::server_error::none;
    const bool ruled_out = core::rules_out_a_key(error);
    if (first.what == asked::set)
    {
        first.of->maybe_there = first.of->maybe_there || !ruled_out;
    }
    else if (first.what == asked::question && error == core::server_error::no_permission)
    {
        // The script may have been refused another command after its SET.
        first.of->maybe_there = true;
    }
    else if (first.what == asked::question && !ruled_out)
    {
        first.of->maybe_there = meaning(asked::question, reply) != vote::denied;
    }
    else if (is_release(first.what) && !unknown)
    {
        first.of->maybe_there = false;
    }
}

void model_pipeline::check_vote(const place& first, const resp::reply& reply) const
{
    if (!first.who)
    {
        return;
    }
    const listener& who = *first.who;
    require(who.heard == 1, "a reply didn't reach the one who waits for it");
    const vote expected = first.what == asked::query ? vote::granted : meaning(first.what, reply);
    require(who.last == expected, "a reply is taken for something else");
    if (first.what == asked::query)
    {
        return;
    }
    const bool has_number = reply.root().kind == resp::kind::integer && expected != vote::failed;
    const bool by_number = has_number && reply.integer() > (first.what == asked::question ? 0
                                                            : is_release(first.what)      ? 1
                                                                                          : 3);
    const auto refusal = first.what == asked::question ? refusal_in(reply) : std::nullopt;
    require(who.others_wait == (by_number || refusal.has_value()), "others wait, or don't");
    require(who.position.has_value() == (refusal && (*refusal)[0] >= 0), "a position that isn't one");
    if (!who.position)
    {
        return;
    }
    const auto [rank, expiry, waiting] = *refusal;
    require(
        who.position->rank == static_cast<std::size_t>(rank) &&
            who.position->waiting == static_cast<std::size_t>(waiting),
        "another position");
    constexpr std::chrono::milliseconds century = std::chrono::hours{24 * 365 * 100};
    require(
        expiry < 0 ? !who.position->key_expires_in
                   : who.position->key_expires_in == std::min(std::chrono::milliseconds{expiry}, century),
        "another expiry");
}

void model_pipeline::break_off()
{
    const std::size_t written = queue_.size() - unwritten_;
    bool may_run = false;
    for (std::size_t at = 0; at < written; ++at)
    {
        may_run = may_run || writes_key(queue_[at].what);
        if (writes_key(queue_[at].what))
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
            const vote expected = at < written || queue_[at].in_full ? vote::failed : vote::unsent;
            require(queue_[at].who->heard == 1, "a command that is lost has no vote, or two");
            require(queue_[at].who->last == expected, "a command that is lost has another vote");
        }
    }
    queue_.clear();
    unwritten_ = 0;
    due_unwritten_.clear();
    requests_ = {};
    parser_.reset();
    require(!pipeline_->has_output(), "something is to be written to a connection that is gone");
}

void model_pipeline::check()
{
    require(pipeline_->awaits_reply() == (queue_.size() > unwritten_), "a reply is owed, or none");
    require(
        !pipeline_->awaits_reply() || pipeline_->busy_since() == owes_since_,
        "a reply is owed since another time than the write");
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
