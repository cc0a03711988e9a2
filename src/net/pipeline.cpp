// SPDX-License-Identifier: BSL-1.0
// The commands in flight on one connection.
#include "net/pipeline.hpp"

#include "net/guard_commands.hpp"
#include "net/guard_scripts.hpp"
#include "net/queue_commands.hpp"
#include "net/queue_scripts.hpp"
#include "runtime/cache.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace redlock::net
{

namespace
{

constexpr std::string_view probe_command = "*1\r\n$4\r\nTIME\r\n";
constexpr std::size_t script_in_full_bytes =
    std::max(ask_script.text.size(), release_to_queue_script.text.size()) +
    300; // The longest script with its arguments, except for the key.
// In guarded mode there are two more keys, not longer than the one of the resource and this, and a marker.
constexpr std::size_t guarded_in_full_bytes = guarded_ask_script.text.size() + 700;
/// The grace of a release that doesn't know its client's: that of the default node timeout.
constexpr std::chrono::milliseconds usual_grace{100};
constexpr std::size_t kept_capacity = std::size_t{1} << 20; // A larger buffer is freed after the write.

/// Returns whether a master refuses a script for every key. A key that the user may not use says nothing about those of others.
bool forbids_script(core::server_error error, std::string_view words) noexcept
{
    return error == core::server_error::unknown_command ||
           (error == core::server_error::no_permission && !core::is_about_key(words));
}

std::uint32_t bit_of(core::server_error error) noexcept
{
    return std::uint32_t{1} << static_cast<unsigned>(error);
}

} // namespace

void pipeline::push(slot next)
{
    if (slots_.full())
    {
        slots_.set_capacity(std::max<std::size_t>(64, slots_.capacity() * 2));
    }
    slots_.push_back(std::move(next));
    ++unwritten_;
}

void pipeline::push_claim(verb what, claim& of, std::string_view command, vote_sink* votes)
{
    assert(outstanding_.has_room(of));
    outstanding_.mark_sent(of);
    waiting_.append(command);
    push({claim_ptr{&of}, what, vote_sink_ptr{votes}});
}

void pipeline::push_set(claim& of, std::string_view command, vote_sink* votes)
{
    push_claim(verb::set, of, command, votes);
}

void pipeline::push_ask(claim& of, std::string_view command, vote_sink& votes)
{
    push_claim(verb::ask, of, command, &votes);
}

void pipeline::push_guarded_set(claim& of, std::string_view command, vote_sink& votes)
{
    push_claim(verb::guarded_set, of, command, &votes);
}

/// Queues a command that doesn't concern an outstanding key.
bool pipeline::push_optional(verb what, claim* of, std::string_view command, vote_sink& votes)
{
    if (slots_.size() >= max_optional_ || !has_room(command.size()))
    {
        return false;
    }
    waiting_.append(command);
    push({claim_ptr{of}, what, vote_sink_ptr{&votes}});
    return true;
}

bool pipeline::push_raise(claim& of, std::string_view command, vote_sink& votes)
{
    return push_optional(verb::raise, &of, command, votes);
}

bool pipeline::push_extend(claim& of, std::string_view command, vote_sink& votes)
{
    return push_optional(verb::extend, &of, command, votes);
}

bool pipeline::push_query(std::string_view command, vote_sink& votes)
{
    return push_optional(verb::query, nullptr, command, votes);
}

bool pipeline::push_release(claim& of, const release_command& command, vote_sink* votes)
{
    if (!has_room(command.text.size()))
    {
        return false;
    }
    const outstanding_state state = of.at(master_).state;
    if (state == outstanding_state::due || state == outstanding_state::sent)
    {
        outstanding_.mark_release_sent(of);
    }
    else if (slots_.size() >= max_optional_)
    {
        return false;
    }
    waiting_.append(command.text);
    const verb what = command.for_queue ? verb::queue_release : verb::release;
    push({claim_ptr{&of}, what, vote_sink_ptr{votes}});
    return true;
}

void pipeline::push_due(clock::time_point now)
{
    if (!outstanding_.has_due() || !backoff_.may_send(now))
    {
        return;
    }
    for (std::size_t left = release_backoff::batch; left > 0; --left)
    {
        claim* const next = outstanding_.next_due();
        if (next == nullptr)
        {
            return;
        }
        due_command_.clear();
        append_leave(due_command_, *next, usual_grace, {}, script_form::digest);
        if (!has_room(due_command_.size()))
        {
            return;
        }
        claim_ptr of{next};
        outstanding_.mark_release_sent(*next);
        backoff_.on_sent();
        waiting_.append(due_command_);
        push({std::move(of), verb::due_release, {}});
    }
}

void pipeline::push_probe(clock::time_point now)
{
    waiting_.append(probe_command);
    push({{}, verb::probe, {}});
    probing_ = true;
    probed_ = now;
}

void pipeline::push_trial(std::string_view key_prefix)
{
    append_queue_trial(waiting_, key_prefix);
    push({{}, verb::trial, {}});
}

void pipeline::clear_written() noexcept
{
    if (writing_.capacity() > kept_capacity)
    {
        std::string{}.swap(writing_);
    }
    writing_.clear();
}

std::span<const char> pipeline::take_output(clock::time_point now)
{
    written();
    std::swap(waiting_, writing_);
    if (!awaits_reply())
    {
        busy_since_ = now;
    }
    unwritten_ = 0;
    return writing_;
}

bool pipeline::send_in_full(slot& unknown)
{
    const std::size_t key = unknown.of->key().size();
    if (unknown.in_full || !has_room(guarded_ ? 3 * key + guarded_in_full_bytes : key + script_in_full_bytes))
    {
        return false;
    }
    if (unknown.what == verb::release)
    {
        append_release(waiting_, *unknown.of, script_form::text);
    }
    else if (unknown.what == verb::due_release)
    {
        append_leave(waiting_, *unknown.of, usual_grace, {}, script_form::text);
    }
    else if (unknown.what == verb::queue_release)
    {
        append_queue_release(waiting_, *unknown.of, usual_grace, script_form::text);
    }
    // If the release has been sent, the full script would create the key after it.
    else if (
        (unknown.what != verb::extend && unknown.of->at(master_).state != outstanding_state::sent) ||
        !unknown.votes->append_in_full(master_, waiting_))
    {
        return false;
    }
    unknown.in_full = true;
    push(std::move(unknown));
    return true;
}

void pipeline::record_set(claim& of, const answer& result)
{
    if (core::rules_out_a_key(result.error))
    {
        outstanding_.rule_out(of);
    }
    else
    {
        of.at(master_).maybe_there = true;
    }
}

/// Clears a key that a script says it has not set.
void pipeline::record_nothing_set(claim& of)
{
    if (of.at(master_).state == outstanding_state::sent)
    {
        outstanding_.clear(of);
    }
}

void pipeline::record_guarded_set(claim& of, const answer& result)
{
    record_set(of, result);
    if (result.set_nothing)
    {
        record_nothing_set(of);
    }
}

/// Updates the ledger after a reply of `ask_script`. If it refused, it did not set the key. (After a refused SET that
/// is uncertain, because an earlier SET of the same owner id may have run.)
void pipeline::record_ask(claim& of, const answer& result)
{
    outstanding_key& item = of.at(master_);
    if (result.error == core::server_error::no_permission)
    {
        item.maybe_there = true; // The script may have set the key before it was refused another command.
    }
    else
    {
        record_set(of, result);
    }
    if (forbids_script(result.error, result.text) && !std::exchange(refuses_questions_, true))
    {
        queue_refusal_ = result.text.substr(0, short_text::capacity);
        has_refusal_ = true;
    }
    if (result.vote == vote::denied || result.set_nothing)
    {
        record_nothing_set(of);
    }
}

answer pipeline::read_guarded(verb what, const resp::reply& reply) noexcept
{
    switch (what)
    {
    case verb::guarded_set:
        return read_guarded_set(reply);
    case verb::ask:
        return net::read_guarded_ask(reply, position_);
    case verb::raise:
        return read_raise(reply);
    default:
        return read_guarded_extend(reply);
    }
}

answer pipeline::read(verb what, const resp::reply& reply) noexcept
{
    switch (what)
    {
    case verb::set:
        return read_set(reply);
    case verb::ask:
        return guarded_ ? read_guarded(what, reply) : read_ask(reply, position_);
    case verb::release:
    case verb::queue_release:
    case verb::due_release:
        return read_release(reply);
    default:
        return guarded_ ? read_guarded(what, reply) : read_extend(reply);
    }
}

/// Returns whether the release of an outstanding key is repeated after this answer.
bool pipeline::is_repeated(const answer& result) const noexcept
{
    if (result.error == core::server_error::none)
    {
        return result.vote == vote::failed; // An invalid reply: repeated on the next connection.
    }
    const core::release_after then = core::after_error(result.error);
    return then == core::release_after::again ||
           (then == core::release_after::again_at_first && !backoff_.gives_up());
}

void pipeline::record_release(claim& of, const answer& result, const resp::reply& reply)
{
    const bool outstanding = of.at(master_).state == outstanding_state::release_sent;
    if (outstanding && is_repeated(result))
    {
        outstanding_.requeue(of);
        backoff_.on_refused();
        return;
    }
    if (outstanding)
    {
        outstanding_.clear(of);
    }
    if (result.error != core::server_error::none)
    {
        note_refusal(result.error, reply.text());
        return;
    }
    refuses_releases_ =
        refuses_releases_ && result.vote != vote::granted; // Without a key, nothing was to be deleted.
    if (!outstanding_.has_due())
    {
        backoff_.on_all_done();
    }
}

void pipeline::note_trial(const queue_refusals& found)
{
    forbidden_question_ = in_words(found.question);
    forbidden_deletion_ = in_words(found.deletion);
    if (!forbidden_deletion_.empty())
    {
        refusals_noted_ |= bit_of(core::classify(found.deletion.error));
    }
}

/// Records a refused release, and the first permanent refusal of each kind. Errors that close the connection are reported with
/// its end instead.
void pipeline::note_refusal(core::server_error error, std::string_view words)
{
    const core::release_after then = core::after_error(error);
    const bool repeats_in_vain = then == core::release_after::again_at_first && backoff_.gives_up();
    const bool permanent = then == core::release_after::given_up || repeats_in_vain;
    // MISCONF and NOREPLICAS pass, and refuse new keys as well.
    refuses_releases_ = refuses_releases_ || repeats_in_vain || forbids_script(error, words);
    const std::uint32_t kind = bit_of(error);
    if (permanent && refusal_.empty() && (refusals_noted_ & kind) == 0)
    {
        const bool foreign = error == core::server_error::wrong_type;
        refusals_noted_ |= kind;
        refusal_ = foreign ? "a key is not a lock: " : "the ttl frees the key: ";
        refusal_ += words.substr(0, short_text::capacity);
        has_refusal_ = true;
    }
}

/// Prefetches the claim and the round of a later reply while this one is processed. With many commands in flight, they
/// are no longer in the cache.
void pipeline::fetch_ahead() const noexcept
{
    constexpr std::size_t soon = 4;
    if (slots_.size() > soon)
    {
        const slot& next = slots_[soon];
        runtime::prefetch(next.of.get(), runtime::cache_line);
        runtime::prefetch(next.votes.get(), 2 * runtime::cache_line);
    }
}

void pipeline::record(const slot& answered, const answer& result, const resp::reply& reply)
{
    switch (answered.what)
    {
    case verb::set:
        record_set(*answered.of, result);
        break;
    case verb::guarded_set:
        record_guarded_set(*answered.of, result);
        break;
    case verb::ask:
        record_ask(*answered.of, result);
        break;
    case verb::due_release:
        backoff_.on_answered();
        [[fallthrough]];
    case verb::release:
    case verb::queue_release:
        record_release(*answered.of, result, reply);
        break;
    case verb::raise:
    case verb::extend:
    case verb::query:
    case verb::trial:
    case verb::probe:
        break;
    }
}

error_code pipeline::on_probe_reply(const resp::reply& reply, clock::time_point now)
{
    probing_ = false;
    const std::optional<std::chrono::microseconds> theirs = read_time(reply);
    if (theirs)
    {
        clock_reading_ = {probed_, now, *theirs};
        return {};
    }
    if (!reply.is_error())
    {
        return master_errc::protocol_error;
    }
    // An error also shows that the server responds.
    const core::server_error error = core::classify(reply.text());
    hides_clock_ = hides_clock_ || core::after_error(error) != core::release_after::again;
    return {};
}

/// Records a repeated trial. Refusals that the last one hasn't found are reported, unless another report is due: the next trial
/// will find them as well.
error_code pipeline::on_trial_reply(const resp::reply& reply)
{
    const std::optional<queue_refusals> found = read_queue_trial(reply);
    if (found && !has_refusal_)
    {
        const std::string question = std::move(forbidden_question_);
        const std::string deletion = std::move(forbidden_deletion_);
        note_trial(*found);
        queue_refusal_ = forbidden_question_ == question ? "" : forbidden_question_;
        refusal_ = forbidden_deletion_ == deletion ? "" : forbidden_deletion_;
        has_refusal_ = !queue_refusal_.empty() || !refusal_.empty();
    }
    return found || reply.is_error() ? error_code{} : master_errc::protocol_error;
}

error_code pipeline::on_information(const slot& answered, const resp::reply& reply, clock::time_point now)
{
    switch (answered.what)
    {
    case verb::trial:
        return on_trial_reply(reply);
    case verb::probe:
        return on_probe_reply(reply, now);
    default:
        return answered.votes->on_reply(master_, reply) ? error_code{} : master_errc::protocol_error;
    }
}

error_code pipeline::on_reply(const resp::reply& reply, clock::time_point now)
{
    // If no command has been written, the reply is unsolicited.
    if (!awaits_reply())
    {
        return master_errc::protocol_error;
    }
    slot current = std::move(slots_.front());
    slots_.pop_front();
    fetch_ahead();
    if (current.what >= verb::query) [[unlikely]]
    {
        return on_information(current, reply, now);
    }
    const answer result = read(current.what, reply);
    if (result.error == core::server_error::no_script && current.what != verb::set && send_in_full(current))
    {
        return {};
    }
    record(current, result, reply);
    if (current.votes)
    {
        current.votes->on_vote(master_, result, now);
    }
    const bool is_error = result.error != core::server_error::none;
    const bool unusable = result.reason == master_errc::protocol_error ||
                          (is_error && core::after_error(result.error) == core::release_after::reconnect);
    return unusable ? result.reason : error_code{};
}

void pipeline::fail(const slot& lost, bool written, error_code reason, clock::time_point now)
{
    if (lost.what == verb::probe || lost.what == verb::trial)
    {
        return;
    }
    if (writes_key(lost.what))
    {
        outstanding_key& item = lost.of->at(master_);
        item.maybe_there = item.maybe_there || written;
        if (!item.maybe_there && item.state != outstanding_state::none)
        {
            outstanding_.clear(*lost.of);
        }
    }
    else if (releases(lost.what) && lost.of->at(master_).state == outstanding_state::release_sent)
    {
        outstanding_.requeue(*lost.of);
    }
    if (lost.votes)
    {
        // A script that is queued again in full was sent before, as a digest.
        const vote result = written || lost.in_full ? vote::failed : vote::unsent;
        lost.votes->on_vote(master_, make_failed_vote(result, reason), now);
    }
}

bool pipeline::break_off(error_code reason, clock::time_point now)
{
    bool may_run = false;
    std::size_t written = slots_.size() - unwritten_;
    while (!slots_.empty())
    {
        const slot lost = std::move(slots_.front());
        slots_.pop_front();
        const bool was_written = written > 0;
        written -= was_written ? 1 : 0;
        may_run = may_run || (was_written && writes_key(lost.what));
        fail(lost, was_written, reason, now);
    }
    unwritten_ = 0;
    forbidden_question_.clear();
    forbidden_deletion_.clear();
    probing_ = hides_clock_ = false;
    clock_reading_.reset();
    backoff_.reset();
    refusals_noted_ = 0;
    refuses_questions_ = refuses_releases_ = false;
    // writing_ stays valid for the write that may be in flight.
    waiting_.clear();
    return may_run;
}

} // namespace redlock::net
