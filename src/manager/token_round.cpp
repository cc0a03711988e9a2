// SPDX-License-Identifier: BSL-1.0
// The fencing token of a round in guarded mode.
#include "manager/token_round.hpp"

#include "manager/guard.hpp"
#include "manager/lock_service.hpp"

namespace redlock::manager
{

namespace
{

constexpr std::uint32_t mask_of(std::size_t master) noexcept
{
    return std::uint32_t{1} << master;
}

} // namespace

token_round::token_round(lock_service& service, round& of, std::size_t masters)
    : service_{service}, of_{of}, masters_{masters}, choice_{masters}
{
}

void token_round::begin(std::uint64_t hint) noexcept
{
    hint_ = hint;
    choice_ = core::token_choice{masters_};
    sent_ = pending_ = 0;
    failed_.clear();
}

void token_round::add_grant(std::size_t master, std::uint64_t counter) noexcept
{
    choice_.add_grant(master, counter);
}

void token_round::raise() noexcept
{
    bool sends = false;
    for (std::size_t master = 0; master < masters_; ++master)
    {
        if (choice_.is_below_target(master) && (sent_ & mask_of(master)) == 0)
        {
            sent_ |= mask_of(master);
            pending_ |= mask_of(master);
            if (!std::exchange(keeps_round_, true))
            {
                intrusive_ptr_add_ref(&of_);
            }
            // Held until the call returns, so that a raise that can't be sent doesn't end the round inside of it.
            const net::vote_sink_ptr self{this};
            service_.send_raise(of_, master, choice_.target(), *this);
            sends = true;
        }
    }
    if (sends && pending_ != 0)
    {
        service_.strand().arm(deadline_, service_.strand().now() + of_.node_timeout());
    }
}

core::verdict token_round::outcome(std::size_t pending) const noexcept
{
    if (choice_.token())
    {
        return core::verdict::won;
    }
    return choice_.is_possible(pending) ? core::verdict::undecided : core::verdict::lost;
}

void token_round::amend(std::size_t master, master_report& out) const
{
    if (!failed_.empty() && failed_[master].what != vote::granted)
    {
        const failing& found = failed_[master];
        out.vote = found.what;
        out.reason = found.reason;
        out.detail = found.detail;
    }
}

void token_round::on_vote(std::size_t master, const net::answer& result, clock::time_point) noexcept
{
    if ((pending_ & mask_of(master)) == 0)
    {
        return; // Its time is over.
    }
    pending_ &= ~mask_of(master);
    if (result.vote == vote::granted)
    {
        choice_.add_raised(master);
    }
    else
    {
        fail(master, result);
    }
    if (pending_ == 0)
    {
        deadline_.disarm();
    }
    of_.on_raised();
}

void token_round::fail(std::size_t master, const net::answer& result) noexcept
{
    choice_.add_failed_raise(master);
    // The master was asked, and has granted.
    const vote what = result.vote == vote::timed_out ? vote::timed_out : vote::failed;
    failed_.resize(masters_);
    failed_[master] = {what, result.reason, service_.redacted().show(result.text)};
    if (net::is_guard_refusal(result))
    {
        service_.guarded()->look_again(master);
    }
}

void token_round::on_timeout() noexcept
{
    const net::answer none = net::make_failed_vote(vote::timed_out, master_errc::timed_out);
    for (std::size_t master = 0; master < masters_; ++master)
    {
        if ((pending_ & mask_of(master)) != 0)
        {
            fail(master, none);
        }
    }
    pending_ = 0;
    of_.on_raised();
}

bool token_round::append_in_full(std::size_t master, std::string& out) const
{
    return (pending_ & mask_of(master)) != 0 &&
           service_.append_raise(out, of_, master, choice_.target(), net::script_form::text);
}

void token_round::recycle() noexcept
{
    keeps_round_ = false;
    intrusive_ptr_release(&of_);
}

} // namespace redlock::manager
