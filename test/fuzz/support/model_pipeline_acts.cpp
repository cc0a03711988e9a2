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
        push_set(one, asked::question);
        break;
    case 2:
        push_extend(one);
        break;
    case 3:
        push_release(one, asked::release);
        break;
    case 4:
        push_release(one, asked::queue_release);
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
        push_due();
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

/// A SET, or a question, which is the first command of a claim.
void model_pipeline::push_set(counted_claim& of, asked what)
{
    // Nothing is sent after a release; once that is done with, it may be another lease's claim.
    // A due release in flight names its claim only when it is written.
    const bool in_flight =
        std::any_of(queue_.begin(), queue_.end(), [&](const place& each) { return each.of == &of; }) ||
        std::find(due_unwritten_.begin(), due_unwritten_.end(), &of) != due_unwritten_.end();
    of.released = of.released && (in_flight || of.at(0).state != net::outstanding_state::none);
    const bool first = !in_flight && of.at(0).state == net::outstanding_state::none;
    const bool behind_question = std::any_of(
        queue_.begin(), queue_.end(),
        [&](const place& each) { return each.of == &of && each.what == asked::question; });
    if (of.released || behind_question || (what == asked::question && !first))
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
    if (what == asked::question)
    {
        who->wants = input_.below(2) == 0;
        net::append_ask(text, of, model_question, net::script_form::digest);
    }
    else
    {
        net::append_set(text, of, ttl);
    }
    if (!pipeline_->has_room(text.size()))
    {
        return;
    }
    if (what == asked::question)
    {
        pipeline_->push_ask(of, text, *who);
    }
    else
    {
        pipeline_->push_set(of, text, who.get());
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
    const bool taken = pipeline_->push_extend(of, text, *who);
    const bool expected = queue_.size() < 2 * max_outstanding_ && room;
    require(taken == expected, "an extension is taken beyond the limit, or refused before");
    if (taken)
    {
        queue_.push_back({asked::extend, std::move(who), &of});
        ++unwritten_;
    }
}

void model_pipeline::push_release(counted_claim& of, asked what)
{
    of.released = true;
    owed_->mark_due(of);
    const bool due = of.at(0).state == net::outstanding_state::due;
    const bool for_queue = what == asked::queue_release;
    boost::intrusive_ptr<listener> who{new listener};
    std::string text;
    switch (for_queue ? input_.below(4) : 4)
    {
    case 0:
        net::append_queue_release(text, of, model_question.grace, net::script_form::digest);
        break;
    case 1:
        net::append_leave(text, of, model_question.grace, model_question.member);
        who = nullptr;
        break;
    case 2:
        net::append_leave(text, of, model_question.grace, std::nullopt);
        who = nullptr;
        break;
    case 3:
        net::append_lost_release(text, of, model_question, std::chrono::milliseconds{3});
        who = nullptr;
        break;
    default:
        net::append_release(text, of, net::script_form::digest);
    }
    const bool room = pipeline_->has_room(text.size());
    const bool taken = pipeline_->push_release(of, {text, for_queue}, who.get());
    require(!taken || due || queue_.size() < 2 * max_outstanding_, "a release is taken beyond the limit");
    require(
        taken || !room || !(due || queue_.size() < 2 * max_outstanding_),
        "a release is refused though there is room");
    if (taken)
    {
        queue_.push_back({what, std::move(who), &of});
        ++unwritten_;
    }
}

void model_pipeline::push_query()
{
    boost::intrusive_ptr<listener> who{new listener};
    const std::string_view text = "*1\r\n$4\r\nTIME\r\n";
    const bool room = pipeline_->has_room(text.size());
    const bool taken = pipeline_->push_query(text, *who);
    const bool expected = queue_.size() < 2 * max_outstanding_ && room;
    require(taken == expected, "a question is taken beyond the limit, or refused before");
    if (taken)
    {
        queue_.push_back({asked::query, std::move(who)});
        ++unwritten_;
    }
}

/// The order of the due releases is found when they are written.
void model_pipeline::push_due()
{
    const auto is_due = [](const auto& each) { return each->at(0).state == net::outstanding_state::due; };
    std::vector<counted_claim*> due;
    for (const auto& each : claims_)
    {
        if (is_due(each))
        {
            due.push_back(each.get());
        }
    }
    const bool may_send = pipeline_->backoff().may_send(now_);
    pipeline_->push_due(now_);
    const auto left = static_cast<std::size_t>(std::count_if(due.begin(), due.end(), is_due));
    require(may_send || left == due.size(), "releases are repeated too soon");
    if (may_send && left > 0)
    {
        std::string text;
        net::append_leave(text, *due.front(), model_question.grace, {});
        require(!pipeline_->has_room(text.size()), "a release that is due isn't sent");
    }
    for (counted_claim* each : due)
    {
        if (!is_due(each))
        {
            require(each->at(0).state == net::outstanding_state::release_sent, "a due release is forgotten");
            due_unwritten_.push_back(each);
            queue_.push_back({asked::due_release, {}});
            ++unwritten_;
        }
    }
}

} // namespace redlock::test
