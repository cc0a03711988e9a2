// SPDX-License-Identifier: BSL-1.0
// The report of a round: its counts, and its text.
#include <redlock/report.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <ostream>
#include <utility>

namespace redlock
{

namespace
{

constexpr std::string_view truncation_mark = "...";

/// Returns a byte as printable text, stored in `room` if necessary. A backslash isn't escaped, so that escaping twice
/// has no further effect.
std::string_view escape(unsigned char byte, std::array<char, 4>& room) noexcept
{
    constexpr std::string_view digits = "0123456789abcdef";
    switch (byte)
    {
    case '\r':
        return "\\r";
    case '\n':
        return "\\n";
    default:
        break;
    }
    if (byte >= 0x20 && byte < 0x7f)
    {
        room[0] = static_cast<char>(byte);
        return {room.data(), 1};
    }
    room = {'\\', 'x', digits[byte >> 4], digits[byte & 0x0f]};
    return {room.data(), room.size()};
}

/// The words for granted and denied, which depend on the operation.
std::string_view word_of(operation what, vote value) noexcept
{
    switch (what)
    {
    case operation::extend:
        return value == vote::granted ? "extended" : value == vote::denied ? "not ours" : to_string(value);
    case operation::release:
        return value == vote::granted  ? "released"
               : value == vote::denied ? "already gone"
                                       : to_string(value);
    case operation::acquire:
        break;
    }
    return to_string(value);
}

/// The error in two or three words; empty for an unknown value.
std::string_view word_of(errc result) noexcept
{
    switch (result)
    {
    case errc::held_by_other:
        return "held by another";
    case errc::no_quorum:
        return "no quorum";
    case errc::validity_exhausted:
        return "validity exhausted";
    case errc::lease_lost:
        return "lease lost";
    case errc::hold_limit_reached:
        return "hold limit reached";
    case errc::not_held:
        return "not held";
    case errc::too_many_operations:
        return "too many operations";
    case errc::unconfirmed:
        return "unconfirmed";
    case errc::closed:
        return "closed";
    case errc::invalid_resource:
    case errc::invalid_ttl:
    case errc::invalid_wait:
    case errc::invalid_min_validity:
    case errc::invalid_max_rounds:
    case errc::invalid_max_hold:
    case errc::invalid_schedule:
    case errc::invalid_master:
    case errc::invalid_config:
        return "refused";
    case errc::provisioning_failed:
        return "not provisioned";
    }
    return {};
}

/// In milliseconds with one decimal, or with two below 1 ms.
std::string in_ms(std::chrono::nanoseconds value)
{
    const double ms = std::chrono::duration<double, std::milli>{value}.count();
    return ms < 1.0 && ms > 0.0 ? fmt::format("{:.2f} ms", ms) : fmt::format("{:.1f} ms", ms);
}

std::string result_line(const report& value)
{
    if (!value.result)
    {
        return value.already_gone() ? "success (the key was already missing on a quorum)" : "success";
    }
    const std::string text = value.argument_error.empty() ? value.result.message() : value.argument_error;
    const bool ours = value.result.category() == error_category();
    const std::string_view word =
        ours ? word_of(static_cast<errc>(value.result.value())) : std::string_view{};
    return word.empty() ? text : fmt::format("{} ({})", word, text);
}

/// Such as "granted after 0.2 ms" or "unsent: Connection refused".
std::string master_line(operation what, const master_report& master)
{
    std::string line{word_of(what, master.vote)};
    if (master.vote != vote::pending && master.vote != vote::unsent)
    {
        line += " after " + in_ms(master.elapsed);
    }
    const std::string_view detail = master.detail.view();
    if (master.reason)
    {
        line += ": " + master.reason.message();
    }
    if (!detail.empty())
    {
        line += fmt::format(" (\"{}\")", detail);
    }
    return line;
}

} // namespace

std::string_view to_string(operation value) noexcept
{
    switch (value)
    {
    case operation::acquire:
        return "acquire";
    case operation::extend:
        return "extend";
    case operation::release:
        return "release";
    }
    return "unknown";
}

short_text::short_text(std::string_view raw) noexcept
{
    static_assert(capacity >= truncation_mark.size() && capacity <= UINT8_MAX);
    std::size_t end = 0;
    std::size_t end_before_mark = 0; // The last end of an escaped byte after which the mark still fits.
    for (const char character : raw)
    {
        std::array<char, 4> room{};
        const std::string_view escaped = escape(static_cast<unsigned char>(character), room);
        if (end + escaped.size() > capacity)
        {
            end = end_before_mark +
                  truncation_mark.copy(bytes_.data() + end_before_mark, truncation_mark.size());
            break;
        }
        end += escaped.copy(bytes_.data() + end, escaped.size());
        if (end + truncation_mark.size() <= capacity)
        {
            end_before_mark = end;
        }
    }
    size_ = static_cast<std::uint8_t>(end);
}

std::string_view report::name(std::size_t index) const
{
    assert(index < count_);
    return (*names_)[index];
}

std::size_t report::count(vote value) const noexcept
{
    const auto all = masters();
    const auto found = std::count_if(
        all.begin(), all.end(), [value](const master_report& one) { return one.vote == value; });
    return static_cast<std::size_t>(found);
}

bool report::already_gone() const noexcept
{
    return operation == redlock::operation::release && count(vote::denied) >= quorum();
}

std::string report::to_string() const
{
    std::string text = fmt::format("{}: {}", redlock::to_string(operation), result_line(*this));
    if (count_ == 0 || names_ == nullptr) // Moved from.
    {
        return text;
    }
    auto out = std::back_inserter(text);
    fmt::format_to(
        out, ": {} {}, {} {} of {}; {} needed; node timeout {} ms; round {} took {}", count(vote::granted),
        word_of(operation, vote::granted), count(vote::denied), word_of(operation, vote::denied), count_,
        quorum(), node_timeout.count(), rounds, in_ms(elapsed));
    if (validity > std::chrono::nanoseconds::zero())
    {
        fmt::format_to(out, "; valid for {}", in_ms(validity));
    }
    if (queue && result)
    {
        fmt::format_to(
            out, "; position {} of {} in the queue at {}", queue->ahead + 1, queue->waiting,
            name(queue->master));
    }
    for (std::size_t index = 0; index < count_; ++index)
    {
        fmt::format_to(out, "\n  {}: {}", name(index), master_line(operation, masters_[index]));
    }
    return text;
}

void report::assign(std::shared_ptr<const detail::master_names> names, std::span<const master_report> votes)
{
    assert(names != nullptr && names->size() >= votes.size());
    assert(votes.size() <= max_masters);
    names_ = std::move(names);
    count_ = votes.size();
    std::copy(votes.begin(), votes.end(), masters_.begin());
}

std::ostream& operator<<(std::ostream& out, const report& value)
{
    return out << value.to_string();
}

} // namespace redlock
