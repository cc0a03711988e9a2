// SPDX-License-Identifier: BSL-1.0
// The oracle of a simulated run: checks the promises of the library.
#include "oracle.hpp"

#include "cluster_run.hpp"
#include "observer_client.hpp"
#include "outstanding_keys.hpp"
#include "queue_words.hpp"
#include "support/guarded_words.hpp"

#include <boost/asio/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redlock::test
{

namespace
{

/// Returns a reply as one line of text.
std::string shown(const std::string& reply)
{
    std::string text;
    for (const char each : reply.substr(0, 60))
    {
        text += each == '\r' || each == '\n' ? ' ' : each;
    }
    return text;
}

std::string shown(const command& words)
{
    constexpr std::size_t longest = 40;
    std::string text;
    for (const std::string& each : words)
    {
        text += (text.empty() ? "" : " ") + (each.size() > longest ? each.substr(0, 8) + ".." : each);
    }
    return text;
}

/// How many node timeouts a round takes at most: one for the votes, in guarded mode another one for the token.
int rounds_of(const process& by)
{
    return by.guarded() ? 2 : 1;
}

queue_rules::setting setting_of(const cluster_run& cluster)
{
    const plan& drawn = cluster.drawn();
    const auto shortest = *std::min_element(drawn.ttls.begin(), drawn.ttls.end());
    const bool fast = 2 * (drawn.latency + drawn.jitter) < cluster.node_timeout_of(shortest);
    // A client with too many outstanding keys asks no master.
    const bool regular = fast && drawn.habits.empty() && !drawn.max_outstanding_keys;
    return {quorum_of(drawn.masters), drawn.strict, regular, drawn.jitter};
}

} // namespace

oracle::oracle(cluster_run& cluster)
    : cluster_{cluster},
      wire_{quorum_of(cluster.drawn().masters)},
      queues_{setting_of(cluster)},
      waits_{
          {cluster.drawn().masters, quorum_of(cluster.drawn().masters), setting_of(cluster).regular,
           cluster.drawn().latency + cluster.drawn().jitter}},
      reports_{observer_client::password},
      sendings_{2 * cluster.node_timeout_of(cluster.drawn().longest_ttl()) + std::chrono::seconds{1}},
      releases_(cluster.drawn().masters)
{
    for (std::size_t master = 0; master < cluster.masters().size(); ++master)
    {
        cluster.masters()[master]->on_sent = [this, master](int process, std::string_view bytes, bool late)
        {
            const auto& by = cluster_.processes().at(static_cast<std::size_t>(process) - 1);
            sendings_.record(process, master, by->now(), bytes, late);
        };
        cluster.masters()[master]->on_left = [this, master](int process, clock::duration silence)
        { sendings_.left(process, master, silence); };
        cluster.masters()[master]->is_suspended = [this](int process)
        { return cluster_.processes().at(static_cast<std::size_t>(process) - 1)->paused(); };
    }
    if (cluster.group())
    {
        tokens_.emplace(cluster.group(), quorum_of(cluster.drawn().masters));
    }
}

oracle::beginning oracle::moment()
{
    return {tokens_ ? tokens_->now() : 0, cluster_.world().now()};
}

void oracle::issued(
    const process& by, const lease& has, const report* told, const beginning& began, bool kept)
{
    const std::optional<std::uint64_t> token = has.fencing_token();
    check(
        told == nullptr || told->fencing_token == token, "token",
        "{}: the token of {} isn't that of its report", by.name(), has.owner_id());
    if (const auto until = by.events().valid_until(has.owner_id()))
    {
        // A kept one may have been extended, or lost, since the last event that was delivered.
        const bool may_differ =
            kept && (has.valid_until() > *until || has.valid_until() == clock::time_point{});
        check(
            may_differ || std::chrono::abs(*until - has.valid_until()) <= std::chrono::microseconds{1},
            "events", "{} was notified of another validity of {} than it has", by.name(), has.owner_id());
    }
    if (!by.guarded())
    {
        check(!token, "token", "{} has a token without guarded mode", by.name());
        return;
    }
    const std::size_t masters = cluster_.masters().size();
    // With fewer than three, a jump can't be told from a client that stood still.
    for (std::size_t master = 0; told != nullptr && masters > 2 && master < masters; ++master)
    {
        if (told->masters()[master].vote == vote::granted)
        {
            check_rule(jumps_.counted(
                {by.number(), by.managers()}, began.at, master, cluster_.world().now(),
                cluster_.group()->nonce(master), cluster_.group()->max_ttl(master)));
        }
    }
    const bool is_valid = has.valid() && !cluster_.drawn().breaks_assumptions;
    check_rule(tokens_->issued(
        key_of(std::string{has.resource()}), std::string{has.owner_id()}, token, began.order, is_valid,
        cluster_.world().now()));
}

bool oracle::is_promised(const lease_interval_record& one) const
{
    return !cluster_.drawn().breaks_assumptions && (!cluster_.group() || one.by->guarded());
}

std::size_t oracle::won(
    process& by, const lease& has, std::optional<std::chrono::milliseconds> told_before, bool kept,
    std::optional<clock::time_point> hold_ends)
{
    const std::size_t known_as = lease_intervals_.size();
    lease_intervals_.push_back(
        {&by, &has, std::string{has.resource()}, std::string{has.owner_id()}, has.valid_until(), told_before,
         kept, hold_ends});
    current_.push_back(known_as);
    by.say(action::lease_won);
    check_alone(known_as);
    check_kept_by_quorum(lease_intervals_[known_as]);
    check_rule(queues_.won(
        by.number(), key_of(lease_intervals_[known_as].resource), lease_intervals_[known_as].owner_id,
        cluster_.world().now()));
    watch_end(known_as);
    return known_as;
}

void oracle::gave_back(std::size_t known_as)
{
    lease_interval_record& one = lease_intervals_[known_as];
    if (!one.over)
    {
        one.over = true;
        std::erase(current_, known_as);
        one.by->say(action::lease_given_up);
    }
}

void oracle::forget(const process& gone)
{
    for (const std::size_t each : std::vector{current_})
    {
        if (lease_intervals_[each].by == &gone)
        {
            lease_intervals_[each].over = true;
            std::erase(current_, each);
        }
    }
}

void oracle::closing(const process& by)
{
    std::vector<std::size_t>& held = closed_[by.number()];
    held.clear();
    for (const std::size_t each : current_)
    {
        // Another manager of the process may have held it.
        if (lease_intervals_[each].by == &by && !std::exchange(lease_intervals_[each].manager_closed, true))
        {
            held.push_back(each);
        }
    }
}

void oracle::check_shut_down(const process& by)
{
    for (const std::size_t each : closed_[by.number()])
    {
        check_confirmed(by, lease_intervals_[each].owner_id, lease_intervals_[each].resource);
    }
}

void oracle::completed(const process& by, const call& what, error_code error)
{
    if (!error)
    {
        return;
    }
    const bool closed = closed_.contains(by.number());
    bool expected = false;
    if (error == boost::asio::error::operation_aborted)
    {
        expected = what.cancelled || closed;
    }
    else if (error == errc::closed)
    {
        expected = closed;
    }
    else if (error.category() == error_category())
    {
        const plan& drawn = cluster_.drawn();
        expected =
            error.value() < static_cast<int>(errc::too_many_operations) ||
            (error == errc::too_many_operations && (drawn.max_operations || drawn.max_waiting_acquires));
    }
    check(expected, "errors", "{}: {} ends with '{}'", by.name(), name_of(what.what), error.message());
}

bool oracle::believes(const lease_interval_record& one) const
{
    return !one.over && (one.kept ? one.by->now() < one.until : one.has->valid());
}

void oracle::check_alone(std::size_t known_as)
{
    const lease_interval_record& one = lease_intervals_[known_as];
    if (!believes(one))
    {
        return;
    }
    for (const std::size_t each : current_)
    {
        const lease_interval_record& other = lease_intervals_[each];
        if (each == known_as || other.resource != one.resource || !believes(other))
        {
            continue;
        }
        ++doubles_;
        // A kept lease is held until its validity ends, because the body may still be running.
        check(
            !is_promised(one) || !is_promised(other),
            other.kept && !other.has->valid() ? "body" : "exclusion",
            "{} holds {} with {}, and so does {} with {}", one.by->name(), one.resource, one.owner_id,
            other.by->name(), other.owner_id);
    }
}

/// In guarded mode, a master that can't grant the key to another client is as good as one that keeps it.
void oracle::check_kept_by_quorum(const lease_interval_record& one)
{
    if (!is_promised(one) || !believes(one))
    {
        return;
    }
    const std::string key = key_of(one.resource);
    const clock::time_point last =
        one.by->environment().clock_of_its_own().when_shown(one.until) - clock::duration{1};
    // Checked ahead for the end of the validity. A check at the end alone would see little, because few leases reach
    // it.
    const auto keeps = [&](const auto& each)
    {
        const auto expires = each->value(key) == one.owner_id ? each->expiry(key) : std::nullopt;
        return expires && each->clock_of_its_own().when_shown(*expires) >= last;
    };
    auto keep =
        static_cast<std::size_t>(std::count_if(cluster_.masters().begin(), cluster_.masters().end(), keeps));
    for (std::size_t master = 0; cluster_.group() && master < cluster_.masters().size(); ++master)
    {
        keep += !keeps(cluster_.masters()[master]) && !cluster_.group()->is_armed(master) ? 1U : 0U;
    }
    const std::size_t quorum = quorum_of(cluster_.masters().size());
    check(
        keep >= quorum, "validity",
        "{} has a valid lease of {} with {}, whose key only {} of {} masters keep", one.by->name(),
        one.resource, one.owner_id, keep, cluster_.masters().size());
}

/// Checks the masters again at the last moment at which the lease is valid.
void oracle::watch_end(std::size_t known_as)
{
    const lease_interval_record& one = lease_intervals_[known_as];
    if (!is_promised(one))
    {
        return;
    }
    const clock::time_point last = one.by->environment().clock_of_its_own().when_shown(one.until);
    auto look = [this, known_as] { check_kept_by_quorum(lease_intervals_[known_as]); };
    cluster_.world().at(
        std::max(last - clock::duration{1}, cluster_.world().now()), event_kind::timer, std::move(look));
}

void oracle::on_command(
    std::size_t master, const client_state& from, const std::string& what, const command& words,
    const std::string& reply)
{
    trace& told = cluster_.told();
    told.add({master, static_cast<std::uint64_t>(from.origin), static_cast<std::uint64_t>(from.id)});
    told.add_exchange(what, words, reply);
    if (told.printing())
    {
        const bool is_script = name_of(words).starts_with("EVAL") && what != "EVAL";
        const std::string asked =
            is_script && words.size() > queue_words::key
                ? what + " " + shown(command{words.begin() + queue_words::key, words.end()})
                : shown(words);
        const process* const by = cluster_.process_of(from.origin);
        told.print(
            cluster_.world().now(), fmt::format("master {}", master), cluster_.masters()[master]->now(),
            fmt::format(
                "client {} ({}) on #{}: {} -> {}", from.origin,
                by != nullptr ? in_seconds(by->now()) : "gone", from.id, asked, shown(reply)));
    }
    check_reported(
        reports_.record(master, from.origin, cluster_.world().now(), what, words, reply, from.got_nonsense));
    if (tokens_)
    {
        const auto& by = cluster_.processes().at(static_cast<std::size_t>(from.origin) - 1);
        by->events().record_shown(master, from.id, what, reply);
        check_rule(tokens_->look(master, what, words, reply, cluster_.world().now(), by->operates()));
    }
    if (const auto plain = in_plain_mode(what, words, reply))
    {
        look_at_plain(master, from, plain->what, plain->words, plain->reply);
    }
    else
    {
        look_at_plain(master, from, what, words, reply);
    }
}

void oracle::on_stranger(
    const client_state& from, const std::string& what, const command& words, const std::string& reply)
{
    trace& told = cluster_.told();
    told.add({static_cast<std::uint64_t>(from.origin), static_cast<std::uint64_t>(from.id)});
    told.add_exchange(what, words, reply);
    check_rule(token_rules::look_at_stranger(what, words, reply));
}

/// Looks at a command of plain mode, or at what stands for it in guarded mode.
void oracle::look_at_plain(
    std::size_t master, const client_state& from, const std::string& what, const command& words,
    const std::string& reply)
{
    commands_ += what == "SET" || what == "ask" || what == "extend" || what == "release" ? 1U : 0U;
    releases_[master] += what == "release" ? 1U : 0U;
    if (!cluster_.drawn().looked_on || what != "TIME") // An observer client reads clocks as well.
    {
        cluster_.processes()
            .at(static_cast<std::size_t>(from.origin) - 1)
            ->events()
            .record(master, cluster_.masters()[master]->run_id, from.id, cluster_.world().now(), what, reply);
    }
    check_rule(wire_.look(master, cluster_.masters()[master]->run_id, from, what, words, reply));
    look_at_queues(master, from, what, words, reply);
    const bool asks = what == "ask" && words.size() > 4;
    if ((what == "SET" && words.size() > 2) || asks)
    {
        const std::string& owner_id = words[asks ? 5 : 2];
        owners_.try_emplace(owner_id, from.origin);
        if ((reply == "+OK\r\n" || reply.starts_with(':')) &&
            ++grants_[owner_id] == quorum_of(cluster_.masters().size()))
        {
            const auto& by = cluster_.processes().at(static_cast<std::size_t>(from.origin) - 1);
            cluster_.masters()[master]->link(from.id).behind_replies([by] { by->granted(); });
        }
    }
    const bool is_forbidden = reply.starts_with("-NOPERM ") || reply.starts_with("-ERR unknown command") ||
                              reply.starts_with("-ERR The user executing the script can't ");
    if (what == "ask" && is_forbidden)
    {
        without_queue_.push_back(cluster_.masters()[master]->link(from.id).weak_from_this());
    }
    if (from.got_nonsense)
    {
        expect_left(master, from, {"nonsense", "that it can't understand"});
    }
    else if (
        (what == "SET" || asks || what == "extend" || what == "release") && reply.starts_with("-READONLY "))
    {
        expect_left(master, from, {"replica", "whose end is a replica"});
    }
}

void oracle::look_at_queues(
    std::size_t master, const client_state& from, const std::string& what, const command& words,
    const std::string& reply)
{
    sim_master& at = *cluster_.masters()[master];
    const auto its_time = std::chrono::floor<std::chrono::microseconds>(at.now().time_since_epoch()).count();
    const bool counts_queues = !at.habits.contains("ZCARD");
    const executed_command seen{
        master, at.losses(), cluster_.world().now(), its_time, from.origin, counts_queues, what,
        words,  reply,       at.published()};
    check_rule(queues_.look(seen));
    if (what == "ask" && queue_words::is_entered(reply))
    {
        const std::string& member = words[queue_words::ask_member];
        const std::string_view name = queue_words::without_mark(member);
        most_waiting_ = std::max(most_waiting_, member == name ? 0 : queue_words::waiting(reply));
        const std::string other = member == name ? "-" + member : std::string{name};
        check(
            !at.has_queued(words[queue_words::key], other), "queue",
            "{} is in the queue of {} at master {} twice", name, words[queue_words::key], master);
    }
    const bool sets = what == "SET" && words.size() > 2;
    if (!waits_.suspended() && (sets || ((what == "ask" || what == "release" || what == "extend") &&
                                         words.size() > queue_words::key)))
    {
        // A key exists to the end of its last millisecond.
        const auto expiry = at.expiry(sets ? words[1] : words[queue_words::key]);
        const auto until =
            expiry ? std::optional{at.clock_of_its_own().when_shown(*expiry + std::chrono::milliseconds{1})}
                   : std::nullopt;
        check_rule(waits_.look(seen, until));
    }
}

void oracle::after_step(process& by)
{
    for (std::size_t at = 0; at < current_.size(); ++at)
    {
        const std::size_t known_as = current_[at];
        lease_interval_record& one = lease_intervals_[known_as];
        if (one.by != &by)
        {
            continue;
        }
        const clock::time_point until = one.has->valid_until();
        check(
            !one.final_loss || !one.has->valid(), "final",
            "{} was notified of the loss of {}, but the lease looks valid", by.name(), one.resource);
        // The epoch stands for a lease that was released, or whose key is missing or not ours.
        check(
            until >= one.until || until == clock::time_point{}, "shortened",
            "the lease of {} on {} is valid for a shorter time than before", by.name(), one.resource);
        if (until <= one.until)
        {
            continue;
        }
        check(
            by.now() < one.until, "final", "the lease of {} on {} is valid again after it expired", by.name(),
            one.resource);
        one.until = one.has->valid_until();
        check_alone(known_as);
        check_kept_by_quorum(one);
        watch_end(known_as);
    }
}

/// Expects the client to close the connection as soon as it has read the replies that were sent.
void oracle::expect_left(std::size_t master, const client_state& from, useless why)
{
    virtual_link& link = cluster_.masters()[master]->link(from.id);
    link.behind_replies([this, why, weak = link.weak_from_this()] { useless_.emplace_back(weak, why); });
}

/// Checks that useless connections are closed. After an invalid reply a client can't match replies to commands any
/// more. A client that keeps its connection to a replica never finds the master.
void oracle::check_left()
{
    for (const auto& [weak, why] : useless_)
    {
        const auto link = weak.lock();
        const process* const by =
            link && link->open() ? cluster_.process_of(link->at_master().origin) : nullptr;
        check(
            by == nullptr || by->paused(), why.check, "{} keeps a connection {}",
            by != nullptr ? by->name() : "", why.what);
    }
    std::erase_if(
        useless_,
        [](const auto& each)
        {
            const auto link = each.first.lock();
            return !link || !link->open();
        });
}

bool oracle::is_refused_queue(const process& by) const
{
    return std::any_of(
        without_queue_.begin(), without_queue_.end(),
        [&](const auto& each)
        {
            const auto link = each.lock();
            return link && link->open() && link->at_master().origin == by.number();
        });
}

void oracle::before_time_passes()
{
    if (!useless_.empty())
    {
        check_left();
    }
    for (const std::size_t each : current_)
    {
        const lease_interval_record& one = lease_intervals_[each];
        if (!one.told_before || one.told || one.by->paused())
        {
            continue;
        }
        check(
            one.by->now() < one.until - *one.told_before, "loss in time",
            "{} keeps {} with {}, and isn't notified that the lease expires in {} us", one.by->name(),
            one.resource, one.owner_id, in_us(one.until - one.by->now()));
        check(
            !one.hold_ends || one.by->now() < *one.hold_ends, "max hold",
            "{} keeps {} for longer than max_hold", one.by->name(), one.resource);
    }
}

void oracle::check_expiry(std::size_t known_as, error_code error, error_code why, bool gave_back, bool closed)
{
    const lease_interval_record& one = lease_intervals_[known_as];
    // The epoch stands for a lease whose key is missing or not ours, or that was released.
    const bool is_over =
        one.by->now() >= one.until || gave_back || one.has->valid_until() == clock::time_point{};
    check(
        error || (why == errc::lease_lost && is_over), "early loss",
        "{} is notified of the loss of {} with {}, which is valid for {} us: {}", one.by->name(),
        one.resource, one.owner_id, in_us(one.until - one.by->now()), why.message());
    check(
        error != errc::not_held || gave_back, "early loss",
        "{} is notified that it doesn't hold {} with {}, which it hasn't released", one.by->name(),
        one.resource, one.owner_id);
    check(
        error != errc::closed || closed, "early loss",
        "{} is notified that the manager of {} is closed, which it isn't", one.by->name(), one.owner_id);
}

void oracle::check_verdict(const process& by, const report& told, error_code error)
{
    const std::size_t answered = told.count(vote::granted) + told.count(vote::denied);
    const std::size_t pending = told.count(vote::pending);
    check(
        error != errc::held_by_other || answered >= told.quorum(), "verdict", "{}: '{}' with {} answers",
        by.name(), error.message(), answered);
    check(
        error != errc::no_quorum || answered + pending < told.quorum() ||
            (tokens_ && told.count(vote::denied) == 0),
        "verdict", "{}: '{}' with {} answers, and {} that may still come", by.name(), error.message(),
        answered, pending);
}

void oracle::check_round(const process& by, const report& told, error_code error, bool paused)
{
    check_verdict(by, told, error);
    check(
        error || told.validity > clock::duration{0}, "verdict", "{} gets a lease without validity",
        by.name());
    const auto patience = rounds_of(by) * told.node_timeout + std::chrono::milliseconds{1};
    check(
        paused || error == boost::asio::error::operation_aborted || told.elapsed <= patience, "in time",
        "{}: a round with {} ms for its masters took {} us", by.name(), told.node_timeout.count(),
        in_us(told.elapsed));
}

void oracle::check_validity(
    const process& by, const report& told, error_code error, std::chrono::milliseconds ttl,
    std::chrono::milliseconds least)
{
    check(
        error || told.validity > least, "min validity",
        "{} gets a lease that is valid for {} us, not more than {} ms", by.name(), in_us(told.validity),
        least.count());
    const clock::duration left = ttl - told.elapsed - cluster_.drift_of(ttl);
    check(
        error != errc::validity_exhausted || left <= least, "min validity",
        "{} gets no lease, though it would be valid for {} us, more than {} ms", by.name(), in_us(left),
        least.count());
}

void oracle::check_back_off(const process& by, const report& told, clock::duration took)
{
    // A message ends the pause of a client in the queue. It takes a passage, as the next round does. The client's clock may
    // be slow, and it shows whole nanoseconds, rounded down.
    constexpr std::chrono::microseconds passages{100};
    constexpr std::chrono::microseconds rounding{1};
    const clock::duration least = clock::duration{passages} -
                                  clock::duration{passages} * cluster_.drawn().max_drift() / 1'000'000 -
                                  rounding;
    const clock::duration pauses = told.rounds > 1 ? (told.rounds - 1) * least : clock::duration{0};
    check(took >= pauses, "back-off", "{}: {} rounds in {} us", by.name(), told.rounds, in_us(took));
}

void oracle::check_patience(
    const process& by, error_code error, bool hopeless, std::chrono::milliseconds wait, clock::duration took)
{
    const bool is_excused = error == errc::no_quorum && hopeless;
    const bool gave_up =
        error == errc::held_by_other || error == errc::no_quorum || error == errc::validity_exhausted;
    check(
        !gave_up || is_excused || took + std::chrono::milliseconds{1} >= wait, "in time",
        "{}: an acquire that may wait for {} ms gave up after {} us: {}", by.name(), wait.count(),
        in_us(took), error.message());
}

void oracle::check_sent(const process& by, const round_decided& round)
{
    // A process that is stopped in between sends later than it has asked.
    const bool was_stopped = by.last_pause() >= by.now() - round.report.elapsed;
    if (!was_stopped && !reports_.misdirected(by.number()))
    {
        check_reported(sendings_.decided(by.number(), by.now(), round));
    }
}

void oracle::check_silence(const process& by, const master_down& one)
{
    if (one.reason == master_errc::unresponsive && !reports_.misdirected(by.number()))
    {
        // By the fastest clock.
        const clock::duration least =
            cluster_.drawn().response_timeout * 1'000'000 / (1'000'000 + cluster_.drawn().max_drift());
        check_reported(sendings_.unresponsive(by.number(), one.index, least));
    }
}

void oracle::check_wait(
    const process& by, std::chrono::milliseconds wait, std::chrono::milliseconds node_timeout,
    clock::duration took, bool paused)
{
    const clock::duration patience = wait + rounds_of(by) * node_timeout + std::chrono::milliseconds{1};
    check(
        paused || took <= patience, "in time", "{}: an acquire that may wait for {} ms took {} us", by.name(),
        wait.count(), in_us(took));
}

void oracle::check_release(
    const process& by, const lease& released, const std::string& owner_id, const std::string& resource,
    error_code error)
{
    if (error && error != errc::unconfirmed)
    {
        return;
    }
    check(!released.valid(), "final", "{} has released {}, but the lease looks valid", by.name(), resource);
    if (!error)
    {
        check_confirmed(by, owner_id, resource);
    }
}

void oracle::check_confirmed(const process& by, const std::string& owner_id, const std::string& resource)
{
    if (cluster_.drawn().breaks_assumptions)
    {
        return;
    }
    const std::string key = key_of(resource);
    std::size_t keep = 0;
    for (std::size_t master = 0; master < cluster_.masters().size(); ++master)
    {
        keep += !cluster_.leftovers(master) && cluster_.masters()[master]->value(key) == owner_id ? 1U : 0U;
    }
    check(
        keep + quorum_of(cluster_.masters().size()) <= cluster_.masters().size(), "confirmed",
        "{} has released {}, but {} masters still have the key", by.name(), resource, keep);
}

/// Returns whether the client of an owner id is up and releases every outstanding key.
bool oracle::must_release(const std::string& owner_id) const
{
    const auto found = owners_.find(owner_id);
    const process* const by = found != owners_.end() ? cluster_.process_of(found->second) : nullptr;
    return by != nullptr && by->orderly();
}

void oracle::check_released()
{
    for (const auto& [owner_id, master] : wire_.owed())
    {
        check(
            !must_release(owner_id) || cluster_.leftovers(master), "outstanding",
            "master {} ran the SET of {}, but never got its release", master, owner_id);
    }
    for (std::size_t master = 0; master < cluster_.masters().size(); ++master)
    {
        if (cluster_.leftovers(master))
        {
            continue;
        }
        for (const auto& [key, owner_id] : cluster_.masters()[master]->contents())
        {
            const auto found = owners_.find(owner_id);
            check(
                !must_release(owner_id), "released", "master {} still has {} of client {}: {}", master, key,
                found != owners_.end() ? found->second : 0, owner_id);
        }
    }
}

void oracle::check_outstanding()
{
    const std::string refused = key_of(cluster_.resource_name(resource::refused));
    // A key that a master may have set before it answered with an error counts.
    bool is_known = cluster_.drawn().habits.empty();
    // One that was released is there again if its master loses its last writes.
    const auto owed = wire_.owed();
    std::map<int, std::size_t> kept; // By process.
    for (std::size_t master = 0; master < cluster_.masters().size(); ++master)
    {
        // A release that is refused permanently isn't repeated, and its key stays. A slow disk delays commands.
        is_known = is_known && !cluster_.leftovers(master) &&
                   cluster_.masters()[master]->fsync == clock::duration{0};
        for (const auto& [key, owner_id] : cluster_.masters()[master]->contents())
        {
            const bool is_owed =
                std::find(owed.begin(), owed.end(), std::pair{owner_id, master}) != owed.end();
            const auto found = key == refused || !is_owed ? owners_.end() : owners_.find(owner_id);
            kept[found != owners_.end() ? found->second : 0] += 1;
        }
    }
    for (const auto& each : cluster_.processes())
    {
        if (!is_known || !each->usable() || !each->orderly())
        {
            continue; // Another manager of the process may have set them.
        }
        const std::size_t expected = kept[each->number()];
        const std::size_t counted = outstanding_keys(*each).value_or(expected);
        check(
            counted == expected, "outstanding count", "{} counts {} keys as outstanding, and {} are",
            each->name(), counted, expected);
    }
}

} // namespace redlock::test
