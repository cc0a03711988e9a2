// SPDX-License-Identifier: BSL-1.0
// What happens to the pipeline and its model, one thing after the other.
#include "model_pipeline.hpp"

#include "net/command.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace redlock::test
{

namespace
{

boost::intrusive_ptr<listener> listener_for(asked what, const net::claim& of)
{
    boost::intrusive_ptr<listener> who{new listener};
    who->what = what;
    who->of = &of;
    return who;
}

} // namespace

void model_pipeline::act()
{
    now_ += std::chrono::milliseconds{1};
    const std::uint8_t what = input_.byte();
    counted_claim& one = *claims_[what / 16U % max_claims];
    switch (what % 16)
    {
    case 0:
        push_set(one, asked::set);
        break;
    case 1:
        push_set(one, asked::turn);
        break;
    case 2:
        push_extend(one);
        break;
    case 3:
    case 4:
        push_release(one);
        break;
    case 5:
        push_query();
        break;
    case 6:
        pipeline_->push_probe(now_);
        queue_.push_back({asked::probe, {}});
        ++unwritten_;
        break;
    case 7:
        break_off();
        break;
    case 8:
        release_what_is_due();
        break;
    case 9:
        read(input_.text(32));
        break;
    case 10:
    case 11:
    case 12:
        write();
        break;
    default:
        answer();
    }
    check();
}

/// A SET, or the question for the turn, which is the first thing that is asked for a claim.
void model_pipeline::push_set(counted_claim& of, asked what)
{
    // Nothing is sent after a release; once that is done with, it may be another lease's claim.
    const bool in_flight =
        std::any_of(queue_.begin(), queue_.end(), [&](const place& each) { return each.of == &of; });
    of.given_back = of.given_back && (in_flight || of.at(0).state != net::outstanding_state::none);
    const bool first = !in_flight && of.at(0).state == net::outstanding_state::none;
    const bool behind_turn = std::any_of(
        queue_.begin(), queue_.end(),
        [&](const place& each) { return each.of == &of && each.what == asked::turn; });
    if (of.given_back || behind_turn || (what == asked::turn && !first))
    {
        return;
    }
    if (!owed_->has_room(of))
    {
        require(owed_->count() >= max_outstanding_, "a SET is refused though there is room");
        return;
    }
    boost::intrusive_ptr<listener> who = listener_for(what, of);
    std::string text;
    if (what == asked::turn)
    {
        who->wants = input_.below(2) == 0;
        net::append_turn(text, of, turn_request, net::script_form::digest);
    }
    else
    {
        net::append_set(text, of, ttl);
    }
    if (!pipeline_->has_room(text.size()))
    {
        return;
    }
    if (what == asked::turn)
    {
        pipeline_->push_turn(of, text, *who, now_);
    }
    else
    {
        pipeline_->push_set(of, text, who.get(), now_);
    }
    queue_.push_back({what, std::move(who), &of});
    ++unwritten_;
}

void model_pipeline::push_extend(counted_claim& of)
{
    boost::intrusive_ptr<listener> who = listener_for(asked::extend, of);
    who->wants = input_.below(2) == 0;
    std::string text;
    net::append_extend(text, of, ttl, net::script_form::digest);
    const bool room = pipeline_->has_room(text.size());
    const bool taken = pipeline_->push_extend(of, text, *who, now_);
    const bool expected = queue_.size() < 2 * max_outstanding_ && room;
    require(taken == expected, "an extension is taken beyond the limit, or refused before");
    if (taken)
    {
        queue_.push_back({asked::extend, std::move(who), &of});
        ++unwritten_;
    }
}

void model_pipeline::push_release(counted_claim& of)
{
    of.given_back = true;
    owed_->mark_due(of);
    const bool due = of.at(0).state == net::outstanding_state::due;
    boost::intrusive_ptr<listener> who{new listener};
    std::string text;
    net::append_release(text, of, net::script_form::digest);
    const bool room = pipeline_->has_room(text.size());
    const bool taken = pipeline_->push_release(of, text, who.get(), now_);
    require(!taken || due || queue_.size() < 2 * max_outstanding_, "a release is taken beyond the limit");
    require(
        taken || !room || !(due || queue_.size() < 2 * max_outstanding_),
        "a release is refused though there is room");
    if (taken)
    {
        queue_.push_back({asked::release, std::move(who), &of});
        ++unwritten_;
    }
}

void model_pipeline::push_query()
{
    boost::intrusive_ptr<listener> who{new listener};
    const std::string_view text = "*1\r\n$4\r\nTIME\r\n";
    const bool room = pipeline_->has_room(text.size());
    const bool taken = pipeline_->push_query(text, *who, now_);
    const bool expected = queue_.size() < 2 * max_outstanding_ && room;
    require(taken == expected, "a question is taken beyond the limit, or refused before");
    if (taken)
    {
        queue_.push_back({asked::query, std::move(who)});
        ++unwritten_;
    }
}

void model_pipeline::release_what_is_due()
{
    for (std::size_t left = max_claims; net::claim* next = owed_->next_due(); --left)
    {
        require(left > 0, "there is always something due");
        auto& of = static_cast<counted_claim&>(*next);
        std::string text;
        net::append_release(text, of, net::script_form::digest);
        if (!pipeline_->push_release(of, text, nullptr, now_))
        {
            require(!pipeline_->has_room(text.size()), "a release that is owed is refused");
            return;
        }
        queue_.push_back({asked::release, {}, &of});
        ++unwritten_;
    }
}

} // namespace redlock::test
